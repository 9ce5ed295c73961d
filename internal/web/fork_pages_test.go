package web_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/waittest"
)

func TestForkPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		_, eve := s.User(t, "eve")
		id := newProject(t, s, ada, "p", "internal")
		r := s.Repository(t, id, gittest.Commit{Changes: change("a.txt", "one\n")}, gittest.Commit{Branch: "other", Changes: change("b.txt", "two\n")})
		b := newBrowser(t, s).signIn("eve", password)

		b.get("/ada/p").want(200, `href="/ada/p/-/forks/new"`, "Forks: 0")
		b.get("/ada/p/-/forks").want(200, "No forks")
		const form = "/ada/p/-/forks/new"
		b.get(form).want(200, `value="internal" checked`, "Only the default branch").not(`value="public"`)
		namespace := place(t, s, eve)
		b.submit(form, "/ada/p/-/forks", "name", "p", "path", "p", "namespace_id", namespace, "visibility", "public", "branches", "all").want(422, "lower visibility")
		b.submit(form, "/ada/p/-/forks", "name", "p", "path", "p", "namespace_id", "x", "visibility", "private").want(422, "is not a namespace")
		b.submit(form, "/ada/p/-/forks", "name", "My p", "path", "p", "namespace_id", namespace, "visibility", "private", "branches", "default").leads("/eve/p")
		waittest.For(t, "the copy", func() bool { return strings.Contains(b.get("/eve/p").want(200).body, "a.txt") })
		b.get("/eve/p").want(200, `Forked from <a href="/ada/p">`, "Up to date with the source project").not("Update fork", `http-equiv`)
		b.get("/eve/p/-/refs").want(200, `"Branches":["main"]`)
		b.get("/ada/p/-/forks").want(200, `href="/eve/p"`)
		newBrowser(t, s).signIn("ada", password).get("/ada/p/-/forks").want(200).not(`href="/eve/p"`) // a private fork

		// The source has a new commit: the fork is updated by a fast-forward.
		r.Commit(gittest.Commit{Message: "Upstream", Changes: change("a.txt", "two\n")})
		b.get("/eve/p").want(200, "1 commit behind")
		b.submit("/eve/p", "/eve/p/-/forks/sync").leads("/eve/p")
		b.get("/eve/p").want(200, "The fork was updated.", "Up to date")
		b.submit("/eve/p", "/eve/p/-/forks/sync").leads("/eve/p")
		b.get("/eve/p").want(200, "The fork is up to date.")
		// Both have new commits: they are merged.
		r.Commit(gittest.Commit{Message: "Upstream again", Changes: change("a.txt", "three\n")})
		s.Check(t, apptest.Call{Do: "POST /projects/eve%2Fp/repository/files/c.txt", As: eve, Status: 201, Form: url.Values{"branch": {"main"}, "content": {"c"}, "commit_message": {"Own"}}})
		b.get("/eve/p").want(200, "1 commit behind, 1 commit ahead of the source project", "Create merge request")
		newBrowser(t, s).signIn("ada", password).get("/ada/p").want(200).not("Update fork")
		b.submit("/eve/p", "/eve/p/-/forks/sync").leads("/eve/p")
		b.get("/eve/p").want(200, "2 commits ahead of the source project")
		// A conflict changes nothing.
		r.Commit(gittest.Commit{Message: "Conflict", Changes: change("c.txt", "theirs\n")})
		b.submit("/eve/p", "/eve/p/-/forks/sync").leads("/eve/p")
		b.get("/eve/p").want(200, "The branches have conflicts", "1 commit behind")

		// A merge request from the fork, from the page of the source.
		p := b.get("/ada/p/-/merge_requests/new?change=1")
		if to := p.header.Get("Location"); p.status != 303 || !strings.HasPrefix(to, "/eve/p/-/merge_requests/new?") {
			t.Fatalf("status %d to %q, want the form of the fork", p.status, to)
		}
		b.get(p.header.Get("Location")).want(200, `<option value="`+fmt.Sprint(id)+`" selected>`)
		newBrowser(t, s).signIn("ada", password).get("/ada/p/-/merge_requests/new").want(200).not("Source project")

		// A project that does not allow forks.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: ada, Status: 200, Form: url.Values{"forking_access_level": {"disabled"}}})
		b.get("/ada/p").want(200).not(`/-/forks/new`)
		b.get(form).want(403)
		b.submit("/eve/p", "/ada/p/-/forks", "name", "q", "path", "q", "namespace_id", namespace, "visibility", "private").want(403)
	})
}

