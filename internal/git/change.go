package git

import (
	"context"
	"fmt"
	"slices"
)

// ChangeOptions is a commit that is to be made.
type ChangeOptions struct {
	Parent    string // a revision; empty for the first commit of a history
	Actions   []Action
	Author    Signature
	Committer Signature
	Message   string
}

// CommitChanges makes a commit with the actions on top of its parent, one after
// the other. The objects are in the repository and survive a crash when it
// returns, but no one sees the commit before UpdateRefs.
//
// It returns ErrBadPath, ErrExists for a file that is there or a name that is
// taken, ErrNotFound for one that is not there or an unknown parent, each with
// the path in its text, ErrNothing for a submodule that is at its commit already,
// and *Rejected for what a push could not bring either.
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

// commitWith makes a commit of the tree that build writes. The new objects are
// checked as those of a push are, unless careful knows that there is nothing
// that git would look at: it takes a process.
func (r Repo) commitWith(ctx context.Context, commit *Commit, careful func(*quarantine) (bool, error), build func(*quarantine) (OID, error)) (*Commit, error) {
	q, err := r.newQuarantine()
	if err != nil {
		return nil, err
	}
	defer q.discard()
	if commit.TreeID, err = build(q); err != nil {
		return nil, err
	}
	if commit.TreeID == EmptyTree { // others may not know it without being told
		if _, err := q.write(TypeTree, nil); err != nil {
			return nil, err
		}
	}
	id, err := q.write(TypeCommit, encodeCommit(commit))
	if err != nil {
		return nil, err
	}
	check, err := careful(q)
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
