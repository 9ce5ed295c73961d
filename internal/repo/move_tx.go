package repo

import (
	"context"
	"errors"
	"slices"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/git/refstore"
)

// inTx is called in the transaction of a push, with the default branch and whether it exists
// after the update.
type inTx = func(ctx context.Context, tx *db.Tx, branch string, exists bool) error

// txStore is a store of refs that are in the database, so that a push is one transaction: its
// refs, its objects, its event and its background jobs. It needs no row while it is in
// progress, and nothing has to be settled after a crash. UpdateIn is Update that also calls what
// prepare returns within its transaction. It calls prepare after the objects were stored, and
// again with the error if the transaction failed, until prepare returns an error.
type txStore interface {
	refstore.Store
	UpdateIn(ctx context.Context, mark string, updates []git.Update, prepare func(ctx context.Context, last error) (inTx, error)) error
}

// inDatabase returns the refs of a repository if they are in the database, otherwise nil.
func inDatabase(r git.Repo) txStore {
	refs, _ := r.RefStore().(txStore)
	return refs
}

// maxMoveTries is the maximum number of attempts of a push that other pushes overtake.
const maxMoveTries = 50

// mover returns a function that updates refs and records the push in one transaction, with the
// function that prepare returns; nil if the refs are not in the database. The errors are those of
// git.Repo.UpdateRefs; Unavailable while the repository is being moved, Conflict if it was moved
// since it was opened.
func mover(r git.Repo, prepare func(ctx context.Context, refs txStore, j journal) (inTx, error)) func(context.Context, journal) error {
	refs := inDatabase(r)
	if refs == nil {
		return nil
	}
	return func(ctx context.Context, j journal) error {
		tries := 0
		err := refs.UpdateIn(ctx, j.Mark, j.updates(), func(ctx context.Context, last error) (inTx, error) {
			if tries++; last != nil && (tries > maxMoveTries || !errors.Is(last, errOvertaken)) {
				return nil, last
			}
			return prepare(ctx, refs, j)
		})
		if err == nil || errors.Is(err, git.ErrConflict) || errors.Is(err, git.ErrNotFound) {
			return err
		}
		// The connection to the database may have been lost after the commit.
		if came, failed := landed(ctx, r, j); failed == nil && len(came.Changes) == len(j.Changes) {
			return nil
		}
		return err
	}
}

// prepare returns the function that records a push. It returns errOvertaken if another push was
// recorded since.
func (t projectTarget) prepare(ctx context.Context, refs txStore, j journal) (inTx, error) {
	at, err := headAfter(ctx, refs, j.updates())
	if err != nil {
		return nil, err
	}
	changes := slices.Clone(j.Changes) // the number of commits is set there
	rec, err := t.s.describe(ctx, t.repo, at, Push{Project: t.p, By: t.by, Changes: changes, Options: j.Options, About: j.About, At: t.s.Now()})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *db.Tx, branch string, exists bool) error {
		if !at.is(branch, exists) {
			return errOvertaken
		}
		if err := lockWritable(ctx, tx, "projects", t.p.ID, t.p.Storage); err != nil {
			return err
		}
		if err := recordFor(ctx, tx, t.p.ID, 0, 0, j.Changes, rec.push.At); err != nil {
			return err
		}
		return t.s.insert(ctx, tx, rec)
	}, nil
}

// prepare returns the function that records a push, as that for projects does.
func (t auxRepoTarget) prepare(ctx context.Context, refs txStore, j journal) (inTx, error) {
	pushes, err := auxRepoPushes(ctx, t.s.DB, t.a.ID)
	if err != nil {
		return nil, db.NotFound(err, "Repository")
	}
	at, err := headAfter(ctx, refs, j.updates())
	if err != nil {
		return nil, err
	}
	now := t.s.Now()
	record, err := t.follow(ctx, at, j, now)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *db.Tx, branch string, exists bool) error {
		if !at.is(branch, exists) {
			return errOvertaken
		}
		if err := lockWritable(ctx, tx, "annexes", t.a.ID, t.a.Storage); err != nil {
			return err
		}
		if err := recordFor(ctx, tx, 0, t.a.ID, 0, j.Changes, now); err != nil {
			return err
		}
		return t.insert(ctx, tx, pushes, now, record)
	}, nil
}

// updates returns the updates of the changes.
func (j journal) updates() []git.Update {
	list := make([]git.Update, len(j.Changes))
	for i, c := range j.Changes {
		list[i] = git.Update{Ref: c.Ref, Old: c.Old, New: c.New}
	}
	return list
}

// is reports whether the default branch is the given one, and exists.
func (h head) is(branch string, exists bool) bool {
	return h.branch == branch && (h.tip != "") == exists
}

// checkWritable is lockWritable without a lock: the answer may change.
func (s *Service) checkWritable(ctx context.Context, table string, id int64, storage string) error {
	at, err := findPlace(ctx, s.DB, table, id)
	if err != nil {
		return db.NotFound(err, "Repository")
	}
	return at.writable(storage)
}

// lockWritable locks the row of a project or an auxiliary repository. Unavailable while the
// repository is being moved, Conflict if it is no longer on a storage.
func lockWritable(ctx context.Context, tx *db.Tx, table string, id int64, storage string) error {
	at, err := lockPlace(ctx, tx, table, id)
	if err != nil {
		return db.NotFound(err, "Repository")
	}
	return at.writable(storage)
}

func (at place) writable(storage string) error {
	if err := at.checkWritable(); err != nil {
		return err
	}
	if at.storage != storage {
		return errs.Conflict(movedMessage)
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
