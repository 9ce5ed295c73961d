package repo

import (
	"context"
	"errors"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// TreeOptions says which entries of a tree are wanted.
type TreeOptions struct {
	Ref       string // a branch, tag or commit; the default branch unless given
	Path      string // a directory; the root unless given
	Recursive bool   // also what is in the directories below

	After   string  // the key of the entry after which to begin
	AfterID git.OID // its id instead, of the first one that has it
	Skip    int     // entries to pass over
	Limit   int     // the most entries
}

// TreePage is a part of a tree.
type TreePage struct {
	Entries []git.Entry
	More    bool
}

// Tree lists the entries of a directory, those that are directories first, or
// all that is below it, each directory before what is in it. Who may read the
// repository may. NotFound for a ref or directory that is not there, Invalid
// for a place to begin that is none.
func (s *Service) Tree(ctx context.Context, by actor.Actor, ref project.Ref, o TreeOptions) (TreePage, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return TreePage{}, err
	}
	at, err := s.commitAt(ctx, p, r, o.Ref)
	if err != nil {
		return TreePage{}, missing(err, "Tree")
	}
	list := r.Directory
	if o.Recursive {
		list = r.Tree
	}
	want := git.TreeOptions{Rev: string(at), Path: o.Path, Recursive: o.Recursive, After: o.After}
	if o.AfterID != "" {
		if want.After, err = findEntry(ctx, list, want, o.AfterID); err != nil {
			return TreePage{}, treeError(err)
		}
	}
	want.Limit = o.Skip + o.Limit + 1
	entries, err := list(ctx, want)
	if err != nil {
		return TreePage{}, treeError(err)
	}
	entries = entries[min(o.Skip, len(entries)):]
	if len(entries) > o.Limit {
		return TreePage{entries[:o.Limit], true}, nil
	}
	return TreePage{entries, false}, nil
}

// commitAt resolves what a caller named, or the default branch.
func (s *Service) commitAt(ctx context.Context, p *project.Project, r git.Repo, rev string) (git.OID, error) {
	if rev == "" {
		if p.DefaultBranch == "" {
			return "", git.ErrNotFound // nothing has been pushed
		}
		rev = git.Heads + p.DefaultBranch
	}
	return r.ResolveCommit(ctx, rev)
}

func treeError(err error) error {
	if errors.Is(err, git.ErrTooLarge) {
		return errs.Invalid("The directories lie too deep in each other.").Because(err)
	}
	return missing(err, "invalid revision or path")
}

// findEntry gives the key of an entry by its id. It goes by pages, since
// nothing bounds the size of a tree.
func findEntry(ctx context.Context, list func(context.Context, git.TreeOptions) ([]git.Entry, error), o git.TreeOptions, id git.OID) (string, error) {
	const most = 10_000
	o.Limit = most
	for {
		entries, err := list(ctx, o)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if e.OID == id {
				return e.Key(), nil
			}
		}
		if len(entries) < most {
			return "", errs.Invalid("page_token is the id of no entry of this tree.")
		}
		o.After = entries[most-1].Key()
	}
}
