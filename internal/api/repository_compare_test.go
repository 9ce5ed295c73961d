package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/project"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		first := writeFiles("keep", "a\nb\nc\n", "gone", "nothing of it stays\n", "old name", strings.Repeat("line\n", 20), "bin", "\x00a")
		at, r := newCode(t, s, alice, "code", first)
		base := r.Tip("refs/heads/main")
		topic := writeFiles("keep", "a\nB\nc\n", "fresh", "f\n", "new name", strings.Repeat("line\n", 20), "bin", "\x00b")
		topic.Changes = append(topic.Changes, gittest.Change{Path: "gone", Delete: true}, gittest.Change{Path: "old name", Delete: true})
		topic.Branch, topic.Parents, topic.Message = "topic", []string{base}, "Topic one\n\nReviewed-by: Ann\n"
		one := r.Commit(topic)
		two := r.Commit(gittest.Commit{Branch: "topic", Message: "Topic two", Changes: []gittest.Change{{Path: "fresh", Content: "f\ng\n", Mode: "100755"}}})
		ahead := r.Commit(gittest.Commit{Message: "Main goes on", Changes: []gittest.Change{{Path: "main only", Content: "m\n"}}})
		r.Git("tag", "-m", "annotated", "v2", two)
		lonely := writeFiles("l", "l\n")
		lonely.Branch, lonely.Root = "lonely", true
		r.Commit(lonely)

		diffs := `"diffs":[
			{"old_path":"bin","new_path":"bin","diff":"","new_file":false},
			{"old_path":"fresh","new_path":"fresh","a_mode":"0","b_mode":"100755","diff":"@@ -0,0 +1,2 @@\n+f\n+g\n","new_file":true,"renamed_file":false,"deleted_file":false},
			{"old_path":"gone","new_path":"gone","a_mode":"100644","b_mode":"0","diff":"@@ -1 +0,0 @@\n-nothing of it stays\n","new_file":false,"renamed_file":false,"deleted_file":true},
			{"old_path":"keep","new_path":"keep","a_mode":"100644","b_mode":"100644","diff":"@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
			{"old_path":"old name","new_path":"new name","diff":"","renamed_file":true}]`
		want := `{"commit":{"id":"` + two + `","title":"Topic two"},"commits":[
			{"id":"` + one + `","short_id":"` + one[:8] + `","title":"Topic one","message":"Topic one\n\nReviewed-by: Ann\n","author_name":"Ann Author","author_email":"ann@example.com","created_at":"2023-11-14T22:13:20.000+00:00","parent_ids":["` + base + `"],"trailers":{}},
			{"id":"` + two + `","title":"Topic two"}],` + diffs + `,"compare_timeout":false,"compare_same_ref":false,
			"web_url":"` + s.URL + `/alice/code/-/compare/` + base + `...` + two + `"}`
		path := at + "/repository/compare"
		s.Table(t, []apptest.Call{
			{Name: "merge base", Do: "GET " + path + "?from=main&to=topic", Status: 200, Want: want, WantHeader: map[string]string{"Content-Type": "application/json"}},
			{Name: "a tag", Do: "GET " + path + "?from=main&to=v2", Status: 200, Want: want},
			{Name: "commits", Do: "GET " + path + "?from=" + ahead + "&to=" + two[:10], Status: 200, Want: want},
			{Name: "straight", Do: "GET " + path + "?from=main&to=topic&straight=true", Status: 200, Want: `{"commits":[{},{}],"diffs":[{},{},{},{},{"old_path":"main only","deleted_file":true},{}],
				"web_url":"` + s.URL + `/alice/code/-/compare/` + ahead + `..` + two + `"}`},
			{Name: "unidiff", Do: "GET " + path + "?from=" + base + "&to=" + ahead + "&unidiff=true", Status: 200, Want: `{"diffs":[{"diff":"--- /dev/null\n+++ b/main only\t\n@@ -0,0 +1 @@\n+m\n"}]}`},
			{Name: "the same", Do: "GET " + path + "?from=main&to=main", Status: 200, Want: `{"commit":null,"commits":[],"diffs":[],"compare_same_ref":true}`},
			{Name: "backwards", Do: "GET " + path + "?from=" + ahead + "&to=" + base, Status: 200, Want: `{"commit":null,"commits":[],"diffs":[],"compare_same_ref":false}`},
			{Name: "nothing in common", Do: "GET " + path + "?from=" + base + "&to=lonely", Status: 200, Want: `{"commits":[{}],"diffs":[{},{},{},{"new_path":"l","new_file":true},{}]}`},
			{Name: "its own project", Do: "GET " + path + "?from=main&to=topic&from_project_id=" + strings.TrimPrefix(at, "/projects/"), Status: 200, Want: want},

			{Name: "unknown from", Do: "GET " + path + "?from=none&to=main", Status: 404, Want: `{"message":"404 Ref Not Found"}`},
			{Name: "unknown to", Do: "GET " + path + "?from=main&to=none", Status: 404, Want: `{"message":"404 Ref Not Found"}`},
			{Name: "missing", Do: "GET " + path, Status: 400, Want: `{"error":"from is missing, to is missing"}`},
			{Name: "no number", Do: "GET " + path + "?from=main&to=main&from_project_id=x", Status: 400, Want: `{"error":"from_project_id is invalid"}`},
			{Name: "unknown project", Do: "GET " + path + "?from=main&to=main&from_project_id=99999", Status: 404, Want: `{"message":"404 Project Not Found"}`},
		})
		got := s.Check(t, apptest.Call{Do: "GET " + path + "?from=main&to=topic", Status: 200})
		s.Check(t, apptest.Call{Do: "GET " + path + "?from=main&to=topic", Header: map[string]string{"If-None-Match": got.Header.Get("ETag")}, Status: 304})
		s.Check(t, apptest.Call{Do: "GET " + path + "?from=main&to=topic&unidiff=true", Header: map[string]string{"If-None-Match": got.Header.Get("ETag")}, Status: 200})
		if head := s.Check(t, apptest.Call{Do: "HEAD " + path + "?from=main&to=topic", Status: 200}); len(head.Body) > 0 {
			t.Error("HEAD has a body")
		}
	})
}

