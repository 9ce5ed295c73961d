package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProviders(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, `
providers:
  - name: corp
    label: Example Corp
    kind: oidc
    issuer: https://id.example.com/realms/corp
    client_id: forge
    client_secret: "a, b: c"
    required_groups: [staff]
    group_sync:
      - {claim: devs, group: /platform/, role: developer}
  - name: other
    kind: oidc
    issuer: http://10.0.0.1
    client_id: x
    client_secret_file: `+secret+`
    auto_create: false
`, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	one, two := c.Providers[0], c.Providers[1]
	if one.ClientSecret != "a, b: c" || one.Label != "Example Corp" || !one.AutoCreate || !one.RequireApproval || one.LinkByEmail || !one.TrustTwoFactor ||
		one.GroupSync[0].Group != "platform" || one.UsernameClaim != "preferred_username" || strings.Join(one.Scopes, " ") != "openid profile email" {
		t.Errorf("%s", one.Name)
	}
	if string(two.ClientSecret) != "from a file" || two.AutoCreate || two.Label != "other" {
		t.Errorf("%s: %q", two.Name, string(two.ClientSecret))
	}

	const good = `"name":"a","kind":"oidc","issuer":"https://a.example","client_id":"c","client_secret":"hunter2"`
	const directory = `"name":"a","kind":"ldap","url":"ldap://a.example","base":"dc=a"`
	for text, want := range map[string]string{
		`x`:                                      "is not a list",
		`{"name":"a"}`:                           "is not a list",
		`["a"]`:                                  "number 1: is not a mapping",
		`[{` + good + `,"isuer":"x"}]`:           `provider a: unknown key "isuer" (did you mean "issuer"?)`,
		`[{` + good + `},{` + good + `}]`:        "named twice",
		`[{` + good + `,"auto_create":"no no"}]`: "auto_create has a value of the wrong type",
		`[{"name":"A/b"}]`:                       "is not a name of 1 to 32",
		`[{"name":"a","kind":"ldap9"}]`:          "is not one of oidc, saml, ldap",
		`[{"name":"a","kind":"oidc","issuer":"id.example"}]`:                               "issuer is not a URL",
		`[{"name":"a","kind":"oidc","issuer":"https://u:hunter2@a.example"}]`:              "issuer is not a URL",
		`[{"name":"a","kind":"oidc","issuer":"https://a.example"}]`:                        "client_id is missing",
		`[{"name":"a","kind":"oidc","issuer":"https://a.example","client_id":"c"}]`:        "client_secret or",
		`[{` + good + `,"client_secret_file":"/x"}]`:                                       "exclude each other",
		`[{` + good + `,"scopes":["email"]}]`:                                              "must include openid",
		`[{` + good + `,"group_sync":[{"claim":"x","group":"g","role":"king"}]}]`:          "group_sync needs",
		`[{` + directory + `,"url":"https://a.example"}]`:                                  "url is not of the form",
		`[{` + directory + `,"url":"ldap://u:hunter2@a.example"}]`:                         "url is not of the form",
		`[{` + directory + `,"bind_dn":"cn=x"}]`:                                           "bind_dn needs bind_password",
		`[{` + directory + `,"bind_password":"hunter2"}]`:                                  "bind_dn needs bind_password",
		`[{` + directory + `,"username_attribute":"uid)(x"}]`:                              "username_attribute is not the name of an attribute",
		`[{` + directory + `,"user_filter":"objectClass=person"}]`:                         "user_filter is not a filter",
		`[{` + directory + `,"group_base":"o=g","group_filter":"(cn=*)"}]`:                 "group_filter must include {dn}",
		`[{` + directory + `,"client_secret":"hunter2"}]`:                                  "client_secret is not an option of the kind ldap",
		`[{"name":"a","kind":"ldap","url":"ldaps://a.example"}]`:                           "base is missing",
		`[{` + good + `,"bind_dn":"cn=x"}]`:                                                "bind_dn is not an option of the kind oidc",
		`[` + strings.TrimSuffix(strings.Repeat(`{`+good+`},`, maxProviders+1), ",") + `]`: "more than 20",
	} {
		_, err := load(t, "", []string{"SVC_PROVIDERS=" + text}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := load(t, "providers: corp\n", nil, nil); err == nil {
		t.Error("a text is taken for a list")
	}
}
