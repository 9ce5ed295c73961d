package api_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/ci/runners"
	"svc/internal/ci/variable"
	"svc/internal/project"
	"svc/internal/user"
)

// role is the status of an endpoint for each kind of caller. The request is valid,
// so that the response only depends on the caller.
type role struct {
	do   string // the request; {user} is another user, {self} the caller of "user"
	json string

	nobody int // without a credential
	user   int // a signed-in user, about another user or themselves
	admin  int

	readAPI  int // an administrator's token with only read_api
	readUser int // an administrator's token with only read_user
}

// Common rows. Anonymous callers get 401, unless the row is open.
func adminRead(do string) role { return role{do, "", 401, 403, 200, 200, 403} }
func userRead(do string) role  { return role{do, "", 401, 200, 200, 200, 200} }
func ownRead(do string) role   { return role{do, "", 401, 200, 200, 200, 403} }
func openRead(do string) role  { return role{do, "", 200, 200, 200, 200, 200} }
func openAPI(do string) role   { return role{do, "", 200, 200, 200, 200, 403} }
func admin(do, body string, status int) role {
	return role{do, body, 401, 403, status, 403, 403}
}
func own(do, body string, status int) role { return role{do, body, 401, status, status, 403, 403} }

// roles has a row for every endpoint: TestRoles fails if one is missing.
var roles = map[string]role{
	"GET /version":  userRead("GET /version"),
	"GET /metadata": userRead("GET /metadata"),

	"GET /application/statistics":                        adminRead("GET /application/statistics"),
	"GET /analytics/group_activity/issues_count":         adminRead("GET /analytics/group_activity/issues_count?group_path={group}"),
	"GET /analytics/group_activity/merge_requests_count": adminRead("GET /analytics/group_activity/merge_requests_count?group_path={group}"),
	"GET /analytics/group_activity/new_members_count":    adminRead("GET /analytics/group_activity/new_members_count?group_path={group}"),

	"GET /users":           openRead("GET /users?username=other"),
	"GET /users/{id}":      userRead("GET /users/{user}"),
	"POST /users":          admin("POST /users", `{"email":"n@example.org","name":"N","username":"n{n}","force_random_password":true}`, 201),
	"PUT /users/{id}":      admin("PUT /users/{user}", `{"bio":"x"}`, 200),
	"DELETE /users/{id}":   admin("DELETE /users/{fresh}", "", 204),
	"GET /user":            userRead("GET /user"),
	"GET /user/activities": adminRead("GET /user/activities"),

	"POST /users/{id}/block":                   admin("POST /users/{fresh}/block", "", 201),
	"POST /users/{id}/unblock":                 admin("POST /users/{fresh}/unblock", "", 201),
	"POST /users/{id}/activate":                admin("POST /users/{fresh}/activate", "", 201),
	"POST /users/{id}/deactivate":              admin("POST /users/{fresh}/deactivate", "", 201),
	"POST /users/{id}/ban":                     admin("POST /users/{fresh}/ban", "", 201),
	"POST /users/{id}/unban":                   admin("POST /users/{fresh}/unban", "", 403),
	"POST /users/{id}/approve":                 admin("POST /users/{fresh}/approve", "", 409),
	"POST /users/{id}/reject":                  admin("POST /users/{fresh}/reject", "", 409),
	"PATCH /users/{id}/disable_two_factor":     admin("PATCH /users/{fresh}/disable_two_factor", "", 400),
	"DELETE /users/{id}/identities/{provider}": admin("DELETE /users/{user}/identities/none", "", 404),

	"POST /users/{user_id}/personal_access_tokens": admin("POST /users/{user}/personal_access_tokens", `{"name":"t","scopes":["api"]}`, 201),
	"POST /user/personal_access_tokens":            own("POST /user/personal_access_tokens", `{"name":"t","scopes":["k8s_proxy"]}`, 201),
	"GET /personal_access_tokens":                  ownRead("GET /personal_access_tokens"),
	"GET /personal_access_tokens/{id}":             {"GET /personal_access_tokens/{token}", "", 401, 404, 200, 200, 403},
	"DELETE /personal_access_tokens/{id}":          {"DELETE /personal_access_tokens/{token}", "", 401, 404, 204, 403, 403},
	"POST /personal_access_tokens/{id}/rotate":     {"POST /personal_access_tokens/{token}/rotate", "", 401, 404, 200, 403, 403},
	// A token can read and revoke itself regardless of its scopes.
	"GET /personal_access_tokens/self":         {"GET /personal_access_tokens/self", "", 401, 200, 200, 200, 200},
	"DELETE /personal_access_tokens/self":      {"DELETE /personal_access_tokens/self", "", 401, 204, 204, 204, 204},
	"POST /personal_access_tokens/self/rotate": own("POST /personal_access_tokens/self/rotate", "", 200),

	"GET /users/{user_id}/impersonation_tokens":         adminRead("GET /users/{user}/impersonation_tokens"),
	"POST /users/{user_id}/impersonation_tokens":        admin("POST /users/{user}/impersonation_tokens", `{"name":"t","scopes":["api"]}`, 201),
	"GET /users/{user_id}/impersonation_tokens/{id}":    adminRead("GET /users/{user}/impersonation_tokens/{imp}"),
	"DELETE /users/{user_id}/impersonation_tokens/{id}": admin("DELETE /users/{user}/impersonation_tokens/{imp}", "", 204),

	"GET /user/emails":                     userRead("GET /user/emails"),
	"GET /user/emails/{email_id}":          {"GET /user/emails/99999", "", 401, 404, 404, 404, 404},
	"POST /user/emails":                    own("POST /user/emails", `{"email":"e{n}@example.org"}`, 201),
	"DELETE /user/emails/{email_id}":       own("DELETE /user/emails/99999", "", 404),
	"GET /users/{id}/emails":               adminRead("GET /users/{user}/emails"),
	"POST /users/{id}/emails":              admin("POST /users/{user}/emails", `{"email":"e{n}@example.org"}`, 201),
	"DELETE /users/{id}/emails/{email_id}": admin("DELETE /users/{user}/emails/99999", "", 404),

	"GET /user/gpg_keys":                   userRead("GET /user/gpg_keys"),
	"GET /user/gpg_keys/{key_id}":          {"GET /user/gpg_keys/99999", "", 401, 404, 404, 404, 404},
	"POST /user/gpg_keys":                  own("POST /user/gpg_keys", `{"key":"x"}`, 400),
	"DELETE /user/gpg_keys/{key_id}":       own("DELETE /user/gpg_keys/99999", "", 404),
	"GET /users/{id}/gpg_keys":             openRead("GET /users/{user}/gpg_keys"),
	"GET /users/{id}/gpg_keys/{key_id}":    {"GET /users/{user}/gpg_keys/99999", "", 404, 404, 404, 404, 404},
	"POST /users/{id}/gpg_keys":            admin("POST /users/{user}/gpg_keys", `{"key":"x"}`, 400),
	"DELETE /users/{id}/gpg_keys/{key_id}": admin("DELETE /users/{user}/gpg_keys/99999", "", 404),

	"GET /user/keys":                   userRead("GET /user/keys"),
	"GET /user/keys/{key_id}":          {"GET /user/keys/99999", "", 401, 404, 404, 404, 404},
	"POST /user/keys":                  own("POST /user/keys", `{"title":"k","key":"{key}"}`, 201),
	"DELETE /user/keys/{key_id}":       own("DELETE /user/keys/99999", "", 404),
	"GET /users/{id}/keys":             openRead("GET /users/{user}/keys"),
	"GET /users/{id}/keys/{key_id}":    {"GET /users/{user}/keys/99999", "", 404, 404, 404, 404, 404},
	"POST /users/{id}/keys":            admin("POST /users/{user}/keys", `{"title":"k","key":"{key}"}`, 201),
	"DELETE /users/{id}/keys/{key_id}": admin("DELETE /users/{user}/keys/99999", "", 404),
	"GET /keys":                        {"GET /keys?fingerprint=SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "", 401, 403, 404, 404, 403},
	"GET /keys/{id}":                   {"GET /keys/99999", "", 401, 403, 404, 404, 403},

	"POST /users/{id}/follow":   own("POST /users/{fresh}/follow", "", 201),
	"POST /users/{id}/unfollow": own("POST /users/{fresh}/unfollow", "", 304),
	"GET /users/{id}/followers": userRead("GET /users/{user}/followers"),
	"GET /users/{id}/following": userRead("GET /users/{user}/following"),

	"GET /user/status":       userRead("GET /user/status"),
	"PUT /user/status":       own("PUT /user/status", `{"message":"x"}`, 200),
	"PATCH /user/status":     own("PATCH /user/status", `{"message":"x"}`, 200),
	"GET /users/{id}/status": openRead("GET /users/{user}/status"),

	"GET /users/{id}/custom_attributes":          adminRead("GET /users/{user}/custom_attributes"),
	"GET /users/{id}/custom_attributes/{key}":    {"GET /users/{user}/custom_attributes/k", "", 401, 403, 404, 404, 403},
	"PUT /users/{id}/custom_attributes/{key}":    admin("PUT /users/{user}/custom_attributes/k{n}", `{"value":"x"}`, 200),
	"DELETE /users/{id}/custom_attributes/{key}": admin("DELETE /users/{user}/custom_attributes/k", "", 404),

	"PUT /user/avatar": own("PUT /user/avatar", `{"avatar":""}`, 200),
	"GET /avatar":      openRead("GET /avatar?email=x@example.org"),

	"GET /projects":                          openAPI("GET /projects"),
	"GET /projects/{id}":                     openAPI("GET /projects/{project}"),
	"POST /projects":                         own("POST /projects", `{"path":"p{n}"}`, 201),
	"PUT /projects/{id}":                     admin("PUT /projects/{project}", `{"description":"x"}`, 200),
	"DELETE /projects/{id}":                  admin("DELETE /projects/{project}", "", 202),
	"POST /projects/{id}/restore":            admin("POST /projects/{project}/restore", "", 400),
	"GET /projects/{id}/forks":               openAPI("GET /projects/{project}/forks"),
	"GET /projects/{id}/import":              ownRead("GET /projects/{project}/import"),
	"GET /projects/{id}/starrers":            openAPI("GET /projects/{project}/starrers"),
	"GET /users/{user_id}/projects":          openAPI("GET /users/{user}/projects"),
	"GET /users/{user_id}/starred_projects":  openAPI("GET /users/{user}/starred_projects"),
	"POST /projects/{id}/archive":            admin("POST /projects/{project}/archive", "", 201),
	"POST /projects/{id}/unarchive":          admin("POST /projects/{project}/unarchive", "", 201),
	"PUT /projects/{id}/transfer":            admin("PUT /projects/{project}/transfer", `{"namespace":{group}}`, 200),
	"POST /projects/{id}/star":               own("POST /projects/{project}/star", "", 201),
	"POST /projects/{id}/unstar":             own("POST /projects/{project}/unstar", "", 304),
	"POST /projects/{id}/share":              admin("POST /projects/{project}/share", `{"group_id":{group},"group_access":30}`, 201),
	"DELETE /projects/{id}/share/{group_id}": admin("DELETE /projects/{project}/share/{group}", "", 404),
	"GET /groups":                            openAPI("GET /groups"),
	"GET /groups/{id}":                       openAPI("GET /groups/{group}"),
	"POST /groups":                           own("POST /groups", `{"name":"G","path":"g{n}"}`, 201),
	"PUT /groups/{id}":                       admin("PUT /groups/{group}", `{"description":"x"}`, 200),
	"DELETE /groups/{id}":                    admin("DELETE /groups/{group}", "", 202),
	"POST /groups/{id}/restore":              admin("POST /groups/{group}/restore", "", 400),
	"GET /groups/{id}/subgroups":             openAPI("GET /groups/{group}/subgroups"),
	"GET /groups/{id}/descendant_groups":     openAPI("GET /groups/{group}/descendant_groups"),
	"GET /groups/{id}/projects":              openAPI("GET /groups/{group}/projects"),
	"POST /groups/{id}/transfer":             admin("POST /groups/{group}/transfer", `{"group_id":{group}}`, 201),
	"POST /groups/{id}/share":                admin("POST /groups/{group}/share", `{"group_id":{group},"group_access":30}`, 201),
	"DELETE /groups/{id}/share/{group_id}":   admin("DELETE /groups/{group}/share/{group}", "", 404),
	"GET /namespaces":                        ownRead("GET /namespaces"),
	"GET /namespaces/{id}":                   ownRead("GET /namespaces/{group}"),
	"GET /namespaces/{id}/exists":            ownRead("GET /namespaces/x/exists"),
	"GET /users/{id}/memberships":            adminRead("GET /users/{user}/memberships"),

	"GET /projects/{id}/members":                           ownRead("GET /projects/{project}/members"),
	"GET /projects/{id}/members/all":                       ownRead("GET /projects/{project}/members/all"),
	"GET /projects/{id}/members/{user_id}":                 ownRead("GET /projects/{project}/members/{user}"),
	"GET /projects/{id}/members/all/{user_id}":             ownRead("GET /projects/{project}/members/all/{user}"),
	"POST /projects/{id}/members":                          admin("POST /projects/{project}/members", `{"user_id":{fresh},"access_level":30}`, 201),
	"PUT /projects/{id}/members/{user_id}":                 admin("PUT /projects/{project}/members/{user}", `{"access_level":50}`, 200),
	"DELETE /projects/{id}/members/{user_id}":              admin("DELETE /projects/{project}/members/{fresh}", "", 404),
	"GET /projects/{id}/access_requests":                   adminRead("GET /projects/{project}/access_requests"),
	"POST /projects/{id}/access_requests":                  own("POST /projects/{project}/access_requests", "", 201),
	"PUT /projects/{id}/access_requests/{user_id}/approve": admin("PUT /projects/{project}/access_requests/{fresh}/approve", "", 404),
	"DELETE /projects/{id}/access_requests/{user_id}":      admin("DELETE /projects/{project}/access_requests/{fresh}", "", 404),
	"GET /projects/{id}/audit_events":                      adminRead("GET /projects/{project}/audit_events"),
	"GET /projects/{id}/audit_events/{audit_event_id}":     {"GET /projects/{project}/audit_events/1", "", 401, 403, 404, 404, 403},

	"GET /groups/{id}/members":                           ownRead("GET /groups/{group}/members"),
	"GET /groups/{id}/members/all":                       ownRead("GET /groups/{group}/members/all"),
	"GET /groups/{id}/members/{user_id}":                 ownRead("GET /groups/{group}/members/{user}"),
	"GET /groups/{id}/members/all/{user_id}":             ownRead("GET /groups/{group}/members/all/{user}"),
	"POST /groups/{id}/members":                          admin("POST /groups/{group}/members", `{"user_id":{fresh},"access_level":30}`, 201),
	"PUT /groups/{id}/members/{user_id}":                 admin("PUT /groups/{group}/members/{user}", `{"access_level":50}`, 200),
	"DELETE /groups/{id}/members/{user_id}":              admin("DELETE /groups/{group}/members/{fresh}", "", 404),
	"GET /groups/{id}/access_requests":                   adminRead("GET /groups/{group}/access_requests"),
	"POST /groups/{id}/access_requests":                  own("POST /groups/{group}/access_requests", "", 201),
	"PUT /groups/{id}/access_requests/{user_id}/approve": admin("PUT /groups/{group}/access_requests/{fresh}/approve", "", 404),
	"DELETE /groups/{id}/access_requests/{user_id}":      admin("DELETE /groups/{group}/access_requests/{fresh}", "", 404),
	"GET /groups/{id}/audit_events":                      adminRead("GET /groups/{group}/audit_events"),
	"GET /groups/{id}/audit_events/{audit_event_id}":     {"GET /groups/{group}/audit_events/1", "", 401, 403, 404, 404, 403},

	"GET /application/settings":      adminRead("GET /application/settings"),
	"GET /project_aliases":           adminRead("GET /project_aliases"),
	"GET /project_aliases/{name}":    {"GET /project_aliases/none", "", 401, 403, 404, 404, 403},
	"POST /project_aliases":          admin("POST /project_aliases", `{"project_id":999999,"name":"x"}`, 404),
	"DELETE /project_aliases/{name}": admin("DELETE /project_aliases/none", "", 404),
	"GET /application/plan_limits":   adminRead("GET /application/plan_limits"),
	"PUT /application/plan_limits":   admin("PUT /application/plan_limits", `{"plan_name":"default","npm_max_file_size":1048576}`, 200),
	"PUT /application/settings":      admin("PUT /application/settings", `{"max_login_attempts":7}`, 200),

	"GET /admin/ci/variables":          adminRead("GET /admin/ci/variables"),
	"GET /admin/ci/variables/{key}":    adminRead("GET /admin/ci/variables/{var}"),
	"POST /admin/ci/variables":         admin("POST /admin/ci/variables", `{"key":"V{n}","value":"x"}`, 201),
	"PUT /admin/ci/variables/{key}":    admin("PUT /admin/ci/variables/{var}", `{"value":"x"}`, 200),
	"DELETE /admin/ci/variables/{key}": admin("DELETE /admin/ci/variables/{var}", "", 204),

	"GET /audit_events":      adminRead("GET /audit_events"),
	"GET /audit_events/{id}": adminRead("GET /audit_events/1"),
}

// open are endpoints for all callers, with any credential.
var open = []string{"GET /openapi.json", "GET /docs", "GET /docs/{file}", "GET /runners/router/discovery",
	// The trigger token in the request decides: see TestTriggers.
	"POST /projects/{id}/trigger/pipeline", "POST /projects/{id}/ref/{ref}/trigger/pipeline",
	// The client key decides: see TestErrorCollector.
	"POST /error_tracking/collector/api/{id}/envelope/", "POST /error_tracking/collector/api/{id}/store/",
	// The instance ID decides: see TestUnleash.
	"GET /feature_flags/unleash/{project_id}", "GET /feature_flags/unleash/{project_id}/features", "GET /feature_flags/unleash/{project_id}/client/features",
	"POST /feature_flags/unleash/{project_id}/client/register", "POST /feature_flags/unleash/{project_id}/client/metrics"}

var paramPattern = regexp.MustCompile(`\{\w+\}`)

// joined returns the table of all areas.
func joined[R any](t *testing.T, parts ...map[string]R) map[string]R {
	t.Helper()
	all := map[string]R{}
	for _, part := range parts {
		for endpoint, r := range part {
			if _, twice := all[endpoint]; twice {
				t.Errorf("%s has two rows", endpoint)
			}
			all[endpoint] = r
		}
	}
	return all
}

// publicRole returns the row for the callers of TestRoles in a public place in which
// they are not members: ok, or 403 if a level is required.
func publicRole(method, path, body string, open bool, need project.Level, ok int) role {
	r := role{do: method + path, json: body, nobody: 401, user: ok, admin: ok, readAPI: 403, readUser: 403}
	if open {
		r.nobody = ok
	}
	if need > project.NoAccess {
		r.user = 403
	}
	if method == "GET" {
		r.readAPI = ok
	}
	return r
}

// TestRoles sends a valid request to every endpoint as every kind of caller.
func TestRoles(t *testing.T) {
	t.Parallel()
	roles := joined(t, roles, tokenRoles, forkRoles, repositoryRoles, refRoles, ciRoles, runnerRoles, templateRoles, applicationRoles,
		eventRoles, planRoles, mergeRoles, snippetWikiRoles, notificationRoles, alertRoles, errorRoles, transferRoles, pagesRoles, inboxRoles, releaseRoles, operateRoles, packageRoles, hookRoles, searchRoles)
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		var doc struct {
			Paths map[string]map[string]json.RawMessage
		}
		s.Check(t, apptest.Call{Do: "GET /openapi.json", Status: 200}).JSON(t, &doc)
		var endpoints []string
		for path, item := range doc.Paths {
			for method := range item {
				if method != "parameters" {
					endpoints = append(endpoints, strings.ToUpper(method)+" "+strings.TrimPrefix(path, "/api/v4"))
				}
			}
		}
		slices.Sort(endpoints)
		if len(endpoints) < 40 {
			t.Fatalf("the document has only %d endpoints", len(endpoints))
		}
		n := 0
		var shared *roleFixture
		for _, endpoint := range endpoints {
			if slices.Contains(open, endpoint) {
				continue
			}
			r, ok := roles[endpoint]
			if !ok {
				t.Errorf("%s has no row in the table of roles", endpoint)
				continue
			}
			t.Run(endpoint, func(t *testing.T) {
				if r.changesUser() {
					n++
					newRoleFixture(t, s, n).play(t, r)
					return
				}
				if shared == nil {
					n++
					shared = newRoleFixture(t, s, n)
				}
				shared.play(t, r)
			})
		}
		for endpoint := range roles {
			if !slices.Contains(endpoints, endpoint) {
				t.Errorf("%s has a row, but is not served", endpoint)
			}
		}
	})
}

