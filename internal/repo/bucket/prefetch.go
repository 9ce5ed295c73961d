package bucket

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"svc/internal/db"
	"svc/internal/git"
)

// Requests should not wait for large packs. Two things are done before a request needs them:
//
// Packs that housekeeping made have only objects of packs that the caches may have already.
// Such a cache is used with its old packs until the new ones are fetched.
//
// A node that stores a pack as an object sends a notice. Nodes that use the repository then
// fetch it.

// neededNow splits the packs of a repository. An entry needs the first ones for its refs; the later
// ones have only objects of packs that are in the directory, which are among the needed ones
// instead. The caller holds the lock of the entry.
func neededNow(dir string, e *entry, row repository, packs []packRow) (needed, later []packRow) {
	covered := func(p packRow) bool {
		return p.madeFrom > 0 && e.synced.epoch == row.epoch && e.synced.generation >= p.madeFrom && !p.inRow && !hasPack(dir, p)
	}
	if e.synced.id != row.id || !slices.ContainsFunc(packs, covered) || !arrived(dir, e.packs) {
		return packs, nil
	}
	listed := map[string]bool{}
	for _, p := range packs {
		listed[p.hash] = true
		if covered(p) {
			later = append(later, p)
		} else {
			needed = append(needed, p)
		}
	}
	for _, p := range e.packs {
		if !listed[p.hash] {
			needed = append(needed, p)
		}
	}
	return needed, later
}

// arrived reports whether all of some packs are in a directory, and there are any.
func arrived(dir string, packs []packRow) bool {
	return len(packs) > 0 && !slices.ContainsFunc(packs, func(p packRow) bool { return !hasPack(dir, p) })
}

// refreshAll updates the cache, and waits for the packs that requests do not need.
func (s *Storage) refreshAll(ctx context.Context, dir string) error {
	if _, err := s.Refresh(ctx, dir); err != nil {
		return err
	}
	return s.fetchLater(ctx, dir, s.entry(dir))
}

// fetchLater fetches the packs that were left for later, while the directory is in use.
func (s *Storage) fetchLater(ctx context.Context, dir string, e *entry) error {
	var err error
	for range 5 { // packs may be replaced meanwhile
		s.mu.Lock()
		later := e.later
		s.mu.Unlock()
		if len(later) == 0 {
			return nil
		}
		for _, p := range later {
			if hasPack(dir, p) {
				continue
			}
			if err = s.fetch(ctx, dir, p); err != nil && !errors.Is(err, errReplaced) {
				return err
			}
		}
		if err := s.fly(dir, e).wait(ctx); err != nil {
			return err
		}
	}
	return cmp.Or(err, git.ErrBusy)
}

// graphSize is the number of bytes of packs from which a commit-graph is worth it.
const graphSize = 1 << 20

func (s *Storage) graphIsOld(dir string) {
	e := s.entry(dir)
	s.mu.Lock()
	e.graphIsOld = true
	s.mu.Unlock()
}

// follow does what is left to do after a fetch: it fetches the packs that were left for later,
// and writes the commit-graph, which speeds up histories. Only one repository at a time is
// worked on, because requests need the processors and the network.
func (s *Storage) follow(ctx context.Context, dir string, e *entry) {
	s.mu.Lock()
	idle := len(e.later) == 0 && !e.graphIsOld
	s.mu.Unlock()
	if idle || !e.following.CompareAndSwap(false, true) {
		return
	}
	defer e.following.Store(false)
	select {
	case s.following <- struct{}{}:
		defer func() { <-s.following }()
	case <-ctx.Done():
		return
	}
	if err := s.fetchLater(ctx, dir, e); err != nil && s.life.Err() == nil {
		s.Log.WarnContext(ctx, "packs of a repository cannot be fetched; the next change of the repository tries again", "repository", s.path(dir), "error", err)
	}
	s.mu.Lock()
	old := e.graphIsOld
	e.graphIsOld = false
	s.mu.Unlock()
	if !old {
		return
	}
	if err := s.Git.Local(dir).WriteGraph(ctx); err != nil {
		if _, gone := os.Stat(dir); gone == nil && s.life.Err() == nil {
			s.Log.WarnContext(ctx, "the commit-graph of a repository cannot be written", "repository", s.path(dir), "error", err)
		}
	}
}

// topic is the topic of notices about packs in the object store. The key is the path of the
// repository.
func (s *Storage) topic() string { return "bucket_packs." + s.Name }

// announce sends a notice if a pack is in the object store. Smaller ones are fetched faster than
// a notice arrives.
func (s *Storage) announce(ctx context.Context, tx *db.Tx, dir string, packs ...packRow) error {
	if s.Notices == nil || !slices.ContainsFunc(packs, func(p packRow) bool { return !p.inRow }) {
		return nil
	}
	return s.Notices.Send(ctx, tx, s.topic(), s.path(dir))
}

// prefetchAge is how long ago a repository may have been used so that new packs are fetched
// before the next use.
const prefetchAge = time.Hour

// prefetch fetches the new packs of a repository if this node uses it, soon after it was
// called.
func (s *Storage) prefetch(path string) {
	if path == "" { // notices were missed
		if s.DB.Postgres() {
			s.epoch.Add(1) // the connection may have ended with the primary; see Storage.epoch
		}
		return // the next use fetches the packs
	}
	dir := filepath.Join(s.Dir, filepath.FromSlash(path))
	s.mu.Lock()
	e := s.entries[dir]
	s.mu.Unlock()
	if e == nil || e.size.Load() == 0 || e.writing.Load() > 0 || s.Now().Sub(time.Unix(0, e.last.Load())) > prefetchAge || !e.expected.CompareAndSwap(false, true) {
		return
	}
	s.run(func() {
		select {
		case s.prefetching <- struct{}{}:
			defer func() { <-s.prefetching }()
		case <-s.life.Done():
			return
		}
		e.expected.Store(false) // a notice that arrives during the fetch may be about a newer pack
		if err := s.fly(dir, e).wait(s.life); err != nil && s.life.Err() == nil && !errors.Is(err, git.ErrNoRepository) {
			s.Log.Info("packs of a repository cannot be fetched before they are needed", "repository", path, "error", err)
		}
	})
}
