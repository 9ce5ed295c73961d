package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestRenamedThreads checks that a thread stays on its line when a later version
// renames the file, and that a suggestion whose commit was not recorded counts as
// applied.
func TestRenamedThreads(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		const at = "/projects/ada%2Fp"
		text := strings.Repeat("line\n", 30)
		commit := func(fields, actions string) {
			s.Check(t, apptest.Call{Do: "POST " + at + "/repository/commits", As: ada, JSON: fmt.Sprintf(`{"branch":"work","commit_message":"c",%s"actions":[%s]}`, fields, actions), Status: 201})
		}
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		commit(`"start_branch":"main",`, fmt.Sprintf(`{"action":"create","file_path":"old.txt","content":%q},{"action":"create","file_path":"b.txt","content":"1\n2\n3\n"}`, text+"last\n"))
		s.Check(t, apptest.Call{Do: "POST " + at + "/merge_requests", As: ada, JSON: `{"source_branch":"work","target_branch":"main","title":"m"}`, Status: 201})
		var m struct {
			Refs struct {
				Base  string `json:"base_sha"`
				Start string `json:"start_sha"`
				Head  string `json:"head_sha"`
			} `json:"diff_refs"`
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/merge_requests/1", As: ada, Status: 200}).JSON(t, &m)
		comment := func(body, path string, line int) {
			s.Check(t, apptest.Call{Do: "POST " + at + "/merge_requests/1/discussions", As: ada, Status: 201,
				JSON: fmt.Sprintf(`{"body":%q,"position":{"base_sha":%q,"start_sha":%q,"head_sha":%q,"position_type":"text","new_path":%q,"new_line":%d}}`,
					body, m.Refs.Base, m.Refs.Start, m.Refs.Head, path, line)})
		}
		comment("About the last line", "old.txt", 31)
		comment("```suggestion\ntwo\n```", "b.txt", 2)
		commit("", fmt.Sprintf(`{"action":"move","previous_path":"old.txt","file_path":"dir/new.txt","content":%q},{"action":"update","file_path":"b.txt","content":"1\ntwo\n3\n"}`, "first\n"+text+"last\n"))
		s.Check(t, apptest.Call{Name: "settled", Do: "GET " + at + "/merge_requests/1/discussions?page=2&per_page=1", As: ada, Status: 200, Want: `[{"notes":[{"suggestions":[{"applied":true,"appliable":false}]}]}]`})
		s.Settled(t)
		first := "GET " + at + "/merge_requests/1/discussions?page=1&per_page=1"
		where := `[{"notes":[{"position":{"old_path":"dir/new.txt","new_path":"dir/new.txt","old_line":null,"new_line":32}}]}]`
		s.Check(t, apptest.Call{Name: "the position in the new version", Do: first, As: ada, Status: 200, Want: where})
		commit("", `{"action":"update","file_path":"dir/new.txt","content":"another text\n"}`)
		s.Settled(t)
		s.Check(t, apptest.Call{Name: "the line is gone", Do: first, As: ada, Status: 200, Want: where})
		commit("", fmt.Sprintf(`{"action":"update","file_path":"dir/new.txt","content":%q}`, "first\n"+text+"last\n"))
		s.Settled(t)
		b := newBrowser(t, s)
		b.signIn("ada", "a good password")
		page := b.get("/ada/p/-/merge_requests/1/diffs").want(200, "About the last line").body
		file := page[strings.Index(page, "dir/new.txt"):]
		if i := strings.Index(file, `data-to="0_32"`); i < 0 || !strings.Contains(file[i:], "About the last line") {
			t.Errorf("the thread is not at line 32 of the renamed file")
		}
	})
}

// TestRenamedGroup checks that old paths of a group lead to the same pages of it.
func TestRenamedGroup(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		s.Check(t, apptest.Call{Do: "POST /groups", As: ada, JSON: `{"name":"g","path":"old","visibility":"public"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "PUT /groups/old", As: ada, JSON: `{"path":"later"}`, Status: 200})
		b := newBrowser(t, s)
		for from, to := range map[string]string{"/old": "/later", "/groups/old/-/labels?search=x": "/groups/later/-/labels?search=x"} {
			p := b.get(from).want(301)
			if got := p.header.Get("Location"); got != to || p.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s leads to %q, want %q; Cache-Control: %q", from, got, to, p.header.Get("Cache-Control"))
			}
		}
		b.get("/groups/later/-/labels?search=x").want(200)
	})
}

// TestCommentOnRemovedFile comments with a script on a file that the latest version
// does not contain.
func TestCommentOnRemovedFile(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, ada := s.User(t, "ada")
		const at, one = "/projects/ada%2Fp", "/ada/p/-/merge_requests/1"
		commit := func(fields, actions string) {
			s.Check(t, apptest.Call{Do: "POST " + at + "/repository/commits", As: ada, Status: 201, JSON: fmt.Sprintf(`{"branch":"work","commit_message":"c",%s"actions":[%s]}`, fields, actions)})
		}
		s.Check(t, apptest.Call{Do: "POST /projects", As: ada, JSON: `{"name":"p","initialize_with_readme":true}`, Status: 201})
		commit(`"start_branch":"main",`, `{"action":"create","file_path":"a.txt","content":"a\n"},{"action":"create","file_path":"b.txt","content":"b\n"}`)
		s.Check(t, apptest.Call{Do: "POST " + at + "/merge_requests", As: ada, JSON: `{"source_branch":"work","target_branch":"main","title":"m"}`, Status: 201})
		b := newBrowser(t, s).signIn("ada", password)
		page := b.get(one+"/diffs").want(200, "b.txt")
		version := regexp.MustCompile(`name="version" value="(\d+)"`).FindStringSubmatch(page.body)[1]
		commit("", `{"action":"delete","file_path":"b.txt"}`)
		s.Settled(t)
		for _, more := range [][]string{nil, {"review", "1"}} {
			p := b.submit(one+"/diffs", one+"/diff_notes?fragment=1&file=b.txt", append([]string{"version", version, "path", "b.txt", "to", "0_1", "note", "Once"}, more...)...).want(303)
			if got := p.header.Get("Location"); !strings.HasPrefix(got, one+"/diffs?diff_id="+version) {
				t.Errorf("%v: leads to %q", more, got)
			}
			b.get(one+"/diffs").want(200, "Your comment was saved.")
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/merge_requests/1/discussions", As: ada, Status: 200, Want: `[{"notes":[{"system":true}]},{"notes":[{"body":"Once"}]}]`})
		s.Check(t, apptest.Call{Do: "GET " + at + "/merge_requests/1/draft_notes", As: ada, Status: 200, Want: `[{"note":"Once"}]`})
	})
}
