package api_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/git"
	"svc/internal/project"
)

func TestWikis(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		p := newProject(t, s, alice, "p", `,"visibility":"public"`)
		enlist(t, s, p, bobID, project.Developer)
		g := group(t, s, alice, "top", `,"visibility":"public"`)
		at, above := fmt.Sprintf("/projects/%d/wikis", p), fmt.Sprintf("/groups/%d/wikis", g)
		s.Table(t, []apptest.Call{
			{Name: "empty", Do: "GET " + at, Status: 200, Want: `[]`},
			{Name: "create", Do: "POST " + at, As: bob, JSON: `{"title":"home","content":"# Hi\n[x](docs/Setup-guide.md) ![a](uploads/1/a.png) <script>alert(1)</script>"}`, Status: 201,
				Want: `{"format":"markdown","slug":"home","title":"home","encoding":"UTF-8","front_matter":{}}`},
			{Name: "in a directory", Do: "POST " + at, As: bob, JSON: `{"title":" docs / Setup  guide ","content":"= Hi","format":"asciidoc"}`, Status: 201, Want: `{"format":"asciidoc","slug":"docs/Setup-guide","title":"Setup guide","content":"= Hi"}`},
			{Name: "with fields above", Do: "POST " + at, As: bob, JSON: `{"title":"a","content":"---\ntitle: \"Aha\"\n---\ntext"}`, Status: 201, Want: `{"slug":"a","title":"Aha","front_matter":{"title":"Aha"}}`},
			{Name: "twice", Do: "POST " + at, As: bob, JSON: `{"title":"Home","content":"x"}`, Status: 422},
			{Name: "out of it", Do: "POST " + at, As: bob, JSON: `{"title":"../x","content":"x"}`, Status: 400, Want: `{"message":{"title":["is not a valid page title"]}}`},
			{Name: "into git", Do: "POST " + at, As: bob, JSON: `{"title":".git/x","content":"x"}`, Status: 400},
			{Name: "no title", Do: "POST " + at, As: bob, JSON: `{"title":" / ","content":"x"}`, Status: 400},
			{Name: "no such format", Do: "POST " + at, As: bob, JSON: `{"title":"x","content":"x","format":"word"}`, Status: 400},
			{Name: "list", Do: "GET " + at, Status: 200, Want: `[{"slug":"a"},{"slug":"docs/Setup-guide"},{"slug":"home"}]`, Not: []string{"content", "encoding"}},
			{Name: "with texts", Do: "GET " + at + "?with_content=1&per_page=1&page=2", Status: 200, Want: `[{"slug":"docs/Setup-guide","content":"= Hi"}]`},
			{Name: "one", Do: "GET " + at + "/docs%2FSetup-guide", Status: 200, Want: `{"title":"Setup guide"}`},
			{Name: "none", Do: "GET " + at + "/none", Status: 404, Want: `{"message":"404 Wiki Page Not Found"}`},
			{Name: "as HTML", Do: "GET " + at + "/home?render_html=true", Status: 200, Want: `{"content":"<h1 id=\"user-content-hi\">Hi</h1>\n<p><a href=\"/alice/p/-/wikis/docs/Setup-guide\" rel=\"nofollow\">x</a> <img src=\"/alice/p/-/wikis/uploads/1/a.png\" alt=\"a\" loading=\"lazy\"> </p>\n"}`},
			{Name: "other formats as text", Do: "GET " + at + "/docs%2FSetup-guide?render_html=true", Status: 200, Want: `{"content":"<pre>= Hi</pre>"}`},
			{Name: "edit", Do: "PUT " + at + "/home", As: alice, JSON: `{"content":"two"}`, Status: 200, Want: `{"slug":"home","content":"two"}`},
			{Name: "rename inside", Do: "PUT " + at + "/docs%2FSetup-guide", As: alice, JSON: `{"title":"Install","format":"markdown"}`, Status: 200, Want: `{"slug":"docs/Install","format":"markdown","content":"= Hi"}`},
			{Name: "to the top", Do: "PUT " + at + "/docs%2FInstall", As: alice, JSON: `{"title":"/Install"}`, Status: 200, Want: `{"slug":"Install"}`},
			{Name: "onto another", Do: "PUT " + at + "/Install", As: alice, JSON: `{"title":"home"}`, Status: 422},
			{Name: "nothing", Do: "PUT " + at + "/home", As: alice, JSON: `{}`, Status: 400},
			{Name: "changed since", Do: "PUT " + at + "/home", As: alice, JSON: `{"content":"x","last_commit_sha":"0000000000000000000000000000000000000000"}`, Status: 409},
			{Name: "changed since then", Do: "DELETE " + at + "/home", As: alice, Header: map[string]string{"If-Unmodified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"}, Status: 412},
			{Name: "delete", Do: "DELETE " + at + "/a", As: bob, Status: 204},
			{Name: "gone", Do: "GET " + at + "/a", Status: 404},
			{Name: "events", Do: fmt.Sprintf("GET /projects/%d/events", p), Status: 200,
				Want: `[{"action_name":"destroyed","target_type":"WikiPage::Meta","wiki_page":{"slug":"a","title":"a","format":"markdown"},"author_username":"bob"},
					{"action_name":"updated","target_title":"Install","wiki_page":{"slug":"Install"}},{"action_name":"updated","target_title":"Install"},{"action_name":"updated","target_title":"home"},
					{"action_name":"created","target_title":"a"},{"action_name":"created","target_title":"Install"},{"action_name":"created","target_title":"home"},{"action_name":"joined"},{"target_type":"Project"}]`},
			{Name: "of a group", Do: "POST " + above, As: alice, JSON: `{"title":"home","content":"ours"}`, Status: 201},
			{Name: "which is another", Do: "GET " + above, Status: 200, Want: `[{"slug":"home"}]`},
			{Name: "one's own event", Do: "GET /events?action=created", As: alice, Status: 200, Want: `[{"target_type":"WikiPage::Meta","project_id":null},{"target_type":"Project"}]`},
			{Name: "for no other user", Do: "GET /users/alice/events?action=created", As: bob, Status: 200, Want: `[{"target_type":"Project"}]`},
			{Name: "for members", Do: fmt.Sprintf("PUT /projects/%d", p), As: alice, JSON: `{"wiki_access_level":"private"}`, Status: 200},
			{Name: "not for others", Do: "GET " + at + "/home", Status: 404},
			{Name: "nor its events", Do: fmt.Sprintf("GET /projects/%d/events", p), Status: 200, Want: `[{"action_name":"joined"},{"target_type":"Project"}]`},
			{Name: "of the group too", Do: fmt.Sprintf("PUT /groups/%d", g), As: alice, JSON: `{"wiki_access_level":"disabled"}`, Status: 200},
			{Name: "hidden", Do: "GET " + above, As: alice, Status: 404},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		var form struct {
			Statistics struct {
				Size int64 `json:"wiki_size"`
			}
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d?statistics=true", p), As: alice, Status: 200}).JSON(t, &form)
		if form.Statistics.Size == 0 {
			t.Error("the wiki has no size")
		}
		attach(t, s, alice, at)
	})
}

// attach uploads an image to a wiki.
func attach(t *testing.T, s *apptest.Server, token, at string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", "my pic.png")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.Write([]byte("picture"))
	_ = form.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/v4"+at+"/attachments", &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("PRIVATE-TOKEN", token)
	answer := s.Exchange(t, r)
	var got struct {
		Name   string `json:"file_name"`
		Path   string `json:"file_path"`
		Link   struct{ URL, Markdown string }
		Branch string
	}
	answer.JSON(t, &got)
	if answer.Status != 201 || got.Name != "my_pic.png" || !strings.HasPrefix(got.Path, "uploads/") || got.Branch != "main" || got.Link.Markdown != "![my_pic]("+got.Path+")" {
		t.Errorf("status %d: %s", answer.Status, answer.Body)
	}
	// The image is not a page.
	s.Check(t, apptest.Call{Do: "GET " + at, As: token, Status: 200, Want: `[{"slug":"home"},{"slug":"Install"}]`})
}

// TestWikiWriters writes concurrently to different pages, which all succeed, and to
// the same page.
func TestWikiWriters(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		p := newProject(t, s, alice, "p", "")
		at := fmt.Sprintf("/projects/%d/wikis", p)
		const writers = 6
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				s.Check(t, apptest.Call{Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"title":"page %d","content":"x"}`, i), Status: 201})
			})
		}
		all.Wait()
		var list []struct{ Slug string }
		s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200}).JSON(t, &list)
		if len(list) != writers {
			t.Errorf("%d pages: %v", len(list), list)
		}
		_, page, err := s.Wikis.Page(t.Context(), actor.System(), project.Place{Ref: project.RefTo(p)}, "page-0", "")
		if err != nil {
			t.Fatal(err)
		}
		// Of the requests with the same base version, one succeeds.
		won := make(chan int, writers)
		for i := range writers {
			all.Go(func() {
				won <- s.Send(t, apptest.Call{Do: "PUT " + at + "/page-0", As: alice, JSON: fmt.Sprintf(`{"content":"by %d","last_commit_sha":%q}`, i, page.Version)}).Status
			})
		}
		all.Wait()
		close(won)
		count := map[int]int{}
		for status := range won {
			count[status]++
		}
		if count[200] != 1 || count[409] != writers-1 {
			t.Errorf("answers %v", count)
		}
		since := s.Clock.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
		s.Check(t, apptest.Call{Do: "DELETE " + at + "/page-1", As: alice, Header: map[string]string{"If-Unmodified-Since": since}, Status: 204})
	})
}

// snippetWikiCall is a request about an existing snippet or wiki page, and the
// callers that can send it.
type snippetWikiCall struct {
	do, json string
	need     project.Level
	open     bool // also for anonymous callers, if it is public
	ok       int
}

// TestSnippetAndWikiRoles sends requests about an existing snippet and wiki page as
// every kind of caller, to a public and to a private project and group.
func TestSnippetAndWikiRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		levels := map[string]project.Level{
			"outsider": 0, "guest": project.Guest, "reporter": project.Reporter, "developer": project.Developer, "maintainer": project.Maintainer,
		}
		tokens := map[string]string{"nobody": "", "admin": root}
		g := group(t, s, root, "secretive", `,"visibility":"private"`)
		ids := map[string]int64{}
		for name := range levels {
			ids[name], tokens[name] = s.User(t, name)
		}
		open := newProject(t, s, root, "open", `,"visibility":"public"`)
		closed := newProject(t, s, root, "closed", `,"visibility":"private"`)
		for name, level := range levels {
			if level > 0 {
				enlist(t, s, open, ids[name], level)
				enlist(t, s, closed, ids[name], level)
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", g), As: root, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, ids[name], level), Status: 201})
			}
		}
		for _, visibility := range []string{"public", "internal", "private"} {
			for _, p := range []int64{open, closed} {
				id := made(t, s, root, fmt.Sprintf("POST /projects/%d/snippets", p), fmt.Sprintf(`{"title":"t","content":"x","visibility":%q}`, visibility))
				at := fmt.Sprintf("/projects/%d/snippets/%d", p, id)
				for _, c := range []snippetWikiCall{
					{do: "GET " + at, open: true, ok: 200},
					{do: "GET " + at + "/raw", open: true, ok: 200},
					{do: "GET " + at + "/files/main/snippetfile1.txt/raw", open: true, ok: 200},
					{do: fmt.Sprintf("GET /snippets/%d", id), open: true, ok: 200},
					{do: "PUT " + at, json: `{"title":"u"}`, need: project.Maintainer, ok: 200},
					{do: fmt.Sprintf("PUT /snippets/%d", id), json: `{"title":"v"}`, need: project.Maintainer, ok: 200},
				} {
					for name, token := range tokens {
						seen := name == "admin" || levels[name] > 0
						if p == open {
							seen = seen || visibility == "public" || visibility == "internal" && name != "nobody"
						}
						checkSnippetWiki(t, s, c, name, token, levels[name], seen)
					}
				}
			}
		}
		for place, public := range map[string]bool{fmt.Sprintf("/projects/%d", open): true, fmt.Sprintf("/projects/%d", closed): false, fmt.Sprintf("/groups/%d", g): false} {
			at := place + "/wikis"
			s.Check(t, apptest.Call{Do: "POST " + at, As: root, JSON: `{"title":"home","content":"x"}`, Status: 201})
			for _, c := range []snippetWikiCall{
				{do: "GET " + at, open: true, ok: 200},
				{do: "GET " + at + "/home", open: true, ok: 200},
				{do: "PUT " + at + "/home", json: `{"content":"y"}`, need: project.Developer, ok: 200},
				{do: "DELETE " + at + "/none", need: project.Developer, ok: 404},
			} {
				for name, token := range tokens {
					checkSnippetWiki(t, s, c, name, token, levels[name], public || name == "admin" || levels[name] > 0)
				}
			}
		}
	})
}

func checkSnippetWiki(t *testing.T, s *apptest.Server, c snippetWikiCall, name, token string, level project.Level, seen bool) {
	t.Helper()
	want := c.ok
	switch {
	case name == "admin":
	case name == "nobody" && !c.open:
		want = 401
	case !seen:
		want = 404
	case level < c.need:
		want = 403
	}
	if got := s.Send(t, apptest.Call{Do: c.do, JSON: c.json, As: token}); got.Status != want {
		t.Errorf("%s as %s: status %d, want %d: %s", c.do, name, got.Status, want, got.Body)
	}
}

// TestAuxRepoSettled creates pushes as they are after a crash: one whose branch was
// updated, and one whose branch was not.
func TestAuxRepoSettled(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		p := newProject(t, s, alice, "p", "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/wikis", p), As: alice, JSON: `{"title":"home","content":"x"}`, Status: 201})
		a, err := s.Repos.WikiOf(t.Context(), &p, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Repos.OpenAuxRepo(a)
		if err != nil {
			t.Fatal(err)
		}
		tip, err := r.Ref(t.Context(), "refs/heads/main")
		if err != nil {
			t.Fatal(err)
		}
		who := git.Signature{Name: "Alice", Email: "alice@example.org", When: s.Clock.Now()}
		made, err := r.CommitChanges(t.Context(), git.ChangeOptions{Parent: string(tip.ID), Author: who, Committer: who, Message: "m",
			Actions: []git.Action{{Kind: git.Create, Path: "late.md", Content: []byte("x")}}})
		if err == nil {
			err = r.UpdateRefs(t.Context(), []git.Update{{Ref: tip.Name, Old: tip.ID, New: made.ID}})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []string{string(made.ID), strings.Repeat("1", 40)} {
			_, err := s.DB.ExecContext(t.Context(), `INSERT INTO annex_pushes (annex_id, actor, push, created_at) VALUES (?, ?, ?, ?)`, a.ID,
				fmt.Sprintf(`{"ID":%d,"Username":"alice"}`, aliceID), fmt.Sprintf(`{"Changes":[{"Ref":"refs/heads/main","Old":%q,"New":%q}]}`, tip.ID, to), s.Clock.Now())
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Repos.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/events", p), As: alice, Status: 200,
			Want: `[{"action_name":"created","wiki_page":{"slug":"late"},"author_username":"alice"},{"wiki_page":{"slug":"home"}},{"target_type":"Project"}]`})
		var left int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM annex_pushes`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d pushes are left, %v", left, err)
		}
	})
}