// TestCompareLimits compares more than is shown: all commits and files, and texts up
// to the configured limits.
func TestCompareLimits(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		at, r := newCode(t, s, alice, "code", writeFiles("start", "s\n"))
		base := r.Tip("refs/heads/main")
		const many = 450 // more than is read at once
		var stream strings.Builder
		for i := range many {
			message := fmt.Sprintf("Commit %d", i)
			fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter C <c@example.com> %d +0000\ndata %d\n%s\n", 1700000200+i, len(message), message)
			if i == 0 {
				fmt.Fprintf(&stream, "from %s\n", base)
			}
			if i < 6 {
				fmt.Fprintf(&stream, "M 100644 inline f%d\ndata 4\na\nb\n", i)
			}
			stream.WriteString("\n")
		}
		r.Import(strings.NewReader(stream.String()))
		read := func() (titles, diffs []string) {
			var got struct {
				Commit  struct{ Title string }
				Commits []struct{ Title string }
				Diffs   []struct{ Diff string }
			}
			s.Check(t, apptest.Call{Do: "GET " + at + "/repository/compare?from=" + base + "&to=main", Status: 200}).JSON(t, &got)
			for _, c := range got.Commits {
				titles = append(titles, c.Title)
			}
			for _, d := range got.Diffs {
				diffs = append(diffs, d.Diff)
			}
			if got.Commit.Title != titles[len(titles)-1] {
				t.Errorf("the commit is %q", got.Commit.Title)
			}
			return titles, diffs
		}
		text := "@@ -0,0 +1,2 @@\n+a\n+b\n"
		titles, diffs := read()
		if len(titles) != many || titles[0] != "Commit 0" || titles[many-1] != fmt.Sprintf("Commit %d", many-1) {
			t.Errorf("%d commits", len(titles))
		}
		if diff := cmp.Diff([]string{text, text, text, text, text, text}, diffs); diff != "" {
			t.Error(diff)
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"diff_max_files":4}`, Status: 200})
		if _, diffs = read(); cmp.Diff([]string{text, text, text, text, "", ""}, diffs) != "" {
			t.Errorf("by files: %q", diffs)
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"diff_max_files":1000,"diff_max_lines":7}`, Status: 200})
		if _, diffs = read(); len(diffs) != 6 || diffs[0] != text || diffs[1] != text || diffs[4] != "" || diffs[5] != "" {
			t.Errorf("by lines: %q", diffs)
		}
	})
}

