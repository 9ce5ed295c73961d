package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/user"
)

// roleBrowsers has a user for each role in the group g and its project g/p, which are
// private; and the project g/open, which is public.
type roleBrowsers struct {
	s   *apptest.Server
	ids map[string]int64
	as  map[string]*browser
}

func newRoleBrowsers(t *testing.T, s *apptest.Server) *roleBrowsers {
	t.Helper()
	c := &roleBrowsers{s, map[string]int64{}, map[string]*browser{"nobody": newBrowser(t, s), "root": newBrowser(t, s).signIn("root", apptest.RootPassword)}}
	root := func(do string, form url.Values) {
		t.Helper()
		s.Check(t, apptest.Call{Do: do, As: apptest.RootToken, Form: form, Status: 201})
	}
	root("POST /groups", url.Values{"name": {"G"}, "path": {"g"}, "visibility": {"public"}})
	group, err := s.Projects.Group(t.Context(), actor.System(), "g")
	if err != nil {
		t.Fatal(err)
	}
	at := strconv.FormatInt(group.ID, 10)
	root("POST /projects", url.Values{"name": {"P"}, "path": {"p"}, "namespace_id": {at}, "initialize_with_readme": {"true"}})
	root("POST /projects", url.Values{"name": {"Open"}, "path": {"open"}, "namespace_id": {at}, "visibility": {"public"}})
	for name, level := range map[string]string{"outsider": "", "guest": "10", "reporter": "20", "developer": "30", "maintainer": "40", "owner": "50", "blocked": "50"} {
		c.ids[name], _ = s.User(t, name)
		c.as[name] = newBrowser(t, s).signIn(name, password)
		if level != "" {
			root("POST /groups/g/members", url.Values{"user_id": {strconv.FormatInt(c.ids[name], 10)}, "access_level": {level}})
		}
	}
	if _, err := s.Users.Block(t.Context(), actor.System(), c.ids["blocked"]); err != nil {
		t.Fatal(err)
	}
	return c
}

// roles are those of roleBrowsers, in the order of the tables: nobody, blocked,
// outsider, guest, reporter, developer, maintainer, owner, root.
var roles = []string{"nobody", "blocked", "outsider", "guest", "reporter", "developer", "maintainer", "owner", "root"}

// check visits pages as every role; 303 is a redirect to the sign-in page.
func (c *roleBrowsers) check(t *testing.T, pages []string, want ...int) {
	t.Helper()
	for _, page := range pages {
		for i, role := range roles {
			got := c.as[role].get(page)
			if got.status != want[i] {
				t.Errorf("GET %s as %s: status %d, want %d", page, role, got.status, want[i])
			}
			if got.status == 303 && !strings.HasPrefix(got.header.Get("Location"), "/users/sign_in") {
				t.Errorf("GET %s as %s leads to %s", page, role, got.header.Get("Location"))
			}
			if size := len(got.body); size > 50<<10 {
				t.Errorf("GET %s as %s has %d bytes", page, role, size)
			}
		}
	}
}

// press submits a form as a role, with the CSRF token of another page of the same
// user.
func (c *roleBrowsers) press(t *testing.T, role, action string, pairs ...string) answer {
	t.Helper()
	c.as[role].t = t
	return c.as[role].submit("/", action, pairs...)
}

func below(base string, names ...string) []string {
	var list []string
	for _, name := range names {
		list = append(list, base+name)
	}
	return list
}

