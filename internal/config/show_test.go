package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svc/internal/config"

	"github.com/spf13/pflag"
)

// TestShow sets settings in different sources and checks the result of Show.
func TestShow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "svc.yml")
	if err := os.WriteFile(file, []byte("# comment\ntier: free\ndatabase_url: postgres://svc:geheim@db/svc\ntrusted_proxies: [10.0.0.0/8, 127.0.0.1]\nstorages: {default: /srv/a, b: /srv/b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("svc", pflag.ContinueOnError)
	config.Flags(fs)
	if err := fs.Parse([]string{"--config", file, "--addr", "127.0.0.1:9000"}); err != nil {
		t.Fatal(err)
	}
	shown, err := config.Show(fs, []string{"SVC_ROOT_TOKEN=svcpat-hushhushhushhushhush", "SVC_TIER=premium"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []config.Shown{
		{Key: "addr", Value: "127.0.0.1:9000", Source: "--addr"},
		{Key: "tier", Value: "premium", Source: "SVC_TIER"},
		{Key: "root_token", Value: "xxxxx", Source: "SVC_ROOT_TOKEN"},
		{Key: "database_url", Value: "postgres://xxxxx@db/svc", Source: file + ":3"},
		{Key: "trusted_proxies", Value: "10.0.0.0/8,127.0.0.1/32", Source: file + ":4"},
		{Key: "storages", Value: "b=/srv/b,default=/srv/a", Source: file + ":5"},
		{Key: "shutdown_timeout", Value: "30s", Source: "default"},
	} {
		if !slices.Contains(shown, want) {
			i := slices.IndexFunc(shown, func(s config.Shown) bool { return s.Key == want.Key })
			t.Errorf("%+v, want %+v", shown[i], want)
		}
	}
	for _, s := range shown {
		if strings.Contains(s.Value, "geheim") || strings.Contains(s.Value, "hush") {
			t.Errorf("%s shows a secret: %s", s.Key, s.Value)
		}
	}
	if _, err := config.Show(fs, []string{"SVC_TIER=gold"}); err == nil {
		t.Error("an invalid setting is shown")
	}
}

// TestSample checks the configuration file of the packages: it is the generated one,
// it can be parsed, and the values in comments are the defaults.
func TestSample(t *testing.T) {
	t.Parallel()
	const path = "../../packaging/config.yml"
	want := config.Sample(map[string]string{"data_dir": "/var/lib/svc"})
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" { // defined by other tests of this package
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Fatalf("%s is not up to date (%v): run go test ./internal/config -update", path, err)
	}
	c, err := config.Load(nil, []string{"SVC_CONFIG=" + path})
	if err != nil || c.DataDir != "/var/lib/svc" {
		t.Errorf("read %s: %v, %v", path, c, err)
	}
	// Without the comment characters, every line is a key with a valid value.
	full := filepath.Join(t.TempDir(), "svc.yml")
	var lines []string
	for line := range strings.Lines(want) {
		if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "# ") {
			line = line[1:]
		}
		lines = append(lines, line)
	}
	if err := os.WriteFile(full, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := config.Load(nil, []string{"SVC_CONFIG=" + full})
	if err != nil || set.String() != c.String() {
		t.Errorf("with all defaults written out: %v\n%v\nwant\n%v", err, set, c)
	}
}
