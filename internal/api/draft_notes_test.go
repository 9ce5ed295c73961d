package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/mail/mailtest"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
)

// diffRefs are the commits of a merge request diff, for positions.
type diffRefs struct {
	Refs struct {
		Base  string `json:"base_sha"`
		Start string `json:"start_sha"`
		Head  string `json:"head_sha"`
	} `json:"diff_refs"`
}

// position returns a position in the diff of a merge request.
func position(t testing.TB, s *apptest.Server, as, at, more string) string {
	t.Helper()
	var m diffRefs
	s.Check(t, apptest.Call{Do: "GET " + at, As: as, Status: 200}).JSON(t, &m)
	return fmt.Sprintf(`{"base_sha":%q,"start_sha":%q,"head_sha":%q,"position_type":"text",%s}`, m.Refs.Base, m.Refs.Start, m.Refs.Head, more)
}

func TestDraftNotes(t *testing.T) {
	t.Parallel()
	apptest.EachMailed(t, func(t *testing.T, s *apptest.Server, mail *mailtest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		enlist(t, s, id, carolID, project.Developer)
		commitTo(t, s, alice, id, "main", "long.txt", "one\ntwo\nthree\n", "Add a file")
		commitTo(t, s, bob, id, "work", "long.txt", "one\ntwo\nthree\nfour\n", "Change it")
		at := requested(t, s, bob, id, "work", fmt.Sprintf(`,"reviewer_ids":[%d]`, carolID))
		drafts := at + "/draft_notes"
		var thread struct{ ID string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/discussions", As: bob, JSON: `{"body":"What do you think?"}`, Status: 201}).JSON(t, &thread)
		where := position(t, s, carol, at, `"new_path":"long.txt","new_line":4`)
		line := diffnote.LineCode("long.txt", 4, 4)
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Clock.Move(time.Minute)
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		mail.Take()

		var inDiff, general struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + drafts, As: carol, JSON: `{"note":"Why four?","commit_id":"0123456789abcdef","position":` + where + `}`, Status: 201,
			Want: fmt.Sprintf(`{"id":"<any>","author_id":%d,"merge_request_id":"<any>","resolve_discussion":false,"discussion_id":null,"note":"Why four?","commit_id":"0123456789abcdef",
				"line_code":%q,"position":{"new_path":"long.txt","old_path":"long.txt","new_line":4,"old_line":null,"position_type":"text","line_range":null}}`, carolID, line)}).JSON(t, &inDiff)
		s.Check(t, apptest.Call{Do: "POST " + drafts, As: carol, JSON: `{"note":"General"}`, Status: 201,
			Want: `{"discussion_id":null,"commit_id":null,"line_code":null,"position":{"base_sha":null,"new_path":null,"position_type":"text","new_line":null}}`}).JSON(t, &general)
		first, second := fmt.Sprintf("%s/%d", drafts, inDiff.ID), fmt.Sprintf("%s/%d", drafts, general.ID)
		s.Table(t, []apptest.Call{
			{Name: "a reply", Do: "POST " + drafts, As: carol, JSON: fmt.Sprintf(`{"note":"Good","in_reply_to_discussion_id":%q,"resolve_discussion":true}`, thread.ID), Status: 201,
				Want: fmt.Sprintf(`{"resolve_discussion":true,"discussion_id":%q}`, thread.ID)},
			{Name: "a reply to nothing", Do: "POST " + drafts, As: carol, JSON: `{"note":"x","in_reply_to_discussion_id":"none"}`, Status: 404},
			{Name: "no text", Do: "POST " + drafts, As: carol, JSON: `{"note":" "}`, Status: 400},
			{Name: "no commit", Do: "POST " + drafts, As: carol, JSON: `{"note":"x","commit_id":"../etc"}`, Status: 400},
			{Name: "no line", Do: "POST " + drafts, As: carol, JSON: `{"note":"x","position":` + strings.Replace(where, `"new_line":4`, `"new_line":9`, 1) + `}`, Status: 400,
				Want: `{"message":{"line_code":["can't be blank","must be a valid line code"]}}`},
			{Name: "anonymous", Do: "POST " + drafts, JSON: `{"note":"x"}`, Status: 401},
			{Name: "list", Do: "GET " + drafts, As: carol, Status: 200, Want: `[{"note":"Why four?"},{"note":"General"},{"note":"Good"}]`, WantHeader: map[string]string{"X-Total": "3"}},
			{Name: "the other way round", Do: "GET " + drafts + "?sort=desc&per_page=1", As: carol, Status: 200, Want: `[{"note":"Good"}]`},
			{Name: "of no one else", Do: "GET " + drafts, As: bob, Status: 200, Want: `[]`},
			{Name: "not even for an administrator", Do: "GET " + first, As: root, Status: 404},
			{Name: "one of another", Do: "GET " + first, As: bob, Status: 404, Want: `{"message":"404 Draft Note Not Found"}`},
			{Name: "change that of another", Do: "PUT " + first, As: bob, JSON: `{"note":"x"}`, Status: 404},
			{Name: "publish that of another", Do: "PUT " + first + "/publish", As: bob, Status: 404},
			{Name: "delete that of another", Do: "DELETE " + first, As: bob, Status: 404},
			{Name: "change nothing", Do: "PUT " + second, As: carol, JSON: `{}`, Status: 400},
			{Name: "change", Do: "PUT " + second, As: carol, JSON: `{"note":"In general"}`, Status: 200, Want: `{"note":"In general"}`},
			{Name: "read", Do: "GET " + second, As: carol, Status: 200, Want: `{"note":"In general"}`},
			{Name: "no note yet", Do: "GET " + at + "/notes?activity_filter=only_comments", As: carol, Status: 200, Want: `[{"body":"What do you think?"}]`},
			{Name: "a review has started", Do: "GET " + at + "/reviewers", Status: 200, Want: `[{"user":{"username":"carol"},"state":"review_started"}]`},
			{Name: "no state", Do: "POST " + drafts + "/bulk_publish", As: carol, JSON: `{"reviewer_state":"approved"}`, Status: 400},
			{Name: "publish", Do: "POST " + drafts + "/bulk_publish", As: carol, JSON: `{"note":"All in all, good."}`, Status: 204},
			{Name: "nothing is left", Do: "GET " + drafts, As: carol, Status: 200, Want: `[]`},
			{Name: "reviewed", Do: "GET " + at + "/reviewers", Status: 200, Want: `[{"state":"reviewed"}]`},
			{Name: "notes", Do: "GET " + at + "/notes?activity_filter=only_comments&sort=asc&order_by=created_at", Status: 200,
				Want: fmt.Sprintf(`[{"body":"What do you think?","resolved":true,"resolved_by":{"username":"carol"}},{"body":"Why four?","type":"DiffNote","commit_id":"0123456789abcdef","author":{"id":%d},"position":{"new_line":4}},
					{"body":"In general","type":"DiscussionNote"},{"body":"Good","resolved":true},{"body":"All in all, good.","type":null}]`, carolID)},
			{Name: "counted", Do: "GET " + at, Status: 200, Want: `{"user_notes_count":5}`},
			{Name: "one event", Do: fmt.Sprintf("GET /projects/%d/events?target_type=note", id), As: carol, Status: 200, Want: `[{"author_username":"carol","note":{"body":"Why four?"}},{"author_username":"bob"}]`},
			{Name: "nothing to publish", Do: "POST " + drafts + "/bulk_publish", As: carol, Status: 204},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Clock.Move(time.Minute)
		email := mail.Wait(t, "bob@example.org")
		for _, text := range []string{"carol published a review with 4 comments", "long.txt, line 4", "Why four?", "In general", "Good", "All in all, good."} {
			if !strings.Contains(email.Text, text) {
				t.Errorf("the email does not have %q:\n%s", text, email.Text)
			}
		}
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, one := range mail.Take() {
			if one.To == email.To && one.Text != email.Text {
				t.Errorf("another email: %s", one.Text)
			}
		}

		// Publish a single draft note. Draft notes of deleted users and merge
		// requests are deleted.
		var one struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + drafts, As: carol, JSON: `{"note":"A"}`, Status: 201}).JSON(t, &one)
		s.Check(t, apptest.Call{Do: "POST " + drafts, As: carol, JSON: `{"note":"B"}`, Status: 201})
		s.Table(t, []apptest.Call{
			{Name: "publish one", Do: fmt.Sprintf("PUT %s/%d/publish", drafts, one.ID), As: carol, Status: 204},
			{Name: "once", Do: fmt.Sprintf("PUT %s/%d/publish", drafts, one.ID), As: carol, Status: 404},
			{Name: "the other waits", Do: "GET " + drafts, As: carol, Status: 200, Want: `[{"note":"B"}]`},
			{Name: "of the author", Do: "POST " + drafts, As: bob, JSON: `{"note":"C"}`, Status: 201},
			{Name: "locked", Do: "PUT " + at, As: alice, JSON: `{"discussion_locked":true}`, Status: 200},
			{Name: "archived", Do: fmt.Sprintf("POST /projects/%d/archive", id), As: alice, Status: 201},
			{Name: "create in an archived project", Do: "POST " + drafts, As: carol, JSON: `{"note":"x"}`, Status: 403},
			{Name: "publish in an archived project", Do: "POST " + drafts + "/bulk_publish", As: carol, Status: 403},
			{Name: "the reviewer goes", Do: fmt.Sprintf("DELETE /users/%d", carolID), As: root, Status: 204},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		count := func(want int) {
			t.Helper()
			var n int
			if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM draft_notes`).Scan(&n); err != nil || n != want {
				t.Errorf("%d draft notes, want %d: %v", n, want, err)
			}
		}
		count(1)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/unarchive", id), As: alice, Status: 201})
		s.Check(t, apptest.Call{Do: "DELETE " + at, As: alice, Status: 204})
		count(0)
	})
}

func TestRequestChanges(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		_, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Developer)
		enlist(t, s, id, carolID, project.Developer)
		at := proposed(t, s, bob, id, "work", "")
		publish := "POST " + at + "/draft_notes/bulk_publish"
		s.Table(t, []apptest.Call{
			{Name: "mergeable", Do: "GET " + at, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "by a stranger", Do: publish, As: dan, JSON: `{"reviewer_state":"requested_changes"}`, Status: 403},
			{Name: "by the author", Do: publish, As: bob, JSON: `{"reviewer_state":"requested_changes"}`, Status: 403},
			{Name: "requested", Do: publish, As: carol, JSON: `{"note":"Add a test.","reviewer_state":"requested_changes"}`, Status: 204},
			{Name: "they are a reviewer", Do: "GET " + at + "/reviewers", Status: 200, Want: `[{"user":{"username":"carol"},"state":"requested_changes"}]`},
			{Name: "blocked", Do: "GET " + at, Status: 200, Want: `{"detailed_merge_status":"requested_changes","merge_status":"can_be_merged"}`},
			{Name: "in lists", Do: fmt.Sprintf("GET /projects/%d/merge_requests", id), Status: 200, Want: `[{"detailed_merge_status":"requested_changes"}]`},
			{Name: "not merged", Do: "PUT " + at + "/merge", As: alice, Status: 405},
			{Name: "another review does not lift it", Do: publish, As: carol, JSON: `{"reviewer_state":"reviewed"}`, Status: 204},
			{Name: "nor does the removal of the reviewer", Do: "PUT " + at, As: alice, JSON: `{"reviewer_ids":[]}`, Status: 200, Want: `{"detailed_merge_status":"requested_changes"}`},
			{Name: "system note", Do: "GET " + at + "/notes?activity_filter=only_activity&sort=asc", Status: 200, Want: `[{"body":"requested changes"},{"body":"removed review request for @carol"}]`},
		})
		ref := project.RefTo(id)
		by, err := s.Users.As(t.Context(), bobID)
		if err != nil {
			t.Fatal(err)
		}
		maintainer, err := s.Users.As(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Merges.BypassChangeRequests(t.Context(), maintainer, ref, 1); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Name: "bypassed", Do: "GET " + at, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`})
		if err := s.Merges.BypassChangeRequests(t.Context(), maintainer, ref, 1); err == nil {
			t.Error("bypassed twice")
		}
		s.Table(t, []apptest.Call{
			{Name: "again", Do: publish, As: carol, JSON: `{"reviewer_state":"requested_changes"}`, Status: 204},
			{Name: "blocked again", Do: "GET " + at, Status: 200, Want: `{"detailed_merge_status":"requested_changes"}`},
		})
		if err := s.Merges.RequestReview(t.Context(), by, ref, 1, carolID); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Name: "another review is requested", Do: "GET " + at + "/reviewers", Status: 200, Want: `[{"state":"unreviewed"}]`})
		s.Check(t, apptest.Call{Name: "still blocked", Do: "GET " + at, Status: 200, Want: `{"detailed_merge_status":"requested_changes"}`})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /users/%d", carolID), As: root, Status: 204})
		becomes(t, s, apptest.Call{Name: "the reviewer is gone", Do: "GET " + at, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`})
		s.Check(t, apptest.Call{Do: "PUT " + at + "/merge", As: alice, Status: 200, Want: `{"state":"merged"}`})
	})
}

// TestDraftReplyToInternalNote checks that a draft reply to an internal thread stays
// internal when the thread has been deleted, and that users who can no longer read
// the thread cannot publish it.
func TestDraftReplyToInternalNote(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		carolID, carol := s.User(t, "carol")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		enlist(t, s, id, carolID, project.Developer)
		at := proposed(t, s, alice, id, "work", "")
		var note struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"SECRET question","internal":true}`, Status: 201}).JSON(t, &note)
		var threads []struct {
			ID    string
			Notes []struct{ ID int64 }
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/discussions", As: alice, Status: 200}).JSON(t, &threads)
		var thread string
		for _, d := range threads {
			if d.Notes[0].ID == note.ID {
				thread = d.ID
			}
		}
		reply := apptest.Call{Do: "POST " + at + "/draft_notes", As: carol, JSON: fmt.Sprintf(`{"note":"SECRET answer","in_reply_to_discussion_id":%q}`, thread), Status: 201}
		other := apptest.Call{Do: "POST " + at + "/draft_notes", As: carol, JSON: `{"note":"Looks good"}`, Status: 201}
		publish := "POST " + at + "/draft_notes/bulk_publish"
		secret := []string{"SECRET"}
		s.Table(t, []apptest.Call{
			reply, other,
			{Name: "published in the thread", Do: publish, As: carol, Status: 204},
			{Name: "readers", Do: "GET " + at + "/notes", Status: 200, Not: secret},
		})
		var d struct{ Notes []struct{ ID int64 } }
		s.Check(t, apptest.Call{Do: "GET " + at + "/discussions/" + thread, As: carol, Status: 200, Want: `{"notes":[{"internal":true},{"internal":true}]}`}).JSON(t, &d)
		s.Table(t, []apptest.Call{reply, other})
		for _, n := range d.Notes {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/notes/%d", at, n.ID), As: alice, Status: 204})
		}
		s.Table(t, []apptest.Call{
			{Name: "published without the thread", Do: publish, As: carol, Status: 204},
			{Name: "readers", Do: "GET " + at + "/notes?activity_filter=only_comments", Status: 200, Want: `[{"body":"Looks good"},{"body":"Looks good"}]`, Not: secret},
			{Name: "members", Do: "GET " + at + "/notes?activity_filter=only_comments&sort=asc", As: alice, Status: 200, Want: `[{"body":"Looks good"},{"body":"SECRET answer","internal":true},{"body":"Looks good"}]`},
			{Name: "another internal note", Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"SECRET again","internal":true}`, Status: 201},
		})
		s.Check(t, apptest.Call{Do: "GET " + at + "/discussions", As: alice, Status: 200}).JSON(t, &threads)
		reply.JSON = fmt.Sprintf(`{"note":"SECRET too","in_reply_to_discussion_id":%q}`, threads[len(threads)-1].ID)
		s.Table(t, []apptest.Call{
			reply, other,
			{Name: "a former member", Do: fmt.Sprintf("DELETE /projects/%d/members/%d", id, carolID), As: alice, Status: 204},
			{Name: "is refused", Do: publish, As: carol, Status: 403},
			{Name: "readers", Do: "GET " + at + "/notes", Status: 200, Not: secret},
			{Name: "discard", Do: "GET " + at + "/draft_notes", As: carol, Status: 200, Want: `[{"note":"SECRET too"},{"note":"Looks good"}]`},
		})
	})
}
