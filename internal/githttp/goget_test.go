package githttp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestGoGet requests the repositories of import paths like the go command.
func TestGoGet(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		newProject(t, s, alice, "open", "public")
		group := func(fields string) (id int64) {
			body := s.Check(t, apptest.Call{Do: "POST /groups", As: alice, JSON: fields, Status: 201}).Body
			var made struct{ ID int64 }
			if err := json.Unmarshal(body, &made); err != nil {
				t.Fatal(err)
			}
			return made.ID
		}
		sub := group(fmt.Sprintf(`{"name":"sub","path":"sub","parent_id":%d}`, group(`{"name":"team","path":"team"}`)))
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"name":"lib","namespace_id":%d,"visibility":"private"}`, sub), Status: 201})
		_, host, _ := strings.Cut(s.URL, "://")
		of := func(path string) string {
			return fmt.Sprintf(`<meta name="go-import" content="%s/%s git %s/%[2]s.git">`, host, path, s.URL)
		}
		table(t, s, []ask{
			{name: "public", path: "/alice/open?go-get=1", status: 200, text: of("alice/open"), want: map[string]string{"Content-Type": "text/html; charset=utf-8"}},
			{name: "package", path: "/alice/open/internal/x?go-get=1", status: 200, text: of("alice/open")},
			{name: "major version", path: "/alice/open/v2?go-get=1", status: 200, text: of("alice/open")},
			{name: "private in a subgroup", login: "alice", password: alice, path: "/team/sub/lib/pkg?go-get=1", status: 200, text: of("team/sub/lib")},
			{name: "of others", login: "bob", password: bob, path: "/team/sub/lib/pkg?go-get=1", status: 200, text: of("team/sub")},
			{name: "anonymous", path: "/team/sub/lib/pkg?go-get=1", status: 200, text: of("team/sub")},
			{name: "missing", path: "/no/where/at/all?go-get=1", status: 200, text: of("no/where")},
			{name: "bad token", login: "x", password: "svcpat-none", path: "/alice/open?go-get=1", status: 401},
			{name: "markup", path: "/alice/%22%3E%3Cscript%3E?go-get=1", status: 404},
			{name: "page", path: "/alice/open?go-get=0", status: 200, text: "<title>"},
		})
	})
}