// TestSettingsRoles visits the settings as every role, and submits their forms as
// users without permission.
func TestSettingsRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		pages := []string{"general", "members", "access_tokens", "deploy_tokens", "variables", "runners", "danger", "protected", "push_rules", "merge_requests"}
		more := []string{"deploy_keys", "mirrors", "ci_cd"}
		c.check(t, append(below("/g/p/-/settings/", pages...), below("/g/p/-/settings/", more...)...), 303, 303, 404, 403, 403, 403, 200, 200, 200)
		c.check(t, []string{"/g/p/-/pages"}, 303, 303, 404, 403, 403, 403, 200, 200, 200)
		c.check(t, below("/g/open/-/settings/", "general", "variables", "danger"), 303, 303, 403, 403, 403, 403, 200, 200, 200)
		c.check(t, below("/groups/g/-/settings/", pages...), 303, 303, 403, 403, 403, 403, 403, 200, 200)
		c.check(t, below("/groups/g/-/settings/", "service_accounts"), 303, 303, 403, 403, 403, 403, 403, 200, 200)
		c.check(t, below("/groups/g/-/settings/", more...), 404, 404, 404, 404, 404, 404, 404, 404, 404)

		for _, role := range []string{"outsider", "guest", "developer"} {
			want := 403
			if role == "outsider" {
				want = 404
			}
			for action, pairs := range map[string][]string{
				"general": {"name", "X"}, "avatar/delete": nil, "members": {"username", "outsider", "access_level", "50"}, "members/1/delete": nil, "members/1": {"access_level", "50"},
				"access_tokens": {"name", "x", "scopes", "api", "access_level", "40"}, "access_tokens/1/revoke": nil, "deploy_tokens": {"name", "x", "scopes", "read_repository"},
				"deploy_tokens/1/delete": nil, "deploy_keys": {"title", "x"}, "deploy_keys/1/delete": nil, "mirrors": {"url", "x"}, "mirrors/1/delete": nil, "variables": {"key", "X"}, "variables/update": {"key", "X"}, "variables/delete": {"key", "X"},
				"runners": {"description", "x"}, "protected": {"kind", "branch", "branch", "x"}, "protected/delete": {"kind", "branch", "name", "main"}, "push_rules": nil,
				"ci_cd": {"build_timeout", "60"}, "ci_cd/limit": nil, "danger/path": {"path", "x"}, "danger/transfer": {"namespace_id", "1"}, "danger/archive": nil,
				"danger/delete": {"confirm", "g/p"}, "housekeeping": nil, "requests/1/approve": {"access_level", "50"}, "requests/1/deny": nil, "shares": {"group", "g", "group_access", "50"}, "shares/1/delete": nil,
			} {
				if got := c.press(t, role, "/g/p/-/settings/"+action, pairs...); got.status != want {
					t.Errorf("POST %s as %s: status %d, want %d", action, role, got.status, want)
				}
			}
		}
		// A Maintainer of the group is not an Owner of it or of its projects.
		for _, action := range []string{"general", "members", "access_tokens", "variables", "runners", "danger/delete", "push_rules", "push_rules/delete", "merge_requests", "service_accounts", "service_accounts/1/tokens"} {
			c.press(t, "maintainer", "/groups/g/-/settings/"+action, "confirm", "g").want(403)
		}
		c.press(t, "maintainer", "/g/p/-/settings/danger/delete", "confirm", "g/p").want(403)
		c.press(t, "maintainer", "/g/p/-/settings/danger/archive").want(403)
		c.press(t, "maintainer", "/g/p/-/settings/runners", "description", "x", "run_untagged", "1").want(403)
		c.as["maintainer"].get("/g/p/-/settings/runners").want(200).not("New runner")
		c.as["maintainer"].get("/g/p/-/settings/danger").want(200, "Owner role required").not("Delete project")
		c.as["developer"].get("/g/p").want(200).not("/-/settings")
		c.as["maintainer"].get("/g/p").want(200, `href="/g/p/-/settings/general"`)
		c.as["maintainer"].get("/g").want(200).not("/-/settings")
		c.as["owner"].get("/g").want(200, `href="/groups/g/-/settings/general"`)
		for from, to := range map[string]string{"/g/p/-/edit": "/g/p/-/settings/general", "/g/p/-/project_members": "/g/p/-/settings/members", "/groups/g/-/group_members": "/groups/g/-/settings/members"} {
			c.as["owner"].get(from).leads(to)
		}
		// Other members see the list of members as well.
		for _, role := range []string{"guest", "developer"} {
			c.as[role].get("/g/p").want(200, `href="/g/p/-/project_members"`)
			c.as[role].get("/g/p/-/project_members").want(200, "@maintainer", "Maintainer").not("Remove")
			c.as[role].get("/g/p/-/project_members?search=maint").want(200, "@maintainer").not("@reporter")
			c.as[role].get("/g/p/-/project_members?search=xyz").want(200, "No results found")
			c.as[role].get("/groups/g/-/group_members").leads("/g?tab=members")
		}
		c.as["outsider"].get("/g/p/-/project_members").want(404)
		c.as["outsider"].get("/g/open/-/project_members").want(200, "@maintainer")
		c.as["outsider"].get("/groups/g/-/group_members").leads("/g?tab=members")
		newBrowser(t, s).get("/g/p/-/project_members").leads("/users/sign_in?return_to=%2Fg%2Fp%2F-%2Fproject_members")
	})
}

