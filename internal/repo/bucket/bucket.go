// Package bucket stores Git repositories in an object store: their packs are
// objects, and their refs and lists of packs are in the database. Each node has a
// cache of the repositories that it uses, in which git works; no directory is
// shared between nodes, and every cache may be deleted at any time.
//
// A change of refs writes a pack of the new objects, stores it, and then changes the rows of
// refs and packs in one transaction. So the pack of a row always exists; a crash leaves at
// most objects without a row, which the sweep deletes. Every change increments the
// generation of the repository. Before git reads from the cache of a node, the node compares
// the generations, so every node sees a change as soon as it is acknowledged.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/git/refstore"
	"svc/internal/lru"
	"svc/internal/notice"
)

// Deps are the dependencies of a Storage.
type Deps struct {
	DB    *db.DB
	Git   *git.Engine
	Store blob.Store
	Name  string // of the storage
	Dir   string // for caches; New replaces it by the directory of this process
	// CacheSize is the size in bytes that the cache should not exceed. Repositories
	// that are in use or were used in the last minute are kept nevertheless.
	CacheSize int64
	Notices   *notice.Bus // nil if there are no other nodes
	Log       *slog.Logger
	Now       func() time.Time
}

// Storage is the repositories of one storage. It implements git.Backend.
type Storage struct {
	Deps

	mu      sync.Mutex
	entries map[string]*entry // by directory
	// Large snapshots have a limit of their own, because one may be larger than the limit.
	refs, largeRefs *lru.Map[string, *snapshot]
	stats           Stats
	claim           *os.File // locks the directory

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // goroutines; protected by mu until life has ended

	evicting sync.Mutex // held by the running eviction
	// fetching and fetchingLarge limit concurrent downloads of packs.
	fetching, fetchingLarge chan struct{}
	// prefetching and following limit fetches, and work after fetches, that no request waits for.
	prefetching, following chan struct{}
	owned                  atomic.Bool // the store is known to belong to this instance

	// epoch increases when the database may have lost commits: with asynchronous replication,
	// a standby that becomes the primary may be behind, and gives the same generations again.
	// Nothing that was read in an earlier epoch is trusted.
	epoch atomic.Int64
}

// Stats are counters of the cache since the start of the node.
type Stats struct {
	Hits         int64 // uses of a repository that was up to date
	Fetches      int64 // packs that were fetched
	FetchedBytes int64
	Evictions    int64 // repositories
	Repositories int64 // in the cache now
	Bytes        int64 // in the cache now
	Pinned       int64 // repositories in use, or used a moment ago, which are not evicted
	PinnedBytes  int64
}

const (
	// snapshotBytes is the memory limit for the refs of all repositories, and for those of
	// repositories with more than largeSnapshot. One repository may exceed it.
	snapshotBytes = 32 << 20
	largeSnapshot = snapshotBytes / 8
)

// New returns a Storage and mounts it: git.Engine.Repo then returns its repositories for
// directories below its Dir. The cache of an earlier process is used again.
func New(d Deps) (*Storage, error) {
	dir, err := filepath.Abs(d.Dir)
	if err != nil {
		return nil, err
	}
	s := &Storage{Deps: d, entries: map[string]*entry{}, refs: lru.New[string, *snapshot](snapshotBytes, nil), largeRefs: lru.New[string, *snapshot](snapshotBytes, nil),
		fetching: make(chan struct{}, maxFetching), fetchingLarge: make(chan struct{}, maxFetching),
		prefetching: make(chan struct{}, 1), following: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	if s.Dir, s.claim, err = claim(dir); err != nil {
		return nil, fmt.Errorf("cache of storage %s: %w", d.Name, err)
	}
	if err := emptyOthers(dir, s.Dir); err != nil {
		s.Log.Warn("caches of ended processes cannot be removed", "storage", d.Name, "error", err)
	}
	err = s.findEntries()
	if err == nil {
		err = d.Git.Mount(s.Dir, s)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cache of storage %s: %w", d.Name, err), s.Close())
	}
	if d.Notices != nil {
		d.Notices.Subscribe(s.topic(), s.prefetch)
	}
	return s, nil
}

// Close stops all fetches, and releases the directory for another process.
func (s *Storage) Close() error {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.running.Wait()
	return s.claim.Close()
}

// run calls f in a goroutine, unless the storage is closed.
func (s *Storage) run(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() == nil {
		s.running.Go(f)
	}
}

// Stats returns the counters of the cache.
func (s *Storage) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.stats
	for dir, e := range s.entries {
		if size := e.size.Load(); size > 0 {
			now.Repositories++
			now.Bytes += size
			if s.Git.InUse(dir) || !s.resting(e.last.Load()) {
				now.Pinned++
				now.PinnedBytes += size
			}
		}
	}
	return now
}

