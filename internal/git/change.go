package git

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/git/object"
)

// ChangeOptions describes a new commit.
type ChangeOptions struct {
	Parent    string // revision; empty for a root commit
	Actions   []Action
	Author    Signature
	Committer Signature
	Message   string
}

// CommitChanges applies the actions to the tree of the parent, in order, and
// creates a commit. The objects are durable when it returns, but the commit is not
// reachable before UpdateRefs.
//
// It returns ErrBadPath, ErrExists if a file to create exists or a name is taken,
// ErrNotFound if a file or the parent does not exist (each with the path in its
// text), ErrNothing if a submodule already points to the commit, and *Rejected if
// a push of the objects would be rejected.
func (r Repo) CommitChanges(ctx context.Context, o ChangeOptions) (*Commit, error) {
	commit := &Commit{TreeID: EmptyTree, Author: o.Author, Committer: o.Committer, Message: o.Message}
	if o.Parent != "" {
		parent, err := r.Commit(ctx, o.Parent)
		if err != nil {
			return nil, err
		}
		commit.TreeID, commit.ParentIDs = parent.TreeID, []OID{parent.ID}
	}
	changesSpecial := func(*quarantine) (bool, error) {
		return slices.ContainsFunc(o.Actions, func(a Action) bool { return specialPath(a.Path) }), nil
	}
	return r.commitWith(ctx, commit, changesSpecial, func(q *quarantine) (OID, error) {
		e := editor{repo: r, new: q, root: &node{Entry: Entry{OID: commit.TreeID, Type: TypeTree}}}
		for _, a := range o.Actions {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			if err := e.apply(ctx, a); err != nil {
				return "", fmt.Errorf("%s %.200q: %w", a.Kind, a.Path, err)
			}
		}
		return e.save(e.root)
	})
}

// commitWith creates a commit with the tree that build writes. If mustCheck
// returns true, git checks the new objects like those of a push; this takes a
// process.
func (r Repo) commitWith(ctx context.Context, commit *Commit, mustCheck func(*quarantine) (bool, error), build func(*quarantine) (OID, error)) (made *Commit, err error) {
	q, err := r.newQuarantine(ctx)
	if err != nil {
		return nil, err
	}
	defer q.discard()
	defer q.cause(ctx, &err)
	if commit.TreeID, err = build(q); err != nil {
		return nil, err
	}
	if commit.TreeID == EmptyTree { // not all git implementations know the empty tree implicitly
		if _, err := q.write(TypeTree, nil); err != nil {
			return nil, err
		}
	}
	id, err := q.write(TypeCommit, object.EncodeCommit(commit))
	if err != nil {
		return nil, err
	}
	check, err := mustCheck(q)
	if err == nil && check {
		err = q.strict(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := q.migrate(); err != nil {
		return nil, err
	}
	return r.commit(ctx, id)
}
