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
	"time"

	"svc/internal/durable"
	"svc/internal/git/refstore"
)

// quarantine is a directory of new objects that are not visible in the repository.
// They are moved into the repository by migrate after all checks, or discarded.
type quarantine struct {
	repo Repo
	dir  string
	end  func() // the end of its use of the repository
	seen int64  // changes of the caches when it was made
}

// QuarantinePrefix begins the names of quarantines, which are below objects.
const QuarantinePrefix = "tmp_objdir-incoming-"

// newQuarantine creates a quarantine. Its name is one that git prune removes after
// a crash.
func (r Repo) newQuarantine(ctx context.Context) (*quarantine, error) {
	end, err := r.use(ctx)
	if err != nil {
		return nil, fmt.Errorf("make a place for new objects: %w", err)
	}
	seen := r.changes()
	q, err := r.makeQuarantine()
	if err != nil {
		end()
		return nil, r.whyMissing(ctx, seen, err)
	}
	q.end, q.seen = end, seen
	return q, nil
}

// cause is whyMissing for the error of a call that uses the quarantine, which is
// deleted with the directory of a cache.
func (q *quarantine) cause(ctx context.Context, err *error) {
	*err = q.repo.whyMissing(ctx, q.seen, *err)
}

func (r Repo) makeQuarantine() (*quarantine, error) {
	dir, err := os.MkdirTemp(filepath.Join(r.path, "objects"), QuarantinePrefix+"*")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoRepository, r.path)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "pack"), 0o750)
	}
	if err != nil {
		return nil, fmt.Errorf("make a place for new objects: %w", err)
	}
	return &quarantine{repo: r, dir: dir}, nil
}

// env returns the environment for a git process that writes objects to the
// quarantine and reads those of the repository.
func (q *quarantine) env() []string {
	dirs := append([]string{filepath.Join(q.repo.path, "objects")}, q.repo.borrowed...)
	return []string{
		"GIT_OBJECT_DIRECTORY=" + q.dir,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.Join(dirs, string(filepath.ListSeparator)),
		"GIT_QUARANTINE_PATH=" + q.dir,
	}
}

// view returns the repository with the new objects. Its cached data is dropped by
// discard.
func (q *quarantine) view() Repo {
	v := q.repo
	v.borrowed = append(slices.Clip(v.borrowed), q.dir)
	return v
}

// discard removes the objects that were not migrated. It may be called after
// migrate.
func (q *quarantine) discard() {
	q.view().Forget()
	_ = os.RemoveAll(q.dir) // git prune removes the rest
	q.end()
}

// migrate moves the objects into the repository. They are durable when it returns.
// Existing objects are kept.
func (q *quarantine) migrate() error {
	objects := filepath.Join(q.repo.path, "objects")
	dirs, err := os.ReadDir(q.dir)
	if err != nil {
		return fmt.Errorf("take over new objects: %w", err)
	}
	for _, d := range dirs {
		if !d.IsDir() || d.Name() != "pack" && (len(d.Name()) != 2 || !refstore.IsHex(d.Name())) {
			continue
		}
		if err := moveAll(filepath.Join(q.dir, d.Name()), filepath.Join(objects, d.Name())); err != nil {
			return fmt.Errorf("take over new objects: %w", err)
		}
	}
	return durable.SyncDir(objects)
}

// moveAll moves the files of a directory. The files of a pack are moved in an
// order in which the pack is complete when its index appears.
func moveAll(from, to string) error {
	files, err := os.ReadDir(from)
	if err != nil || len(files) == 0 {
		return err
	}
	slices.SortStableFunc(files, func(a, b fs.DirEntry) int { return packOrder(a.Name()) - packOrder(b.Name()) })
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "tmp_") {
			continue
		}
		if err := moveFile(filepath.Join(from, f.Name()), to); err != nil {
			return err
		}
	}
	err = durable.SyncDir(to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // housekeeping has packed and synced the objects
	}
	return err
}

// moveFile moves a file into an object directory. If the object exists, only its
// modification time is updated: it may be unreachable and about to expire.
func moveFile(path, to string) error {
	target := filepath.Join(to, filepath.Base(path))
	var err error
	for range 10 {
		now := time.Now()
		if err = os.Chtimes(target, now, now); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Mkdir(to, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Housekeeping may remove the directory while it is empty.
		if err = os.Rename(path, target); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func packOrder(name string) int {
	switch filepath.Ext(name) {
	case ".keep":
		return 0
	case ".pack":
		return 1
	case ".rev":
		return 2
	case ".idx":
		return 4
	}
	return 3
}
