package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"svc/internal/git/refstore"
)

// Needs describes the state of a repository that determines what housekeeping
// does.
type Needs struct {
	Loose     int   // loose objects
	Packs     int   // packs without a .keep file
	Largest   int64 // size of the largest pack in bytes
	Rest      int64 // total size of the other packs in bytes
	LooseRefs int
	Temporary int  // temporary and lock files and directories, in use or stale
	Bitmap    bool // a bitmap is missing
	Graph     bool // a commit-graph is missing
}

// Thresholds. Each pack, loose object and loose ref costs file operations in every
// process.
const (
	manyLoose = 500
	manyPacks = 10
	manyRefs  = 100
	// smallPack is the size below which a pack needs no bitmap or commit-graph.
	smallPack = 256 << 10
)

// Any reports whether Housekeep has something to do.
func (n Needs) Any() bool { return n.objects() || n.refs() || n.Graph || n.Temporary > 0 }

func (n Needs) objects() bool { return n.Loose >= manyLoose || n.Packs >= manyPacks || n.Bitmap }
func (n Needs) refs() bool    { return n.LooseRefs >= manyRefs }

// whole reports whether all packs should be combined into one. As long as the
// largest pack has most of the data, it is enough to combine the others.
func (n Needs) whole() bool { return n.Bitmap || n.Rest > n.Largest/2 || n.Packs >= 5*manyPacks }

// Needs returns the housekeeping needs. It only lists directories. It returns
// ErrNoRepository.
func (r Repo) Needs(ctx context.Context) (Needs, error) {
	if r.backend != nil {
		return r.backend.Needs(ctx, r.path)
	}
	if err := r.refs.Exists(ctx); err != nil {
		return Needs{}, err
	}
	var n Needs
	bitmap, graph := false, false
	skipped := map[string]bool{} // packs with a .keep file, and cruft packs
	err := r.eachFile(ctx, func(path string, f fs.FileInfo) {
		dir, name := filepath.Split(path)
		base, ext := strings.TrimSuffix(name, filepath.Ext(name)), filepath.Ext(name)
		switch {
		case temporary(path, f):
			n.Temporary++
		case f.IsDir():
		case strings.HasPrefix(path, "refs/"):
			n.LooseRefs++
		case dir == "objects/pack/":
			switch ext {
			case ".mtimes":
				skipped[base] = true
			case ".keep":
				skipped[base], bitmap = true, true // a bitmap needs all objects in one pack
			case ".bitmap":
				bitmap = true
			case ".pack":
				if skipped[base] { // files are sorted by name, and .pack comes after .keep and .mtimes
					return
				}
				n.Packs++
				n.Rest += f.Size()
				n.Largest = max(n.Largest, f.Size())
			}
		case looseObject(path):
			n.Loose++
		case path == "objects/info/commit-graph" || path == "objects/info/commit-graphs/commit-graph-chain":
			graph = true
		case path == "objects/info/alternates":
			bitmap = true
		}
	})
	if err != nil {
		return Needs{}, fmt.Errorf("search %s: %w", r.path, err)
	}
	n.Bitmap = n.Largest >= smallPack && !bitmap
	n.Graph = n.Largest >= smallPack && !graph
	n.Rest -= n.Largest
	return n, nil
}

// Size returns the total size of all files of the repository in bytes. It returns
// ErrNoRepository.
func (r Repo) Size(ctx context.Context) (int64, error) {
	if r.backend != nil {
		return r.backend.Size(ctx, r.path)
	}
	if err := r.refs.Exists(ctx); err != nil {
		return 0, err
	}
	var size int64
	err := r.eachFile(ctx, func(_ string, f fs.FileInfo) {
		if !f.IsDir() {
			size += f.Size()
		}
	})
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", r.path, err)
	}
	return size, nil
}

// eachFile walks the directory in lexical order. Files that are removed in the
// meantime are skipped.
func (r Repo) eachFile(ctx context.Context, do func(path string, f fs.FileInfo)) error {
	return fs.WalkDir(os.DirFS(r.path), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		var f fs.FileInfo
		if err == nil {
			f, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		do(path, f)
		return nil
	})
}

// looseObject reports whether a path that is not temporary is a loose object.
func looseObject(path string) bool {
	dir, _ := filepath.Split(path)
	return len(dir) == len("objects/00/") && strings.HasPrefix(dir, "objects/") && refstore.IsHex(dir[8:10])
}

// temporary reports whether a path is a temporary or lock file of git or of this
// package.
func temporary(path string, f fs.FileInfo) bool {
	dir, name := filepath.Split(path)
	switch {
	case strings.HasSuffix(name, ".lock"), path == "packed-refs.new":
		return !f.IsDir()
	case dir == "objects/":
		return strings.HasPrefix(name, "tmp_")
	case dir == "objects/pack/":
		return strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")
	case strings.HasPrefix(dir, "objects/"):
		return strings.HasPrefix(name, "tmp_obj_") && strings.Count(dir, "/") == 2
	}
	return false
}

// removeStale removes temporary files that were last modified before a time, and
// returns their number.
func (r Repo) removeStale(ctx context.Context, before time.Time) (int, error) {
	var stale []string
	err := r.eachFile(ctx, func(path string, f fs.FileInfo) {
		if temporary(path, f) && f.ModTime().Before(before) {
			stale = append(stale, path)
		}
	})
	removed := 0
	for _, path := range stale {
		path = filepath.Join(r.path, path)
		used, usedErr := lastUsed(path)
		if usedErr != nil || used.After(before) {
			err = errors.Join(err, usedErr)
			continue
		}
		err = errors.Join(err, os.RemoveAll(path))
		removed++
	}
	if err != nil {
		return removed, fmt.Errorf("remove what was left behind: %w", err)
	}
	return removed, nil
}

// lastUsed returns the latest modification time in a directory. A slow push
// modifies its pack but not the directory.
func lastUsed(path string) (time.Time, error) {
	var last time.Time
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		var f fs.FileInfo
		if err == nil {
			f, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && f.ModTime().After(last) {
			last = f.ModTime()
		}
		return err
	})
	return last, err
}