// changesUser reports whether the request changes the caller or the user whom it is
// about, so that they cannot be used again.
func (r role) changesUser() bool {
	if strings.HasPrefix(r.do, "GET ") {
		return false
	}
	return slices.ContainsFunc([]string{"/user/", "/self", "{user}", "{self}"}, func(part string) bool {
		return strings.Contains(r.do, part) || strings.Contains(r.json, part)
	})
}

// roleFixture has the callers and objects of requests. Creating them takes most of
// the time, so they are shared by all requests that do not change them.
type roleFixture struct {
	s      *apptest.Server
	n      int
	other  int64 // the user whom the requests are about
	caller int64
	tokens map[string]string
	serial int
	things int
	kept   map[string]string // the objects, until a request may change them
}

func newRoleFixture(t *testing.T, s *apptest.Server, n int) *roleFixture {
	t.Helper()
	c := &roleFixture{s: s, n: n, tokens: map[string]string{}, kept: map[string]string{}}
	if n == 1 {
		s.User(t, "other")
	}
	c.other, _ = s.User(t, fmt.Sprintf("about%d", n))
	c.caller, c.tokens["user"] = s.User(t, fmt.Sprintf("caller%d", n))
	adminID, adminToken := s.User(t, fmt.Sprintf("admin%d", n))
	s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d?admin=true", adminID), As: root, Status: 200})
	c.tokens["admin"] = adminToken
	c.tokens["read_api"] = s.Token(t, adminID, "read_api")
	c.tokens["read_user"] = s.Token(t, adminID, "read_user")
	for _, scope := range user.Scopes() {
		if scope != "api" && scope != "read_api" && scope != "read_user" {
			c.tokens["only "+scope] = s.Token(t, adminID, scope)
		}
	}
	imp, err := s.Users.CreateImpersonationToken(t.Context(), actor.System(), c.caller, user.NewToken{Name: "i", Scopes: []string{"api"}})
	if err != nil {
		t.Fatal(err)
	}
	c.tokens["impersonation"] = imp.Secret
	blocked, blockedToken := s.User(t, fmt.Sprintf("blocked%d", n))
	s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d?admin=true", blocked), As: root, Status: 200})
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", blocked), As: root, Status: 201})
	c.tokens["blocked"] = blockedToken
	return c
}

