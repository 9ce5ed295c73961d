package compat

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestCLI runs the command of Debian's gitlab-cli, there called
// python-gitlab, as a user at a terminal does.
func TestCLI(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		c := cli{s, rootToken}
		var ada int64
		t.Run("users", func(t *testing.T) { ada = cliUsers(t, c) })
		t.Run("lists", func(t *testing.T) { cliLists(t, c) })
		t.Run("tokens", func(t *testing.T) { cliTokens(t, c, ada) })
		t.Run("instance", func(t *testing.T) { cliInstance(t, c) })
		t.Run("errors", func(t *testing.T) { cliErrors(t, c) })
		t.Run("delete", func(t *testing.T) {
			same(t, "output", c.run(t, "user", "delete", "--id", text(t, ada)), "")
			c.refused(t, "Impossible to get object (404: 404 User Not Found)", "user", "get", "--id", text(t, ada))
		})
	})
}

func cliUsers(t *testing.T, c cli) int64 {
	same(t, "current user", c.run(t, "current-user", "get"), "username: root\n")

	var ada struct {
		ID       int64  `json:"id"`
		Username string `json:"username"`
		State    string `json:"state"`
		Bio      string `json:"bio"`
		External bool   `json:"external"`
		Limit    int64  `json:"projects_limit"`
		Email    string `json:"email"`
	}
	c.json(t, &ada, "user", "create", "--username", "ada", "--name", "Ada L.", "--email", "ada@example.org", "--password", password,
		"--skip-confirmation", "true", "--bio", "counts", "--external", "yes", "--projects-limit", "7")
	same(t, "user", []any{ada.Username, ada.State, ada.Bio, ada.External, ada.Limit, ada.Email},
		[]any{"ada", "active", "counts", true, int64(7), "ada@example.org"})
	id := text(t, ada.ID)
	same(t, "output of get", c.run(t, "user", "get", "--id", id), "id: "+id+"\nusername: ada\n")

	c.run(t, "user", "update", "--id", id, "--email", "ada@example.org", "--username", "ada", "--name", "Countess", "--admin", "false")
	if out := c.run(t, "-v", "user", "get", "--id", id); !strings.Contains(out, "\nname: Countess\n") || !strings.Contains(out, "\nis-admin: False\n") {
		t.Errorf("user get -v prints %s", out)
	}
	c.run(t, "user", "block", "--id", id)
	c.json(t, &ada, "user", "get", "--id", id)
	same(t, "state", ada.State, "blocked")
	c.run(t, "user", "unblock", "--id", id)

	c.run(t, "user-email", "create", "--user-id", id, "--email", "second@example.org")
	if out := c.run(t, "user-email", "list", "--user-id", id); !strings.Contains(out, "email: second@example.org") {
		t.Errorf("user-email list prints %q", out)
	}
	key, _ := sshKey(t)
	c.run(t, "user-key", "create", "--user-id", id, "--title", "laptop", "--key", key)
	var keys []struct {
		Title string `json:"title"`
		Key   string `json:"key"`
	}
	c.json(t, &keys, "user-key", "list", "--user-id", id)
	if len(keys) != 1 || keys[0].Title != "laptop" || keys[0].Key != key {
		t.Errorf("keys: %+v", keys)
	}
	return ada.ID
}

func cliLists(t *testing.T, c cli) {
	for _, name := range []string{"bob", "cleo"} {
		c.run(t, "user", "create", "--username", name, "--name", name, "--email", name+"@example.org", "--password", password)
	}
	// Two of five; the client says on stderr that there are more.
	out := c.run(t, "--per-page", "2", "user", "list")
	if !strings.Contains(out, "username: cleo\n") || !strings.Contains(out, "username: bob\n") || strings.Contains(out, "username: ada\n") ||
		!strings.Contains(out, "Your query returned 2 of 5 items") {
		t.Errorf("user list prints %s", out)
	}
	var users []struct {
		Username string `json:"username"`
	}
	names := func(args ...string) []string {
		t.Helper()
		c.json(t, &users, args...)
		var list []string
		for _, u := range users {
			list = append(list, u.Username)
		}
		return list
	}
	all := []string{"cleo", "bob", "ada", "ghost", "root"}
	same(t, "all pages", names("--per-page", "2", "user", "list", "--get-all"), all)
	same(t, "keyset", names("--per-page", "2", "--pagination", "keyset", "--order-by", "id", "user", "list", "--get-all"), all)
	same(t, "search", names("user", "list", "--search", "cleo@example.org"), []string{"cleo"})
	out = c.run(t, "-o", "yaml", "-f", "username,state", "user", "list", "--username", "ADA")
	same(t, "yaml", out, "- state: active\n  username: ada\n\n")
}

