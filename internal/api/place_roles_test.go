package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/project"
)

// placeRole defines which callers can use an endpoint of a project or group. The
// request is valid, so that the response only depends on the caller and the
// visibility.
type placeRole struct {
	do   string // {at} is the place, {guest} and {owner} members, {stranger} and {dest} others
	json string

	open bool          // also for anonymous callers
	need project.Level // NoAccess: anyone who can see the place
	ok   int           // the status for these callers
	code bool          // requires access to the repository, so Reporter in a private place
	most bool          // requires Reporter in a private place
	part bool          // callers below Reporter in a private place get 404
	bad  bool          // the request is invalid, which is reported before the lookup

	// also has the status for callers that are exceptions.
	also map[string]int
}

// placeRoles has a row for every endpoint of a project or group: the test fails if
// one is missing.
var placeRoles = map[string]placeRole{
	"GET /projects/{id}":                     {do: "GET {at}", open: true, ok: 200},
	"PUT /projects/{id}":                     {do: "PUT {at}", json: `{"description":"x"}`, need: project.Maintainer, ok: 200},
	"DELETE /projects/{id}":                  {do: "DELETE {at}", need: project.Owner, ok: 202},
	"POST /projects/{id}/restore":            {do: "POST {at}/restore", need: project.Owner, ok: 400},
	"GET /projects/{id}/forks":               {do: "GET {at}/forks", open: true, ok: 200},
	"GET /projects/{id}/import":              {do: "GET {at}/import", ok: 200},
	"GET /projects/{id}/starrers":            {do: "GET {at}/starrers", open: true, ok: 200},
	"POST /projects/{id}/archive":            {do: "POST {at}/archive", need: project.Owner, ok: 201},
	"POST /projects/{id}/unarchive":          {do: "POST {at}/unarchive", need: project.Owner, ok: 201},
	"PUT /projects/{id}/transfer":            {do: "PUT {at}/transfer", json: `{"namespace":{dest}}`, need: project.Owner, ok: 200},
	"POST /projects/{id}/star":               {do: "POST {at}/star", ok: 201},
	"POST /projects/{id}/unstar":             {do: "POST {at}/unstar", ok: 304},
	"POST /projects/{id}/share":              {do: "POST {at}/share", json: `{"group_id":{dest},"group_access":10}`, need: project.Maintainer, ok: 201},
	"DELETE /projects/{id}/share/{group_id}": {do: "DELETE {at}/share/{dest}", need: project.Maintainer, ok: 404},

	"GET /groups/{id}":                                {do: "GET {at}", open: true, ok: 200},
	"PUT /groups/{id}":                                {do: "PUT {at}", json: `{"description":"x"}`, need: project.Owner, ok: 200},
	"DELETE /groups/{id}":                             {do: "DELETE {at}", need: project.Owner, ok: 202},
	"POST /groups/{id}/restore":                       {do: "POST {at}/restore", need: project.Owner, ok: 400},
	"GET /groups/{id}/subgroups":                      {do: "GET {at}/subgroups", open: true, ok: 200},
	"GET /groups/{id}/descendant_groups":              {do: "GET {at}/descendant_groups", open: true, ok: 200},
	"GET /groups/{id}/projects":                       {do: "GET {at}/projects", open: true, ok: 200},
	"POST /groups/{id}/transfer":                      {do: "POST {at}/transfer", json: `{"group_id":{dest}}`, need: project.Owner, ok: 201},
	"POST /groups/{id}/share":                         {do: "POST {at}/share", json: `{"group_id":{dest},"group_access":10}`, need: project.Owner, ok: 201},
	"DELETE /groups/{id}/share/{group_id}":            {do: "DELETE {at}/share/{dest}", need: project.Owner, ok: 404},
	"GET /groups/{id}/merge_request_approval_setting": {do: "GET {at}/merge_request_approval_setting", need: project.Owner, ok: 200},
	"PUT /groups/{id}/merge_request_approval_setting": {do: "PUT {at}/merge_request_approval_setting", json: `{"allow_author_approval":true}`, need: project.Owner, ok: 200},
	"GET /groups/{id}/push_rule":                      {do: "GET {at}/push_rule", need: project.Owner, ok: 404},
	"POST /groups/{id}/push_rule":                     {do: "POST {at}/push_rule", json: `{"max_file_size":1}`, need: project.Owner, ok: 201},
	"PUT /groups/{id}/push_rule":                      {do: "PUT {at}/push_rule", json: `{"max_file_size":1}`, need: project.Owner, ok: 404},
	"DELETE /groups/{id}/push_rule":                   {do: "DELETE {at}/push_rule", need: project.Owner, ok: 404},
	"GET /groups/{id}/protected_branches":             {do: "GET {at}/protected_branches", need: project.Owner, ok: 200},
	"POST /groups/{id}/protected_branches":            {do: "POST {at}/protected_branches", json: `{"name":"x"}`, need: project.Owner, ok: 201},
	"GET /groups/{id}/protected_branches/{name}":      {do: "GET {at}/protected_branches/none", need: project.Owner, ok: 404},
	"PATCH /groups/{id}/protected_branches/{name}":    {do: "PATCH {at}/protected_branches/none", json: `{"allow_force_push":true}`, need: project.Owner, ok: 404},
	"DELETE /groups/{id}/protected_branches/{name}":   {do: "DELETE {at}/protected_branches/none", need: project.Owner, ok: 404},

	"GET /groups/{id}/service_accounts":                                                     {do: "GET {at}/service_accounts", need: project.Owner, ok: 200},
	"POST /groups/{id}/service_accounts":                                                    {do: "POST {at}/service_accounts", json: `{"name":"s"}`, need: project.Owner, ok: 201, also: map[string]int{"owner": 403}},
	"PATCH /groups/{id}/service_accounts/{user_id}":                                         {do: "PATCH {at}/service_accounts/{owner}", json: `{"name":"s"}`, need: project.Owner, ok: 404},
	"DELETE /groups/{id}/service_accounts/{user_id}":                                        {do: "DELETE {at}/service_accounts/{owner}", need: project.Owner, ok: 404},
	"GET /groups/{id}/service_accounts/{user_id}/personal_access_tokens":                    {do: "GET {at}/service_accounts/{owner}/personal_access_tokens", need: project.Owner, ok: 404},
	"POST /groups/{id}/service_accounts/{user_id}/personal_access_tokens":                   {do: "POST {at}/service_accounts/{owner}/personal_access_tokens", json: `{"name":"t","scopes":["api"]}`, need: project.Owner, ok: 404},
	"DELETE /groups/{id}/service_accounts/{user_id}/personal_access_tokens/{token_id}":      {do: "DELETE {at}/service_accounts/{owner}/personal_access_tokens/1", need: project.Owner, ok: 404},
	"POST /groups/{id}/service_accounts/{user_id}/personal_access_tokens/{token_id}/rotate": {do: "POST {at}/service_accounts/{owner}/personal_access_tokens/1/rotate", need: project.Owner, ok: 404},

	// Objects that are created in a group.
	"POST /groups in a group":   {do: "POST /groups", json: `{"name":"N","path":"n","parent_id":{id}}`, need: project.Maintainer, ok: 201},
	"POST /projects in a group": {do: "POST /projects", json: `{"path":"n","namespace_id":{id}}`, need: project.Developer, ok: 201},
}

