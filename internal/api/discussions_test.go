package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
)

// TestMergeDiscussions creates threads on a merge request and on lines of its diff.
func TestMergeDiscussions(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		guestID, guest := s.User(t, "guest")
		_, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		enlist(t, s, id, guestID, project.Guest)
		lines := func(change string) string {
			var text strings.Builder
			for n := 1; n <= 30; n++ {
				fmt.Fprintf(&text, "line %d\n", n)
			}
			return strings.Replace(text.String(), "line 10\n", change, 1)
		}
		commitTo(t, s, alice, id, "main", "long.txt", lines("line 10\n"), "Add a long file")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/branches?branch=work&ref=main", id), As: bob, Status: 201})
		commitTo(t, s, bob, id, "work", "long.txt", lines("changed\nadded\n"), "Change it")
		var m struct {
			Refs struct {
				Base  string `json:"base_sha"`
				Start string `json:"start_sha"`
				Head  string `json:"head_sha"`
			} `json:"diff_refs"`
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/merge_requests", id), As: bob, JSON: `{"source_branch":"work","target_branch":"main","title":"Work"}`, Status: 201}).JSON(t, &m)
		at := fmt.Sprintf("/projects/%d/merge_requests/1", id)
		place := func(more string) string {
			return fmt.Sprintf(`{"body":"Why?","position":{"base_sha":%q,"start_sha":%q,"head_sha":%q,"position_type":"text"%s}}`, m.Refs.Base, m.Refs.Start, m.Refs.Head, more)
		}
		code := func(old, now int64) string { return diffnote.LineCode("long.txt", old, now) }
		const wrong = `{"message":{"line_code":["can't be blank","must be a valid line code"]}}`
		note := made(t, s, dan, "POST "+at+"/notes", `{"body":"Hello"}`)
		var thread struct {
			ID    string
			Notes []struct{ ID int64 }
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/discussions", As: alice, JSON: place(`,"new_path":"long.txt","new_line":11`), Status: 201,
			Want: fmt.Sprintf(`{"individual_note":false,"notes":[{"type":"DiffNote","noteable_type":"MergeRequest","noteable_iid":1,"resolvable":true,"resolved":false,
				"position":{"base_sha":%q,"start_sha":%q,"head_sha":%q,"old_path":"long.txt","new_path":"long.txt","position_type":"text","old_line":null,"new_line":11,"line_range":null}}]}`,
				m.Refs.Base, m.Refs.Start, m.Refs.Head)}).JSON(t, &thread)
		discussion, first := at+"/discussions/"+thread.ID, thread.Notes[0].ID
		s.Table(t, []apptest.Call{
			{Name: "one", Do: fmt.Sprintf("GET %s/notes/%d", at, note), Status: 200, Want: `{"type":null,"body":"Hello","noteable_type":"MergeRequest","resolvable":false}`, Not: []string{"position"}},
			{Name: "a removed line", Do: "POST " + at + "/discussions", As: bob, JSON: place(`,"old_path":"long.txt","new_path":"long.txt","old_line":10`), Status: 201, Want: `{"notes":[{"position":{"old_line":10,"new_line":null}}]}`},
			{Name: "a line far from all changes", Do: "POST " + at + "/discussions", As: bob, JSON: place(`,"new_path":"long.txt","old_line":29,"new_line":30`), Status: 201},
			{Name: "several lines", Do: "POST " + at + "/discussions", As: bob, Status: 201,
				JSON: place(fmt.Sprintf(`,"new_path":"long.txt","new_line":11,"line_range":{"start":{"line_code":%q,"type":"new"},"end":{"line_code":%q,"type":"new","new_line":11}}`, code(11, 10), code(11, 11))),
				Want: fmt.Sprintf(`{"notes":[{"position":{"line_range":{"start":{"line_code":%q,"type":"new","old_line":null,"new_line":10},"end":{"line_code":%q,"type":"new","new_line":11}}}}]}`, code(11, 10), code(11, 11))},
			{Name: "the wrong way round", Do: "POST " + at + "/discussions", As: bob, Status: 400,
				JSON: place(fmt.Sprintf(`,"new_path":"long.txt","new_line":11,"line_range":{"start":{"line_code":%q},"end":{"line_code":%q}}`, code(11, 11), code(11, 10)))},
			{Name: "a range of nothing", Do: "POST " + at + "/discussions", As: bob, Status: 400,
				JSON: place(`,"new_path":"long.txt","new_line":11,"line_range":{"start":{"line_code":"x"},"end":{"line_code":"y"}}`)},
			{Name: "of a form", Do: fmt.Sprintf("POST %s/discussions?body=x&position[base_sha]=%s&position[start_sha]=%s&position[head_sha]=%s&position[position_type]=file&position[new_path]=long.txt", at, m.Refs.Base, m.Refs.Start, m.Refs.Head),
				As: bob, Status: 201, Want: `{"notes":[{"position":{"position_type":"file","new_line":null}}]}`},
			{Name: "a line that is not there", Do: "POST " + at + "/discussions", As: bob, JSON: place(`,"new_path":"long.txt","new_line":99`), Status: 400, Want: wrong},
			{Name: "one side of what did not change", Do: "POST " + at + "/discussions", As: bob, JSON: place(`,"new_path":"long.txt","new_line":9`), Status: 400, Want: wrong},
			{Name: "a file that did not change", Do: "POST " + at + "/discussions", As: bob, JSON: place(`,"new_path":"a.txt","old_line":1,"new_line":1`), Status: 400, Want: wrong},
			{Name: "no file", Do: "POST " + at + "/discussions", As: bob, JSON: place(``), Status: 400},
			{Name: "commits of elsewhere", Do: "POST " + at + "/discussions", As: bob, JSON: strings.ReplaceAll(place(`,"new_path":"long.txt","new_line":11`), m.Refs.Head, m.Refs.Base), Status: 400, Want: wrong},
			{Name: "half a position", Do: "POST " + at + "/discussions", As: bob, JSON: `{"body":"x","position":{"head_sha":"x"}}`, Status: 400},
			{Name: "no diff", Do: fmt.Sprintf("POST /projects/%d/issues", id), As: bob, JSON: `{"title":"x"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues/1/discussions", id), As: bob, JSON: place(`,"new_path":"long.txt","new_line":11`), Status: 400},
			{Name: "reply", Do: "POST " + discussion + "/notes", As: dan, JSON: `{"body":"Because"}`, Status: 201, Want: `{"type":"DiffNote","position":{"new_line":11}}`},
			{Name: "open threads", Do: "GET " + at, Status: 200, Want: `{"blocking_discussions_resolved":false,"user_notes_count":7}`},
			{Name: "settle as a stranger", Do: "PUT " + discussion, As: dan, JSON: `{"resolved":true}`, Status: 403},
			{Name: "as a guest", Do: fmt.Sprintf("PUT %s/notes/%d", discussion, first), As: guest, JSON: `{"resolved":true}`, Status: 403},
			{Name: "one note", Do: fmt.Sprintf("PUT %s/notes/%d", discussion, first), As: bob, JSON: `{"resolved":true}`, Status: 200, Want: `{"resolved":true,"resolved_by":{"username":"bob"}}`},
			{Name: "of two", Do: "GET " + discussion, Status: 200, Want: `{"notes":[{"resolved":true},{"resolved":false}]}`},
			{Name: "both at once", Do: fmt.Sprintf("PUT %s/notes/%d", discussion, first), As: alice, JSON: `{"resolved":true,"body":"x"}`, Status: 400},
			{Name: "all", Do: "PUT " + discussion, As: bob, JSON: `{"resolved":true}`, Status: 200, Want: `{"notes":[{"resolved":true},{"resolved":true}]}`},
			{Name: "and not", Do: "PUT " + discussion, As: bob, JSON: `{"resolved":false}`, Status: 200, Want: `{"notes":[{"resolved":false},{"resolved":false}]}`},
			{Name: "change another's", Do: fmt.Sprintf("PUT %s/notes/%d", discussion, first), As: bob, JSON: `{"body":"x"}`, Status: 403},
			{Name: "between us", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"SECRET","internal":true}`, Status: 201},
			{Name: "not for a guest", Do: "POST " + at + "/notes", As: guest, JSON: `{"body":"x","internal":true}`, Status: 403},
			{Name: "activity", Do: fmt.Sprintf("GET /projects/%d/events?target_type=note&per_page=2", id), As: guest, Status: 200, Want: `[{"target_type":"DiffNote","target_title":"Work"},{"target_type":"DiffNote"}]`},
		})
		for _, do := range []string{"GET " + at + "/notes", "GET " + at + "/discussions", "GET " + at + "/participants", fmt.Sprintf("GET /projects/%d/events", id)} {
			for who, token := range map[string]string{"nobody": "", "guest": guest, "dan": dan} {
				if body := string(s.Send(t, apptest.Call{Do: do, As: token}).Body); strings.Contains(body, "SECRET") {
					t.Errorf("%s as %s tells: %s", do, who, body)
				}
			}
			if !strings.HasSuffix(do, "participants") && !strings.Contains(string(s.Send(t, apptest.Call{Do: do, As: alice}).Body), "SECRET") {
				t.Errorf("%s does not tell alice", do)
			}
		}
		// After a push the note keeps its position, and the previous version can
		// still be commented on.
		commitTo(t, s, bob, id, "work", "long.txt", "all new\n", "Write it anew")
		s.Table(t, []apptest.Call{
			{Name: "where it was", Do: "GET " + discussion, Status: 200, Want: fmt.Sprintf(`{"notes":[{"position":{"head_sha":%q,"new_line":11}},"<any>"]}`, m.Refs.Head)},
			{Name: "of the version before", Do: "POST " + at + "/discussions", As: bob, JSON: place(`,"new_path":"long.txt","new_line":11`), Status: 201},
			{Name: "locked", Do: "PUT " + at, As: alice, JSON: `{"discussion_locked":true}`, Status: 200},
			{Name: "for strangers", Do: "POST " + at + "/notes", As: dan, JSON: `{"body":"x"}`, Status: 403},
			{Name: "for those who do not read", Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"merge_requests_access_level":"private"}`, Status: 200},
			{Do: "GET " + at + "/notes", As: dan, Status: 404},
			{Do: "GET " + discussion, Status: 404},
			{Do: fmt.Sprintf("GET /projects/%d/events?target_type=note", id), As: dan, Status: 200, Want: `[]`},
			{Name: "its author goes for good", Do: fmt.Sprintf("DELETE /users/%d?hard_delete=true", bobID), As: root, Status: 204},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Name: "nothing tells of it", Do: fmt.Sprintf("GET /projects/%d/events?target_type=note", id), As: alice, Status: 200, Want: `[]`})
		var left int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM notes`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d notes are left, %v", left, err)
		}
	})
}

