package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"svc/internal/durable"
)

// maxBundleRefs is the maximum number of refs in a bundle.
const maxBundleRefs = 10_000_000

// BundleAll writes all refs and reachable objects as a git bundle, and returns the
// default branch and the number of refs. change is called with the refs and returns
// the sorted refs to write, whose objects must exist. Concurrent pushes are safe: the
// refs are read first, and their objects are not removed. Refs to missing objects are
// skipped. It returns ErrNoRepository.
func (r Repo) BundleAll(ctx context.Context, w io.Writer, change func([]Ref) ([]Ref, error)) (branch string, refs int, err error) {
	if branch, err = r.DefaultBranch(ctx); err != nil {
		return "", 0, fmt.Errorf("bundle: %w", err)
	}
	list, err := r.Refs(ctx, RefOptions{})
	if err == nil {
		list, err = change(list)
	}
	if err != nil {
		return "", 0, fmt.Errorf("bundle %s: %w", r.path, err)
	}
	if err := r.writeBundle(ctx, w, list, transfer); err != nil {
		return "", 0, fmt.Errorf("%s: %w", r.path, err)
	}
	return branch, len(list), nil
}

// WriteEmptyBundle writes the bundle of a repository without refs.
func WriteEmptyBundle(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\n\n", bundleHead)
	return err
}

// UnbundleAll creates a repository at path from the output of BundleAll. It
// verifies every object, and that none is missing. The directory is created
// atomically and is durable when UnbundleAll returns. It returns ErrExists,
// ErrBadRef and, for an invalid bundle, ErrCorrupt.
func (e *Engine) UnbundleAll(ctx context.Context, path, branch string, in io.Reader) (Repo, error) {
	if err := CheckRef(Heads + branch); err != nil {
		return e.Repo(path), fmt.Errorf("unbundle %s: %w", path, err)
	}
	r, err := e.create(ctx, path, branch, func(draft string) error { return e.unbundle(ctx, draft, in) })
	if err != nil {
		return r, fmt.Errorf("unbundle %s: %w", path, err)
	}
	return r, nil
}

func (e *Engine) unbundle(ctx context.Context, draft string, in io.Reader) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	refs, err := readBundleHead(buffered)
	if err != nil || len(refs) == 0 {
		return err
	}
	r := e.Local(draft)
	defer r.Forget() // the directory will be renamed
	c := command{work: transfer, args: []string{"index-pack", "--stdin", "--check-self-contained-and-connected"}, in: buffered}
	err = r.run(ctx, c, func(out io.Reader) error {
		_, err := io.Copy(io.Discard, out) // index-pack prints the name of the pack
		return err
	})
	if failure := (*Error)(nil); errors.As(err, &failure) && failure.Exit > 0 {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return err
	}
	if err := durable.SyncDir(filepath.Join(draft, "objects", "pack")); err != nil {
		return err
	}
	for i := range refs {
		if refs[i], err = r.peelRef(ctx, refs[i].Name, refs[i].ID); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, refs[i].Name, err)
		}
	}
	return durable.WriteNew(filepath.Join(draft, "packed-refs"), 0o640, strings.NewReader(formatPacked(refs)))
}

// readBundleHead parses the header of a bundle. The refs must be valid and sorted.
func readBundleHead(in *bufio.Reader) ([]Ref, error) {
	var refs []Ref
	for first := true; ; first = false {
		text, err := in.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("%w: read bundle: %w", ErrCorrupt, err)
		}
		line := string(text[:len(text)-1])
		if first {
			if line != bundleHead {
				return nil, fmt.Errorf("%w: it is no bundle", ErrCorrupt)
			}
			continue
		}
		if line == "" {
			return refs, nil
		}
		hex, name, _ := strings.Cut(line, " ")
		id, ok := ParseOID(hex)
		if !ok || CheckRef(name) != nil || len(refs) > 0 && refs[len(refs)-1].Name >= name || len(refs) == maxBundleRefs {
			return nil, fmt.Errorf("%w: bundle has the line %.100q", ErrCorrupt, line)
		}
		refs = append(refs, Ref{Name: name, ID: id})
	}
}
