package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"svc/internal/durable"
	"svc/internal/git/refstore"
)

// Fork makes a repository in path with the branches, tags and default branch of
// another, and no other refs. It gets the objects to which these lead and no
// others: what only hidden refs lead to is not for everyone who may fork. It leans
// on nothing of the other. The directory appears whole or not at all, and is on
// disk when Fork returns. It returns ErrExists when there is something in path
// already, and ErrNoRepository.
func (e *Engine) Fork(ctx context.Context, from Repo, path string) (Repo, error) {
	branch, err := from.DefaultBranch(ctx)
	if err != nil {
		return Repo{}, fmt.Errorf("fork %s: %w", from.path, err)
	}
	r, err := e.create(ctx, path, branch, func(draft string) error { return from.copyTo(ctx, draft) })
	if err != nil {
		return r, fmt.Errorf("fork %s: %w", from.path, err)
	}
	return r, nil
}

// copyTo fills an empty repository. The refs are read first: their objects are
// then among those that are copied, whatever is pushed meanwhile.
func (r Repo) copyTo(ctx context.Context, draft string) error {
	defer r.engine.uses.begin(r.dirs())()
	var refs []Ref
	for _, place := range []string{Heads, Tags} {
		list, err := r.Refs(ctx, RefOptions{Place: place})
		if err != nil {
			return err
		}
		refs = append(refs, list...)
	}
	return r.copyRefs(ctx, draft, refs, false)
}

// copyRefs returns a draft refs, which are sorted, and their objects: with
// whole also those that no ref leads to.
func (r Repo) copyRefs(ctx context.Context, draft string, refs []Ref, whole bool) error {
	if err := r.copyObjects(ctx, filepath.Join(draft, "objects"), refs, whole); err != nil {
		return err
	}
	if len(refs) == 0 {
		return nil
	}
	if err := r.engine.Repo(draft).holds(ctx, refs); err != nil {
		return err
	}
	return durable.WriteNew(filepath.Join(draft, "packed-refs"), 0o640, strings.NewReader(formatPacked(refs)))
}

// formatPacked writes refs, which are sorted, as parsePacked reads them.
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

// holds checks that the tips of all refs are there.
func (r Repo) holds(ctx context.Context, refs []Ref) error {
	defer r.Forget() // the directory is a draft and will have another name
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

// copyObjects gives a draft the objects of r: the files themselves, or a pack
// of what the refs need when it gets no more, or when r leans on other
// repositories.
func (r Repo) copyObjects(ctx context.Context, to string, refs []Ref, whole bool) error {
	objects := filepath.Join(r.path, "objects")
	if _, err := os.Stat(filepath.Join(objects, "info", "alternates")); err == nil || len(r.borrowed) > 0 || !whole {
		return r.packInto(ctx, filepath.Join(to, "pack", "pack"), refs)
	}
	// Housekeeping may replace files by others while they are copied. It
	// writes the new ones first, so another look finds them.
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

// copyFiles copies what is missing in to. Loose objects come first: one that
// is packed meanwhile is then found in the packs.
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

// copyDir copies the loose objects, whose names have the length, or the packs
// of a directory. A list of packs is not copied: it names packs of then.
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

// packInto writes a pack of all that the refs lead to.
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