// TestResolveOutdatedThreads changes the line of a thread, in a project that
// resolves outdated threads.
func TestResolveOutdatedThreads(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := code(t, s, alice, "code", "")
		enlist(t, s, id, bobID, project.Developer)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/repository/branches?branch=work&ref=main", id), As: bob, Status: 201})
		push := func(text, message string) {
			t.Helper()
			commitTo(t, s, bob, id, "work", "new.txt", text, message)
			if err := s.Queue.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		const first = "one\ntwo\nthree\na\nb\nfour\nc\nd\nfive\n"
		push(first, "Add a file")
		var m struct {
			Refs struct {
				Base  string `json:"base_sha"`
				Start string `json:"start_sha"`
				Head  string `json:"head_sha"`
			} `json:"diff_refs"`
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/merge_requests", id), As: bob, JSON: `{"source_branch":"work","target_branch":"main","title":"Work"}`, Status: 201}).JSON(t, &m)
		at := fmt.Sprintf("/projects/%d/merge_requests/1", id)
		threads := map[int]string{}
		for _, line := range []int{1, 2, 3, 6, 9} {
			var thread struct{ ID string }
			s.Check(t, apptest.Call{Do: "POST " + at + "/discussions", As: alice, Status: 201, JSON: fmt.Sprintf(
				`{"body":"Why?","position":{"base_sha":%q,"start_sha":%q,"head_sha":%q,"position_type":"text","new_path":"new.txt","new_line":%d}}`,
				m.Refs.Base, m.Refs.Start, m.Refs.Head, line)}).JSON(t, &thread)
			threads[line] = "/discussions/" + thread.ID
		}
		const open, resolved = `{"notes":[{"resolved":false}]}`, `{"notes":[{"resolved":true,"resolved_by":{"username":"bob"}}]}`
		resolve := func(on bool) {
			t.Helper()
			s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: fmt.Sprintf(`{"resolve_outdated_diff_discussions":%t}`, on), Status: 200,
				Want: fmt.Sprintf(`{"resolve_outdated_diff_discussions":%t}`, on)})
		}
		push(strings.Replace(first, "one", "1", 1), "Change the first line")
		s.Check(t, apptest.Call{Name: "not by default", Do: "GET " + at + threads[1], As: bob, Status: 200, Want: open})
		resolve(true)
		second := strings.Replace(first, "one\ntwo", "1\n2", 1)
		push(second, "Change the second line")
		s.Table(t, []apptest.Call{
			{Name: "outdated before", Do: "GET " + at + threads[1], As: bob, Status: 200, Want: open},
			{Name: "outdated by the push", Do: "GET " + at + threads[2], As: bob, Status: 200, Want: resolved},
			{Name: "in its place", Do: "GET " + at + threads[3], As: bob, Status: 200, Want: open},
			{Name: "note", Do: "GET " + at + "/notes?sort=desc&order_by=created_at&per_page=1", As: bob, Status: 200,
				Want: `[{"system":true,"body":"automatically resolved 1 thread that became outdated","author":{"username":"bob"}}]`},
			{Name: "reopen", Do: "PUT " + at + threads[2], As: bob, JSON: `{"resolved":false}`, Status: 200, Want: open},
		})
		push(second+"six\n", "Add a line")
		s.Check(t, apptest.Call{Name: "reopened by a user", Do: "GET " + at + threads[2], As: bob, Status: 200, Want: open})
		// Two pushes are processed at once.
		if err := s.Queue.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		fourth := strings.Replace(second, "four", "4", 1)
		commitTo(t, s, bob, id, "work", "new.txt", fourth, "Change the fourth line")
		fifth := strings.Replace(fourth, "five", "5", 1)
		commitTo(t, s, bob, id, "work", "new.txt", fifth, "Change the fifth line")
		if err := s.Queue.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Name: "outdated by the first of two pushes", Do: "GET " + at + threads[6], As: bob, Status: 200, Want: resolved},
			{Name: "outdated by the second of two pushes", Do: "GET " + at + threads[9], As: bob, Status: 200, Want: resolved},
			{Name: "outdated before both pushes", Do: "GET " + at + threads[2], As: bob, Status: 200, Want: open},
			{Name: "not changed by two pushes", Do: "GET " + at + threads[3], As: bob, Status: 200, Want: open},
			{Name: "reopen", Do: "PUT " + at + threads[6], As: bob, JSON: `{"resolved":false}`, Status: 200, Want: open},
		})
		push(fifth+"six\n", "Add a line")
		s.Check(t, apptest.Call{Name: "reopened after two pushes", Do: "GET " + at + threads[6], As: bob, Status: 200, Want: open})
		resolve(false)
		push(strings.Replace(fifth, "three", "3", 1), "Change the third line")
		s.Check(t, apptest.Call{Name: "switched off", Do: "GET " + at + threads[3], As: bob, Status: 200, Want: open})
	})
}

