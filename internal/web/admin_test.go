package web_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/blob/blobtest"
	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/queue"
	"svc/internal/setting"
	"svc/internal/user"
	"svc/internal/waittest"
)

// TestAdminRoles checks that the Admin area does not exist for users who are not
// administrators.
func TestAdminRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		pages := []string{"/admin", "/admin/setup", "/admin/users", "/admin/users/new", "/admin/users/" + strconv.FormatInt(c.ids["guest"], 10), "/admin/groups", "/admin/projects", "/admin/runners", "/admin/variables",
			"/admin/applications", "/admin/audit_logs", "/admin/background_jobs", "/admin/nodes", "/admin/storages", "/admin/application_settings", "/admin/pages_domains"}
		c.check(t, pages, 303, 303, 404, 404, 404, 404, 404, 404, 200)
		for route := range routes(s) {
			method, path, _ := strings.Cut(route, " ")
			if method != "POST" || !strings.HasPrefix(path, "/admin/") || path == "/admin/impersonation/stop" {
				continue
			}
			if got := c.press(t, "owner", strings.ReplaceAll(path, "{id}", "1"), "name", "x"); got.status != 404 {
				t.Errorf("%s as somebody else: status %d", route, got.status)
			}
		}
		c.as["owner"].get("/").want(200).not(`href="/admin"`)
		c.as["root"].get("/").want(200, `href="/admin"`)
		c.as["root"].get("/admin/users/999999").want(404)
	})
}

// TestAdminUsers manages accounts as an administrator.
func TestAdminUsers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		root := newBrowser(t, s).signIn("root", apptest.RootPassword)
		const at = "/admin/users"
		root.submit(at+"/new", at, "name", "Eve", "username", "eve", "email", "no address", "password", "a good password").want(422, "Email is invalid")
		root.submit(at+"/new", at, "name", "Eve", "username", "eve", "email", "eve@example.org", "password", "short").want(422, "Password is too short")
		made := root.submit(at+"/new", at, "name", "Eve", "username", "eve", "email", "eve@example.org", "password", "a good password")
		eve := made.header.Get("Location")
		if made.status != 303 || !strings.HasPrefix(eve, at+"/") {
			t.Fatalf("status %d to %s", made.status, eve)
		}
		root.submit(at+"/new", at, "name", "Eve", "username", "eve", "email", "eve2@example.org", "password", "a good password").want(422, "taken")
		root.get(at+"?search=eve@example.org").want(200, "@eve")
		root.get(at+"?filter=blocked").want(200, "No users found")

		act := func(name, state string) {
			t.Helper()
			root.submit(eve, eve+"/"+name).leads(eve)
			root.get(eve).want(200, state)
		}
		act("block", "Unblock")
		root.get(at+"?filter=blocked").want(200, "@eve")
		act("unblock", "Ban")
		act("ban", "Unban")
		root.get(at+"?filter=banned").want(200, "@eve")
		act("unban", "Deactivate")
		act("deactivate", "Activate")
		act("activate", "Deactivate")
		act("confirm", "Eve")
		act("unlock", "Eve")
		act("two_factor", "note bad")
		self := at + "/1"
		root.submit(self, self+"/block").leads(self)
		root.get(self).want(200, "You cannot block yourself")

		root.submit(eve, eve, "name", "", "username", "eve", "projects_limit", "1").want(422, "can&#39;t be blank")
		root.submit(eve, eve, "name", "Eve", "username", "root", "projects_limit", "1").want(422, "taken")
		root.submit(eve, eve, "name", "Eve", "username", "eve", "projects_limit", "many").want(422, "is not a number")
		root.submit(eve, eve, "name", "Eve II", "username", "eva", "projects_limit", "3", "external", "1", "note", "Trusted").leads(eve)
		root.get(eve).want(200, "Eve II", "@eva", "Trusted")
		root.submit(eve, eve+"/delete", "confirm", "eve").leads(eve)
		root.get(eve).want(200, "Type the username")
		root.submit(eve, eve+"/delete", "confirm", "eva").leads(at)
		root.get(eve).want(404)

		// A user who signs up waits for approval.
		root.submit("/admin/application_settings", "/admin/application_settings", settingsForm(t, root, "signup_enabled", "1", "require_admin_approval_after_user_signup", "1")...).leads("/admin/application_settings")
		for _, name := range []string{"ann", "bea"} {
			newBrowser(t, s).submit("/users/sign_up", "/users/sign_up", "name", name, "username", name, "email", name+"@example.org", "password", password)
		}
		root.get("/admin").want(200, "2 users")
		list := root.get(at+"?filter=pending").want(200, "@ann", "@bea").body
		for name, do := range map[string]string{"ann": "approve", "bea": "reject"} {
			page := regexp.MustCompile(`(/admin/users/\d+)">` + name).FindStringSubmatch(list)[1]
			to := page
			if do == "reject" {
				to = at
			}
			root.submit(page, page+"/"+do).leads(to)
		}
		root.get(at+"?filter=pending").want(200, "No users found")
		root.get(at+"?search=ann").want(200, "@ann")
	})
}