// memberRoles returns the rows that projects and groups have in common; manager is
// the level that can change members.
func memberRoles(at string, manager project.Level) map[string]placeRole {
	member := map[string]int{"guest": 403, "reporter": 403, "developer": 403, "maintainer": 403, "owner": 403}
	return map[string]placeRole{
		"GET " + at + "/members":                           {do: "GET {at}/members", ok: 200},
		"GET " + at + "/members/all":                       {do: "GET {at}/members/all", ok: 200},
		"GET " + at + "/members/{user_id}":                 {do: "GET {at}/members/{owner}", ok: 200},
		"GET " + at + "/members/all/{user_id}":             {do: "GET {at}/members/all/{owner}", ok: 200},
		"POST " + at + "/members":                          {do: "POST {at}/members", json: `{"user_id":{stranger},"access_level":10}`, need: manager, ok: 201},
		"PUT " + at + "/members/{user_id}":                 {do: "PUT {at}/members/{guest}", json: `{"access_level":15}`, need: manager, ok: 200},
		"DELETE " + at + "/members/{user_id}":              {do: "DELETE {at}/members/{guest}", need: manager, ok: 204, also: map[string]int{"guest": 204}}, // members can leave
		"GET " + at + "/access_requests":                   {do: "GET {at}/access_requests", need: manager, ok: 200},
		"POST " + at + "/access_requests":                  {do: "POST {at}/access_requests", ok: 201, also: member},
		"PUT " + at + "/access_requests/{user_id}/approve": {do: "PUT {at}/access_requests/{stranger}/approve", need: manager, ok: 404},
		"DELETE " + at + "/access_requests/{user_id}":      {do: "DELETE {at}/access_requests/{stranger}", need: manager, ok: 404},
		"GET " + at + "/audit_events":                      {do: "GET {at}/audit_events", need: project.Developer, ok: 200},
		"GET " + at + "/audit_events/{audit_event_id}":     {do: "GET {at}/audit_events/1", need: manager, ok: 404},
	}
}