// TestGeneralSettings changes a project and a group as their Owner.
func TestGeneralSettings(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		b := c.as["owner"]
		const at = "/g/p/-/settings/general"
		same := []string{"name", "P", "visibility", "private", "repository_access_level", "enabled", "builds_access_level", "enabled", "forking_access_level", "enabled"}
		with := func(pairs ...string) []string {
			form := append([]string{}, same...)
			for i := 0; i < len(pairs); i += 2 {
				for j := 0; j < len(same); j += 2 {
					if same[j] == pairs[i] {
						form[j+1] = pairs[i+1]
					}
				}
				if !strings.Contains(strings.Join(same, " "), pairs[i]) {
					form = append(form, pairs[i], pairs[i+1])
				}
			}
			return form
		}
		b.get(at).want(200, `value="main"`)
		b.submit(at, at, with("name", "")...).want(422, "Name can&#39;t be blank")
		b.submit(at, at, with("visibility", "secret")...).want(422, "is not included in the list")
		b.submit(at, at, with("forking_access_level", "all")...).want(422, "is not included in the list")
		b.submit(at, at, with("default_branch", "nothing")...).want(422, "Default branch")
		b.submit(at, at, with("name", "Engine", "description", "Weaves", "topics", "go, engines", "visibility", "public", "builds_access_level", "disabled", "request_access_enabled", "1")...).leads(at)
		newBrowser(t, s).get("/g/p").want(200, "Engine", "Weaves", "engines")
		p, err := s.Projects.Get(t.Context(), actor.System(), "g/p")
		if err != nil || p.Builds != project.Disabled || len(p.Topics) != 2 || !p.Settings.RequestAccessEnabled {
			t.Errorf("%+v, %v", p, err)
		}
		// Restricting the repository restricts merge requests; the opposite does not
		// open them.
		off := project.Disabled
		for _, step := range []struct {
			code string
			want project.Feature
		}{{"enabled", project.Enabled}, {"private", project.MembersOnly}, {"enabled", project.MembersOnly}, {"disabled", off}, {"private", off}, {"enabled", off}} {
			b.submit(at, at, with("name", "Engine", "visibility", "public", "repository_access_level", step.code, "builds_access_level", "disabled")...).leads(at)
			if p, err := s.Projects.Get(t.Context(), actor.System(), "g/p"); err != nil || p.MergeRequests != step.want {
				t.Errorf("repository %s: merge requests are %s, %v; want %s", step.code, p.MergeRequests, err, step.want)
			}
		}
		c.as["maintainer"].submit(at, at, with("name", "Other", "description", "By a Maintainer")...).leads(at)
		b.get(at).want(200, "By a Maintainer", "Engine").not("Other")

		const of = "/groups/g/-/settings/general"
		b.submit(of, of, "name", "Gear", "visibility", "private", "project_creation_level", "owner", "subgroup_creation_level", "owner").want(422, "higher visibility")
		b.submit(of, of, "name", "Gear", "visibility", "public", "project_creation_level", "anyone", "subgroup_creation_level", "owner").want(422, "is not included in the list")
		b.submit(of, of, "name", "Gear", "visibility", "public", "project_creation_level", "owner", "subgroup_creation_level", "owner").leads(of)
		b.get("/g").want(200, "Gear")
		c.as["developer"].get("/g").want(200).not("namespace_id=")
		b.get("/g").want(200, "namespace_id=")

		const ci = "/g/p/-/settings/ci_cd"
		b.submit(ci, ci, "build_timeout", "5", "build_git_strategy", "fetch", "ci_pipeline_variables_minimum_override_role", "owner").want(422, "between 10 minutes")
		b.submit(ci, ci, "build_timeout", "x").want(422, "is not a number")
		b.submit(ci, ci, "build_timeout", "90", "ci_default_git_depth", "5", "build_git_strategy", "clone", "ci_pipeline_variables_minimum_override_role", "owner").leads(ci)
		b.get(ci).want(200, `value="90"`)
		b.submit(ci, ci+"/allow", "target", "g/nothing").want(422, "is not a project or group that you can access")
		b.submit(ci, ci+"/allow", "target", "g/open").leads(ci)
		open, _ := s.Projects.Get(t.Context(), actor.System(), "g/open")
		b.get(ci).want(200, "Open")
		b.submit(ci, ci+"/disallow", "project", strconv.FormatInt(open.ID, 10)).leads(ci)
		b.get(ci).want(200).not("Remove g/open")
		b.submit(ci, ci+"/limit").leads(ci)
		b.get(ci).want(200, "Unrestricted")

		const danger, pendingAt = "/g/p/-/settings/danger", "/dashboard/projects/removed"
		b.submit(danger, danger+"/path", "path", "a b").want(422, "wrong")
		b.submit(danger, danger+"/path", "path", "engine").leads("/g/engine/-/settings/danger")
		b.get("/g/p").want(301)
		b.submit("/g/engine/-/settings/danger", "/g/engine/-/settings/housekeeping").leads("/g/engine/-/settings/danger")
		b.submit("/g/engine/-/settings/danger", "/g/engine/-/settings/danger/transfer", "namespace_id", strconv.FormatInt(namespaceOf(t, s, "owner"), 10)).leads("/owner/engine/-/settings/danger")
		b.submit("/owner/engine/-/settings/danger", "/owner/engine/-/settings/danger/archive").leads("/owner/engine/-/settings/danger")
		b.get("/owner/engine").want(200, "Archived")
		b.submit("/owner/engine/-/settings/danger", "/owner/engine/-/settings/danger/delete", "confirm", "engine").want(422, "is not owner/engine")
		b.submit("/owner/engine/-/settings/danger", "/owner/engine/-/settings/danger/delete", "confirm", "owner/engine").leads(pendingAt)
		b.get("/owner/engine").want(404)
		b.submit("/groups/g/-/settings/danger", "/groups/g/-/settings/danger/delete", "confirm", "g").leads(pendingAt)
		b.get("/g").want(404)
		marked, err := s.Projects.Groups(t.Context(), actor.System(), project.GroupsFilter{Marked: project.OnlyMarked, AllAvailable: true}, project.Sort{}, db.Paging{Limit: 2})
		if err != nil || len(marked.Items) != 1 {
			t.Fatalf("%d groups are marked for deletion: %v", len(marked.Items), err)
		}
		pending := fmt.Sprintf("/-/pending_deletion/groups/%d", marked.Items[0].ID)
		b.get(pendingAt).want(200, "engine-deletion_scheduled", "Restore", "Delete immediately", pending+"/restore")
		b.submit(pendingAt, pending+"/delete", "full_path", "other").leads(pendingAt)
		b.submit(pendingAt, pending+"/restore").leads("/g")
		b.get("/g").want(200)
	})
}

