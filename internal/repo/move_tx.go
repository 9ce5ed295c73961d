package repo

import (
	"context"
	"errors"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/git/refstore"
	"svc/internal/project"
)

// txStore is a store of refs that are in the database, so that a push is one transaction: its
// refs, its objects, its event and its background jobs. It needs no row while it is in
// progress, and nothing has to be settled after a crash.
type txStore interface {
	refstore.Store
	UpdateIn(ctx context.Context, mark string, updates []git.Update, in func(ctx context.Context, tx *db.Tx, branch string, exists bool) error) error
}

// inDatabase returns the refs of a repository if they are in the database, otherwise nil.
func inDatabase(r git.Repo) txStore {
	refs, _ := r.RefStore().(txStore)
	return refs
}

// errOtherBranch undoes an update: the default branch is not the one that was expected.
var errOtherBranch = errors.New("the default branch changed meanwhile")

// maxMoveTries is the maximum number of attempts of moveInTx. Another default branch is rare.
const maxMoveTries = 10

// moveInTx updates refs and records the push in one transaction. The errors are those of
// git.Repo.UpdateRefs; Unavailable while the repository is being moved, Conflict if it was
// moved since p was read.
func (s *Service) moveInTx(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, refs txStore, j journal) error {
	updates := make([]git.Update, len(j.Changes))
	for i, c := range j.Changes {
		updates[i] = git.Update{Ref: c.Ref, Old: c.Old, New: c.New}
	}
	var err error
	for range maxMoveTries {
		if err = s.moveOnce(ctx, by, p, r, refs, j, updates); !errors.Is(err, errOtherBranch) {
			break
		}
	}
	if err == nil || errors.Is(err, git.ErrConflict) || errors.Is(err, git.ErrNotFound) {
		return err
	}
	// The connection to the database may have been lost after the commit.
	if came, failed := landed(ctx, r, j); failed == nil && len(came.Changes) == len(j.Changes) {
		return nil
	}
	return err
}

func (s *Service) moveOnce(ctx context.Context, by actor.Actor, p *project.Project, r git.Repo, refs txStore, j journal, updates []git.Update) error {
	at, err := headAfter(ctx, refs, updates)
	if err != nil {
		return err
	}
	changes := slices.Clone(j.Changes) // the number of commits is set there
	rec, err := s.describe(ctx, r, at, Push{Project: p, By: by, Changes: changes, Options: j.Options, About: j.About, At: s.Now()})
	if err != nil {
		return err
	}
	return refs.UpdateIn(ctx, j.Mark, updates, func(ctx context.Context, tx *db.Tx, branch string, exists bool) error {
		if branch != at.branch || exists != (at.tip != "") {
			return errOtherBranch
		}
		now, err := lockPlace(ctx, tx, "projects", p.ID)
		if err != nil {
			return db.NotFound(err, "Project")
		}
		if err := now.writable(p); err != nil {
			return err
		}
		return s.insert(ctx, tx, rec)
	})
}

// writable returns Unavailable if the repository of a project is being moved, and Conflict if
// it was moved since p was read.
func (at place) writable(p *project.Project) error {
	if at.readOnly {
		return errs.Unavailable(project.BeingMoved).Because(project.ErrMoving)
	}
	if at.storage != p.Storage {
		return errs.Conflict(elsewhere)
	}
	return nil
}

// headAfter returns the default branch after updates.
func headAfter(ctx context.Context, refs refstore.Store, updates []git.Update) (head, error) {
	branch, err := refs.Head(ctx)
	if err != nil {
		return head{}, err
	}
	after := map[string]git.OID{}
	var made []string
	for _, u := range updates {
		after[u.Ref] = u.New
		if u.New != git.ZeroOID {
			made = append(made, u.Ref)
		}
	}
	name := git.Heads + branch
	tip, changed := after[name]
	if !changed {
		if tip, err = refs.First(ctx, []string{name}); err != nil && !errors.Is(err, git.ErrNotFound) {
			return head{}, err
		}
	}
	if tip != "" && tip != git.ZeroOID {
		return head{branch, tip}, nil
	}
	slices.Sort(made)
	if choice := git.ChooseBranch(made); choice != "" {
		return head{choice, after[git.Heads+choice]}, nil
	}
	return head{branch: branch}, nil
}
