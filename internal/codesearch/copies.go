package codesearch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
)

// Prefix starts the keys of the shards in the object store. Backups leave them out.
const Prefix = "code_index/"

const (
	// maxDownloads is how many shards a node fetches at a time.
	maxDownloads = 4
	// downloadTime is the time limit of a download. A download continues after the
	// search that started it has ended, so that the next search finds the shard.
	downloadTime = 10 * time.Minute
	// replacedAge is how long a shard is kept after a newer index replaced it, even if
	// the project is indexed repeatedly.
	replacedAge = 24 * time.Hour
)

// copies fetches shards from the object store to the directory of this node.
type copies struct {
	life    context.Context // ends with the service
	stop    context.CancelFunc
	fetches singleflight.Group
	slots   *semaphore.Weighted

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	swept   time.Time // when old copies were removed
}

func newCopies() *copies {
	c := &copies{slots: semaphore.NewWeighted(maxDownloads)}
	c.life, c.stop = context.WithCancel(context.Background())
	return c
}

// begin reports whether a download may begin. The caller calls running.Done at its end.
func (c *copies) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Add(1)
	return true
}

func (c *copies) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.running.Wait()
}

// storedAt returns the key prefix of the shards of a project.
func storedAt(projectID int64) string {
	return fmt.Sprintf("%s%02x/%d/", Prefix, projectID%256, projectID)
}

// stored returns the size of a shard in the object store. fs.ErrNotExist.
func (s *Service) stored(ctx context.Context, projectID int64, name string) (int64, error) {
	info, err := s.Store.Stat(ctx, storedAt(projectID)+name)
	if errs.Is(err, errs.KindNotFound) {
		return 0, fs.ErrNotExist
	}
	return info.Size, err
}

// upload stores a shard that this node has built.
func (s *Service) upload(ctx context.Context, projectID int64, name string) error {
	f, err := os.Open(s.pathOf(projectID, name))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = s.Store.Put(ctx, storedAt(projectID)+name, f, blob.Options{})
	return err
}

// fetch copies a shard from the object store, once for all searches that wait for it.
// NotFound if there is none; Unavailable if the store does not answer.
func (s *Service) fetch(ctx context.Context, projectID int64, name string) error {
	done := s.copies.fetches.DoChan(s.pathOf(projectID, name), func() (any, error) {
		if !s.copies.begin() {
			return nil, context.Canceled
		}
		defer s.copies.running.Done()
		ctx, cancel := context.WithTimeout(s.copies.life, downloadTime)
		defer cancel()
		if err := s.copies.slots.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer s.copies.slots.Release(1)
		err := s.download(ctx, projectID, name)
		if err != nil && !errs.Is(err, errs.KindNotFound) {
			err = errs.Unavailable("The code index cannot be read from the object storage. Try again later.").Because(err)
		}
		s.sweepCopies(ctx)
		return nil, err
	})
	select {
	case res := <-done:
		return res.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Service) download(ctx context.Context, projectID int64, name string) error {
	in, err := s.Store.GetRange(ctx, storedAt(projectID)+name, 0, -1)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(s.dirOf(projectID), 0o700); err != nil {
		return err
	}
	return place(s.pathOf(projectID, name), func(f *os.File) error {
		_, err := io.Copy(f, in)
		return err
	})
}

// sweepCopies removes old copies of this node from time to time.
func (s *Service) sweepCopies(ctx context.Context) {
	now := s.Now()
	s.copies.mu.Lock()
	due := now.Sub(s.copies.swept) >= sweepEvery
	if due {
		s.copies.swept = now
	}
	s.copies.mu.Unlock()
	if !due {
		return
	}
	if err := s.sweepFiles(ctx); err != nil {
		s.Log.WarnContext(ctx, "old copies of the code index cannot be removed", "error", err)
	}
}

// removeStored deletes the shards of a project.
func (s *Service) removeStored(ctx context.Context, projectID int64) error {
	for info, err := range s.Store.List(ctx, storedAt(projectID)) {
		if err == nil {
			err = s.Store.Delete(ctx, info.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepStored deletes shards that no index refers to. Shards that were replaced a short
// time ago stay, because searches may be about to fetch them.
func (s *Service) sweepStored(ctx context.Context) error {
	now := s.Now()
	var x index
	for info, err := range s.Store.List(ctx, Prefix) {
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(strings.TrimPrefix(info.Key, Prefix), "/")
		number, name, _ := strings.Cut(rest, "/")
		id, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue // not one of ours
		}
		if id != x.ProjectID {
			if x, err = findIndex(ctx, s.DB, id); err != nil && !errors.Is(err, db.ErrNoRows) {
				return err
			}
			x.ProjectID = id
		}
		age := now.Sub(info.ModTime)
		if slices.Contains(x.Shards, name) || age < sweepAge || age < replacedAge && now.Sub(x.IndexedAt) < sweepAge {
			continue
		}
		if err := s.Store.Delete(ctx, info.Key); err != nil {
			return err
		}
	}
	return nil
}

// place writes a file under a temporary name, then renames it.
func place(path string, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
