package web_test

import (
	"testing"

	"svc/internal/app/apptest"
)

// TestDescriptions shows the Markdown of descriptions on the pages of a group, an
// empty project and a project with files.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		const description = `"description":"Uses **bold** <script>alert(1)</script> [here](javascript:alert) and [docs](https://docs.example.org)","visibility":"public"`
		for do, body := range map[string]string{
			"POST /groups":   `{"name":"g","path":"g",` + description + `}`,
			"POST /projects": `{"name":"empty",` + description + `}`,
		} {
			s.Check(t, apptest.Call{Do: do, As: ada, JSON: body, Status: 201})
		}
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"full","initialize_with_readme":true,` + description + `}`, Status: 201})
		b := newBrowser(t, s)
		for _, path := range []string{"/groups/g", "/g", "/ada/empty", "/ada/full"} {
			b.get(path).want(200, "Uses <strong>bold</strong>", `<a href="https://docs.example.org"`).not("<script>alert", `href="javascript:`)
		}
	})
}