func (s *Storage) count(add func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.stats)
}

// path returns the path of a repository in the storage.
func (s *Storage) path(dir string) string {
	return strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(dir, s.Dir)), "/")
}

// find returns the row of a repository. It returns git.ErrNoRepository.
func (s *Storage) find(ctx context.Context, dir string) (repository, error) {
	epoch := s.epoch.Load()
	r, err := findRepository(ctx, s.DB, s.Name, s.path(dir))
	// The row is read within one epoch, so that a row of a later epoch is newer.
	for now := s.epoch.Load(); err == nil && now != epoch; now = s.epoch.Load() {
		epoch = now
		r, err = findRepository(ctx, s.DB, s.Name, s.path(dir))
	}
	r.epoch = epoch
	if errors.Is(err, db.ErrNoRows) {
		return r, fmt.Errorf("%w: %s", git.ErrNoRepository, dir)
	}
	if err != nil {
		return r, fmt.Errorf("find repository: %w", err)
	}
	return r, nil
}

// Refs implements git.Backend.
func (s *Storage) Refs(dir string) refstore.Store { return &refs{s, dir} }

// Size implements git.Backend.
func (s *Storage) Size(ctx context.Context, dir string) (int64, error) {
	r, err := s.find(ctx, dir)
	if err != nil {
		return 0, err
	}
	return sumPacks(ctx, s.DB, r.id)
}

// Remove implements git.Backend. The packs stay in the store for a while.
func (s *Storage) Remove(ctx context.Context, dir string) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		r, err := findRepository(ctx, tx, s.Name, s.path(dir))
		if errors.Is(err, db.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		// The lock comes first: a push or housekeeping may be adding packs.
		if _, err := lockRepository(ctx, tx, r.id); errors.Is(err, db.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		if err := removeAllPacks(ctx, tx, r.id, s.Now()); err != nil {
			return err
		}
		return deleteRepository(ctx, tx, r.id)
	})
	if err != nil {
		return fmt.Errorf("remove repository: %w", err)
	}
	e := s.entry(dir)
	if err := lock(ctx, e); err != nil {
		return err
	}
	defer e.mu.Unlock()
	return s.drop(dir, e)
}

// Create implements git.Backend. The draft is left to the caller.
func (s *Storage) Create(ctx context.Context, dir, draft string) error {
	local := s.Git.Local(draft)
	defer local.Forget() // the directory will be renamed
	head, err := local.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	list, err := local.Refs(ctx, git.RefOptions{})
	if err != nil {
		return err
	}
	if all, err := local.RefNames(ctx, "refs/", nil); err != nil || len(all) != len(list) { // Refs skips refs to missing objects
		return errors.Join(err, fmt.Errorf("create repository: %d of %d refs: %w", len(list), len(all), git.ErrCorrupt))
	}
	packDir := filepath.Join(draft, "objects", "pack")
	if _, err := local.PackLoose(ctx, packDir); err != nil {
		return fmt.Errorf("pack objects: %w", err)
	}
	if err := local.PrunePacked(ctx); err != nil {
		return fmt.Errorf("pack objects: %w", err)
	}
	files, err := os.ReadDir(packDir)
	if err != nil {
		return err
	}
	if _, err := s.find(ctx, dir); err == nil {
		return git.ErrExists
	} else if !errors.Is(err, git.ErrNoRepository) {
		return err
	}
	var packs []packRow
	for _, f := range files {
		hash, ok := strings.CutSuffix(strings.TrimPrefix(f.Name(), "pack-"), ".idx")
		if !ok || !strings.HasPrefix(f.Name(), "pack-") {
			continue
		}
		p, err := s.store(ctx, packDir, hash)
		if err != nil {
			return err
		}
		packs = append(packs, p)
	}
	rows := make([]ref, len(list))
	for i, r := range list {
		rows[i] = ref{name: r.Name, target: r.ID}
		if r.Tag != "" {
			rows[i].peeled = r.Target
		}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		id, err := insertRepository(ctx, tx, s.Name, s.path(dir), head, s.Now())
		if db.IsUnique(err, "bucket_repositories_storage_path") {
			return git.ErrExists
		}
		if err != nil {
			return err
		}
		for _, p := range packs {
			if err := insertPack(ctx, tx, s.Name, id, p); err != nil {
				return err
			}
		}
		return saveRefs(ctx, tx, id, 1, rows)
	})
	if err != nil {
		return fmt.Errorf("create repository: %w", err)
	}
	return nil // the cache is filled from the store, which verifies the stored packs
}
