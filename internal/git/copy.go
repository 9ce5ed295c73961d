package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"svc/internal/durable"
)

// Copy makes a repository in path that is the same as another: all refs, the
// logs of them, the default branch, all objects, also those that nothing leads
// to, and what an operator has set there. No one may move refs meanwhile;
// housekeeping may run. It leans on nothing of the other, as a Fork does. The
// directory appears whole or not at all, and is on disk when Copy returns. It
// returns ErrExists when there is something in path already, ErrNoRepository,
// and ErrCorrupt for a ref without its object.
func (e *Engine) Copy(ctx context.Context, from Repo, path string) (Repo, error) {
	branch, err := from.DefaultBranch(ctx)
	if err != nil {
		return Repo{}, fmt.Errorf("copy %s: %w", from.path, err)
	}
	r, err := e.create(ctx, path, branch, func(draft string) error { return from.copyAll(ctx, draft) })
	if err != nil {
		return r, fmt.Errorf("copy %s: %w", from.path, err)
	}
	return r, nil
}

func (r Repo) copyAll(ctx context.Context, draft string) error {
	defer r.engine.uses.begin(r.dirs())()
	refs, err := r.Refs(ctx, RefOptions{})
	if err != nil {
		return err
	}
	if err := r.copyRefs(ctx, draft, refs, true); err != nil {
		return err
	}
	for _, name := range []string{"config", "description", "info", "logs"} {
		if err := copyTree(ctx, filepath.Join(r.path, name), filepath.Join(draft, name)); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	copied := r.engine.Repo(draft)
	defer copied.Forget() // it will have another name
	differs, err := r.Differs(ctx, copied)
	if err == nil && differs != "" { // what leads nowhere is not among the refs
		err = fmt.Errorf("%w: %s", ErrCorrupt, differs)
	}
	return err
}

// copyTree copies a file, or a directory with all that is in it, in place of
// what is there. What is not there is not copied, nor are locks.
func copyTree(ctx context.Context, from, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := os.Lstat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular():
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// Not a link: these files are written to in their place.
		return copySynced(from, to, info.Mode().Perm())
	case !info.IsDir():
		return nil
	}
	if err := os.Mkdir(to, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".lock") {
			continue
		}
		if err := copyTree(ctx, filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return durable.SyncDir(to)
}

// Differs says in words what is different in the refs of another repository
// and its default branch; empty when nothing is.
func (r Repo) Differs(ctx context.Context, other Repo) (string, error) {
	var heads [2]string
	var refs [2][]Ref
	for i, one := range []Repo{r, other} {
		var err error
		if heads[i], err = one.DefaultBranch(ctx); err != nil {
			return "", err
		}
		if refs[i], err = one.Refs(ctx, RefOptions{plain: true}); err != nil {
			return "", err
		}
	}
	if heads[0] != heads[1] {
		return fmt.Sprintf("the default branch is %s and %s in the copy", heads[0], heads[1]), nil
	}
	for _, ref := range refs[0] {
		at, ok := slices.BinarySearchFunc(refs[1], ref.Name, func(r Ref, name string) int { return strings.Compare(r.Name, name) })
		if !ok {
			return ref.Name + " is not in the copy", nil
		}
		if refs[1][at].ID != ref.ID {
			return fmt.Sprintf("%s is at %s, and at %s in the copy", ref.Name, ref.ID, refs[1][at].ID), nil
		}
	}
	if len(refs[0]) != len(refs[1]) {
		return fmt.Sprintf("there are %d refs, and %d in the copy", len(refs[0]), len(refs[1])), nil
	}
	return "", nil
}