// TestCompareForks compares across the projects of a fork network.
func TestCompareForks(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		at, r := newCode(t, s, alice, "code", writeFiles("a", "a\n"))
		id := strings.TrimPrefix(at, "/projects/")
		var fork, private struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + at + "/fork", As: bob, Status: 201}).JSON(t, &fork)
		s.Check(t, apptest.Call{Do: "POST " + at + "/fork?path=hidden&visibility=private", As: alice, Status: 201}).JSON(t, &private)
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		forked := s.Repository(t, fork.ID)
		theirs := forked.Commit(gittest.Commit{Message: "In the fork", Changes: []gittest.Change{{Path: "fork", Content: "f\n"}}})
		ours := r.Commit(gittest.Commit{Message: "In the original", Changes: []gittest.Change{{Path: "original", Content: "o\n"}}})
		hidden := s.Repository(t, private.ID)
		hidden.Git("branch", "secret", "main")
		other, _ := newCode(t, s, alice, "other", writeFiles("a", "a\n"))

		here := fmt.Sprintf("/projects/%d/repository/compare", fork.ID)
		s.Table(t, []apptest.Call{
			{Name: "what the fork adds", Do: "GET " + here + "?from=main&to=main&from_project_id=" + id, Status: 200,
				Want: `{"commit":{"id":"` + theirs + `"},"commits":[{"title":"In the fork"}],"diffs":[{"new_path":"fork"}],"compare_same_ref":false}`},
			{Name: "what the original adds", Do: "GET " + at + "/repository/compare?from=main&to=main&from_project_id=" + fmt.Sprint(fork.ID), Status: 200,
				Want: `{"commit":{"id":"` + ours + `"},"commits":[{"title":"In the original"}],"diffs":[{"new_path":"original"}]}`},
			{Name: "straight", Do: "GET " + here + "?from=main&to=main&straight=true&from_project_id=" + id, Status: 200, Want: `{"commits":[{}],"diffs":[{"new_path":"fork"},{"new_path":"original","deleted_file":true}]}`},
			{Name: "refs are those of each", Do: "GET " + here + "?from=main&to=" + ours + "&from_project_id=" + id, Status: 404, Want: `{"message":"404 Ref Not Found"}`},
			{Name: "another network", Do: "GET " + here + "?from=main&to=main&from_project_id=" + strings.TrimPrefix(other, "/projects/"), As: alice, Status: 404, Want: `{"message":"404 Project Not Found"}`},
			{Name: "a hidden fork", Do: "GET " + here + "?from=secret&to=main&from_project_id=" + fmt.Sprint(private.ID), As: bob, Status: 404, Want: `{"message":"404 Project Not Found"}`},
			{Name: "a visible one", Do: "GET " + here + "?from=secret&to=main&from_project_id=" + fmt.Sprint(private.ID), As: alice, Status: 200, Want: `{"commits":[{}]}`},
		})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", private.ID), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, bobID, project.Guest), Status: 201})
		s.Check(t, apptest.Call{Do: "GET " + here + "?from=secret&to=main&from_project_id=" + fmt.Sprint(private.ID), As: bob, Status: 403})
	})
}
