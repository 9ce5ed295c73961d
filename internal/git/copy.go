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

// Copy creates a repository at path that is identical to another: all refs, their
// reflogs, the default branch, all objects including unreachable ones, and the
// configuration. Refs must not change during the copy; housekeeping may run. The
// copy does not depend on the other repository. The directory is created
// atomically and is durable when Copy returns. It returns ErrExists,
// ErrNoRepository, and ErrCorrupt for a ref to a missing object.
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
	end, err := r.use(ctx)
	if err != nil {
		return err
	}
	defer end()
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
	copied := r.engine.Local(draft)
	defer copied.Forget() // the directory will be renamed
	differs, err := r.Differs(ctx, copied)
	if err == nil && differs != "" { // Refs skips broken refs, but Differs does not
		err = fmt.Errorf("%w: %s", ErrCorrupt, differs)
	}
	return err
}

// copyTree copies a file or directory recursively and replaces existing files. It
// skips lock files, and does nothing if from does not exist.
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
		// No hard link: these files are modified in place.
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

// Differs describes the first difference in the refs and the default branch of
// another repository. It is empty if there is none.
func (r Repo) Differs(ctx context.Context, other Repo) (string, error) {
	var heads [2]string
	var refs [2][]Ref
	for i, repo := range []Repo{r, other} {
		var err error
		if heads[i], err = repo.DefaultBranch(ctx); err != nil {
			return "", err
		}
		if refs[i], err = repo.Refs(ctx, RefOptions{plain: true}); err != nil {
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
