package repo

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// TreeOptions selects the entries of a tree.
type TreeOptions struct {
	Ref       string // a branch, tag or commit; default: the default branch
	Path      string // a directory; default: the root
	Recursive bool   // include all levels below

	After   string  // key of the entry after which to start
	AfterID git.OID // ID of that entry instead; the first with this ID
	Skip    int     // number of entries to skip
	Limit   int     // maximum number of entries
}

// TreePage is a page of a tree. It is cached and must not be changed.
type TreePage struct {
	Entries []git.Entry
	More    bool

	form atomic.Pointer[[]byte]
}

// Form returns the encoding of the page, which must depend only on the entries.
// It is cached after the first call.
func (p *TreePage) Form(encode func() ([]byte, error)) ([]byte, error) {
	if made := p.form.Load(); made != nil {
		return *made, nil
	}
	made, err := encode()
	if err == nil {
		p.form.Store(&made)
	}
	return made, err
}

// size returns the approximate size of the page in bytes, with its encoding.
func (p *TreePage) size() int {
	n := 0
	for _, e := range p.Entries {
		n += 300 + 3*len(e.Path)
	}
	return n
}

// Tree lists the entries of a directory, directories first, or recursively,
// each directory before its content, for users who may read the repository.
// NotFound if the ref or directory does not exist, Invalid if the start entry
// does not exist.
func (s *Service) Tree(ctx context.Context, by actor.Actor, ref project.Ref, o TreeOptions) (*TreePage, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	at, err := s.commitAt(ctx, p, r, o.Ref)
	if err != nil {
		return nil, missing(err, "Tree")
	}
	name := o.name(at)
	if kept, ok := r.Kept(name); ok {
		return kept.(*TreePage), nil
	}
	list := r.Directory
	if o.Recursive {
		list = r.Tree
	}
	want := git.TreeOptions{Rev: string(at), Path: o.Path, Recursive: o.Recursive, After: o.After}
	if o.AfterID != "" {
		if want.After, err = findEntry(ctx, list, want, o.AfterID); err != nil {
			return nil, treeError(err)
		}
	}
	want.Limit = o.Skip + o.Limit + 1
	entries, err := list(ctx, want)
	if err != nil {
		return nil, treeError(err)
	}
	entries = entries[min(o.Skip, len(entries)):]
	page := &TreePage{Entries: entries, More: len(entries) > o.Limit}
	if page.More {
		page.Entries = entries[:o.Limit]
	}
	page.Entries = slices.Clone(page.Entries) // release the skipped entries
	r.Keep(name, page, page.size())
	return page, nil
}

// name returns the cache key of a page: all that it depends on.
func (o TreeOptions) name(at git.OID) string {
	name := make([]byte, 0, 128)
	name = append(append(name, "tree "...), at...)
	name = strconv.AppendBool(append(name, ' '), o.Recursive)
	name = strconv.AppendInt(append(name, ' '), int64(o.Skip), 10)
	name = strconv.AppendInt(append(name, ' '), int64(o.Limit), 10)
	name = append(append(name, ' '), o.AfterID...)
	name = strconv.AppendInt(append(name, ' '), int64(len(o.Path)), 10) // the length makes the key unambiguous
	name = append(append(name, ' '), o.Path...)
	return string(append(append(name, ' '), o.After...))
}

// commitAt resolves a revision, or the default branch if it is empty.
func (s *Service) commitAt(ctx context.Context, p *project.Project, r git.Repo, rev string) (git.OID, error) {
	if rev == "" {
		if p.DefaultBranch == "" {
			return "", git.ErrNotFound // nothing was pushed yet
		}
		rev = git.Heads + p.DefaultBranch
	}
	return r.ResolveCommit(ctx, rev)
}

func treeError(err error) error {
	if errors.Is(err, git.ErrTooLarge) {
		return errs.Invalid("The directories are nested too deeply.").Because(err)
	}
	return missing(err, "invalid revision or path")
}

// findEntry returns the key of an entry by its ID. It reads pages, because the
// size of a tree is not limited.
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
			return "", errs.Invalid("page_token is not the ID of an entry of this tree.")
		}
		o.After = entries[most-1].Key()
	}
}
