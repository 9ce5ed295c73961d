package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// TestAwards adds, lists and removes emoji reactions to issues, merge requests,
// snippets and comments on them.
func TestAwards(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, carol := s.User(t, "carol")
		p := newProject(t, s, alice, "p", `,"visibility":"private","initialize_with_readme":true`)
		enlist(t, s, p, bobID, project.Developer)
		at := fmt.Sprintf("/projects/%d", p)
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/branches", As: alice, JSON: `{"branch":"b","ref":"main"}`, Status: 201})
		made(t, s, alice, "POST "+at+"/issues", `{"title":"one"}`)
		made(t, s, alice, "POST "+at+"/merge_requests", `{"title":"one","source_branch":"b","target_branch":"main"}`)
		snippet := made(t, s, alice, "POST "+at+"/snippets", `{"title":"s","content":"x"}`)
		for kind, one := range map[string]string{
			"Issue": at + "/issues/1", "MergeRequest": at + "/merge_requests/1", "Snippet": fmt.Sprintf("%s/snippets/%d", at, snippet),
		} {
			note := made(t, s, bob, "POST "+one+"/notes", `{"body":"hello"}`)
			on := fmt.Sprintf("%s/notes/%d", one, note)
			id := made(t, s, bob, "POST "+one+"/award_emoji", `{"name":"thumbsup"}`)
			onNote := made(t, s, alice, "POST "+on+"/award_emoji", `{"name":"tada"}`)
			s.Table(t, []apptest.Call{
				{Name: kind + " list", Do: "GET " + one + "/award_emoji", As: bob, Status: 200, Want: fmt.Sprintf(
					`[{"id":%d,"name":"thumbsup","user":{"id":%d,"username":"bob"},"awardable_type":%q,"awardable_id":"<any>","created_at":"<any>","url":null}]`, id, bobID, kind)},
				{Name: kind + " get", Do: fmt.Sprintf("GET %s/award_emoji/%d", one, id), As: alice, Status: 200, Want: `{"name":"thumbsup"}`},
				{Name: kind + " not of the note", Do: fmt.Sprintf("GET %s/award_emoji/%d", on, id), As: alice, Status: 404},
				{Name: kind + " alias", Do: "POST " + one + "/award_emoji", As: alice, JSON: `{"name":"-1"}`, Status: 201, Want: `{"name":"thumbsdown"}`},
				{Name: kind + " twice", Do: "POST " + one + "/award_emoji", As: bob, JSON: `{"name":"+1"}`, Status: 404,
					Want: `{"message":"404 Award Emoji Name has already been taken Not Found"}`},
				{Name: kind + " unknown", Do: "POST " + one + "/award_emoji", As: bob, JSON: `{"name":"nonsense"}`, Status: 404},
				{Name: kind + " nothing", Do: "POST " + one + "/award_emoji", As: bob, JSON: `{}`, Status: 400},
				{Name: kind + " stranger", Do: "POST " + one + "/award_emoji", As: carol, JSON: `{"name":"tada"}`, Status: 404},
				{Name: kind + " stranger reads", Do: "GET " + one + "/award_emoji", As: carol, Status: 404},
				{Name: kind + " note", Do: "GET " + on + "/award_emoji", As: bob, Status: 200, Want: fmt.Sprintf(
					`[{"id":%d,"name":"tada","user":{"id":%d},"awardable_type":"Note","awardable_id":%d}]`, onNote, aliceID, note)},
				{Name: kind + " note get", Do: fmt.Sprintf("GET %s/award_emoji/%d", on, onNote), As: bob, Status: 200, Want: `{"name":"tada"}`},
				{Name: kind + " of others", Do: fmt.Sprintf("DELETE %s/award_emoji/%d", on, onNote), As: bob, Status: 401},
				{Name: kind + " own", Do: fmt.Sprintf("DELETE %s/award_emoji/%d", on, onNote), As: alice, Status: 204},
				{Name: kind + " gone", Do: "GET " + on + "/award_emoji", As: bob, Status: 200, Want: `[]`},
				{Name: kind + " by an administrator", Do: fmt.Sprintf("DELETE %s/award_emoji/%d", one, id), As: root, Status: 204},
				{Name: kind + " locked number", Do: "GET " + one + "/award_emoji/x", As: bob, Status: 400},
			})
		}
		var notes []struct {
			ID     int64
			System bool
		}
		s.Check(t, apptest.Call{Do: "PUT " + at + "/issues/1", As: alice, JSON: `{"title":"two"}`, Status: 200})
		s.Check(t, apptest.Call{Do: "GET " + at + "/issues/1/notes?activity_filter=only_activity", As: alice, Status: 200}).JSON(t, &notes)
		s.Table(t, []apptest.Call{
			{Name: "system note", Do: fmt.Sprintf("POST %s/issues/1/notes/%d/award_emoji", at, notes[0].ID), As: alice, JSON: `{"name":"tada"}`, Status: 404},
			{Do: "PUT " + at + "/issues/1", As: alice, JSON: `{"discussion_locked":true}`, Status: 200},
			{Name: "a member of a locked discussion", Do: "POST " + at + "/issues/1/award_emoji", As: bob, JSON: `{"name":"tada"}`, Status: 201},
		})
	})
}