func namespaceOf(t *testing.T, s *apptest.Server, username string) int64 {
	t.Helper()
	u, err := s.Users.Find(t.Context(), actor.System(), user.Ref(username))
	if err != nil {
		t.Fatal(err)
	}
	return u.NamespaceID
}

// TestMembers adds and removes members.
func TestMembers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		b, out := c.as["owner"], c.as["outsider"]
		const at = "/g/p/-/settings/members"
		id := strconv.FormatInt(c.ids["outsider"], 10)
		b.get(at).want(200, "Inherited", "@developer")
		b.submit(at, at, "username", "nobody-here", "access_level", "30").want(422, "is not an existing username")
		b.submit(at, at, "username", id, "access_level", "30").want(422, "is not an existing username") // an ID is not a username
		b.submit(at, at, "username", "outsider", "access_level", "35").want(422, "is not included in the list")
		b.submit(at, at, "username", "outsider", "access_level", "30", "expires_at", "2000-01-01").want(422, "date in the past")
		c.as["maintainer"].submit(at, at, "username", "outsider", "access_level", "50").want(403)
		b.submit(at, at, "username", "@outsider", "access_level", "30").leads(at)
		b.submit(at, at, "username", "outsider", "access_level", "30").want(422, "already exists")
		out.get("/g/p").want(200, "Leave")
		b.submit(at, at+"/"+id, "access_level", "40", "expires_at", "2099-01-01").leads(at)
		b.get(at).want(200, "2099-01-01")
		out.submit("/g/p", "/g/p/-/leave").leads("/")
		out.get("/g/p").want(404)

		// By an access request.
		out.get("/g/open").want(200, "Request access")
		out.submit("/g/open", "/g/open/-/request_access").leads("/g/open")
		out.get("/g/open").want(200, "Withdraw access request").not("Request access")
		out.submit("/g/open", "/g/open/-/withdraw_request").leads("/g/open")
		out.submit("/g/open", "/g/open/-/request_access").leads("/g/open")
		const open = "/g/open/-/settings/"
		b.get(open+"members").want(200, "Access requests", "@outsider")
		b.submit(open+"members", open+"requests/"+id+"/deny").leads(open + "members")
		out.submit("/g", "/groups/g/-/request_access").leads("/g")
		b.submit("/groups/g/-/settings/members", "/groups/g/-/settings/requests/"+id+"/approve", "access_level", "20").leads("/groups/g/-/settings/members")
		out.get("/g/p").want(200)
		b.submit("/groups/g/-/settings/members", "/groups/g/-/settings/members/"+id+"/delete").leads("/groups/g/-/settings/members")
		out.get("/g/p").want(404)
		newBrowser(t, s).get("/g/open").want(200).not("Request access")

		// By sharing with a group.
		out.submit("/groups/new", "/groups", "name", "Guests", "path", "guests", "visibility", "public").leads("/guests")
		b.submit(at, "/g/p/-/settings/shares", "group", "guest-nothing", "group_access", "30").want(422, "does not exist, or you")
		b.submit(at, "/g/p/-/settings/shares", "group", "guests", "group_access", "20").leads(at)
		out.get("/g/p").want(200)
		group, err := s.Projects.Group(t.Context(), actor.System(), "guests")
		if err != nil {
			t.Fatal(err)
		}
		remove := "/g/p/-/settings/shares/" + strconv.FormatInt(group.ID, 10) + "/delete"
		b.get(at).want(200, `href="/guests"`, `action="`+remove+`"`)
		b.submit(at, remove).leads(at)
		b.get(at).want(200).not(`href="/guests"`, remove)
		out.get("/g/p").want(404)

		// The last Owner cannot leave, and the page says why.
		out.submit("/guests", "/groups/guests/-/leave").leads("/")
		out.get("/guests").want(200, "A group must have an owner.")
	})
}

