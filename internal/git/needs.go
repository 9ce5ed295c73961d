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

// Needs is what housekeeping would do, as far as directory listings show.
type Needs struct {
	Loose     int   // objects in files of their own
	Packs     int   // that are not kept by hand
	Largest   int64 // bytes of the largest pack
	Rest      int64 // bytes of the other packs
	LooseRefs int
	Temporary int  // files and directories that belong to something under way, or were left behind
	Bitmap    bool // there are packs and no bitmap, though there can be one
	Graph     bool // there are packs and no commit-graph
}

// From these on something is done. A process has to look into each pack, and
// opens a file for each loose object and ref.
const (
	manyLoose = 500
	manyPacks = 10
	manyRefs  = 100
	// smallPack is the size below which a pack needs neither bitmap nor graph.
	smallPack = 256 << 10
)

// Any reports whether Housekeep has something to do.
func (n Needs) Any() bool { return n.objects() || n.refs() || n.Graph || n.Temporary > 0 }

func (n Needs) objects() bool { return n.Loose >= manyLoose || n.Packs >= manyPacks || n.Bitmap }
func (n Needs) refs() bool    { return n.LooseRefs >= manyRefs }

// whole says that all packs should become one: as long as the largest has most
// of the bytes, it is enough to join the others.
func (n Needs) whole() bool { return n.Bitmap || n.Rest > n.Largest/2 || n.Packs >= 5*manyPacks }

// Needs looks what there is to do. It is cheap: it only lists directories. It
// returns ErrNoRepository.
func (r Repo) Needs(ctx context.Context) (Needs, error) {
	if err := r.refs.Exists(); err != nil {
		return Needs{}, err
	}
	var n Needs
	bitmap, graph := false, false
	apart := map[string]bool{} // packs that are kept by hand, or hold what nothing leads to
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
				apart[base] = true
			case ".keep":
				apart[base], bitmap = true, true // a bitmap cannot be without these
			case ".bitmap":
				bitmap = true
			case ".pack":
				if apart[base] { // names are in order, and p comes after k and m
					return
				}
				n.Packs++
				n.Rest += f.Size()
				n.Largest = max(n.Largest, f.Size())
			}
		case len(dir) == len("objects/00/") && strings.HasPrefix(dir, "objects/") && refstore.IsHex(dir[8:10]):
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

// Size is the number of bytes of all files of the repository. It returns
// ErrNoRepository.
func (r Repo) Size(ctx context.Context) (int64, error) {
	if err := r.refs.Exists(); err != nil {
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

// eachFile goes through the directory, in order. What goes meanwhile is passed
// over.
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

// temporary knows the names under which git and this package write what is
// not finished.
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

// removeStale removes what was left behind before a time, and says how much.
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

// lastUsed is when anything in a directory was written last: a pack that comes
// in slowly changes its own time and not that of the directory.
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
