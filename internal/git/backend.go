package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"svc/internal/errs"
	"svc/internal/git/refstore"
)

// Backend stores repositories elsewhere, such as in an object store. Their
// directories are caches on this node, in which git works. They may be deleted at
// any time, also while they are used: calls fail then, but nothing is lost.
//
// Repositories are identified by their directories, which need not exist.
type Backend interface {
	// Refs returns the refs of a repository. Its Update also stores the objects that
	// become reachable, which are in the directory.
	Refs(dir string) refstore.Store
	// Refresh brings a directory up to date: it has the objects and refs of all
	// updates that were finished before the call. It reports whether it had to change
	// it. It returns ErrNoRepository.
	Refresh(ctx context.Context, dir string) (changed bool, err error)
	// Changes returns how often Refresh has changed a directory on this node.
	Changes(dir string) int64
	// Present reports whether the directory exists and has the objects of all refs
	// that this node has read. It takes no query.
	Present(dir string) bool
	// Create stores a new repository that is in another directory, which it may move.
	// It returns ErrExists.
	Create(ctx context.Context, dir, draft string) error
	// Fork stores a copy of the branches and tags of a repository, or of one of them, of
	// its default branch, and of the objects that are reachable from branches and tags.
	// It returns ErrNoRepository and ErrExists.
	Fork(ctx context.Context, from, to, only string) error
	// Remove deletes a repository, if it exists.
	Remove(ctx context.Context, dir string) error
	// Size returns the size of the repository in bytes. It returns ErrNoRepository.
	Size(ctx context.Context, dir string) (int64, error)
	// Needs returns the housekeeping needs. It returns ErrNoRepository.
	Needs(ctx context.Context, dir string) (Needs, error)
	// Housekeep does the housekeeping. It returns ErrNoRepository, and ErrBusy if
	// another node does it.
	Housekeep(ctx context.Context, dir string, o HousekeepOptions) (HousekeepReport, error)
}

// mount is a directory whose repositories have a Backend.
type mount struct {
	root    string // with a slash at the end
	backend Backend
}

// Mount gives the repositories below a directory a Backend. It is called at
// start-up.
func (e *Engine) Mount(root string, b Backend) error {
	abs, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	e.mounts = append(e.mounts, mount{abs + "/", b})
	return nil
}

// backendOf returns the Backend of the repository at an absolute path, or nil.
func (e *Engine) backendOf(path string) Backend {
	for _, m := range e.mounts {
		if strings.HasPrefix(path, m.root) {
			return m.backend
		}
	}
	return nil
}

// use counts a call on the directories of r until end is called, and refreshes those that
// are caches.
func (r Repo) use(ctx context.Context) (end func(), err error) {
	end = r.engine.uses.begin(r.dirs())
	if _, err := r.refresh(ctx); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// Refresh brings the directory of a repository that is stored elsewhere up to date,
// for callers that read its files.
func (r Repo) Refresh(ctx context.Context) error {
	_, err := r.refresh(ctx)
	return err
}

// refresh refreshes the directories of r that are caches.
func (r Repo) refresh(ctx context.Context) (changed bool, err error) {
	if r.backend != nil {
		if changed, err = r.backend.Refresh(ctx, r.path); err != nil {
			return changed, err
		}
	}
	for _, l := range r.sources {
		// A repository that does not exist has no objects to share.
		fetched, err := l.backend.Refresh(ctx, l.path)
		if err != nil && !errors.Is(err, ErrNoRepository) {
			return changed, err
		}
		changed = changed || fetched
	}
	return changed, nil
}

// changes returns how often the directories of r that are caches were changed on this
// node.
func (r Repo) changes() (n int64) {
	if r.backend != nil {
		n = r.backend.Changes(r.path)
	}
	for _, l := range r.sources {
		n += l.backend.Changes(l.path)
	}
	return n
}

// changed refreshes the directories of r that are caches, and reports whether they have
// changed since the given number of changes. Then an object that was not found may exist now:
// it was pushed to another node, or the cache was deleted while it was read.
func (r Repo) changed(ctx context.Context, since int64) (bool, error) {
	if r.backend == nil && len(r.sources) == 0 {
		return false, nil
	}
	if _, err := r.refresh(ctx); err != nil {
		return false, err
	}
	return r.changes() != since, nil
}

// lost returns the error of a call that did not find an object in a cache that changed
// meanwhile. It does not wrap err, because the object may exist.
func lost(err error) error {
	return errs.Unavailable("The cache of the repository changed while it was read. Please try again.").Because(fmt.Errorf("%w: %v", ErrBusy, err))
}

// present is refresh for directories that do not exist. Existing directories may lack objects
// of updates by other nodes that this node does not know of.
func (r Repo) present(ctx context.Context) error {
	missing := r.backend != nil && !r.backend.Present(r.path)
	for _, l := range r.sources {
		missing = missing || !l.backend.Present(l.path)
	}
	if !missing {
		return nil
	}
	_, err := r.refresh(ctx)
	return err
}

// InUse reports whether a call on this node uses a directory.
func (e *Engine) InUse(dir string) bool {
	e.uses.mu.Lock()
	defer e.uses.mu.Unlock()
	use := e.uses.of[dir]
	return use != nil && use.n > 0
}

// Remove deletes the repository of a Backend. It reports whether r has one.
func (r Repo) Remove(ctx context.Context) (bool, error) {
	if r.backend == nil {
		return false, nil
	}
	return true, r.backend.Remove(ctx, r.path)
}
