package servertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/git/gittest"
	"svc/internal/repo"
)

// TestPushIsOneTransaction pushes to a storage with refs in the database: a push that cannot be
// recorded moves nothing, and can be repeated.
func TestPushIsOneTransaction(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		var broken atomic.Bool
		var pushes atomic.Int64
		s.Repos.Events.Pushed.Subscribe(func(context.Context, *db.Tx, repo.Push) error {
			if broken.Load() {
				return errors.New("it cannot be recorded")
			}
			pushes.Add(1)
			return nil
		})
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"name":"p"}`, Status: 201}).JSON(t, &made)
		at := fmt.Sprintf("/projects/%d", made.ID)
		work := newClone(t, s, alice, "alice/p")
		work.git("checkout", "-q", "-b", "topic")
		work.commit("README", "one", "one")
		work.git("branch", "other")
		work.git("tag", "v1")

		broken.Store(true)
		work.push("failed to update ref", "topic", "v1")
		if refs := s.Send(t, apptest.Call{Do: "GET " + at + "/repository/branches", As: alice}); refs.Status == http.StatusOK && string(refs.Body) != "[]" {
			t.Errorf("a branch of a push that was not recorded: %s", refs.Body)
		}
		s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200, Want: `{"empty_repo":true}`})
		broken.Store(false)
		// The first push chooses the default branch, and counts its commits.
		work.push("", "topic", "other", "v1")
		s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200, Want: `{"empty_repo":false,"default_branch":"other"}`})
		work.commit("a", "two", "two")
		work.commit("b", "three", "three")
		work.push("", "topic")
		s.Check(t, apptest.Call{Do: "GET " + at + "/events?action=pushed&per_page=1", As: alice, Status: 200, Want: `[{"push_data":{"commit_count":2,"ref":"topic","commit_title":"three"}}]`})
		tip := gittest.Run(t, work.dir, "rev-parse", "topic")

		broken.Store(true)
		commit := `{"branch":"topic","commit_message":"x","actions":[{"action":"create","file_path":"x","content":"x"}]}`
		if r := s.Send(t, apptest.Call{Do: "POST " + at + "/repository/commits", As: alice, JSON: commit}); r.Status != http.StatusInternalServerError {
			t.Errorf("a commit that cannot be recorded: %d %s", r.Status, r.Body)
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/branches/topic", As: alice, Status: 200, Want: fmt.Sprintf(`{"commit":{"id":%q}}`, tip)})
		broken.Store(false)
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/commits", As: alice, JSON: commit, Status: 201})
		// One of two branches conflicts: the other one is updated.
		work.commit("c", "four", "four")
		work.git("branch", "-f", "other", "topic")
		work.push("rejected", "topic", "other")
		s.Check(t, apptest.Call{Do: "GET " + at + "/repository/branches/other", As: alice, Status: 200, Want: `{"commit":{"title":"four"}}`})
		if n := pushes.Load(); n != 4 {
			t.Errorf("%d pushes were recorded, want 4", n)
		}
	}, apptest.InBucket)
}
