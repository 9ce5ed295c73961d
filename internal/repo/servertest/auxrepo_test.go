package servertest

import (
	"context"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/repo"
)

// TestAuxRepoOvertaken records a push while the owner of the auxiliary repository processes an
// earlier one: the outdated result of the earlier one must not be stored.
func TestAuxRepoOvertaken(t *testing.T) {
	t.Parallel()
	t.Run("files", func(t *testing.T) { apptest.Each(t, overtake) })
	t.Run("database", func(t *testing.T) { apptest.Each(t, overtake, apptest.InBucket) })
}

func overtake(t *testing.T, s *apptest.Server) {
	const kind = repo.AuxRepoKind("probe")
	tip := func(ctx context.Context, r git.Repo) string {
		t.Helper()
		ref, err := r.Ref(ctx, git.Heads+repo.UsualBranch)
		if err != nil {
			t.Fatal(err)
		}
		return string(ref.Target)
	}
	recorded, looks := "", 0
	meanwhile := func() {}
	s.Repos.OwnAuxRepos(kind, repo.AuxRepoOwner{
		Open:  func(context.Context, actor.Actor, string, bool) (*repo.AuxRepo, bool, error) { return nil, false, nil },
		Check: func(context.Context, *repo.AuxRepo, *git.Push) error { return nil },
		Follow: func(ctx context.Context, p repo.AuxRepoPush) (func(context.Context, *db.Tx) error, error) {
			looks++
			saw := string(p.Tip)
			do := meanwhile
			meanwhile = func() {}
			do()
			return func(context.Context, *db.Tx) error {
				recorded = saw
				return nil
			}, nil
		},
	})
	a := &repo.AuxRepo{Kind: kind}
	if err := s.DB.Tx(t.Context(), func(tx *db.Tx) error { return s.Repos.AddAuxRepo(t.Context(), tx, a) }); err != nil {
		t.Fatal(err)
	}
	commit := func(path string) {
		t.Helper()
		by := actor.Actor{ID: 1, Username: "root", Name: "Root", Email: "root@example.org"}
		err := s.Repos.CommitAuxRepo(t.Context(), by, a, repo.AuxRepoCommit{Message: path, Actions: func(context.Context, git.Repo, string) ([]git.Action, error) {
			return []git.Action{{Kind: git.Create, Path: path, Content: []byte(path)}}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	meanwhile = func() { commit("second") }
	commit("first")
	r, err := s.Repos.OpenAuxRepo(a)
	if err != nil {
		t.Fatal(err)
	}
	if now := tip(t.Context(), r); recorded != now || looks != 3 {
		t.Errorf("recorded is %s after %d looks, the branch is at %s", recorded, looks, now)
	}
	var left int
	if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM annex_pushes`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d pushes are under way still: %v", left, err)
	}
}
