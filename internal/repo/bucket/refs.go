package bucket

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/git/refstore"
)

// snapshot are the refs of a repository at a generation. It is immutable.
type snapshot struct {
	version
	refs  []ref    // sorted by name
	names []string // of the refs
}

func (v *snapshot) find(name string) (ref, bool) {
	i, ok := slices.BinarySearch(v.names, name)
	if !ok {
		return ref{}, false
	}
	return v.refs[i], true
}

// below returns the names below a prefix that ends with a slash. They must not be changed.
func (v *snapshot) below(place string) []string {
	from, _ := slices.BinarySearch(v.names, place)
	to, _ := slices.BinarySearch(v.names, place[:len(place)-1]+"0") // the character after the slash
	return v.names[from:to:to]
}

// with returns the refs after changes, which are sorted by name. Refs without a target are
// deleted.
func (v *snapshot) with(generation int64, changes []ref) *snapshot {
	next := &snapshot{version: version{v.epoch, v.id, generation}, refs: make([]ref, 0, len(v.refs)+len(changes))}
	old := v.refs
	for _, c := range changes {
		at, found := slices.BinarySearchFunc(old, c.name, func(r ref, name string) int { return strings.Compare(r.name, name) })
		next.refs = append(next.refs, old[:at]...)
		if c.target != "" {
			next.refs = append(next.refs, c)
		}
		if found {
			at++
		}
		old = old[at:]
	}
	next.refs = append(next.refs, old...)
	next.names = make([]string, len(next.refs))
	for i := range next.refs {
		next.names[i] = next.refs[i].name
	}
	return next
}

// refs is the refs of a repository. It implements refstore.Store.
type refs struct {
	s   *Storage
	dir string
}

// now returns the repository and its current refs.
func (r *refs) now(ctx context.Context) (repository, *snapshot, error) {
	row, err := r.s.find(ctx, r.dir)
	if err != nil {
		return row, nil, err
	}
	v, err := r.s.snapshot(ctx, r.dir, row)
	return row, v, err
}

// snapshot returns the refs of a repository at its generation or a later one. It reads only
// the changes since they were last read.
func (s *Storage) snapshot(ctx context.Context, dir string, row repository) (*snapshot, error) {
	s.mu.Lock()
	v, ok := s.cached(dir)
	s.mu.Unlock()
	if ok && (v.epoch > row.epoch || v.epoch == row.epoch && v.id == row.id && v.generation >= row.generation) {
		return v, nil
	}
	if !ok || v.epoch != row.epoch || v.id != row.id || v.generation < row.refFloor {
		v = &snapshot{version: version{epoch: row.epoch, id: row.id}}
	}
	changes, err := findRefs(ctx, s.DB, row.id, v.generation)
	if err == nil && v.generation > 0 {
		// Deletions may have been forgotten between the two queries.
		var now repository
		if now, err = s.find(ctx, dir); err == nil && (now.id != v.id || now.refFloor > v.generation) {
			v = &snapshot{version: version{epoch: row.epoch, id: row.id}}
			changes, err = findRefs(ctx, s.DB, row.id, 0)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read refs: %w", err)
	}
	v = v.with(row.generation, changes)
	s.keep(dir, v)
	return v, nil
}

// keep caches a snapshot, and records that the directory must not be older.
func (s *Storage) keep(dir string, v *snapshot) {
	e := s.entry(dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.cached(dir); !ok || !old.has(v.version) {
		cost := 200*len(v.refs) + 1000
		to, other := s.refs, s.largeRefs
		if cost > largeSnapshot {
			to, other = other, to
		}
		if _, ok := other.Peek(dir); ok {
			other.DeleteFunc(func(key string) bool { return key == dir })
		}
		to.Put(dir, v, cost)
	}
	if !e.known.has(v.version) {
		e.known = v.version
	}
}

// cached returns the cached snapshot of a directory. The caller holds mu.
func (s *Storage) cached(dir string) (*snapshot, bool) {
	if v, ok := s.refs.Get(dir); ok {
		return v, true
	}
	return s.largeRefs.Get(dir)
}

// Exists implements refstore.Store.
func (r *refs) Exists(ctx context.Context) error {
	_, err := r.s.find(ctx, r.dir)
	return err
}

// First implements refstore.Store.
func (r *refs) First(ctx context.Context, names []string) (git.OID, error) {
	if len(names) == 0 {
		return "", fmt.Errorf("ref: %w", git.ErrNotFound)
	}
	row, v, err := r.now(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if id := v.follow(row, name); id != "" {
			return id, nil
		}
	}
	return "", fmt.Errorf("ref %.100q: %w", names[0], git.ErrNotFound)
}

// follow returns the ID of a ref or of HEAD, or an empty string.
func (v *snapshot) follow(row repository, name string) git.OID {
	if name == "HEAD" {
		name = git.Heads + row.head
	}
	found, _ := v.find(name)
	return found.target
}

// All implements refstore.Store.
func (r *refs) All(ctx context.Context, names []string) ([]git.OID, error) {
	row, v, err := r.now(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]git.OID, len(names))
	for i, name := range names {
		ids[i] = v.follow(row, name)
	}
	return ids, nil
}

// List implements refstore.Store.
func (r *refs) List(ctx context.Context, place string, wanted func(string) bool) (refstore.Listing, error) {
	_, v, err := r.now(ctx)
	if err != nil {
		return refstore.Listing{}, err
	}
	names := v.below(place)
	if wanted != nil {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !wanted(name) })
	}
	return refstore.NewListing(names, func(name string) (refstore.Entry, error) {
		found, ok := v.find(name)
		if !ok {
			return refstore.Entry{}, fmt.Errorf("ref %.100q: %w", name, git.ErrNotFound)
		}
		return refstore.Entry{ID: found.target, Peeled: found.peeled, Known: true}, nil
	}), nil
}

// Head implements refstore.Store.
func (r *refs) Head(ctx context.Context) (string, error) {
	row, err := r.s.find(ctx, r.dir)
	return row.head, err
}

// Happened implements refstore.Store.
func (r *refs) Happened(ctx context.Context, u git.Update, mark string) (bool, error) {
	if err := git.CheckRef(u.Ref); err != nil {
		return false, err
	}
	row, err := r.s.find(ctx, r.dir)
	if err != nil {
		return false, err
	}
	happened := false
	err = r.s.DB.Tx(ctx, func(tx *db.Tx) error {
		// The lock waits for an update whose connection broke while it was committed.
		if _, err := lockRepository(ctx, tx, row.id); err != nil {
			return db.NotFound(err, "Repository")
		}
		happened, err = hasMark(ctx, tx, row.id, mark, u.Ref)
		return err
	})
	return happened, err
}

// WasAt implements refstore.Store. Only the current value is known.
func (r *refs) WasAt(ctx context.Context, name string, id git.OID) (bool, error) {
	if err := git.CheckRef(name); err != nil {
		return false, err
	}
	_, v, err := r.now(ctx)
	if err != nil {
		return false, err
	}
	found, ok := v.find(name)
	return ok && found.target == id || !ok && id == git.ZeroOID, nil
}
