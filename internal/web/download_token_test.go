package web_test

import (
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestDownloadByToken downloads archives and assets of releases of a private project
// with access tokens.
func TestDownloadByToken(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		adaID, ada := s.User(t, "ada")
		reader, narrow := s.Token(t, adaID, "read_api"), s.Token(t, adaID, "read_repository")
		_, eve := s.User(t, "eve")
		id := newProject(t, s, ada, "p", "private")
		s.Repository(t, id, gittest.Commit{Message: "Begin\n", Changes: change("a.txt", "one\n")})
		s.Check(t, apptest.Call{Do: "POST /projects/ada%2Fp/releases", As: ada, Status: 201,
			JSON: `{"tag_name":"v1","ref":"main","assets":{"links":[{"name":"bin","url":"https://example.org/bin","direct_asset_path":"/bin"}]}}`})
		for path, status := range map[string]int{"archive/main/p.tar.gz": 200, "releases/v1/downloads/bin": 302} {
			do := "GET //ada/p/-/" + path
			s.Table(t, []apptest.Call{
				{Name: "no token", Do: do, Status: 404},
				{Name: "private token", Do: do, As: ada, Status: status},
				{Name: "bearer", Do: do, Header: map[string]string{"Authorization": "Bearer " + reader}, Status: status},
				{Name: "parameter", Do: do + "?private_token=" + reader, Status: status},
				{Name: "another scope", Do: do, As: narrow, Status: 403},
				{Name: "another user", Do: do, As: eve, Status: 404},
				{Name: "unknown token", Do: do, As: "unknown", Status: 401},
			})
		}
		s.Check(t, apptest.Call{Name: "other pages", Do: "GET //ada/p/-/raw/main/a.txt", As: ada, Status: 404})
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, JSON: `{"failed_tokens_per_minute":1}`, Status: 200})
		s.Send(t, apptest.Call{Do: "GET //ada/p/-/archive/main/p.zip", As: "wrong"})
		s.Check(t, apptest.Call{Name: "too many", Do: "GET //ada/p/-/archive/main/p.zip", As: "wrong", Status: 429})
	})
}