// roleLevels are the levels of the callers that are members.
var roleLevels = map[string]project.Level{
	"guest": project.Guest, "reporter": project.Reporter, "developer": project.Developer, "maintainer": project.Maintainer, "owner": project.Owner,
}

// TestPlaceRoles sends a valid request to every endpoint of projects and groups as
// every kind of caller, for each visibility. Each successful change needs a new
// place, which takes most of the time. So among the members that can make a change,
// only the one with the lowest role does, and only in private and public places.
func TestPlaceRoles(t *testing.T) {
	t.Parallel()
	rows := placeRows(t)
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		requireRows(t, s, rows)
		st := newPlaceFixture(t, s)
		for _, v := range []project.Visibility{project.Private, project.Internal, project.Public} {
			shared := st.build(t, v)
			for endpoint, r := range rows {
				least := true
				for _, caller := range st.callers {
					if v != project.Private && roleLevels[caller] >= project.Developer {
						continue // their permissions do not depend on the visibility
					}
					if r.want(caller, v) < 300 && !strings.HasPrefix(endpoint, "GET ") {
						member := roleLevels[caller] > project.NoAccess
						if member && (!least || v == project.Internal) || caller == "admin" && v != project.Private {
							continue
						}
						least = least && !member
					}
					st.play(t, endpoint, r, caller, v, shared)
				}
			}
		}
	})
}

// placeRows returns the rows of all endpoints of projects and groups.
func placeRows(t *testing.T) map[string]placeRole {
	t.Helper()
	return joined(t, placeRoles, memberRoles("/projects/{id}", project.Maintainer), memberRoles("/groups/{id}", project.Owner),
		tokenPlaceRoles, forkPlaceRoles, accessTokenRoles("/projects/{id}", project.Maintainer), accessTokenRoles("/groups/{id}", project.Owner),
		repositoryPlaceRoles, refPlaceRoles, ciPlaceRoles, runnerPlaceRoles, storagePlaceRoles, eventPlaceRoles, planPlaceRoles, mergePlaceRoles, snippetWikiPlaceRoles, errorPlaceRoles, transferPlaceRoles,
		notificationPlaceRoles, alertPlaceRoles, pagesPlaceRoles, inboxPlaceRoles, releasePlaceRoles, operatePlaceRoles, packagePlaceRoles, hookPlaceRoles, searchPlaceRoles)
}

// requireRows fails for an endpoint without a row, and for a row without an
// endpoint.
func requireRows(t *testing.T, s *apptest.Server, rows map[string]placeRole) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	s.Check(t, apptest.Call{Do: "GET /openapi.json", Status: 200}).JSON(t, &doc)
	var served []string
	for path, item := range doc.Paths {
		path = strings.TrimPrefix(path, "/api/v4")
		for method := range item {
			endpoint := strings.ToUpper(method) + " " + path
			served = append(served, endpoint)
			if _, ok := rows[endpoint]; !ok && method != "parameters" && (strings.HasPrefix(path, "/projects/{id}") || strings.HasPrefix(path, "/groups/{id}")) {
				t.Errorf("%s has no row in the table of roles of places", endpoint)
			}
		}
	}
	for endpoint := range rows {
		if !strings.HasSuffix(endpoint, " in a group") && !slices.Contains(served, endpoint) {
			t.Errorf("%s has a row, but is not served", endpoint)
		}
	}
}

// placeFixture has the callers and creates places for them.
type placeFixture struct {
	s       *apptest.Server
	callers []string
	ids     map[string]int64
	tokens  map[string]string
	dest    int64 // a public group owned by the owner
	serial  int
	filled  map[int64]bool // projects whose repository is not empty
}

// scene is a group with a project in it; the callers are members of both.
type scene struct{ group, project int64 }

