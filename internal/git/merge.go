package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"svc/internal/git/object"
)

// MergeConflict lists the files with merge conflicts. It wraps ErrConflict.
type MergeConflict struct{ Paths []string }

func (m *MergeConflict) Error() string { return fmt.Sprintf("conflict in %.500q", m.Paths) }

func (m *MergeConflict) Unwrap() error { return ErrConflict }

// ErrNothing means that there is nothing to commit.
var ErrNothing = errors.New("nothing to change")

// MergeOptions describes a new commit made from two others. It is not reachable
// before UpdateRefs.
type MergeOptions struct {
	Ours      string // the commit to build on
	Theirs    string // the commit to merge, cherry-pick or revert
	Mainline  int    // parent number, from 1, if a merge commit is cherry-picked or reverted
	Author    Signature
	Committer Signature
	Message   string
}

// Merge creates a merge commit. It returns ErrNotFound, a *MergeConflict, and
// ErrNothing if Theirs is an ancestor of Ours.
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
		return nil, errors.Join(err, errIf(is, ErrNothing))
	}
	commit := &Commit{ParentIDs: []OID{ours, theirs}, Author: o.Author, Committer: o.Committer, Message: o.Message}
	return r.commitWith(ctx, commit, (*quarantine).hasSpecial, func(q *quarantine) (OID, error) { return q.mergeTree(ctx, ours, theirs) })
}

// Squash creates a commit on top of Ours with all changes of Theirs since the
// merge base. It returns the errors of Merge.
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

func errIf(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

// CanMerge returns the error that Merge would return, without creating objects.
func (r Repo) CanMerge(ctx context.Context, ours, theirs string) (err error) {
	ids, err := r.resolveAll(ctx, []string{ours, theirs})
	if err != nil {
		return err
	}
	q, err := r.newQuarantine(ctx)
	if err != nil {
		return err
	}
	defer q.discard()
	defer q.cause(ctx, &err)
	_, err = q.mergeTree(ctx, OID(ids[0]), OID(ids[1]))
	return err
}

// CherryPick creates a commit on top of Ours with the change of Theirs. It returns
// ErrNotFound, also for an invalid Mainline, a *MergeConflict, and ErrNothing.
func (r Repo) CherryPick(ctx context.Context, o MergeOptions) (*Commit, error) {
	return r.pick(ctx, o, false)
}

// Revert creates a commit on top of Ours that undoes the change of Theirs. It
// returns the errors of CherryPick.
func (r Repo) Revert(ctx context.Context, o MergeOptions) (*Commit, error) {
	return r.pick(ctx, o, true)
}

// pick does a three-way merge with the parent of the picked commit as the base, or
// the reverse for a revert.
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

// mainline returns the tree of the parent that a commit is compared with.
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

// mergeTrees does a three-way merge of trees. Git 2.39 has no --merge-base option,
// so temporary commits provide the history.
func (q *quarantine) mergeTrees(ctx context.Context, base, ours, theirs OID) (OID, error) {
	if slices.Contains([]OID{base, ours, theirs}, EmptyTree) {
		if _, err := q.write(TypeTree, nil); err != nil {
			return "", err
		}
	}
	var commits []OID
	addCommit := func(tree OID, parents ...OID) (OID, error) {
		id, err := q.write(TypeCommit, object.EncodeCommit(&Commit{TreeID: tree, ParentIDs: parents, Message: fmt.Sprint(len(commits))}))
		commits = append(commits, id)
		return id, err
	}
	start, err := addCommit(base)
	if err != nil {
		return "", err
	}
	a, err := addCommit(ours, start)
	if err != nil {
		return "", err
	}
	b, err := addCommit(theirs, start)
	if err != nil {
		return "", err
	}
	tree, err := q.mergeTree(ctx, a, b)
	for _, id := range commits {
		q.remove(id)
	}
	return tree, err
}

// mergeTree merges two commits and returns the tree.
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
		return "", fmt.Errorf("git merge-tree: output %.100q", field[0])
	}
	return tree, nil
}
