package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestErrors checks error messages. FILE in an expected message is the path of the
// file.
func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
		env  []string
		args []string
		want []string
	}{
		{name: "bad value in a variable", env: []string{"SVC_TIER=gold"},
			want: []string{`config: SVC_TIER: "gold" is not one of free, premium, ultimate`}},
		{name: "bad disk space", env: []string{"SVC_MIN_FREE_DISK=101%"}, args: []string{"--tier=gold"},
			want: []string{
				`config: --tier: "gold" is not one of free, premium, ultimate`,
				`config: SVC_MIN_FREE_DISK: "101%" is not a space such as 500MiB, 2GiB or 5%, or 0`,
			}},
		{name: "bad value in a flag", args: []string{"--tier", "gold"},
			want: []string{`config: --tier: "gold" is not one of free, premium, ultimate`}},
		{name: "bad value in the file", file: "addr: :80\n\ntier: gold\n",
			want: []string{`config file FILE:3: tier: "gold" is not one of free, premium, ultimate`}},
		{name: "unknown key", file: "adr: :80\n",
			want: []string{`config file FILE:1: unknown key "adr" (did you mean "addr"?)`}},
		{name: "unknown key far from all", file: "quux: 1\n",
			want: []string{`config file FILE:1: unknown key "quux"`}},
		{name: "the file does not name itself", file: "config: x.yml\n",
			want: []string{`config file FILE:1: unknown key "config"`}},
		{name: "key twice", file: "tier: free\ntier: premium\n",
			want: []string{`config file FILE:2: tier: is set in line 1 already`}},
		{name: "unknown variable", env: []string{"SVC_ADR=:80"},
			want: []string{`config: SVC_ADR is not an option (did you mean SVC_ADDR?)`}},
		{name: "unknown variable far from all", env: []string{"SVC_QUUX=1"},
			want: []string{`config: SVC_QUUX is not an option`}},
		{name: "misspelled file variable", env: []string{"SVC_CONFG=x"},
			want: []string{`config: SVC_CONFG is not an option (did you mean SVC_CONFIG?)`}},
		{name: "a port that is not of Kubernetes", env: []string{"SVC_PORT=8080"},
			want: []string{`config: SVC_PORT is not an option`}},
		{name: "all at once", file: "tier: gold\nadr: x\n", env: []string{"SVC_RUNNER=maybe", "SVC_HOST=1"}, args: []string{"--log-level=loud"},
			want: []string{
				`config: SVC_HOST is not an option (did you mean SVC_HOSTED?)`,
				`config file FILE:2: unknown key "adr" (did you mean "addr"?)`,
				`config file FILE:1: tier: "gold" is not one of free, premium, ultimate`,
				`config: SVC_RUNNER: "maybe" is not one of builtin, off`,
				`config: --log-level: "loud" is not one of debug, info, warn, error`,
			}},
		{name: "a bad value that another layer covers", file: "tier: gold\n", args: []string{"--tier=free"},
			want: []string{`config file FILE:1: tier: "gold" is not one of free, premium, ultimate`}},

		{name: "not YAML", file: "addr: [\n",
			want: []string{`config file FILE: yaml: line 1: did not find expected node content`}},
		{name: "an unquoted star shows no value", file: "root_password: *hunter2\n",
			want: []string{`config file FILE: a value that starts with * must stand in quotes`}},
		{name: "not a mapping", file: "- addr\n",
			want: []string{`config file FILE: must be a mapping of keys to values`}},
		{name: "two documents", file: "addr: :80\n---\ntier: free\n",
			want: []string{`config file FILE: must be a single YAML document`}},
		{name: "list for a text", file: "addr: [a, b]\n",
			want: []string{`config file FILE:1: addr: must be a text`}},
		{name: "mapping for a list", file: "trusted_proxies: {a: b}\n",
			want: []string{`config file FILE:1: trusted_proxies: must be a text or a list of texts`}},
		{name: "list for a mapping", file: "storages: [a]\n",
			want: []string{`config file FILE:1: storages: must be a text or a mapping of texts`}},
		{name: "nested list", file: "trusted_proxies: [[10.0.0.0/8]]\n",
			want: []string{`config file FILE:1: trusted_proxies: must hold texts only`}},
		{name: "comma in an item", file: "storages: {a: '/x,y'}\n",
			want: []string{`config file FILE:1: storages: "/x,y" must not have a comma in it`}},

		{name: "empty address", args: []string{"--addr="},
			want: []string{`config: --addr: must not be empty`}},
		{name: "address without a port", env: []string{"SVC_ADDR=localhost"},
			want: []string{`config: SVC_ADDR: "localhost" is not of the form host:port`}},
		{name: "address with a named port", env: []string{"SVC_ADDR=localhost:http"},
			want: []string{`config: SVC_ADDR: "localhost:http": the port must be a number from 0 to 65535`}},
		{name: "address with a high port", env: []string{"SVC_SSH_ADDR=localhost:65536"},
			want: []string{`config: SVC_SSH_ADDR: "localhost:65536": the port must be a number from 0 to 65535`}},
		{name: "address with a bad host", env: []string{"SVC_PAGES_ADDR=a b:80"},
			want: []string{`config: SVC_PAGES_ADDR: "a b:80": "a b" is neither a host name nor an IP address`}},
		{name: "empty data directory", args: []string{"--data-dir="},
			want: []string{`config: --data-dir: must not be empty`}},

		{name: "external URL without a scheme", env: []string{"SVC_EXTERNAL_URL=forge.example"},
			want: []string{`config: SVC_EXTERNAL_URL: "forge.example" does not start with http:// or https://`}},
		{name: "external URL without a host", env: []string{"SVC_EXTERNAL_URL=http://"},
			want: []string{`config: SVC_EXTERNAL_URL: "http://" has no host`}},
		{name: "external URL with a query", env: []string{"SVC_EXTERNAL_URL=http://f.example/?a=b"},
			want: []string{`config: SVC_EXTERNAL_URL: "http://f.example/?a=b" must not have a query or a fragment`}},
		{name: "external URL with a path", env: []string{"SVC_EXTERNAL_URL=http://f.example/forge/"},
			want: []string{`config: SVC_EXTERNAL_URL: "http://f.example/forge/" has the path /forge/: serving below a path is not supported, only at the root of a host`}},
		{name: "external URL with a user", env: []string{"SVC_EXTERNAL_URL=http://u:hunter2@f.example"},
			want: []string{`config: SVC_EXTERNAL_URL: is not a valid URL of the form https://host[:port], without a user`}},

		{name: "database of another kind", env: []string{"SVC_DATABASE_URL=mysql://u:hunter2@h/db"},
			want: []string{`config: SVC_DATABASE_URL: does not start with postgres:// or postgresql://`}},
		{name: "database in keyword form", env: []string{"SVC_DATABASE_URL=host=h password=hunter2"},
			want: []string{`config: SVC_DATABASE_URL: does not start with postgres:// or postgresql://`}},
		{name: "database without slashes", env: []string{"SVC_DATABASE_URL=postgres:hunter2"},
			want: []string{`config: SVC_DATABASE_URL: does not start with postgres:// or postgresql://`}},
		{name: "database without a host", env: []string{"SVC_DATABASE_URL=postgres:///db"},
			want: []string{`config: SVC_DATABASE_URL: has no host (for a unix socket: postgres:///name?host=/directory)`}},
		{name: "database with a raw password", env: []string{"SVC_DATABASE_URL=postgres://u:hunter2/x@h:5432/db"},
			want: []string{`config: SVC_DATABASE_URL: is not a valid URL (special characters in a username or password must be percent-encoded)`}},
		{name: "database with a raw password that starts like a port", env: []string{"SVC_DATABASE_URL=postgres://u:12/hunter2@h/db"},
			want: []string{`config: SVC_DATABASE_URL: is not a valid URL (special characters in a username or password must be percent-encoded)`}},
		{name: "blob store of another kind", env: []string{"SVC_BLOB_URL=gs://bucket"},
			want: []string{`config: SVC_BLOB_URL: does not start with s3://`}},
		{name: "blob store without a bucket", env: []string{"SVC_BLOB_URL=s3://?region=x"},
			want: []string{`config: SVC_BLOB_URL: has no bucket (s3://bucket)`}},
		{name: "mail server of another kind", env: []string{"SVC_SMTP_URL=http://mail"},
			want: []string{`config: SVC_SMTP_URL: does not start with smtp:// or smtps://`}},
		{name: "mail server without a host", env: []string{"SVC_SMTP_URL=smtp://"},
			want: []string{`config: SVC_SMTP_URL: has no host`}},
		{name: "token with a line break", env: []string{"SVC_ROOT_TOKEN=hunter2\n"},
			want: []string{`config: SVC_ROOT_TOKEN: must consist of visible ASCII characters, without spaces or line breaks`}},

		{name: "hosted", env: []string{"SVC_HOSTED=maybe"},
			want: []string{`config: SVC_HOSTED: "maybe" is not one of true, false`}},
		{name: "hosted as a flag", args: []string{"--hosted=maybe"},
			want: []string{`config: --hosted: "maybe" is not one of true, false`}},
		{name: "service name", env: []string{"SVC_SERVICE_NAME=My-Forge"},
			want: []string{`config: SVC_SERVICE_NAME: "My-Forge" is not a name of 1 to 32 lower-case letters, digits and underscores that starts with a letter`}},
		{name: "long error backend name", env: []string{"SVC_ERROR_BACKEND_NAME=" + strings.Repeat("a", 33)},
			want: []string{`config: SVC_ERROR_BACKEND_NAME: "` + strings.Repeat("a", 33) + `" is not a name of 1 to 32 lower-case letters, digits and underscores that starts with a letter`}},
		{name: "storage without a path", env: []string{"SVC_STORAGES=fast"},
			want: []string{`config: SVC_STORAGES: "fast" is not of the form name=path`}},
		{name: "storage with an empty path", env: []string{"SVC_STORAGES=fast="},
			want: []string{`config: SVC_STORAGES: "fast=" is not of the form name=path`}},
		{name: "storage with a bad name", env: []string{"SVC_STORAGES=a b=/x"},
			want: []string{`config: SVC_STORAGES: "a b" is not a name of 1 to 63 letters, digits, dashes and underscores`}},
		{name: "storage in a bucket without a name", env: []string{"SVC_STORAGES=a=s3://?secret_key=k"},
			want: []string{"config: SVC_STORAGES: a: has no bucket (s3://bucket)"}},
		{name: "storage named twice", env: []string{"SVC_STORAGES=a=/x,a=/y"},
			want: []string{`config: SVC_STORAGES: "a" is named twice`}},
		{name: "storages in one place", env: []string{"SVC_STORAGES=a=/x,b=/y/../x"},
			want: []string{`config: storages: "a" and "b" are the same directory /x`}},
		{name: "log format", env: []string{"SVC_LOG_FORMAT=xml"},
			want: []string{`config: SVC_LOG_FORMAT: "xml" is not one of auto, text, json`}},
		{name: "timeout without a unit", env: []string{"SVC_SHUTDOWN_TIMEOUT=30"},
			want: []string{`config: SVC_SHUTDOWN_TIMEOUT: "30" is not a duration such as 30s or 2m`}},
		{name: "too many jobs", env: []string{"SVC_RUNNER_CONCURRENCY=1000"},
			want: []string{`config: SVC_RUNNER_CONCURRENCY: "1000" is not a number from 1 to 256`}},
		{name: "delay without end", env: []string{"SVC_SHUTDOWN_DELAY=1h"},
			want: []string{`config: SVC_SHUTDOWN_DELAY: "1h" is not between 0s and 10m0s`}},
		{name: "delay without a unit", env: []string{"SVC_SHUTDOWN_DELAY=5"},
			want: []string{`config: SVC_SHUTDOWN_DELAY: "5" is not a duration such as 10s or 1m`}},
		{name: "timeout of nothing", env: []string{"SVC_SHUTDOWN_TIMEOUT=0s"},
			want: []string{`config: SVC_SHUTDOWN_TIMEOUT: "0s" is not more than zero`}},
		{name: "proxy that is a name", env: []string{"SVC_TRUSTED_PROXIES=10.0.0.1, proxy"},
			want: []string{`config: SVC_TRUSTED_PROXIES: "proxy" is neither an IP address nor a range such as 10.0.0.0/8`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var path string
			env := tt.env
			if tt.file != "" {
				path = writeFile(t, tt.file)
				env = append([]string{"SVC_CONFIG=" + path}, env...)
			}
			c, err := load(t, "", env, tt.args)
			if err == nil {
				t.Fatalf("no error; got %v", c)
			}
			want := strings.Join(tt.want, "\n")
			if path != "" {
				want = strings.ReplaceAll(want, "FILE", path)
			}
			if got := err.Error(); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error gives a secret away: %v", err)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.yml")
	_, err := load(t, "", nil, []string{"--config", path})
	want := "config file " + path + ": no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	keys := []string{"storage", "storages", "tier"}
	for word, want := range map[string]string{
		"storages": "storages", "storag": "storage", "storagess": "storages", "stroages": "storages",
		"teir": "tier", "t": "", "": "", "database": "",
	} {
		if got := nearest(word, keys); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

// FuzzFile checks that no file makes the parser panic, and that each error names its
// position.
func FuzzFile(f *testing.F) {
	f.Add("addr: :80\ntier: gold\n")
	f.Add("storages: {a: /x}\ntrusted_proxies: [10.0.0.0/8]\n")
	f.Add("a: &x [*x]\n? [b]\n: c\n")
	f.Add("---\n...\n# only a comment")
	f.Fuzz(func(t *testing.T, text string) {
		values, faults := parseFile("x.yml", []byte(text))
		for _, err := range faults {
			if !strings.HasPrefix(err.Error(), "config file x.yml:") {
				t.Errorf("the fault has no place: %v", err)
			}
		}
		for key, v := range values {
			if !strings.HasPrefix(v.origin, "config file x.yml:") || !strings.HasSuffix(v.origin, ": "+key) {
				t.Errorf("the value of %s comes from %q", key, v.origin)
			}
		}
	})
}