func cliTokens(t *testing.T, c cli, user int64) {
	var token struct {
		ID     int64    `json:"id"`
		Token  string   `json:"token"`
		Scopes []string `json:"scopes"`
	}
	c.json(t, &token, "user-personal-access-token", "create", "--user-id", text(t, user), "--name", "laptop", "--scopes", "api,read_user")
	same(t, "scopes", token.Scopes, []string{"api", "read_user"})
	own := cli{c.s, token.Token}
	same(t, "user of the token", own.run(t, "current-user", "get"), "username: ada\n")
	if out := c.run(t, "personal-access-token", "list", "--user-id", text(t, user)); !strings.Contains(out, "id: "+text(t, token.ID)) {
		t.Errorf("personal-access-token list prints %q", out)
	}
	same(t, "user by sudo", c.run(t, "current-user", "get", "--sudo", "ada"), "username: ada\n")
	c.run(t, "personal-access-token", "delete", "--id", text(t, token.ID))
	own.refused(t, "Impossible to get object (401: 401 Unauthorized)", "current-user", "get")
}

func cliInstance(t *testing.T, c cli) {
	c.run(t, "variable", "create", "--key", "DEPLOY_KEY", "--value", hidden, "--masked", "true")
	var variable struct {
		Value  string `json:"value"`
		Masked bool   `json:"masked"`
	}
	c.json(t, &variable, "variable", "get", "--key", "DEPLOY_KEY")
	same(t, "value, masked", []any{variable.Value, variable.Masked}, []any{hidden, true})
	c.run(t, "variable", "update", "--key", "DEPLOY_KEY", "--value", hidden+"2")
	same(t, "variables", c.run(t, "variable", "list"), "key: DEPLOY_KEY\n\n")
	c.run(t, "variable", "delete", "--key", "DEPLOY_KEY")

	c.run(t, "application-settings", "update", "--default-projects-limit", "11")
	if out := c.run(t, "-v", "application-settings", "get"); !strings.Contains(out, "default-projects-limit: 11\n") {
		t.Errorf("application-settings get prints %s", out)
	}
	var events []struct {
		Type string `json:"event_type"`
	}
	c.json(t, &events, "audit-event", "list", "--entity-type", "Svc::Audit::InstanceScope")
	var types []string
	for _, e := range events {
		types = append(types, e.Type)
	}
	same(t, "audit events", types, []string{
		"application_setting_updated", "ci_instance_variable_deleted", "ci_instance_variable_updated", "ci_instance_variable_created",
	})
}

func cliErrors(t *testing.T, c cli) {
	cli{c.s, "svcpat-no-such-token"}.refused(t, "Impossible to list objects (401: 401 Unauthorized)", "user", "list")
	c.refused(t, "Impossible to create object (409: Email has already been taken)",
		"user", "create", "--username", "other", "--name", "Other", "--email", "ada@example.org", "--password", password)
	c.refused(t, "Impossible to create object (400: {'password': ['is too short (minimum is 8 characters)']})",
		"user", "create", "--username", "other", "--name", "Other", "--email", "other@example.org", "--password", "short")
}

// cli is the command with a server and a token.
type cli struct {
	s     *server
	token string
}

func (c cli) call(t *testing.T, args []string) (string, error) {
	t.Helper()
	return c.s.command(t, append([]string{"/usr/bin/python-gitlab", "--server-url", c.s.url, "--private-token", c.token}, args...)...)
}

// run gives the output of a command that must succeed.
func (c cli) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.call(t, args)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// json reads the JSON output of a command that must succeed.
func (c cli) json(t *testing.T, into any, args ...string) {
	t.Helper()
	out := c.run(t, slices.Concat([]string{"-o", "json"}, args)...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// refused wants the command to fail with this message alone.
func (c cli) refused(t *testing.T, message string, args ...string) {
	t.Helper()
	out, err := c.call(t, args)
	if err == nil || out != message+"\n" {
		t.Errorf("%s: %v, want an error\n%s, want %s", strings.Join(args, " "), err, out, message)
	}
}

func text(t *testing.T, id int64) string {
	t.Helper()
	out, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