// TestCredentials creates and revokes access tokens, deploy tokens and deploy keys.
func TestCredentials(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		b := c.as["owner"]
		for base, path := range map[string]string{"/g/p/-/settings/": "/projects/g%2Fp", "/groups/g/-/settings/": "/groups/g"} {
			at := base + "access_tokens"
			b.submit(at, at, "name", "Bot", "scopes", "api", "access_level", "7").want(422, "is not included in the list")
			b.submit(at, at, "name", "", "scopes", "api", "access_level", "30").want(422, "can&#39;t be blank")
			made := b.submit(at, at, "name", "Bot", "scopes", "read_api", "access_level", "20").want(200, "It is not shown again")
			token := regexp.MustCompile(`svcpat-\w+`).FindString(made.body)
			s.Check(t, apptest.Call{Do: "GET " + path, As: token, Status: 200})
			id := regexp.MustCompile(at + `/(\d+)/revoke`).FindStringSubmatch(b.get(at).want(200, "Bot").not(token).body)[1]
			b.submit(at, at+"/"+id+"/revoke").leads(at)
			s.Check(t, apptest.Call{Do: "GET " + path, As: token, Status: 401})

			at = base + "deploy_tokens"
			b.submit(at, at, "name", "Prod").want(422, "Scopes can&#39;t be blank")
			b.submit(at, at, "name", "Prod", "scopes", "read_repository", "expires_at", "x").want(422, "is not a date")
			token = regexp.MustCompile(`svcdt-\w+`).FindString(b.submit(at, at, "name", "Prod", "scopes", "read_repository", "username", "fetcher").want(200, "fetcher").body)
			id = regexp.MustCompile(at + `/(\d+)/delete`).FindStringSubmatch(b.get(at).want(200, "Prod").not(token).body)[1]
			b.submit(at, at+"/"+id+"/delete").leads(at)
			b.get(at).want(200, "No deploy tokens")

			at = base + "variables"
			b.submit(at, at, "key", "A-B", "variable_type", "env_var", "environment_scope", "*").want(422, "letters, digits")
			b.submit(at, at, "key", "AB", "variable_type", "letter", "environment_scope", "*").want(422, "is not included in the list")
			b.submit(at, at, "key", "PASS", "value", "short", "masked", "1", "variable_type", "env_var", "environment_scope", "*").want(422, "is invalid")
			b.submit(at, at, "key", "PASS", "value", "long-enough", "masked", "1", "protected", "1", "variable_type", "env_var", "environment_scope", "review/*").leads(at)
			b.get(at).want(200, "PASS", "Masked", "Protected", "review/*").not("long-enough")
			b.get(at+"?key=PASS&scope=review/*").want(200, "long-enough")
			b.get(at + "?key=PASS&scope=other").want(404)
			b.submit(at, at+"/update", "key", "PASS", "scope", "review/*", "value", "another-one", "variable_type", "file", "environment_scope", "*").leads(at)
			b.get(at+"?key=PASS&scope=*").want(200, "another-one", "File")
			b.submit(at, at, "key", "DEEP", "value", "never-seen-again", "hidden", "1", "variable_type", "env_var", "environment_scope", "*").leads(at)
			b.get(at+"?key=DEEP&scope=*").want(200, "The value is hidden").not("never-seen-again")
			b.submit(at, at+"/update", "key", "DEEP", "scope", "*", "value", "", "description", "kept", "variable_type", "env_var", "environment_scope", "*").leads(at)
			b.submit(at, at+"/delete", "key", "PASS", "scope", "*").leads(at)
			b.get(at).want(200, "DEEP").not("PASS</span>")
		}

		const keys = "/g/p/-/settings/deploy_keys"
		b.submit(keys, keys, "title", "x", "key", "no key").want(422, "wrong")
		b.submit(keys, keys, "title", "Robot", "key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0TEbHAhLAlxmO0mO0mO0mO0mO0mO0mO0mO0mO0mO0m").leads(keys)
		id := regexp.MustCompile(keys + `/(\d+)/push`).FindStringSubmatch(b.get(keys).want(200, "Robot").not("Write permissions</span>").body)[1]
		b.submit(keys, keys+"/"+id+"/push", "can_push", "1").leads(keys)
		b.get(keys).want(200, "Write permissions</span>")
		b.submit(keys, keys+"/"+id+"/delete").leads(keys)
		b.get(keys).want(200, "No deploy keys")
	})
}

