package api_test

import (
	"testing"

	"svc/internal/app/apptest"
)

func TestCrossReferences(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		const in, hidden = "/projects/alice%2Fp", "/projects/alice%2Fhidden"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public"}`, Status: 201},
			{Do: "POST /projects", As: alice, JSON: `{"name":"hidden","visibility":"private"}`, Status: 201},
			{Do: "POST " + in + "/issues", As: alice, JSON: `{"title":"one"}`, Status: 201},
			{Name: "description", Do: "POST " + in + "/issues", As: alice, JSON: `{"title":"two","description":"Like #1, but see #2 and #99."}`, Status: 201},
			{Name: "noted", Do: "GET " + in + "/issues/1/notes", As: bob, Status: 200, Want: `[{"body":"mentioned in issue #2","system":true,"author":{"username":"alice"}}]`},
			{Name: "not itself", Do: "GET " + in + "/issues/2/notes", As: bob, Status: 200, Want: `[]`},
			{Name: "once", Do: "POST " + in + "/issues/2/notes", As: alice, JSON: `{"body":"#1 again"}`, Status: 201},
			{Name: "in code", Do: "POST " + in + "/issues", As: alice, JSON: "{\"title\":\"three\",\"description\":\"`#1`\"}", Status: 201},
			{Do: "POST " + hidden + "/issues", As: alice, JSON: `{"title":"secret","description":"alice/p#1"}`, Status: 201},
			{Do: "POST " + in + "/issues", As: alice, JSON: `{"title":"confidential","confidential":true,"description":"#1"}`, Status: 201},
			{Name: "readers of the source", Do: "GET " + in + "/issues/1/notes?sort=asc", As: alice, Status: 200,
				Want: `[{"body":"mentioned in issue #2"},{"body":"mentioned in issue alice/hidden#1"},{"body":"mentioned in issue #4"}]`},
			{Name: "others", Do: "GET " + in + "/issues/1/notes", As: bob, Status: 200, Want: `[{"body":"mentioned in issue #2"}]`},
			{Name: "not signed in", Do: "GET " + in + "/issues/1/discussions", Status: 200, Want: `[{"notes":[{"body":"mentioned in issue #2"}]}]`},
			{Name: "cannot see the target", Do: "POST " + in + "/issues/1/notes", As: bob, JSON: `{"body":"alice/hidden#1 and #4"}`, Status: 201},
			{Name: "cannot see the target", Do: "GET " + hidden + "/issues/1/notes", As: alice, Status: 200, Want: `[]`},
			{Name: "internal", Do: "POST " + in + "/issues/2/notes", As: alice, JSON: `{"body":"#3","internal":true}`, Status: 201},
			{Name: "internal", Do: "GET " + in + "/issues/3/notes", As: alice, Status: 200, Want: `[]`},
			{Name: "source deleted", Do: "DELETE " + in + "/issues/2", As: alice, Status: 204},
			{Name: "source deleted", Do: "GET " + in + "/issues/1/notes?activity_filter=only_activity", As: bob, Status: 200, Want: `[]`},
		})
	})
}
