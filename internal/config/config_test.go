package config

import (
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// load calls Load as a command does: with the content of a configuration file, if
// not empty, the environment and the command line.
func load(t *testing.T, file string, environ, args []string) (Config, error) {
	t.Helper()
	if file != "" {
		environ = append(slices.Clone(environ), "SVC_CONFIG="+writeFile(t, file))
	}
	return Load(flagSet(t, args), environ)
}

func flagSet(t *testing.T, args []string) *pflag.FlagSet {
	t.Helper()
	fs := pflag.NewFlagSet("svc", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return fs
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "svc.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got, err := Load(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Addr:             "127.0.0.1:8080",
		DataDir:          filepath.Join(dir, "data"),
		ExternalURL:      "http://127.0.0.1:8080",
		SSHAddr:          "127.0.0.1:2222",
		Tier:             "ultimate",
		ServiceName:      "svc",
		ErrorBackendName: "errsvc",
		Storages:         map[string]string{"default": filepath.Join(dir, "data", "repositories")},
		GitCacheDir:      filepath.Join(dir, "data", "git-cache"),
		GitCacheSize:     10 << 30,
		Runner:           "off",
		RunnerDir:        filepath.Join(dir, "data", "runner"),
		LogFormat:        "auto",
		LogLevel:         slog.LevelInfo,
		ShutdownTimeout:  30 * time.Second,

		ReadTimeout:              10 * time.Second,
		AnonymousReadTimeout:     5 * time.Second,
		CodeIndexFile:            1 << 20,
		CodeIndexProject:         1 << 30,
		MinFreeDisk:              DiskSpace{Bytes: 100 << 20},
		MaxConnectionsPerAddress: 256,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// TestEverySettingInEveryLayer sets each setting to different values in the file,
// the environment and a flag, and checks their precedence.
func TestEverySettingInEveryLayer(t *testing.T) {
	t.Parallel()
	// Three valid values for each key: for the file, the environment and the flag.
	texts := map[string][3]string{
		"read_timeout":           {"1s", "2s", "3s"},
		"anonymous_read_timeout": {"1s", "2s", "3s"},
		"addr":                   {"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"},
		"data_dir":               {"/f", "/e", "/a"},
		"external_url":           {"https://f.example", "https://e.example", "https://a.example"},
		"database_url":           {"postgres://f/db", "postgres://e/db", "postgresql://a/db"},
		"blob_url":               {"s3://file", "s3://env", "s3://arg"},
		"root_password":          {"file", "env", "arg"},
		"root_token":             {"file", "env", "arg"},
		"ssh_addr":               {"10.0.0.1:1", "off", "10.0.0.1:3"},
		"ssh_port":               {"22", "23", "24"},
		"pages_addr":             {"10.0.0.1:1", "10.0.0.1:2", "off"},
		"pages_tls_addr":         {"10.0.0.1:1", "10.0.0.1:2", "off"},
		"pages_url":              {"https://f.example", "http://e.example:81", "https://a.example"},
		"pages_cert":             {"/f", "/e", "/a"},
		"pages_key":              {"/f", "/e", "/a"},
		"pages_acme_url":         {"https://f.example/dir", "https://e.example/dir", "off"},
		"pages_acme_email":       {"f@example.org", "e@example.org", "a@example.org"},
		"pages_acme_root":        {"/f", "/e", "/a"},
		"smtp_url":               {"smtp://f", "smtps://e:465", "smtp://a:25"},
		"tier":                   {"free", "premium", "ultimate"},
		"hosted":                 {"true", "false", "true"},
		"service_name":           {"file", "env", "arg"},
		"token_prefix":           {"file", "env", "arg"},
		"cookie_prefix":          {"file", "env", "arg"},
		"error_backend_name":     {"file", "env", "arg"},
		"storages":               {"f=/f", "e=/e", "default=/d,a=/a"},
		"git_cache_dir":          {"/f", "/e", "/d"},
		"git_cache_size":         {"1GiB", "2GiB", "3GiB"},
		"runner":                 {"builtin", "off", "builtin"},
		"runner_projects":        {"f", "e,e/e", "a/b"},
		"runner_tags":            {"f", "e,e2", "a"},
		"runner_open_signup":     {"true", "false", "true"},
		"runner_concurrency":     {"1", "2", "3"},
		"runner_dir":             {"/f", "/e", "/a"},
		"runner_url":             {"https://f.example", "https://e.example", "https://a.example"},
		"runner_token":           {"file", "env", "arg"},
		"example":                {"true", "false", "true"},
		"log_format":             {"auto", "text", "json"},
		"log_level":              {"debug", "warn", "error"},
		"min_free_disk":          {"500MiB", "5%", "0"},
		"shutdown_delay":         {"1s", "2s", "3s"},
		"shutdown_timeout":       {"1s", "2s", "3s"},
		"proxy_protocol":         {"10.0.0.0/8", "127.0.0.1", "::1,fd00::/8"},
		"trusted_proxies":        {"10.0.0.0/8", "127.0.0.1", "::1,fd00::/8"},

		"providers": {`[{"name":"f","kind":"oidc","issuer":"https://f.example","client_id":"f","client_secret":"f"}]`,
			`[{"name":"e","kind":"oidc","issuer":"https://e.example","client_id":"e","client_secret":"e"}]`, `[]`},
		"max_connections":             {"100", "200", "300"},
		"max_connections_per_address": {"0", "10", "20"},
		"git_memory":                  {"128MiB", "2GiB", "1TiB"},
		"code_index_file":             {"2MiB", "3MiB", "64MiB"},
		"code_index_project":          {"0", "2GiB", "1TiB"},
	}
	for _, s := range settings() {
		t.Run(s.key, func(t *testing.T) {
			t.Parallel()
			text, ok := texts[s.key]
			if !ok {
				t.Fatalf("the setting %s has no row in this test", s.key)
			}
			file := s.key + ": '" + text[0] + "'\n"
			env := []string{"HOME=/root", s.env() + "=" + text[1]}
			args := []string{"--" + s.flag() + "=" + text[2]}
			layers := []struct {
				name      string
				file      string
				env, args []string
				want      string
			}{
				{"default", "", nil, nil, s.def},
				{"file", file, nil, nil, text[0]},
				{"environment over file", file, env, nil, text[1]},
				{"flag over both", file, env, args, text[2]},
				{"flag over file", file, nil, args, text[2]},
				{"empty variable over file", file, []string{s.env() + "="}, nil, text[0]},
			}
			for _, l := range layers {
				got, err := load(t, l.file, l.env, l.args)
				if err != nil {
					t.Fatalf("%s: %v", l.name, err)
				}
				var want Config
				for _, other := range settings() {
					from := other.def
					if other.key == s.key {
						from = l.want
					}
					if err := other.field.set(&want, from); err != nil {
						t.Fatal(err)
					}
				}
				want.complete()
				prefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
				if diff := cmp.Diff(want, got, prefix); diff != "" {
					t.Errorf("%s (-want +got):\n%s", l.name, diff)
				}
			}
		})
	}
	if got := slices.Collect(maps.Keys(texts)); len(got) != len(settings()) {
		t.Errorf("%d rows for %d settings", len(got), len(settings()))
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
		env  []string
		args []string
		get  func(Config) any
		want any
	}{
		{name: "external URL loses its slash", env: []string{"SVC_EXTERNAL_URL=https://Forge.Example:8443/"},
			get: func(c Config) any { return c.ExternalURL }, want: "https://forge.example:8443"},
		{name: "external URL loses the default port", env: []string{"SVC_EXTERNAL_URL=https://forge.example:443"},
			get: func(c Config) any { return c.ExternalURL }, want: "https://forge.example"},
		{name: "external URL keeps the default port of another scheme", env: []string{"SVC_EXTERNAL_URL=https://[::1]:80"},
			get: func(c Config) any { return c.ExternalURL }, want: "https://[::1]:80"},
		{name: "external URL of the default port", env: []string{"SVC_ADDR=[::1]:80"},
			get: func(c Config) any { return c.ExternalURL }, want: "http://[::1]"},
		{name: "external URL follows addr", env: []string{"SVC_ADDR=[::1]:9000"},
			get: func(c Config) any { return c.ExternalURL }, want: "http://[::1]:9000"},
		{name: "external URL of a server that listens everywhere", env: []string{"SVC_ADDR=:9000"},
			get: func(c Config) any { return c.ExternalURL }, want: "http://localhost:9000"},
		{name: "external URL of the unspecified address", args: []string{"--addr", "0.0.0.0:9000"},
			get: func(c Config) any { return c.ExternalURL }, want: "http://localhost:9000"},
		{name: "external URL is open while the port is", env: []string{"SVC_ADDR=127.0.0.1:0"},
			get: func(c Config) any { return c.ExternalURL }, want: ""},
		{name: "external URL is kept while the port is open", env: []string{"SVC_ADDR=127.0.0.1:0", "SVC_EXTERNAL_URL=http://f.example"},
			get: func(c Config) any { return c.ExternalURL }, want: "http://f.example"},
		{name: "off turns SSH off", env: []string{"SVC_SSH_ADDR=off"},
			get: func(c Config) any { return c.SSHAddr }, want: ""},
		{name: "off in YAML is not a boolean", file: "ssh_addr: off\nrunner: off\n",
			get: func(c Config) any { return c.SSHAddr + c.Runner }, want: "off"},
		{name: "a bare flag is true", args: []string{"--hosted"},
			get: func(c Config) any { return c.Hosted }, want: true},
		{name: "a flag can be false", env: []string{"SVC_HOSTED=1"}, args: []string{"--hosted=false"},
			get: func(c Config) any { return c.Hosted }, want: false},
		{name: "a flag that is off", args: []string{"--hosted=0"},
			get: func(c Config) any { return c.Hosted }, want: false},
		{name: "an empty flag empties", env: []string{"SVC_SMTP_URL=smtp://mail"}, args: []string{"--smtp-url="},
			get: func(c Config) any { return string(c.SMTPURL) }, want: ""},
		{name: "storages beside the default", env: []string{"SVC_DATA_DIR=/d", "SVC_STORAGES=fast=/ssd, slow=/hdd"},
			get: func(c Config) any { return c.Storages }, want: map[string]string{"default": "/d/repositories", "fast": "/ssd", "slow": "/hdd"}},
		{name: "storages in buckets", env: []string{"SVC_DATA_DIR=/d", "SVC_STORAGES=own=s3, other=s3://b?region=r&secret_key=k"},
			get:  func(c Config) any { return c.Storages },
			want: map[string]string{"default": "/d/repositories", "own": "/d/git-cache/own", "other": "/d/git-cache/other"}},
		{name: "buckets without their secrets", env: []string{"SVC_STORAGES=default=s3, other=s3://b?region=r&secret_key=k"},
			get: func(c Config) any {
				_, shown, _ := strings.Cut(c.String(), "storages=")
				shown, _, _ = strings.Cut(shown, "]")
				return shown + string(c.Buckets["other"])
			}, want: "map[default:s3 other:s3://b?region=rs3://b?region=r&secret_key=k"},
		{name: "storages as a mapping", file: "storages:\n  default: /a\n  fast: /b\n",
			get: func(c Config) any { return c.Storages }, want: map[string]string{"default": "/a", "fast": "/b"}},
		{name: "proxies as a list, masked", file: "trusted_proxies:\n- 10.1.2.3/8\n- ::1\n",
			get:  func(c Config) any { return c.TrustedProxies },
			want: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}},
		{name: "a database on a socket", env: []string{"SVC_DATABASE_URL=postgres://svc@/svc?host=/run/pg"},
			get: func(c Config) any { return string(c.DatabaseURL) }, want: "postgres://svc@/svc?host=/run/pg"},
		{name: "a key without a value is not given", file: "tier:\naddr: ~\n",
			get: func(c Config) any { return c.Tier + c.Addr }, want: "ultimate127.0.0.1:8080"},
		{name: "an empty file", file: "# nothing yet\n",
			get: func(c Config) any { return c.Tier }, want: "ultimate"},
		{name: "an empty document", file: "---\n",
			get: func(c Config) any { return c.Tier }, want: "ultimate"},
		{name: "names left to others", env: []string{
			"SVC_TEST_ANYTHING=1", "SVC_SERVICE_HOST=10.0.0.1", "SVC_SERVICE_PORT=80", "SVC_SERVICE_PORT_HTTP=80",
			"SVC_PORT=tcp://10.0.0.1:80", "SVC_PORT_80_TCP=tcp://10.0.0.1:80", "SVC_PORT_80_TCP_ADDR=10.0.0.1",
			"SVC_PORT_80_TCP_PORT=80", "SVC_PORT_80_TCP_PROTO=tcp", "SVC_WEB_SERVICE_HOST=10.0.0.2", "SVC_WEB_PORT=tcp://10.0.0.2:80",
			"SVCS=1", "svc_addr=x", "SVC_EMPTY="},
			get: func(c Config) any { return c.Tier }, want: "ultimate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := load(t, tt.file, tt.env, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			prefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
			if diff := cmp.Diff(tt.want, tt.get(c), prefix); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFileOfFlagBeatsVariable(t *testing.T) {
	t.Parallel()
	one, two := writeFile(t, "tier: free\n"), writeFile(t, "tier: premium\n")
	c, err := load(t, "", []string{"SVC_CONFIG=" + one}, []string{"--config", two})
	if err != nil {
		t.Fatal(err)
	}
	if c.Tier != "premium" {
		t.Errorf("tier is %s: the file of the variable was read", c.Tier)
	}
}

// TestSomeFlags checks that a command with only some of the flags can load the
// configuration, and that its other flags are ignored.
func TestSomeFlags(t *testing.T) {
	t.Parallel()
	fs := pflag.NewFlagSet("admin", pflag.ContinueOnError)
	fs.String("tier", "ignored default", "")
	fs.String("username", "", "")
	if err := fs.Parse([]string{"--username=eve"}); err != nil {
		t.Fatal(err)
	}
	c, err := Load(fs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Tier != "ultimate" {
		t.Errorf("tier is %q: a flag that was not set counted", c.Tier)
	}
}

func TestHelpNamesEverything(t *testing.T) {
	t.Parallel()
	usage := flagSet(t, nil).FlagUsages()
	for _, want := range []string{
		"--config file", "($SVC_CONFIG)",
		"--addr host:port", `($SVC_ADDR) (default "127.0.0.1:8080")`,
		"--hosted  ", "--external-url URL", "($SVC_EXTERNAL_URL) (default: http://<addr>)",
	} {
		if !strings.Contains(usage, want) {
			t.Errorf("the flags' help lacks %q:\n%s", want, usage)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if Version() != "devel" || Revision() != "unknown" {
		t.Errorf("a test binary calls itself %s, %s", Version(), Revision())
	}
}

func TestCookies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, prefix, want string }{{"svc", "", "svc"}, {"gitlab", "", "gitlab"}, {"gitlab", "x", "x"}} {
		if got := (&Config{ServiceName: tt.name, CookiePrefix: tt.prefix}).Cookies(); got != tt.want {
			t.Errorf("%s, %q: %q, want %q", tt.name, tt.prefix, got, tt.want)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, prefix, want string }{{"svc", "", "svc"}, {"gitlab", "", "gl"}, {"gitlab", "x", "x"}, {"svc", "gl", "gl"}} {
		if got := (&Config{ServiceName: tt.name, TokenPrefix: tt.prefix}).Tokens(); got != tt.want {
			t.Errorf("%s, %q: %q, want %q", tt.name, tt.prefix, got, tt.want)
		}
	}
}
