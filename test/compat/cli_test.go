package compat

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestCLI runs the command gitlab-cli, which Debian names python-gitlab. Starting it
// is slow, so the test makes no more calls than necessary.
func TestCLI(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		c := cli{s, rootToken}
		same(t, "current user", c.run(t, "current-user", "get"), "username: root\n")
		id := cliUser(t, c)
		cliToken(t, c, id)
		cliInstance(t, c)
		c.refused(t, "Impossible to create object (409: Email has already been taken)",
			"user", "create", "--username", "other", "--name", "Other", "--email", "ada@example.org", "--password", password)
		cliHosting(t, c, id)
		cliPipelines(t, c)
		same(t, "output of delete", c.run(t, "user", "delete", "--id", id), "")
		c.refused(t, "Impossible to get object (404: 404 User Not Found)", "user", "get", "--id", id)
	})
}

// cliUser creates, changes and lists a user, and returns their ID.
func cliUser(t *testing.T, c cli) string {
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
	id := strconv.FormatInt(ada.ID, 10)

	c.run(t, "user", "update", "--id", id, "--email", "ada@example.org", "--username", "ada", "--name", "Countess", "--admin", "false")
	out := c.run(t, "-v", "user", "get", "--id", id)
	for _, line := range []string{"id: " + id, "name: Countess", "is-admin: False", "web-url: " + c.s.url + "/ada"} {
		if !slices.Contains(strings.Split(out, "\n"), line) {
			t.Errorf("user get -v does not print %q but\n%s", line, out)
		}
	}

	c.run(t, "user", "block", "--id", id)
	same(t, "blocked users", c.run(t, "-o", "yaml", "-f", "username,state", "user", "list", "--blocked", "true"), "- state: blocked\n  username: ada\n\n")
	c.run(t, "user", "unblock", "--id", id)
	same(t, "pages of users", c.run(t, "--per-page", "2", "user", "list", "--get-all"),
		"id: "+id+"\nusername: ada\n\nid: 2\nusername: ghost\n\nid: 1\nusername: root\n\n")
	var users []struct {
		ID int64 `json:"id"`
	}
	c.json(t, &users, "--per-page", "2", "--pagination", "keyset", "--order-by", "id", "user", "list", "--get-all")
	if len(users) != 3 || users[2].ID != 1 {
		t.Errorf("users by keyset: %+v", users)
	}

	var email struct {
		Email string `json:"email"`
	}
	c.json(t, &email, "user-email", "create", "--user-id", id, "--email", "second@example.org")
	same(t, "email", email.Email, "second@example.org")
	line, _ := sshKey(t)
	var key struct {
		Title string `json:"title"`
		Key   string `json:"key"`
	}
	c.json(t, &key, "user-key", "create", "--user-id", id, "--title", "laptop", "--key", line)
	same(t, "key", []string{key.Title, key.Key}, []string{"laptop", line})
	return id
}

func cliToken(t *testing.T, c cli, userID string) {
	var token struct {
		ID     int64    `json:"id"`
		Token  string   `json:"token"`
		Scopes []string `json:"scopes"`
	}
	c.json(t, &token, "user-personal-access-token", "create", "--user-id", userID, "--name", "laptop", "--scopes", "api,read_user")
	same(t, "scopes", token.Scopes, []string{"api", "read_user"})
	own := cli{c.s, token.Token}
	same(t, "user of the token", own.run(t, "current-user", "get"), "username: ada\n")
	id := strconv.FormatInt(token.ID, 10)
	same(t, "tokens", c.run(t, "personal-access-token", "list", "--user-id", userID), "id: "+id+"\n\n")
	c.run(t, "personal-access-token", "delete", "--id", id)
	own.refused(t, "401: 401 Unauthorized", "current-user", "get")
}

func cliInstance(t *testing.T, c cli) {
	c.run(t, "variable", "create", "--key", "DEPLOY_KEY", "--value", hidden, "--masked", "true")
	var variables []struct {
		Key    string `json:"key"`
		Value  string `json:"value"`
		Masked bool   `json:"masked"`
	}
	c.json(t, &variables, "variable", "list")
	if len(variables) != 1 || variables[0].Key != "DEPLOY_KEY" || variables[0].Value != hidden || !variables[0].Masked {
		t.Errorf("variables: %+v", variables)
	}
	var events []struct {
		Type string `json:"event_type"`
	}
	c.json(t, &events, "audit-event", "list", "--entity-type", "Svc::Audit::InstanceScope")
	if len(events) != 1 || events[0].Type != "ci_instance_variable_created" {
		t.Errorf("audit events: %+v", events)
	}
}

// cli is the command with the URL of a server and a token.
type cli struct {
	s     *server
	token string
}

func (c cli) call(t *testing.T, args []string) (string, error) {
	t.Helper()
	return c.s.command(t, append([]string{"/usr/bin/python-gitlab", "--server-url", c.s.url, "--private-token", c.token}, args...)...)
}

// run returns the output of a command, which must succeed.
func (c cli) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.call(t, args)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// json decodes the JSON output of a command, which must succeed.
func (c cli) json(t *testing.T, into any, args ...string) {
	t.Helper()
	out := c.run(t, slices.Concat([]string{"-o", "json"}, args)...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// refused runs a command that must fail with exactly this message.
func (c cli) refused(t *testing.T, message string, args ...string) {
	t.Helper()
	out, err := c.call(t, args)
	if err == nil {
		t.Errorf("%s went well, want %q\n%s", strings.Join(args, " "), message, out)
	} else if out != message+"\n" {
		t.Errorf("%s failed with %q, want %q", strings.Join(args, " "), out, message)
	}
}
