package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"svc/internal/git/refstore"
)

// The functions that a Backend needs for its caches.

// Layout writes the files of an empty bare repository to a directory.
func Layout(dir, branch string) error { return writeLayout(dir, branch) }

// PackedRefs returns the content of a packed-refs file for sorted refs with Target
// set.
func PackedRefs(refs []Ref) string { return formatPacked(refs) }

// CheckTarget returns the object that a ref would refer to after following tags.
// It returns ErrNotFound if the object does not exist, or if the ref is a branch
// and the object no commit.
func (r Repo) CheckTarget(ctx context.Context, ref string, id OID) (Ref, error) {
	at, err := r.peelRef(ctx, ref, id)
	if err != nil || !strings.HasPrefix(ref, Heads) {
		return at, err
	}
	if _, err := r.commit(ctx, id); err != nil {
		return Ref{}, err
	}
	return at, nil
}

// PackNew writes a pack of the objects that are reachable from some objects but
// not from others, and its index, into a directory. It returns the hash in the
// names of the files, or an empty string if there are no such objects.
func (r Repo) PackNew(ctx context.Context, dir string, from, not []OID) (hash string, err error) {
	var in strings.Builder
	for _, id := range from {
		in.WriteString(string(id) + "\n")
	}
	in.WriteString("--not\n")
	for _, id := range not {
		in.WriteString(string(id) + "\n")
	}
	return r.pack(ctx, writing, dir, in.String(), "--revs")
}

// PackRest writes a pack of the objects that are reachable from some objects and not in
// packs with some hashes, as PackNew does.
func (r Repo) PackRest(ctx context.Context, dir string, from []OID, hashes []string) (hash string, err error) {
	in, err := revInput(from)
	if err != nil {
		return "", err
	}
	options := []string{"--revs"}
	for _, h := range hashes {
		options = append(options, "--keep-pack=pack-"+h+".pack")
	}
	return r.pack(ctx, transfer, dir, in, options...)
}

// CountReachable returns the number of objects that are reachable from some objects.
func (r Repo) CountReachable(ctx context.Context, from []OID) (int64, error) {
	in, err := revInput(from)
	if err != nil {
		return 0, err
	}
	out, err := r.output(ctx, command{work: transfer, args: []string{"rev-list", "--objects", "--count", "--stdin"}, in: strings.NewReader(in)})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// PackAll writes a pack of all objects that are reachable from refs, with a bitmap.
// Tips are the values of the refs; one that does not exist is an error.
func (r Repo) PackAll(ctx context.Context, dir string, tips []OID) (hash string, err error) {
	in, err := revInput(tips)
	if err != nil {
		return "", err
	}
	// Bitmaps need --all, which skips refs to missing objects.
	return r.pack(ctx, upkeep, dir, in, "--revs", "--all", "--write-bitmap-index")
}

// PackPacks writes a pack of the objects of packs with some hashes, except for those
// that are in other packs.
func (r Repo) PackPacks(ctx context.Context, dir string, hashes, except []string) (hash string, err error) {
	var in strings.Builder
	for _, h := range hashes {
		in.WriteString("pack-" + h + ".pack\n")
	}
	for _, h := range except {
		in.WriteString("^pack-" + h + ".pack\n")
	}
	return r.pack(ctx, upkeep, dir, in.String(), "--stdin-packs")
}

// PackLoose writes a pack of all loose objects.
func (r Repo) PackLoose(ctx context.Context, dir string) (hash string, err error) {
	var in strings.Builder
	objects := filepath.Join(r.path, "objects")
	dirs, err := os.ReadDir(objects)
	if err != nil {
		return "", err
	}
	for _, d := range dirs {
		if !d.IsDir() || len(d.Name()) != 2 || !refstore.IsHex(d.Name()) {
			continue
		}
		files, err := os.ReadDir(filepath.Join(objects, d.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, f := range files {
			if len(f.Name()) == 38 && refstore.IsHex(f.Name()) {
				in.WriteString(d.Name() + f.Name() + "\n")
			}
		}
	}
	if in.Len() == 0 {
		return "", nil
	}
	return r.pack(ctx, writing, dir, in.String())
}

func (r Repo) pack(ctx context.Context, w work, dir, input string, options ...string) (string, error) {
	args := append([]string{"-c", "pack.threads=1", "pack-objects", "-q", "--delta-base-offset", "--non-empty"}, options...)
	c := command{work: w, args: append(args, filepath.Join(dir, "pack")), in: strings.NewReader(input), limit: r.engine.limits.Transfer}
	out, err := r.output(ctx, c)
	if err != nil {
		return "", err
	}
	hash := strings.TrimSpace(string(out))
	if _, ok := ParseOID(hash); !ok && hash != "" {
		return "", fmt.Errorf("git pack-objects printed %.100q", hash)
	}
	return hash, nil
}

// PrunePacked removes the loose objects that are in a pack.
func (r Repo) PrunePacked(ctx context.Context) error {
	_, err := r.output(ctx, command{work: upkeep, args: []string{"prune-packed", "-q"}})
	return err
}

// WriteGraph writes the commit-graph.
func (r Repo) WriteGraph(ctx context.Context) error {
	_, err := r.output(ctx, command{work: upkeep, args: []string{"commit-graph", "write", "--reachable", "--changed-paths", "--no-progress", "--split=replace"}})
	return err
}
