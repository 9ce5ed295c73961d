package api_test

import (
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

func TestLanguages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, r := newCode(t, s, alice, "code", writeFiles("main.go", strings.Repeat("a", 100), "x.py", strings.Repeat("b", 300), "README.md", strings.Repeat("c", 900)))
		got := s.Check(t, apptest.Call{Do: "GET " + at + "/languages", Status: 200})
		if want := `{"Python":75,"Go":25}`; string(got.Body) != want { // sorted by share, descending
			t.Errorf("%s, want %s", got.Body, want)
		}
		other := writeFiles("x.rb", "puts 1\n")
		other.Branch = "topic"
		r.Commit(other)
		s.Check(t, apptest.Call{Do: "GET " + at + "/languages", Header: map[string]string{"If-None-Match": got.Header.Get("ETag")}, Status: 304})
		r.Commit(writeFiles("more.go", strings.Repeat("a", 200)))
		s.Check(t, apptest.Call{Do: "GET " + at + "/languages", Status: 200, Want: `{"Go":50,"Python":50}`})
		s.Check(t, apptest.Call{Do: "GET /projects/99999/languages", Status: 404, Want: `{"message":"404 Project Not Found"}`})
	})
}
