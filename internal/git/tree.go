package git

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"svc/internal/git/object"
)

// TreeOptions selects entries of a tree.
type TreeOptions struct {
	Rev       string // revision
	Path      string // directory; empty for the root
	Recursive bool   // include subdirectories
	After     string // Key of the entry to start after
	Limit     int    // 0 means no limit
}

// Tree lists entries in git's order, which is that of Entry.Key. Paths are
// relative to the root. It returns ErrBadRevision, ErrBadPath, and ErrNotFound if
// the revision or directory does not exist.
func (r Repo) Tree(ctx context.Context, o TreeOptions) ([]Entry, error) {
	o.Path = strings.Trim(o.Path, "/")
	id, err := r.ResolveTree(ctx, o.Rev)
	if err != nil {
		return nil, err
	}
	if o.Path != "" {
		e, err := r.entry(ctx, id, o.Path)
		if err != nil {
			return nil, err
		}
		if e.Type != TypeTree {
			return nil, fmt.Errorf("%.200q is no directory: %w", o.Path, ErrNotFound)
		}
		id = e.OID
	}
	w := walk{repo: r, recursive: o.Recursive, after: o.After, limit: o.Limit}
	if err := w.tree(ctx, id, o.Path, 0); err != nil {
		return nil, err
	}
	return w.found, nil
}

// Entry returns the entry at a path of a revision. It returns ErrBadRevision,
// ErrBadPath and ErrNotFound.
func (r Repo) Entry(ctx context.Context, rev, path string) (Entry, error) {
	id, err := r.ResolveTree(ctx, rev)
	if err != nil {
		return Entry{}, err
	}
	return r.entry(ctx, id, path)
}

func (r Repo) entry(ctx context.Context, tree OID, path string) (Entry, error) {
	if err := checkPath(path); err != nil {
		return Entry{}, err
	}
	e := Entry{OID: tree, Type: TypeTree, Mode: "040000"}
	if path == "" {
		return e, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if e.Type != TypeTree {
			return Entry{}, noEntry(path)
		}
		entries, err := r.entries(ctx, e.OID)
		if err != nil {
			return Entry{}, err
		}
		at := findEntry(entries, name)
		if at < 0 {
			return Entry{}, noEntry(path)
		}
		e = entries[at]
	}
	e.Path = path
	return e, nil
}

func noEntry(path string) error { return fmt.Errorf("path %.200q: %w", path, ErrNotFound) }

// findEntry returns the index of a name, or -1. Trees sort as if their names ended
// with a slash.
func findEntry(entries []Entry, name string) int {
	for _, key := range []string{name, name + "/"} {
		i := sort.Search(len(entries), func(i int) bool { return object.SortName(entries[i]) >= key })
		if i < len(entries) && entries[i].Name == name {
			return i
		}
	}
	return -1
}

// entries returns the entries of a tree. The result must not be modified.
func (r Repo) entries(ctx context.Context, id OID) ([]Entry, error) {
	key := cacheKey{r.scope(), kindTree, string(id)}
	if v, ok := r.engine.cache.get(key); ok {
		return v.([]Entry), nil
	}
	if id == EmptyTree {
		return nil, nil
	}
	var list []Entry
	size := 0
	err := r.withReader(ctx, func(p *reader) error {
		o, err := p.read(id, TypeTree)
		if err != nil {
			return err
		}
		size = 6 * len(o.Content)
		list, err = object.ParseTree(o.Content)
		if err != nil {
			return fmt.Errorf("tree %s: %w: %w", id, ErrCorrupt, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.engine.cache.put(key, list, size)
	return list, nil
}

// walk collects entries up to a limit.
type walk struct {
	repo      Repo
	recursive bool
	after     string
	limit     int
	found     []Entry
}

// maxDepth is the maximum depth of directories.
const maxDepth = 512

func (w *walk) tree(ctx context.Context, id OID, path string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("directory %.100q…: %w", path, ErrTooLarge)
	}
	entries, err := w.repo.entries(ctx, id)
	if err != nil {
		return err
	}
	prefix := ""
	if path != "" {
		prefix = path + "/"
	}
	for _, e := range entries[w.first(entries, prefix):] {
		if w.full() {
			return nil
		}
		e.Path = prefix + e.Name
		key := e.Key()
		if key > w.after || w.after == "" {
			w.found = append(w.found, e)
		}
		// Skip directories that come completely before the start.
		if w.recursive && e.Type == TypeTree && (key > w.after || strings.HasPrefix(w.after, key)) {
			if err := w.tree(ctx, e.OID, e.Path, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// first returns the index of the first entry to visit.
func (w *walk) first(entries []Entry, prefix string) int {
	rest, ok := strings.CutPrefix(w.after, prefix)
	if !ok {
		return 0
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		rest = rest[:i+1]
	}
	return sort.Search(len(entries), func(i int) bool { return object.SortName(entries[i]) >= rest })
}

func (w *walk) full() bool { return w.limit > 0 && len(w.found) >= w.limit }