// play sends the request of the row as each caller.
func (c *roleFixture) play(t *testing.T, r role) {
	t.Helper()
	self := strings.Contains(r.do, "/self")
	for _, p := range []struct {
		as     string
		status int
	}{
		{"", r.nobody}, {"blocked", http.StatusForbidden}, {"user", r.user}, {"impersonation", r.user},
		{"read_user", r.readUser}, {"read_api", r.readAPI}, {"admin", r.admin},
	} {
		c.send(t, r, p.as, p.status)
	}
	for as := range c.tokens {
		if strings.HasPrefix(as, "only ") {
			want := http.StatusForbidden
			if self && !strings.Contains(r.do, "rotate") {
				want = r.admin
			}
			if runnerScope(r.do, as) {
				want = r.admin
			}
			c.send(t, r, as, want)
		}
	}
}

func (c *roleFixture) send(t *testing.T, r role, as string, status int) {
	t.Helper()
	if status < 300 && !strings.HasPrefix(r.do, "GET ") {
		defer clear(c.kept)
	}
	c.serial++
	name := as
	if name == "" {
		name = "nobody"
	}
	do := c.fill(t, r.do)
	for _, name := range []string{"{group}", "{project}"} {
		if strings.Contains(r.do, name) && strings.Contains(r.json, name) {
			delete(c.kept, name) // the body needs another one
		}
	}
	call := apptest.Call{Name: name, Do: do, As: c.tokens[as], JSON: c.fill(t, r.json), Status: status}
	if got := c.s.Check(t, call); got.Status != status {
		t.Logf("as %s", name)
	}
}

