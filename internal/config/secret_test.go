package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestNoSecretShows formats and encodes a Config in all usual ways and searches the
// output for the secrets.
func TestNoSecretShows(t *testing.T) {
	t.Parallel()
	c, err := Load(nil, []string{
		"SVC_ROOT_PASSWORD=hunter2-a",
		"SVC_ROOT_TOKEN=hunter2-b",
		"SVC_DATABASE_URL=postgres://user:hunter2-c@db.example:5432/svc?sslmode=require&password=hunter2-d",
		"SVC_BLOB_URL=s3://hunter2-e:hunter2-f@bucket?region=eu&endpoint=http://k:hunter2-j@h&secret_key=hunter2-g#hunter2-h",
		"SVC_SMTP_URL=smtp://hunter2-i@mail.example",
		`SVC_PROVIDERS=[{"name":"corp","kind":"oidc","issuer":"https://id.example","client_id":"x","client_secret":"hunter2-k"}]`,
	})
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var text, lines bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("start", "config", c, "token", c.RootToken)
	slog.New(slog.NewJSONHandler(&lines, nil)).Info("start", "config", &c, "database", c.DatabaseURL)

	forms := map[string]string{
		"String": c.String(), "%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", &c), "%#v": fmt.Sprintf("%#v", c),
		"%s": fmt.Sprintf("%s", c.RootPassword), "%q": fmt.Sprintf("%q", c.DatabaseURL), "%x": fmt.Sprintf("%x", c.RootToken),
		"JSON": string(asJSON), "YAML": string(asYAML), "text log": text.String(), "JSON log": lines.String(),
	}
	for name, form := range forms {
		if strings.Contains(form, "hunter2") || strings.Contains(form, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("%s gives a secret away: %s", name, form)
		}
	}
	for _, name := range []string{"String", "text log", "JSON log", "%#v"} {
		for _, want := range []string{"db.example:5432/svc", "sslmode=require", "bucket", "region=eu", "mail.example"} {
			if !strings.Contains(forms[name], want) {
				t.Errorf("%s does not show %s: %s", name, want, forms[name])
			}
		}
	}
	if string(c.RootPassword) != "hunter2-a" {
		t.Error("a conversion does not reveal the secret")
	}
}

func TestStringListsSettings(t *testing.T) {
	t.Parallel()
	c, err := Load(nil, []string{"SVC_DATA_DIR=/d", "SVC_TRUSTED_PROXIES=10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	want := "addr=127.0.0.1:8080 data_dir=/d external_url=http://127.0.0.1:8080 database_url= blob_url= " +
		"root_password= root_token= ssh_addr=127.0.0.1:2222 ssh_port=0 pages_addr= pages_tls_addr= pages_url= pages_cert= pages_key= pages_acme_url= pages_acme_email= pages_acme_root= smtp_url= tier=ultimate hosted=false " +
		"service_name=svc token_prefix= cookie_prefix= error_backend_name=errsvc storages=map[default:/d/repositories] git_cache_dir=/d/git-cache git_cache_size=10737418240 runner=off runner_projects=[] runner_tags=[] runner_open_signup=false runner_concurrency=0 runner_dir=/d/runner runner_url= runner_token= example=false " +
		"log_format=auto log_level=INFO read_timeout=10s anonymous_read_timeout=5s min_free_disk=100MiB shutdown_delay=0s shutdown_timeout=30s proxy_protocol=[] trusted_proxies=[10.0.0.1/32] " +
		"providers= max_connections=0 max_connections_per_address=256 git_memory=0 code_index_file=1048576 code_index_project=1073741824"
	if got := c.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzSecretURL checks that no password in a URL is shown.
func FuzzSecretURL(f *testing.F) {
	f.Add("postgres", "p@ss/wörd", "password")
	f.Add("s3", "%41", "region;x")
	f.Add("smtp", "a:b", "")
	f.Fuzz(func(t *testing.T, scheme, password, param string) {
		secret := "hunter2" + password
		u := url.URL{Scheme: scheme, User: url.UserPassword("u", secret), Host: "h",
			RawQuery: url.Values{"x" + param: {secret}}.Encode(), Fragment: secret}
		raw := "://u:" + password + "hunter2@h/?x" + param + "=" + secret
		for _, text := range []string{u.String(), scheme + raw, "postgres" + raw} {
			shown := SecretURL(text).String()
			if strings.Contains(shown, "hunter2") && !strings.Contains(scheme, "hunter2") {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
	})
}