// settingsForm returns the values of the form of the settings with some changes; an
// empty value unchecks a box.
func settingsForm(t *testing.T, b *browser, changes ...string) []string {
	t.Helper()
	page := b.get("/admin/application_settings").want(200).body
	values := map[string]string{}
	for _, m := range regexp.MustCompile(`name="([a-z_]+)" type="number" value="(\d+)"`).FindAllStringSubmatch(page, -1) {
		values[m[1]] = m[2]
	}
	for _, m := range regexp.MustCompile(`type="checkbox" name="([a-z_]+)" value="1" checked`).FindAllStringSubmatch(page, -1) {
		values[m[1]] = "1"
	}
	for _, m := range regexp.MustCompile(`<select id="[^"]+" name="([a-z_]+)"[^>]*>.*?<option value="([a-z]+)" selected>`).FindAllStringSubmatch(page, -1) {
		values[m[1]] = m[2]
	}
	for _, m := range regexp.MustCompile(`name="(repository_storages_weighted)"[^>]* value="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		values[m[1]] = m[2]
	}
	for i := 0; i < len(changes); i += 2 {
		values[changes[i]] = changes[i+1]
	}
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, name, value)
	}
	return pairs
}

// TestAdminSettings changes settings. Values out of range change nothing.
func TestAdminSettings(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		root := newBrowser(t, s).signIn("root", apptest.RootPassword)
		const at = "/admin/application_settings"
		before, err := s.Settings.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// The form has every setting: submitted without changes, it changes none.
		root.submit(at, at, settingsForm(t, root)...).leads(at)
		if now, _ := s.Settings.Current(t.Context()); !reflect.DeepEqual(now, before) {
			t.Errorf("%+v became %+v", before, now)
		}
		root.submit(at, at, settingsForm(t, root, "minimum_password_length", "3")...).want(422, "must be greater than or equal to 8")
		root.submit(at, at, settingsForm(t, root, "diff_max_files", "x")...).want(422, "is not a number")
		for _, weights := range []string{"default", "default: x", "default: 101", "default: 0", "default: 50, other: 50", ""} {
			root.submit(at, at, settingsForm(t, root, "repository_storages_weighted", weights)...).want(422, "repository_storages_weighted")
		}
		root.submit(at, at, settingsForm(t, root, "repository_storages_weighted", " default:20 ,")...).leads(at)
		root.get(at).want(200, `value="default: 20"`)
		root.submit(at, at, settingsForm(t, root, "email_confirmation_setting", "later")...).want(422, "must be off, soft or hard")
		root.submit(at, at, settingsForm(t, root, "minimum_password_length", "12", "impersonation_enabled", "", "email_confirmation_setting", "hard")...).leads(at)
		now, err := s.Settings.Current(t.Context())
		if err != nil || now.MinimumPasswordLength != 12 || now.ImpersonationEnabled || now.Confirmation != setting.ConfirmHard {
			t.Errorf("%+v, %v", now, err)
		}
		root.get("/admin/audit_logs").want(200, "minimum_password_length")
	})
}

// TestImpersonation impersonates a user. Pages show it, and audit events record it.
func TestImpersonation(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "ada")
		s.User(t, "eve")
		root := newBrowser(t, s).signIn("root", apptest.RootPassword)
		ada := "/admin/users/" + strconv.FormatInt(id, 10)
		old := root.get("/").token()
		root.submit("/admin/users/1", "/admin/users/1/impersonate").leads("/admin/users/1") // oneself
		root.submit(ada, ada+"/impersonate").leads("/")
		root.get("/").want(200, "you are impersonating <b>@ada</b>")
		root.get("/explore").want(200, "you are impersonating <b>@ada</b>")
		root.get("/nothing").want(404, "you are impersonating <b>@ada</b>")
		root.get("/admin").want(404)
		root.get("/-/user_settings/profile").want(200, `value="ada"`)
		// A form from before the impersonation has the token of another session.
		root.post("/admin/users/1/block", map[string][]string{"authenticity_token": {old}}).want(422, "has expired")
		// An access token would stay valid after the impersonation.
		const tokens = "/-/user_settings/personal_access_tokens"
		root.submit(tokens, tokens, "name", "x", "scopes", "api").want(403)
		root.submit("/groups/new", "/groups", "name", "Of Ada", "path", "of-ada", "visibility", "private").leads("/of-ada")
		if n := len(sessions(t, s, "ada")); n != 0 {
			t.Errorf("ada has %d sessions", n)
		}
		u, err := s.Users.Get(t.Context(), actor.System(), id, false)
		if err != nil || u.SignInCount != 0 || u.LastActivityOn != "" {
			t.Errorf("the account shows a visit: %d, %q, %v", u.SignInCount, u.LastActivityOn, err)
		}
		s.Clock.Move(24 * time.Hour)
		root.get("/").want(200, "you are impersonating <b>@ada</b>")
		behind, err := s.Users.Get(t.Context(), actor.System(), 1, false)
		if today := s.Clock.Now().Format(time.DateOnly); err != nil || behind.LastActivityOn != today {
			t.Errorf("who visits was active on %q, today is %s, %v", behind.LastActivityOn, today, err)
		}
		root.submit("/", "/admin/impersonation/stop").leads(ada)
		root.get("/admin").want(200).not("you are impersonating")
		root.get("/admin/audit_logs").want(200, "Started Impersonation", "Stopped Impersonation", "Impersonated by root", "of-ada")
		root.get("/admin/audit_logs?author=ada").want(200, "Impersonated by root").not("Started Impersonation")
		newBrowser(t, s).signIn("ada", password).submit("/", "/admin/impersonation/stop").want(409)

		// The impersonation ends when the administrator loses the role, and when the
		// user is blocked.
		root.submit(ada, ada+"/impersonate").leads("/")
		if _, err := s.Users.Block(t.Context(), actor.System(), id); err != nil {
			t.Fatal(err)
		}
		root.get("/").want(200).not("you are impersonating")
		root.submit(ada, ada+"/impersonate").leads(ada)
		root.get(ada).want(200, "cannot be impersonated in its current state")
		if err := s.Users.Unblock(t.Context(), actor.System(), id); err != nil {
			t.Fatal(err)
		}
		root.get("/").want(200, "@root").not("you are impersonating")
		admin, never := true, false
		eve, _ := s.Users.Find(t.Context(), actor.System(), user.Ref("eve"))
		change := func(admin *bool) {
			t.Helper()
			if _, err := s.Users.Update(t.Context(), actor.System(), eve.ID, user.Change{Fields: user.Fields{Admin: admin}}); err != nil {
				t.Fatal(err)
			}
		}
		change(&admin)
		b := newBrowser(t, s).signIn("eve", password)
		b.submit(ada, ada+"/impersonate").leads("/")
		b.get("/").want(200, "@ada")
		change(&never)
		b.get("/").want(200, "@eve").not("you are impersonating")
		b.get(ada).want(404)
	})
}

// TestAuditLog filters the audit events.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		root := c.as["root"]
		const at = "/admin/audit_logs"
		c.press(t, "owner", "/g/p/-/settings/variables", "key", "MINE", "variable_type", "env_var", "environment_scope", "*").leads("/g/p/-/settings/variables")
		root.get(at+"?author=owner").want(200, "MINE").not("Group created")
		root.get(at+"?entity_type=Project&entity=g/p").want(200, "MINE", "Project created").not("Group created")
		root.get(at+"?entity_type=Group&entity=g").want(200, "Group created").not("MINE")
		root.get(at+"?entity_type=User&entity=blocked").want(200, "User blocked")
		root.get(at+"?created_after=2099-01-01").want(200, "No results found")
		root.get(at+"?created_before=2099-01-01").want(200, "MINE")
		root.get(at+"?author=nobody-here").want(422, "is not an existing username")
		root.get(at+"?entity=g/p").want(422, "was not found")
		root.get(at+"?created_after=x").want(422, "is not a date")
		if first, second := root.get(at).want(200, `rel="next"`), root.get(at+"?page=2").want(200, `rel="prev"`); first.body == second.body {
			t.Error("the second page is the first")
		}
	})
}

// stuck has arguments that the handler of its kind cannot read.
type stuck struct {
	N string `json:"pipeline_id"`
}

func (stuck) Kind() string { return "ci_cancel" }

// TestBackgroundWork lists failed background jobs, retries one and deletes one.
func TestBackgroundWork(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		root := newBrowser(t, s).signIn("root", apptest.RootPassword)
		const at = "/admin/background_jobs"
		// Handlers cannot be added after the start of the server, so this job fails
		// because its arguments cannot be read.
		other := queue.New(queue.Deps{DB: s.DB, Log: s.App.Log})
		queue.Handle(other, func(context.Context, stuck) error { return errors.New("never") })
		err := s.DB.Tx(t.Context(), func(tx *db.Tx) error {
			for n := range 2 {
				if err := other.Add(t.Context(), tx, stuck{fmt.Sprint("none ", n)}, queue.Tries(1)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		waittest.For(t, "the work fails", func() bool {
			return strings.Count(root.get(at+"?state=failed").want(200).body, `mono">ci_cancel`) == 2
		})
		page := root.get(at+"?state=failed").want(200, "<summary>").body
		ids := regexp.MustCompile(at+`/(\d+)/retry`).FindAllStringSubmatch(page, -1)
		if len(ids) != 2 {
			t.Fatalf("%d pieces of work: %s", len(ids), page)
		}
		root.get("/admin").want(200, "2 failed background jobs")
		root.submit(at, at+"/"+ids[0][1]+"/discard").leads(at)
		root.submit(at, at+"/"+ids[0][1]+"/discard").want(404)
		root.submit(at, at+"/"+ids[1][1]+"/retry").leads(at)
		waittest.For(t, "the second try fails", func() bool { return strings.Contains(root.get(at+"?state=failed").want(200).body, "attempt 2 of 2") })
		root.get("/admin/audit_logs").want(200, "Background work retried", "Background work dropped")
	})
}

