package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"svc/internal/actor"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// BenchmarkWeb compares how many pages per second the server renders with the rate
// of the cheapest API request, and measures the size of the pages: the overview of a
// project with its README and languages, and the tree of its files, for an anonymous
// user.
func BenchmarkWeb(b *testing.B) {
	t := &table{}
	s := serve(b, "")
	token := newToken(b, s, "somebody")
	fillRepository(b, s.Repos)
	version := newLeanLoad(b, "http://"+s.Addr()+"/api/v4/version", token)
	for _, r := range []struct {
		name, path string
		least      float64
	}{
		{"project page", "/root/engine", 0.2},
		{"tree page", "/root/engine/-/tree/main/src", 0.2},
		{"sign-in page", "/users/sign_in", 0},
	} {
		b.Run(r.name, func(b *testing.B) {
			address := "http://" + s.Addr() + r.path
			var body bytes.Buffer
			if _, err := get(http.DefaultClient, address, "", &body); err != nil {
				b.Fatal(err)
			}
			page := newLeanLoad(b, address, "")
			page.run(b, requestRound)
			version.run(b, requestRound)
			var ratios, pages, answers []float64
			for b.Loop() {
				for range requestRounds {
					pages, answers = append(pages, page.run(b, requestRound)), append(answers, version.run(b, requestRound))
					ratios = append(ratios, pages[len(pages)-1]/answers[len(answers)-1])
				}
			}
			t.add(b, figure{
				name: r.name, measured: median(ratios), limit: r.least, atLeast: true, informational: r.least == 0, unit: "of GET /version",
				note: fmt.Sprintf("%.0f of %.0f requests/s, %d bytes", median(pages), median(answers), body.Len()),
			})
		})
	}
	t.finish(b)
}

// fillRepository creates a public project with files in several languages.
func fillRepository(b *testing.B, repos *repo.Service) {
	b.Helper()
	root, err := repos.Users.Find(b.Context(), actor.System(), "root")
	if err != nil {
		b.Fatal(err)
	}
	by := actor.Actor{ID: root.ID, Username: root.Username, Name: root.Name, Email: root.Email, Admin: true}
	public := project.Public
	p, err := repos.Create(b.Context(), by, project.NewProject{Name: "Engine", Path: "engine", Visibility: &public}, repo.FirstFiles{})
	if err != nil {
		b.Fatal(err)
	}
	text := func(s string) []byte { return bytes.Repeat([]byte(s), 20) }
	actions := []repo.FileAction{{Kind: git.Create, Path: "README.md", Content: append([]byte("# Engine\n\n```go\nfunc main() {}\n```\n\n"), text("A line of *text* with a [link](src/a0.go).\n\n")...)}}
	for i := range 50 {
		actions = append(actions,
			repo.FileAction{Kind: git.Create, Path: fmt.Sprintf("src/a%d.go", i), Content: text("package src\n")},
			repo.FileAction{Kind: git.Create, Path: fmt.Sprintf("script/b%d.py", i), Content: text("print(1)\n")})
	}
	_, _, err = repos.CreateCommit(b.Context(), by, project.RefTo(p.ID), repo.NewCommit{Branch: "main", Message: "Begin", Actions: actions}, false)
	if err != nil {
		b.Fatal(err)
	}
}
