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
	"syscall"

	"svc/internal/durable"
	"svc/internal/git/refstore"
)

// Fork creates a repository at path with the branches, tags and default branch of
// another; if only is not empty, it is the only ref that is copied. Only objects
// reachable from these are copied, because objects of hidden refs must not become
// visible to everyone who may fork. The fork does not depend on the other repository.
// The directory is created atomically and is durable when Fork returns. It returns
// ErrExists and ErrNoRepository.
func (e *Engine) Fork(ctx context.Context, from Repo, path, only string) (Repo, error) {
	if to := e.Repo(path); to.backend != nil && to.backend == from.backend {
		if err := to.backend.Fork(ctx, from.path, to.path, only); err != nil {
			return to, fmt.Errorf("fork %s: %w", from.path, err)
		}
		return to, nil
	}
	branch, err := from.DefaultBranch(ctx)
	if err != nil {
		return Repo{}, fmt.Errorf("fork %s: %w", from.path, err)
	}
	r, err := e.create(ctx, path, branch, func(draft string) error { return from.copyTo(ctx, draft, only) })
	if err != nil {
		return r, fmt.Errorf("fork %s: %w", from.path, err)
	}
	return r, nil
}

// copyTo fills an empty repository. The refs are read first, so that their objects
// are among those copied even if there is a concurrent push.
func (r Repo) copyTo(ctx context.Context, draft, only string) error {
	end, err := r.use(ctx)
	if err != nil {
		return err
	}
	defer end()
	var refs []Ref
	for _, prefix := range []string{Heads, Tags} {
		list, err := r.Refs(ctx, RefOptions{Place: prefix})
		if err != nil {
			return err
		}
		refs = append(refs, list...)
	}
	if only != "" {
		refs = slices.DeleteFunc(refs, func(ref Ref) bool { return ref.Name != only })
	}
	return r.copyRefs(ctx, draft, refs, false)
}

// copyRefs writes sorted refs and their objects to a draft. With all, unreachable
// objects are included.
func (r Repo) copyRefs(ctx context.Context, draft string, refs []Ref, all bool) error {
	if err := r.copyObjects(ctx, filepath.Join(draft, "objects"), refs, all); err != nil {
		return err
	}
	if len(refs) == 0 {
		return nil
	}
	if err := r.engine.Local(draft).checkTips(ctx, refs); err != nil {
		return err
	}
	return durable.WriteNew(filepath.Join(draft, "packed-refs"), 0o640, strings.NewReader(formatPacked(refs)))
}

// formatPacked returns the content of a packed-refs file for sorted refs.
func formatPacked(refs []Ref) string {
	var b strings.Builder
	b.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for _, ref := range refs {
		b.WriteString(string(ref.ID) + " " + ref.Name + "\n")
		if ref.Tag != "" {
			b.WriteString("^" + string(ref.Target) + "\n")
		}
	}
	return b.String()
}

// checkTips returns an error if the object of a ref is missing.
func (r Repo) checkTips(ctx context.Context, refs []Ref) error {
	defer r.Forget() // the directory will be renamed
	return r.withReader(ctx, func(p *reader) error {
		for _, ref := range refs {
			for _, id := range []OID{ref.ID, ref.Target} {
				if _, err := p.info(string(id)); err != nil {
					return fmt.Errorf("copy %s: %w", ref.Name, err)
				}
			}
		}
		return nil
	})
}

// copyObjects copies or links the object files to a draft. If only reachable
// objects are wanted, or r borrows objects of other repositories, it writes a pack
// instead.
func (r Repo) copyObjects(ctx context.Context, to string, refs []Ref, all bool) error {
	objects := filepath.Join(r.path, "objects")
	if _, err := os.Stat(filepath.Join(objects, "info", "alternates")); err == nil || len(r.borrowed) > 0 || !all {
		return r.packInto(ctx, filepath.Join(to, "pack", "pack"), refs)
	}
	// Housekeeping may replace files during the copy. It writes the new files first,
	// so a retry finds them.
	var err error
	for range 10 {
		if err = copyFiles(ctx, objects, to); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("copy objects: %w", err)
	}
	return nil
}

// copyFiles copies the files that are missing in to. Loose objects come first: an
// object that is packed in the meantime is then found in a pack.
func copyFiles(ctx context.Context, from, to string) error {
	dirs, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if d.IsDir() && len(d.Name()) == 2 && refstore.IsHex(d.Name()) {
			if err := copyDir(ctx, filepath.Join(from, d.Name()), filepath.Join(to, d.Name()), 38); err != nil {
				return err
			}
		}
	}
	if err := copyDir(ctx, filepath.Join(from, "pack"), filepath.Join(to, "pack"), 0); err != nil {
		return err
	}
	return durable.SyncDir(to)
}

// copyDir copies loose objects, whose names have the given length, or packs if
// length is 0. Other files, such as a multi-pack-index, are skipped because they
// may not match the copied packs.
func copyDir(ctx context.Context, from, to string, length int) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, f := range files {
		if length > 0 && (len(f.Name()) != length || !refstore.IsHex(f.Name())) || length == 0 && !partOfPack(f.Name()) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := linkOrCopy(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil {
			return err
		}
	}
	return durable.SyncDir(to)
}

func partOfPack(name string) bool {
	switch filepath.Ext(name) {
	case ".pack", ".idx", ".rev", ".bitmap", ".mtimes":
		return strings.HasPrefix(name, "pack-")
	}
	return false
}

func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil || errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return err
	case !errors.Is(err, syscall.EXDEV) && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOTSUP) && !errors.Is(err, syscall.EMLINK):
		return err
	}
	return copySynced(from, to, 0o440)
}

func copySynced(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return durable.WriteNew(to, mode, in)
}

// packInto writes a pack of all objects reachable from refs.
func (r Repo) packInto(ctx context.Context, base string, refs []Ref) error {
	if len(refs) == 0 {
		return nil
	}
	var ids strings.Builder
	for _, ref := range refs {
		ids.WriteString(string(ref.ID) + "\n")
	}
	_, err := r.output(ctx, command{work: transfer, in: strings.NewReader(ids.String()),
		args: []string{"pack-objects", "-q", "--revs", "--delta-base-offset", base}})
	if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(base))
}