// place is the ID of the namespace of eve.
func place(t *testing.T, s *apptest.Server, token string) string {
	t.Helper()
	var me struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(s.Check(t, apptest.Call{Do: "GET /namespaces/eve", As: token, Status: 200}).Body, &me); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(me.ID)
}

func TestRefPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		id := newProject(t, s, ada, "p", "public")
		r := s.Repository(t, id, gittest.Commit{Changes: change("src/main.go", "package main\n", "src/web/page_main.go", "x\n", "README.md", "# P\n")})
		for i := range 60 {
			r.Git("branch", fmt.Sprintf("topic/%02d", i), "main")
		}
		r.Git("branch", "main-2", "main")
		r.Git("tag", "v1", "main")
		r.Commit(gittest.Commit{Branch: "topic/07", Changes: []gittest.Change{{Path: "src/main.go", Delete: true}}})
		b := newBrowser(t, s)
		b.get("/ada/p/-/refs").want(200, `{"Branches":["main","main-2","topic/00"`, `"Tags":["v1"]`, `"MoreBranches":true`).not("topic/55")
		b.get("/ada/p/-/refs?page=2").want(200, "topic/55", `"MoreBranches":false`)
		b.get("/ada/p/-/refs?search=MAIN-").want(200, `"Branches":["main-2"]`, `"Tags":[]`)
		for to, want := range map[string]string{
			"destination=tree&ref=topic/07":                        "/ada/p/-/tree/topic/07",
			"destination=blob&path=src/main.go&ref=main-2":         "/ada/p/-/blob/main-2/src/main.go",
			"destination=blame&path=src/main.go&ref=v1":            "/ada/p/-/blame/v1/src/main.go",
			"destination=blob&path=src&ref=v1":                     "/ada/p/-/tree/v1/src",
			"destination=tree&path=src/main.go&ref=v1":             "/ada/p/-/blob/v1/src/main.go",
			"destination=commits&path=src/main.go&ref=v1":          "/ada/p/-/commits/v1/src/main.go",
			"destination=blob&path=src/main.go&ref=topic/07":       "/ada/p/-/tree/topic/07",
			"destination=https%3A%2F%2Fexample.com&ref=main":       "/ada/p/-/tree/main",
			"destination=tree&ref=nothing":                         "/ada/p/-/branches",
			"destination=find_file&ref=" + url.QueryEscape("main"): "/ada/p/-/find_file/main",
		} {
			b.get("/ada/p/-/refs/switch?" + to).leads(want)
		}
		for _, page := range []string{"tree/main", "blob/main/README.md", "blame/main/README.md", "commits/main", "find_file/main"} {
			b.get("/ada/p/-/"+page).want(200, `action="/ada/p/-/refs/switch"`)
		}
		b.get("/ada/p/-/compare").want(200, `data-refnames="/ada/p/-/refs"`)

		b.get("/ada/p/-/find_file/main").want(200, "README.md", "page_main.go", "3 files")
		b.get("/ada/p/-/find_file/main?search=main").want(200, `/-/blob/main/src/main.go`, "<mark>main</mark>", "2 files").not("README")
		b.get("/ada/p/-/find_file/main?search=zzz").want(200, "No files found")
		b.get("/ada/p/-/find_file/topic/07?format=json&search=wpm").want(200, `"parts":["src/","w","eb/","p","age_","m","ain.go"]`, `"total":1`)
		b.get("/ada/p/-/find_file/nothing").want(404)
		b.get("/ada/p/-/find_file/main?search=" + strings.Repeat("x", 300)).want(422)

		// Blame names the version before a change.
		r.Commit(gittest.Commit{Message: "Rename", Changes: []gittest.Change{{Path: "README.md", Delete: true}, {Path: "READ ME.md", Content: "# P\n\nMore\n"}}})
		b.get("/ada/p/-/blame/main/READ%20ME.md").want(200, `class="by age8"`).not("prior to")
		r.Commit(gittest.Commit{Message: "Edit", Changes: change("READ ME.md", "# Project\n\nMore\n")})
		b.get("/ada/p/-/blame/main/READ%20ME.md").want(200, "View blame prior to this change", "/-/blame/"+r.Tip("main~1")+"/READ%20ME.md")
	})
}