// TestNodes lists this node and other nodes that reported their state.
func TestNodes(t *testing.T) {
	t.Parallel()
	dbtest.EachSource(t, func(t *testing.T, src dbtest.Source) {
		s := apptest.Start(t, src, apptest.BucketStorage(blobtest.S3(t)))
		root := newBrowser(t, s).signIn("root", apptest.RootPassword)
		const at = "/admin/nodes"
		waittest.For(t, "the node has reported itself", func() bool { return strings.Contains(root.get(at).want(200).body, s.Queue.Node()) })
		_, schema, err := s.DB.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		root.get(at).want(200, "This node", "Running", fmt.Sprintf("schema %d", schema), `Cache of <span class="mono">bucket</span>:`, "0 repositories", "0 evictions")
		metrics := string(s.Check(t, apptest.Call{Do: "GET //-/metrics", Status: 200}).Body)
		for _, text := range []string{`svc_node_info{node="` + s.Queue.Node(), `svc_node_contact_age_seconds{node="` + s.Queue.Node()} {
			if !strings.Contains(metrics, text) {
				t.Errorf("the metrics lack %s", text)
			}
		}
		if !s.DB.Postgres() {
			return // SQLite has only one node
		}
		_, err = s.DB.ExecContext(t.Context(), `INSERT INTO nodes (name, version, revision, schema_version, stopping, requests, latency, memory, polls, caches, started_at, seen_at)
			VALUES ('other-x', '0.9', 'abc', 1, FALSE, 2.5, 0.1, 1048576, 3, ?, ?, ?)`,
			`[{"Storage":"east","Bytes":2048,"Limit":1048576,"Repositories":1,"Pinned":1,"Hits":7,"Fetches":2,"FetchedBytes":4096,"Evictions":1}]`, s.Clock.Now().Add(-time.Hour), s.Clock.Now().Add(-10*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		root.get(at).want(200, "other-x", "No contact", "Version 0.9", "2.5 requests/s", "3 held runner requests",
			`<span class="mono">east</span>:`, "2.0 KiB of 1.0 MiB", "1 repository, 1 in use", "7 hits", "2 fetched packs (4.0 KiB)", "1 eviction")
	})
}

// TestStorages moves all projects of a storage to another one.
func TestStorages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		root := newBrowser(t, s).signIn("root", apptest.RootPassword)
		const at = "/admin/storages"
		s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"path":"goes","initialize_with_readme":true}`, Status: 201})
		root.get(at).want(200, "default", s.Config.Storages["default"], "second", "No storage moves", "1 project")
		root.submit(at, at+"/moves", "kind", "project", "source", "default", "destination", "default").leads(at)
		root.get(at).want(200, "is the storage that the repository is on")
		root.submit(at, at+"/moves", "kind", "other", "source", "default", "destination", "second").want(404)
		root.submit(at, at+"/moves", "kind", "project", "source", "default", "destination", "second").leads(at)
		waittest.For(t, "the move is finished", func() bool { return strings.Contains(root.get(at).want(200).body, "badge ok\">Finished") })
		root.get(at).want(200, `<a href="/root/goes">`, "default → second")
	}, apptest.Storages)
}
