package web_test

import (
	"fmt"
	"net/url"
	"testing"

	"svc/internal/app/apptest"
)

// TestPagesFollowChanges checks that a page shows changes that were made before the
// request, in spite of the cache of projects and of the data that other pages have
// read.
func TestPagesFollowChanges(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		eveID, _ := s.User(t, "eve")
		call := func(do string, status int, form url.Values) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: ada, Form: form, Status: status})
		}
		call("POST /projects", 201, url.Values{"path": {"p"}, "visibility": {"private"}})
		call("POST /projects/ada%2Fp/issues", 201, url.Values{"title": {"Before"}})
		eve := newBrowser(t, s).signIn("eve", password)
		const page, edit = "/ada/p/-/issues/1", `href="/ada/p/-/issues/1/edit"`
		member := fmt.Sprintf("/projects/ada%%2Fp/members/%d", eveID)

		eve.get(page).want(404)
		call("POST /projects/ada%2Fp/members", 201, url.Values{"user_id": {fmt.Sprint(eveID)}, "access_level": {"30"}})
		eve.get(page).want(200, "Before", edit)
		call("PUT /projects/ada%2Fp/issues/1", 200, url.Values{"title": {"After"}})
		eve.get(page).want(200, "After").not("Before</h2>")
		call("PUT "+member, 200, url.Values{"access_level": {"10"}})
		eve.get(page).want(200, "After").not(edit)
		call("PUT /projects/ada%2Fp", 200, url.Values{"issues_access_level": {"disabled"}})
		eve.get(page).want(404)
		call("PUT /projects/ada%2Fp", 200, url.Values{"issues_access_level": {"enabled"}})
		eve.get(page).want(200, "After")
		call("DELETE "+member, 204, nil)
		eve.get(page).want(404)
	})
}