// fill replaces placeholders by IDs of existing objects.
func (c *roleFixture) fill(t *testing.T, text string) string {
	t.Helper()
	return paramPattern.ReplaceAllStringFunc(text, func(name string) string {
		switch name {
		case "{user}":
			return fmt.Sprint(c.other)
		case "{self}":
			return fmt.Sprint(c.caller)
		case "{n}":
			return fmt.Sprintf("%d_%d", c.n, c.serial)
		case "{key}":
			return newKey(t)
		}
		if made, ok := c.kept[name]; ok {
			return made
		}
		made := c.create(t, name)
		c.kept[name] = made
		return made
	})
}

// create creates the object of a placeholder and returns its ID.
func (c *roleFixture) create(t *testing.T, name string) string {
	t.Helper()
	s := c.s
	open := project.Public
	var id int64
	var err error
	switch name {
	case "{var}":
		key := fmt.Sprintf("KEPT_%d_%d", c.n, c.serial)
		value := "x"
		if _, err := s.CI.Variables.CreateInstance(t.Context(), actor.System(), key, variable.Change{Value: &value}); err != nil {
			t.Fatal(err)
		}
		return key
	case "{project}", "{code}":
		var p *project.Project
		if p, err = s.Projects.Create(t.Context(), actor.Actor{ID: c.other}, project.NewProject{Path: c.path(), Visibility: &open}); err == nil {
			id = p.ID
		}
		if err == nil && name == "{code}" {
			fillRepository(t, s, id)
		}
	case "{group}":
		path := c.path()
		var g *project.Namespace
		if g, err = s.Projects.CreateGroup(t.Context(), actor.Actor{ID: c.other}, project.NewGroup{Name: path, Path: path, Visibility: &open}); err == nil {
			id = g.ID
		}
	case "{runner}":
		var r *runners.Runner
		if r, err = s.CI.Runners.Create(t.Context(), actor.System(), runners.NewRunner{Type: runners.InstanceType}); err == nil {
			id = r.ID
		}
	case "{fresh}":
		id, _ = s.User(t, fmt.Sprintf("fresh%d-%d", c.n, c.serial))
	case "{token}":
		var token *user.Token
		if token, err = s.Users.CreateToken(t.Context(), actor.System(), c.other, user.NewToken{Name: "t", Scopes: []string{"api"}}); err == nil {
			id = token.ID
		}
	case "{imp}":
		var token *user.Token
		if token, err = s.Users.CreateImpersonationToken(t.Context(), actor.System(), c.other, user.NewToken{Name: "t", Scopes: []string{"api"}}); err == nil {
			id = token.ID
		}
	default:
		t.Fatalf("%s stands for nothing", name)
	}
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	return fmt.Sprint(id)
}

// path returns an unused path.
func (c *roleFixture) path() string {
	c.things++
	return fmt.Sprintf("thing%d-%d", c.n, c.things)
}

// newKey returns an unused public key.
func newKey(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}