// TestRunnersAndRefs manages runners, protected refs and push rules.
func TestRunnersAndRefs(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		for at, b := range map[string]*browser{"/g/p/-/settings/runners": c.as["owner"], "/groups/g/-/settings/runners": c.as["owner"], "/admin/runners": c.as["root"]} {
			b.submit(at, at, "description", "x").want(422, "Tags list can not be empty")
			b.submit(at, at, "description", "x", "run_untagged", "1", "maximum_timeout", "x").want(422, "is not a number")
			made := b.submit(at, at, "description", "Machine", "tags", "linux, arm", "maximum_timeout", "30").want(200, "svc runner", "gitlab-runner register", "is not shown again")
			token := regexp.MustCompile(`glrt-\w+`).FindString(made.body)
			s.Check(t, apptest.Call{Do: "POST /runners/verify", Form: url.Values{"token": {token}}, Status: 200})
			id := regexp.MustCompile(at + `/(\d+)/pause`).FindStringSubmatch(b.get(at).want(200, "Machine", "linux").not(token).body)[1]
			b.submit(at, at+"/"+id+"/pause").leads(at)
			b.get(at).want(200, "Paused")
			b.submit(at, at+"/"+id+"/resume").leads(at)
			b.submit(at, at+"/"+id, "description", "Other name", "tags", "linux", "maximum_timeout", "1").leads(at)
			b.get(at).want(200, "at least 10 minutes")
			b.submit(at, at+"/"+id, "description", "Other name", "tags", "linux").leads(at)
			b.get(at).want(200, "Other name").not("arm")
			again := regexp.MustCompile(`glrt-\w+`).FindString(b.submit(at, at+"/"+id+"/token").want(200).body)
			if again == token || again == "" {
				t.Errorf("%s: the new token is %q", at, again)
			}
			c.press(t, "developer", "/g/p/-/settings/runners/"+id+"/delete").want(403)
			b.submit(at, at+"/"+id+"/delete").leads(at)
			b.get(at+"?status=paused").want(200, "No runners have this status")
		}

		b := c.as["owner"]
		const owning, other = "/g/p/-/settings/runners", "/g/open/-/settings/runners"
		b.submit(owning, owning, "description", "Shared", "tags", "linux").want(200)
		id := regexp.MustCompile(owning + `/(\d+)/pause`).FindStringSubmatch(b.get(owning).want(200, "Shared").body)[1]
		enable, disable := other+"/"+id+"/enable", other+"/"+id+"/disable"
		b.get(other).want(200, enable).not(disable)
		b.submit(other, enable).leads(other)
		b.get(other).want(200, disable, "Disable for this project").not(enable)
		b.get(owning).want(200, "Shared").not("Disable for this project") // the project owns the runner
		b.submit(other, disable).leads(other)
		b.get(other).want(200, enable).not(disable)

		const at = "/g/p/-/settings/protected"
		b.get(at).want(200, "main")
		b.submit(at, at, "kind", "branch", "branch", "a..b", "push_level", "40", "merge_level", "40").want(422, "Name is invalid")
		b.submit(at, at, "kind", "branch", "branch", "release/*", "push_level", "35", "merge_level", "40").want(422, "not included in the list")
		b.submit(at, at, "kind", "branch", "branch", "release/*", "push_level", "0", "merge_level", "30").leads(at)
		b.get(at).want(200, "release/*", "No one", "Developers &#43; Maintainers")
		b.submit(at, at, "kind", "branch", "branch", "release/*", "push_level", "0", "merge_level", "30").want(422, "already exists")
		b.submit(at, at+"/force", "name", "release/*", "allow_force_push", "1").leads(at)
		b.get(at).want(200, "Force push allowed")
		b.submit(at, at+"/delete", "kind", "branch", "name", "release/*").leads(at)
		b.submit(at, at, "kind", "tag", "tag", "v*", "create_level", "30").leads(at)
		b.get(at).want(200, "v*").not("release/*</span>")
		b.submit(at, at, "kind", "other", "other", "v*").want(404)

		const rules = "/g/p/-/settings/push_rules"
		b.submit(rules, rules, "branch_name_regex", "(").want(422, "must be valid RE2")
		b.submit(rules, rules, "branch_name_regex", "^fix/", "prevent_secrets", "1").leads(rules)
		b.submit(rules, rules, "branch_name_regex", "^feature/", "max_file_size", "3").leads(rules)
		b.get(rules).want(200, "^feature/", `value="3"`).not(`name="prevent_secrets" value="1" checked`, "Delete push rules")

		// An external wiki is linked in the sidebar; the link of a project replaces
		// that of its group, even if it is not active.
		const wiki, groupWiki = "/g/p/-/settings/integrations/external-wiki", "/groups/g/-/settings/integrations/external-wiki"
		b.get(wiki).want(200, "URL of the external wiki").not("External wiki</span>", "Branches for which", "<legend>Trigger")
		b.submit(wiki, wiki, "active", "1", "external_wiki_url", "javascript:x").want(422, "is invalid")
		b.submit(groupWiki, groupWiki, "active", "1", "external_wiki_url", "https://wiki.example.org/g").leads(groupWiki)
		b.get("/g/p").want(200, `href="https://wiki.example.org/g"`)
		b.submit(wiki, wiki, "active", "1", "external_wiki_url", "https://wiki.example.org/p").leads(wiki)
		b.get("/g/p").want(200, `href="https://wiki.example.org/p"`).not("https://wiki.example.org/g")
		b.submit(wiki, wiki+"/test").leads(wiki)
		b.get(wiki).want(200, "This integration sends no messages.").not("Send test message")
		b.submit(wiki, wiki, "external_wiki_url", "https://wiki.example.org/p").leads(wiki)
		b.get("/g/p").want(200).not("https://wiki.example.org")
		b.submit(wiki, wiki+"/delete").leads("/g/p/-/settings/integrations")
		b.submit(groupWiki, groupWiki+"/delete").leads("/groups/g/-/settings/integrations")
		const emails = "/g/p/-/settings/integrations/pipelines-email"
		b.submit(emails, emails, "active", "1", "recipients", "nobody", "pipeline_events", "1").want(422, "has an invalid email address")
		b.submit(emails, emails, "active", "1", "recipients", "team@example.org", "pipeline_events", "1", "branches_to_be_notified", "all").leads(emails)
		b.get(emails).want(200, `value="team@example.org"`, "Send test message")

		// Merge settings of a group are enforced in its projects.
		const merging, merges = "/groups/g/-/settings/merge_requests", "/g/p/-/settings/merge_requests"
		b.get(merges).want(200).not("Enforced by a group")
		b.submit(merging, merging, "only_allow_merge_if_all_discussions_are_resolved", "1", "prevent_committers", "1", "on_push", "reset").leads(merging)
		b.get(merging).want(200, "The settings were saved.", `name="prevent_committers" value="1" checked`, `value="reset" selected`).not(`name="prevent_author" value="1" checked`)
		b.get(merges).want(200, "Enforced by a group")
		s.Check(t, apptest.Call{Do: "GET /projects/g%2Fp/merge_request_approval_setting", As: apptest.RootToken, Status: 200,
			Want: `{"allow_committer_approval":{"value":false,"locked":true},"retain_approvals_on_push":{"value":false,"locked":true}}`})
		b.submit(merging, merging, "on_push", "project").leads(merging)
		b.get(merges).want(200).not("Enforced by a group")

		// New projects copy the push rule of their group, even an empty one, until
		// it is deleted.
		const of, sub = "/groups/g/-/settings/push_rules", "/groups/g/s/-/settings/push_rules"
		parent, err := s.Projects.Group(t.Context(), actor.System(), "g")
		if err != nil {
			t.Fatal(err)
		}
		var child struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /groups", As: apptest.RootToken, JSON: fmt.Sprintf(`{"name":"s","path":"s","parent_id":%d}`, parent.ID), Status: 201}).JSON(t, &child)
		b.get(of).want(200, "New projects of this group").not("Delete push rules")
		b.submit(of, of, "branch_name_regex", "(", "max_file_size", "1").want(422, "must be valid RE2")
		b.submit(of, of, "branch_name_regex", "^fix/", "max_file_size", "x").want(422, "is not a number")
		b.submit(of, of, "branch_name_regex", "^fix/", "max_file_size", "2", "prevent_secrets", "1").leads(of)
		b.submit(of, of, "branch_name_regex", "^topic/", "max_file_size", "3").leads(of)
		b.get(of).want(200, "The push rules were saved.", "^topic/", `value="3"`, "Delete push rules").not(`name="prevent_secrets" value="1" checked`)
		b.submit(sub, sub, "max_file_size", "0").leads(sub)
		b.get("/groups/g/s/-/settings/merge_requests").want(200, "Approval settings are set in the top-level group.").not("prevent_author")
		copied := func(name, want string) {
			t.Helper()
			var made struct{ ID int64 }
			s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: fmt.Sprintf(`{"name":%q,"namespace_id":%d}`, name, child.ID), Status: 201}).JSON(t, &made)
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/push_rule", made.ID), As: apptest.RootToken, Status: 200, Want: want})
		}
		copied("one", `{"branch_name_regex":""}`)
		b.submit(sub, sub+"/delete").leads(sub)
		b.get(sub).want(200, "The push rules were deleted.")
		copied("two", `{"branch_name_regex":"^topic/","max_file_size":3}`)
		b.submit(sub, sub+"/delete").want(404)
		b.get(rules).want(200, "^feature/") // existing projects keep theirs
	})
}

