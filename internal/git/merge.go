package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// MergeConflict says which files two sides changed in ways that do not go
// together. It is an ErrConflict.
type MergeConflict struct{ Paths []string }

// Error returns the text for the log.
func (m *MergeConflict) Error() string { return fmt.Sprintf("conflict in %.500q", m.Paths) }

// Unwrap returns ErrConflict.
func (m *MergeConflict) Unwrap() error { return ErrConflict }

// ErrNothing says that a pick or revert would change nothing.
var ErrNothing = errors.New("nothing to change")

// MergeOptions is a commit that is to be made of two others. No one sees it
// before UpdateRefs.
type MergeOptions struct {
	Ours      string // the branch that goes on
	Theirs    string // what is merged, picked or reverted
	Mainline  int    // of a merge that is picked or reverted, which parent it is compared with, from 1
	Author    Signature
	Committer Signature
	Message   string
}

// Merge makes a merge commit of two histories. It returns ErrNotFound, a
// *MergeConflict, and ErrNothing when Theirs is part of Ours already.
func (r Repo) Merge(ctx context.Context, o MergeOptions) (*Commit, error) {
	ours, err := r.ResolveCommit(ctx, o.Ours)
	if err != nil {
		return nil, err
	}
	theirs, err := r.ResolveCommit(ctx, o.Theirs)
	if err != nil {
		return nil, err
	}
	if is, err := r.IsAncestor(ctx, string(theirs), string(ours)); err != nil || is {
		return nil, errors.Join(err, onlyIf(is, ErrNothing))
	}
	commit := &Commit{ParentIDs: []OID{ours, theirs}, Author: o.Author, Committer: o.Committer, Message: o.Message}
	return r.commitWith(ctx, commit, (*quarantine).hasSpecial, func(q *quarantine) (OID, error) { return q.mergeTree(ctx, ours, theirs) })
}

// Squash makes a commit on top of Ours with all that Theirs changed since their
// histories went apart. It returns what Merge does.
func (r Repo) Squash(ctx context.Context, o MergeOptions) (*Commit, error) {
	ids, err := r.resolveAll(ctx, []string{o.Ours, o.Theirs})
	if err != nil {
		return nil, err
	}
	ours, err := r.commit(ctx, OID(ids[0]))
	if err != nil {
		return nil, err
	}
	commit := &Commit{ParentIDs: []OID{ours.ID}, Author: o.Author, Committer: o.Committer, Message: o.Message}
	return r.commitWith(ctx, commit, (*quarantine).hasSpecial, func(q *quarantine) (OID, error) {
		tree, err := q.mergeTree(ctx, ours.ID, OID(ids[1]))
		if err == nil && tree == ours.TreeID {
			err = ErrNothing
		}
		return tree, err
	})
}

func onlyIf(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

// CanMerge says whether Merge would find no conflict; it leaves nothing
// behind. It returns what Merge returns.
func (r Repo) CanMerge(ctx context.Context, ours, theirs string) error {
	ids, err := r.resolveAll(ctx, []string{ours, theirs})
	if err != nil {
		return err
	}
	q, err := r.newQuarantine()
	if err != nil {
		return err
	}
	defer q.discard()
	_, err = q.mergeTree(ctx, OID(ids[0]), OID(ids[1]))
	return err
}

// CherryPick makes a commit on top of Ours with the change that Theirs made to
// its parent. It returns ErrNotFound, also for a Mainline that does not fit, a
// *MergeConflict, and ErrNothing.
func (r Repo) CherryPick(ctx context.Context, o MergeOptions) (*Commit, error) {
	return r.pick(ctx, o, false)
}

// Revert makes a commit on top of Ours that undoes the change that Theirs made
// to its parent. It returns what CherryPick does.
func (r Repo) Revert(ctx context.Context, o MergeOptions) (*Commit, error) {
	return r.pick(ctx, o, true)
}

// pick merges three trees: what the picked commit was made from is the base.
func (r Repo) pick(ctx context.Context, o MergeOptions, undo bool) (*Commit, error) {
	ours, err := r.Commit(ctx, o.Ours)
	if err != nil {
		return nil, err
	}
	theirs, err := r.Commit(ctx, o.Theirs)
	if err != nil {
		return nil, err
	}
	before, err := r.mainline(ctx, theirs, o.Mainline)
	if err != nil {
		return nil, err
	}
	base, side := before, theirs.TreeID
	if undo {
		base, side = side, base
	}
	commit := &Commit{ParentIDs: []OID{ours.ID}, Author: o.Author, Committer: o.Committer, Message: o.Message}
	return r.commitWith(ctx, commit, (*quarantine).hasSpecial, func(q *quarantine) (OID, error) {
		tree, err := q.mergeTrees(ctx, base, ours.TreeID, side)
		if err == nil && tree == ours.TreeID {
			err = ErrNothing
		}
		return tree, err
	})
}

// mainline is the tree that a commit is compared with.
func (r Repo) mainline(ctx context.Context, c *Commit, number int) (OID, error) {
	switch n := len(c.ParentIDs); {
	case n == 0 && number == 0:
		return EmptyTree, nil
	case n == 1 && number <= 1:
		number = 1
	case n > 1 && number == 0:
		return "", fmt.Errorf("commit %s is a merge: %w", c.ID, ErrNotFound)
	case number < 1 || number > n:
		return "", fmt.Errorf("commit %s has no parent %d: %w", c.ID, number, ErrNotFound)
	}
	parent, err := r.commit(ctx, c.ParentIDs[number-1])
	if err != nil {
		return "", err
	}
	return parent.TreeID, nil
}

// mergeTrees merges two trees with a common base. Git 2.39 has no option for a
// base, so it gets temporary commits with that history.
func (q *quarantine) mergeTrees(ctx context.Context, base, ours, theirs OID) (OID, error) {
	if slices.Contains([]OID{base, ours, theirs}, EmptyTree) {
		if _, err := q.write(TypeTree, nil); err != nil {
			return "", err
		}
	}
	var made []OID
	commit := func(tree OID, parents ...OID) (OID, error) {
		id, err := q.write(TypeCommit, encodeCommit(&Commit{TreeID: tree, ParentIDs: parents, Message: fmt.Sprint(len(made))}))
		made = append(made, id)
		return id, err
	}
	start, err := commit(base)
	if err != nil {
		return "", err
	}
	a, err := commit(ours, start)
	if err != nil {
		return "", err
	}
	b, err := commit(theirs, start)
	if err != nil {
		return "", err
	}
	tree, err := q.mergeTree(ctx, a, b)
	for _, id := range made {
		q.remove(id)
	}
	return tree, err
}

// mergeTree merges two commits into a tree.
func (q *quarantine) mergeTree(ctx context.Context, ours, theirs OID) (OID, error) {
	args := []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", string(ours), string(theirs)}
	var out strings.Builder
	err := q.repo.run(ctx, command{work: writing, args: args, env: q.env()}, func(p io.Reader) error {
		_, err := io.Copy(&out, io.LimitReader(p, 1<<20))
		return err
	})
	field := strings.Split(out.String(), "\x00")
	var failure *Error
	if errors.As(err, &failure) && failure.Exit == 1 {
		paths := slices.DeleteFunc(field[1:], func(s string) bool { return s == "" })
		return "", &MergeConflict{Paths: slices.Compact(paths)}
	}
	if err != nil {
		return "", err
	}
	tree, ok := ParseOID(field[0])
	if !ok {
		return "", fmt.Errorf("git merge-tree: answer %.100q", field[0])
	}
	return tree, nil
}
