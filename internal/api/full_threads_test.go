package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

// TestFullThreads replies to threads until they have the maximum number of notes,
// which is limited because a thread is read as a whole.
func TestFullThreads(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, _ := codeProject(t, s, alice, "code", gittest.Commit{Changes: file("a", "one\n")})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"Talk"}`, Status: 201})
		const notes = `project_id, noteable_type, noteable_id, noteable_iid, discussion_id, type, author_id, created_at, updated_at, body`
		const comments = `project_id, sha, author_id, note, created_at, discussion_id, thread, updated_at`
		for at, copies := range map[string]string{
			"/issues/1":                `INSERT INTO notes (` + notes + `) SELECT ` + notes + ` FROM notes WHERE discussion_id = ? ORDER BY id LIMIT ?`,
			"/repository/commits/main": `INSERT INTO commit_comments (` + comments + `) SELECT ` + comments + ` FROM commit_comments WHERE discussion_id = ? ORDER BY id LIMIT ?`,
		} {
			all := fmt.Sprintf("/projects/%d%s/discussions", id, at)
			var d struct{ ID string }
			s.Check(t, apptest.Call{Do: "POST " + all, As: alice, JSON: `{"body":"first"}`, Status: 201}).JSON(t, &d)
			for have := 1; have < 499; {
				n := min(have, 499-have)
				if _, err := s.DB.ExecContext(t.Context(), copies, d.ID, n); err != nil {
					t.Fatal(err)
				}
				have += n
			}
			s.Table(t, []apptest.Call{
				{Name: "last" + at, Do: "POST " + all + "/" + d.ID + "/notes", As: alice, JSON: `{"body":"last"}`, Status: 201},
				{Name: "full" + at, Do: "POST " + all + "/" + d.ID + "/notes", As: alice, JSON: `{"body":"more"}`, Status: 400,
					Want: `{"message":"400 Bad request - A thread can have at most 500 comments. Start a new thread."}`},
				{Name: "another" + at, Do: "POST " + all, As: alice, JSON: `{"body":"more"}`, Status: 201},
			})
		}
	})
}
