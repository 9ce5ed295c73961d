package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/project"
)

// aBlob is the ID of a blob that fillRepository creates.
const aBlob = "587be6b4c3f93f93c489c0111bba5596147a26cb"

// fillRepository creates two commits on main, the first of which is tagged v1.0.0,
// unless the repository has a main branch.
func fillRepository(t *testing.T, s *apptest.Server, projectID int64) {
	t.Helper()
	r := s.Repository(t, projectID)
	if r.Tip("refs/heads/main") != "" {
		return
	}
	// One fast-import, since many tests do this for each request.
	const who = "author Ann Author <ann@example.com> 1700000000 +0200\ncommitter Cole Committer <cole@example.com> 1700000000 +0000\n"
	r.Import(strings.NewReader("commit refs/heads/main\nmark :1\n" + who + "data 3\nOne\nM 100644 inline x\ndata 2\nx\n\nM 100644 inline main.go\ndata 13\npackage main\n\n\n" +
		"reset refs/tags/v1.0.0\nfrom :1\n\n" +
		"commit refs/heads/main\nmark :2\n" + who + "data 22\nTwo\n\nChangelog: added\n\nfrom :1\nM 100644 inline y\ndata 2\ny\n\n"))
	s.Repository(t, projectID)
}

// repositoryReads are the endpoints that read a repository; all require the same
// permissions.
var repositoryReads = map[string]string{
	"GET /projects/{id}/repository/tree":             "/repository/tree",
	"GET /projects/{id}/repository/blobs/{sha}":      "/repository/blobs/" + aBlob,
	"GET /projects/{id}/repository/blobs/{sha}/raw":  "/repository/blobs/" + aBlob + "/raw",
	"GET /projects/{id}/repository/archive":          "/repository/archive",
	"GET /projects/{id}/repository/archive.{format}": "/repository/archive.zip",
	"GET /projects/{id}/repository/compare":          "/repository/compare?from=v1.0.0&to=main",
	"GET /projects/{id}/repository/contributors":     "/repository/contributors",
	"GET /projects/{id}/repository/merge_base":       "/repository/merge_base?refs[]=v1.0.0&refs[]=main",
	"GET /projects/{id}/repository/changelog":        "/repository/changelog?version=1.1.0",
	"GET /projects/{id}/languages":                   "/languages",
}

const changelogBody = `{"version":"1.1.0"}`

var repositoryRoles = func() map[string]role {
	rows := map[string]role{"POST /projects/{id}/repository/changelog": admin("POST /projects/{code}/repository/changelog", changelogBody, 200)}
	for endpoint, path := range repositoryReads {
		rows[endpoint] = openAPI("GET /projects/{code}" + path)
	}
	return rows
}()

var repositoryPlaceRoles = func() map[string]placeRole {
	rows := map[string]placeRole{
		"POST /projects/{id}/repository/changelog": {do: "POST {at}/repository/changelog", json: changelogBody, code: true, need: project.Developer, ok: 200},
	}
	for endpoint, path := range repositoryReads {
		rows[endpoint] = placeRole{do: "GET {at}" + path, open: true, code: true, ok: 200}
	}
	return rows
}()

// TestRepositoryFeature reads repositories of public projects that are members-only,
// disabled or archived.
func TestRepositoryFeature(t *testing.T) {
	t.Parallel()
	refuse := map[string]int{"nobody": 401, "outsider": 403, "external": 403, "guest": 403}
	for _, tt := range []struct {
		name     string
		settings string
		archived bool
		read     map[string]int // statuses by caller, if not 200
		write    map[string]int
	}{
		{name: "for members", settings: featureLevel("private"), read: refuse,
			write: map[string]int{"nobody": 401, "outsider": 403, "external": 403, "guest": 403, "reporter": 403}},
		{name: "turned off", settings: featureLevel("disabled"), read: allRoles(403), write: allRoles(403, "nobody", 401)},
		{name: "archived", archived: true, write: allRoles(403, "nobody", 401)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			apptest.Each(t, func(t *testing.T, s *apptest.Server) {
				st := newPlaceFixture(t, s)
				at := st.build(t, project.Public)
				fillRepository(t, s, at.project)
				if tt.settings != "" {
					s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", at.project), As: root, JSON: tt.settings, Status: 200})
				}
				if tt.archived {
					s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/archive", at.project), As: root, Status: 201})
				}
				for _, caller := range st.callers {
					for _, path := range repositoryReads {
						st.expect(t, caller, "GET", at, path, "", answerOf(tt.read, caller))
					}
				}
				for _, caller := range st.callers {
					st.expect(t, caller, "POST", at, "/repository/changelog", changelogBody, answerOf(tt.write, caller))
				}
			})
		})
	}
}

// featureLevel returns settings with an access level for the repository and the
// features that require it.
func featureLevel(level string) string {
	return fmt.Sprintf(`{"repository_access_level":%[1]q,"merge_requests_access_level":%[1]q,"builds_access_level":%[1]q}`, level)
}

// allRoles returns the same status for all callers, except for pairs of callers and
// statuses in other.
func allRoles(status int, other ...any) map[string]int {
	all := map[string]int{}
	for _, name := range []string{"nobody", "outsider", "external", "guest", "reporter", "developer", "maintainer", "owner", "admin"} {
		all[name] = status
	}
	for i := 0; i+1 < len(other); i += 2 {
		all[other[i].(string)] = other[i+1].(int)
	}
	return all
}

func answerOf(table map[string]int, caller string) int {
	switch {
	case caller == "blocked":
		return 403
	case table[caller] != 0:
		return table[caller]
	}
	return 200
}

func (st *placeFixture) expect(t *testing.T, caller, method string, at scene, path, body string, want int) {
	t.Helper()
	got := st.s.Send(t, apptest.Call{Do: fmt.Sprintf("%s /projects/%d%s", method, at.project, path), As: st.tokens[caller], JSON: body})
	if got.Status != want {
		t.Errorf("%s %s as %s: status %d, want %d: %.200q", method, path, caller, got.Status, want, got.Body)
	}
}

// TestRepositoryDeployToken checks that deploy tokens are accepted by git, but not
// by the API.
func TestRepositoryDeployToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		open := project.Public
		p, err := s.Projects.Create(t.Context(), actor.System(), project.NewProject{Path: "p", Visibility: &open, NamespaceID: groupID(t, s)})
		if err != nil {
			t.Fatal(err)
		}
		fillRepository(t, s, p.ID)
		var made struct{ Token string }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/deploy_tokens", p.ID), As: root, JSON: `{"name":"d","scopes":["read_repository"]}`, Status: 201}).JSON(t, &made)
		for _, path := range repositoryReads {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d%s", p.ID, path), As: made.Token, Status: 401})
		}
	})
}

func groupID(t *testing.T, s *apptest.Server) *int64 {
	t.Helper()
	open := project.Public
	g, err := s.Projects.CreateGroup(t.Context(), actor.System(), project.NewGroup{Name: "g", Path: "g", Visibility: &open})
	if err != nil {
		t.Fatal(err)
	}
	return &g.ID
}