// TestSettingsMarkup uses markup as the names that settings show.
func TestSettingsMarkup(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		c := newRoleBrowsers(t, s)
		name := bad
		if _, err := s.Users.Update(t.Context(), actor.System(), c.ids["developer"], user.Change{Name: &name, Fields: user.Fields{Note: &name}}); err != nil {
			t.Fatal(err)
		}
		b, root := c.as["owner"], c.as["root"]
		for _, base := range []string{"/g/p/-/settings/", "/groups/g/-/settings/"} {
			b.submit(base+"access_tokens", base+"access_tokens", "name", bad, "scopes", "api", "access_level", "30").want(200)
			b.submit(base+"deploy_tokens", base+"deploy_tokens", "name", bad, "scopes", "read_repository").want(200)
			b.submit(base+"variables", base+"variables", "key", "K", "value", bad, "description", bad, "variable_type", "env_var", "environment_scope", "*").leads(base + "variables")
			b.submit(base+"variables", base+"variables", "key", bad, "value", bad, "variable_type", "env_var", "environment_scope", bad).want(422)
			b.submit(base+"runners", base+"runners", "description", bad, "tags", bad).want(200)
		}
		b.submit("/g/p/-/settings/deploy_keys", "/g/p/-/settings/deploy_keys", "title", bad, "key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0TEbHAhLAlxmO0mO0mO0mO0mO0mO0mO0mO0mO0mO0m").leads("/g/p/-/settings/deploy_keys")
		b.submit("/g/p/-/settings/protected", "/g/p/-/settings/protected", "kind", "branch", "branch", `<u>onerror=1"`, "push_level", "40", "merge_level", "40").leads("/g/p/-/settings/protected")
		b.submit("/g/p/-/settings/general", "/g/p/-/settings/general", "name", bad, "description", bad, "topics", bad, "visibility", bad).want(422)
		b.submit("/g/p/-/settings/general", "/g/p/-/settings/general", "name", "P", "description", bad, "topics", bad, "visibility", "private", "repository_access_level", "enabled", "builds_access_level", "enabled", "forking_access_level", "enabled").leads("/g/p/-/settings/general")
		tag := regexp.MustCompile(`<(script>|img src="?x|u>)|="javascript:|<[a-z][^>]*\sonerror=`)
		quoted := regexp.MustCompile(`"[^"<>]*"`)
		see := func(b *browser, path string) {
			t.Helper()
			if found := tag.FindString(quoted.ReplaceAllString(b.get(path).want(200).body, `""`)); found != "" {
				t.Errorf("%s has %q", path, found)
			}
		}
		for _, base := range []string{"/g/p/-/settings/", "/groups/g/-/settings/"} {
			b.submit(base+"push_rules", base+"push_rules", "commit_message_regex", bad).leads(base + "push_rules")
			for _, page := range []string{"general", "members", "access_tokens", "deploy_tokens", "variables", "variables?key=K&scope=*", "runners", "danger", "push_rules"} {
				see(b, base+page)
			}
		}
		for _, page := range []string{"deploy_keys", "mirrors", "protected", "ci_cd"} {
			see(b, "/g/p/-/settings/"+page)
		}
		for _, page := range []string{"", "/users", "/users/" + strconv.FormatInt(c.ids["developer"], 10), "/users?search=" + url.QueryEscape(bad), "/projects?search=" + url.QueryEscape(bad), "/groups", "/projects",
			"/runners", "/audit_logs", "/background_jobs?state=" + url.QueryEscape(bad), "/storages", "/application_settings"} {
			see(root, "/admin"+page)
		}
	})
}