// TestVotes checks the numbers of votes, the order by popularity and the filter by
// the caller's reaction.
func TestVotes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		p := newProject(t, s, alice, "p", `,"visibility":"public","initialize_with_readme":true`)
		at := fmt.Sprintf("/projects/%d", p)
		for _, branch := range []string{"b1", "b2"} {
			s.Check(t, apptest.Call{Do: "POST " + at + "/repository/branches", As: alice, JSON: fmt.Sprintf(`{"branch":%q,"ref":"main"}`, branch), Status: 201})
			made(t, s, alice, "POST "+at+"/merge_requests", fmt.Sprintf(`{"title":%q,"source_branch":%q,"target_branch":"main"}`, branch, branch))
		}
		made(t, s, alice, "POST "+at+"/issues", `{"title":"one"}`)
		made(t, s, alice, "POST "+at+"/issues", `{"title":"two"}`)
		for _, kind := range []string{"issues", "merge_requests"} {
			list := at + "/" + kind
			vote := made(t, s, bob, "POST "+list+"/1/award_emoji", `{"name":"thumbsup"}`)
			made(t, s, alice, "POST "+list+"/1/award_emoji", `{"name":"thumbsup"}`)
			made(t, s, bob, "POST "+list+"/2/award_emoji", `{"name":"thumbsdown"}`)
			made(t, s, alice, "POST "+list+"/2/award_emoji", `{"name":"rocket"}`)
			s.Table(t, []apptest.Call{
				{Do: "GET " + list + "/1", As: bob, Status: 200, Want: `{"upvotes":2,"downvotes":0}`},
				{Do: "GET " + list + "?order_by=popularity", As: bob, Status: 200, Want: `[{"iid":1,"upvotes":2},{"iid":2,"downvotes":1}]`},
				{Do: "GET " + list + "?order_by=popularity&sort=asc", As: bob, Status: 200, Want: `[{"iid":2},{"iid":1}]`},
				{Do: "GET " + list + "?my_reaction_emoji=thumbsup", As: bob, Status: 200, Want: `[{"iid":1}]`},
				{Do: "GET " + list + "?my_reaction_emoji=%2B1", As: bob, Status: 200, Want: `[{"iid":1}]`},
				{Do: "GET " + list + "?my_reaction_emoji=rocket", As: bob, Status: 200, Want: `[]`},
				{Do: "GET " + list + "?my_reaction_emoji=Any", As: alice, Status: 200, Want: `[{"iid":2},{"iid":1}]`},
				{Do: "GET " + list + "?my_reaction_emoji=None", As: alice, Status: 200, Want: `[]`},
				{Do: "GET " + list + "?not[my_reaction_emoji]=rocket", As: alice, Status: 200, Want: `[{"iid":1}]`},
				{Do: "GET " + list + "?my_reaction_emoji=thumbsup", Status: 200, Want: `[]`},
				{Do: fmt.Sprintf("DELETE %s/1/award_emoji/%d", list, vote), As: bob, Status: 204},
				{Do: "GET " + list + "/1", As: bob, Status: 200, Want: `{"upvotes":1}`},
			})
		}
		// The votes of a user are deleted with the account.
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /users/%d", bobID), As: root, Status: 204})
		s.Settled(t)
		s.Check(t, apptest.Call{Do: "GET " + at + "/issues/2", As: alice, Status: 200, Want: `{"upvotes":0,"downvotes":0}`})
	})
}