// TestInternalReplyMentions replies in an internal thread. The reply creates no
// cross-reference, which others could read.
func TestInternalReplyMentions(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		guestID, guest := s.User(t, "guest")
		id := newProject(t, s, alice, "p", "")
		enlist(t, s, id, guestID, project.Guest)
		at := fmt.Sprintf("/projects/%d/issues", id)
		for _, title := range []string{"a", "b"} {
			s.Check(t, apptest.Call{Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"title":%q}`, title), Status: 201})
		}
		s.Check(t, apptest.Call{Do: "POST " + at + "/1/notes", As: alice, JSON: `{"body":"between us","internal":true}`, Status: 201})
		var list []struct{ ID string }
		s.Check(t, apptest.Call{Do: "GET " + at + "/1/discussions", As: alice, Status: 200}).JSON(t, &list)
		s.Table(t, []apptest.Call{
			{Name: "reply", Do: "POST " + at + "/1/discussions/" + list[0].ID + "/notes", As: alice, JSON: `{"body":"See #2"}`, Status: 201, Want: `{"internal":true}`},
			{Name: "not mentioned for others", Do: "GET " + at + "/2/notes", As: guest, Status: 200, Want: `[]`},
			{Name: "nor for members", Do: "GET " + at + "/2/notes", As: alice, Status: 200, Want: `[]`},
			{Name: "in public", Do: "POST " + at + "/1/notes", As: alice, JSON: `{"body":"See #2"}`, Status: 201},
			{Name: "mentioned", Do: "GET " + at + "/2/notes", As: guest, Status: 200, Want: `[{"body":"mentioned in issue #1"}]`},
		})
	})
}