func newPlaceFixture(t *testing.T, s *apptest.Server) *placeFixture {
	t.Helper()
	st := &placeFixture{s: s, ids: map[string]int64{}, tokens: map[string]string{"nobody": ""}, filled: map[int64]bool{}}
	st.callers = []string{"nobody", "outsider", "external", "guest", "reporter", "developer", "maintainer", "owner", "admin", "blocked"}
	for _, name := range append(st.callers[1:], "stranger") {
		if name == "admin" {
			name = "admin_"
		}
		id, token := s.User(t, name)
		name = strings.TrimSuffix(name, "_")
		st.ids[name], st.tokens[name] = id, token
	}
	for name, flag := range map[string]string{"external": "external", "admin": "admin"} {
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d?%s=true", st.ids[name], flag), As: root, Status: 200})
	}
	st.dest = group(t, s, st.tokens["owner"], "dest", `,"visibility":"public"`)
	// Without the block, their memberships would give access to everything.
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", st.ids["blocked"]), As: root, Status: 201})
	return st
}

// build creates a place with all members.
func (st *placeFixture) build(t *testing.T, v project.Visibility) scene {
	t.Helper()
	st.serial++
	p, by := st.s.Projects, actor.System()
	path := fmt.Sprintf("place-%d", st.serial)
	g, err := p.CreateGroup(t.Context(), by, project.NewGroup{Name: path, Path: path, Visibility: &v})
	if err != nil {
		t.Fatal(err)
	}
	made, err := p.Create(t.Context(), by, project.NewProject{Path: path, NamespaceID: &g.ID, Visibility: &v})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []project.Place{{Ref: project.RefTo(made.ID)}, {Ref: project.RefTo(g.ID), Group: true}} {
		for name, level := range roleLevels {
			if _, err := p.AddMember(t.Context(), by, at, project.NewMember{UserID: st.ids[name], Level: level}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.AddMember(t.Context(), by, at, project.NewMember{UserID: st.ids["blocked"], Level: project.Owner}); err != nil {
			t.Fatal(err)
		}
	}
	return scene{g.ID, made.ID}
}

// want returns the status that the rules require.
func (r placeRole) want(caller string, v project.Visibility) int {
	level := roleLevels[caller]
	seen := level > project.NoAccess || caller == "admin" || v == project.Public || v == project.Internal && caller == "outsider"
	switch {
	case caller == "blocked" && r.also[caller] == 0:
		return 403
	case caller == "nobody" && !r.open:
		return 401
	case r.bad:
		return r.ok
	case !seen:
		return 404
	case r.also[caller] != 0:
		return r.also[caller]
	case caller != "admin" && r.part && v == project.Private && level < project.Reporter:
		return 404
	case caller != "admin" && (level < r.need || (r.code || r.most) && v == project.Private && level < project.Reporter):
		return 403
	}
	return r.ok
}

func (st *placeFixture) play(t *testing.T, endpoint string, r placeRole, caller string, v project.Visibility, shared scene) {
	t.Helper()
	want, at := r.want(caller, v), shared
	if want < 300 && !strings.HasPrefix(endpoint, "GET ") {
		at = st.build(t, v) // the request changes it
	}
	if r.code && !st.filled[at.project] {
		fillRepository(t, st.s, at.project)
		st.filled[at.project] = true
	}
	got := st.send(t, endpoint, r, caller, at)
	if got.Status != want {
		t.Errorf("%s of a %s place as %s: status %d, want %d: %s", endpoint, v, caller, got.Status, want, got.Body)
	}
}

// send sends the request of a row, about a place, as a caller.
func (st *placeFixture) send(t *testing.T, endpoint string, r placeRole, caller string, at scene) apptest.Answer {
	t.Helper()
	id, path := at.project, fmt.Sprintf("/projects/%d", at.project)
	if strings.Contains(endpoint, "/groups/") || strings.HasSuffix(endpoint, " in a group") {
		id, path = at.group, fmt.Sprintf("/groups/%d", at.group)
	}
	fill := strings.NewReplacer("{at}", path, "{id}", fmt.Sprint(id), "{n}", fmt.Sprint(st.serial), "{dest}", fmt.Sprint(st.dest),
		"{guest}", fmt.Sprint(st.ids["guest"]), "{owner}", fmt.Sprint(st.ids["owner"]), "{stranger}", fmt.Sprint(st.ids["stranger"]))
	return st.s.Send(t, apptest.Call{Do: fill.Replace(r.do), JSON: fill.Replace(r.json), As: st.tokens[caller]})
}
