// Package joblog stores the logs of jobs. While a job runs, its log is live:
// chunks are appended to shared segment files, or to rows of the database where
// there may be several nodes. After the job has ended, the log is packed into one
// compressed object of the blob store.
//
// The formats are described in docs/adr/0018-job-log-storage.md. The package does
// not know projects and permissions.
package joblog

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/notice"
	"svc/internal/setting"
)

// Deps are the dependencies of the store.
type Deps struct {
	DB       *db.DB
	Blobs    blob.Store
	Notices  *notice.Bus
	Settings *setting.Service
	Dir      string // of live logs on a single node
	Now      func() time.Time
}

// Store stores job logs.
type Store struct {
	Deps
	live    liveStore
	packer  packer
	watched watchers
}

// New returns the store, and subscribes to notices about logs that users read.
func New(d Deps) *Store {
	s := &Store{Deps: d, live: openLive(d.DB, d.Dir), watched: watchers{jobs: map[int64]*watched{}}}
	s.listen()
	return s
}

// Reader reads a log as of the time when it was opened. The caller closes it.
type Reader struct {
	io.ReadSeekCloser
	Size int64
}

// GapError is the error for a chunk that does not begin at the end of the log.
type GapError struct{ Size int64 }

func (e *GapError) Error() string { return fmt.Sprintf("the log has %d bytes", e.Size) }

// limit returns the maximum size of a log in bytes.
func (s *Store) limit(ctx context.Context) (int64, error) {
	settings, err := s.Settings.Current(ctx)
	return int64(settings.MaxLogMegabytes) << 20, err
}

// cutNotice is the last line of a log that exceeds the limit.
func cutNotice(limit int64) []byte {
	return fmt.Appendf(nil, "\n\x1b[31;1mThe log is over its limit of %d MiB. The job goes on, but what it writes is not kept.\x1b[0;m\n", limit>>20)
}

// Append adds a chunk at an offset, which must be the end of the log: otherwise it
// returns a GapError with the size. It returns the new size as the runner counts
// it: bytes over the limit count, though they are not stored.
func (s *Store) Append(ctx context.Context, jobID, at int64, p []byte) (int64, error) {
	limit, err := s.limit(ctx)
	if err != nil {
		return 0, err
	}
	end := at + int64(len(p))
	if end > limit { // only then it may have been cut
		size, err := s.live.size(ctx, jobID)
		if err != nil || size > limit {
			return end, err
		}
		if at > limit {
			return size, &GapError{size}
		}
		p = append(bytes.Clone(p[:limit-at]), cutNotice(limit)...)
	}
	if size, err := s.live.add(ctx, jobID, at, p); err != nil {
		return size, err
	}
	s.Changed(jobID)
	return end, nil
}

// Verify compares a live log with the size and the CRC-32 that the runner computed; a size
// of 0 means that the runner sends the checksum only. If bytes are missing, the runner
// continues at the end of the log. If the logs differ, the log is restarted once. A second
// difference is ignored, so that a runner with wrong checksums does not send its log
// forever.
func (s *Store) Verify(ctx context.Context, jobID, size int64, crc uint32) (bool, error) {
	have := int64(-1)
	if size == 0 {
		var err error
		if have, err = s.live.size(ctx, jobID); err != nil {
			return false, err
		}
		size = have
	}
	same, err := s.matches(ctx, jobID, size, crc)
	if same || err != nil {
		return same, err
	}
	if have < 0 {
		if have, err = s.live.size(ctx, jobID); err != nil {
			return false, err
		}
	}
	again, err := s.live.restarted(ctx, jobID)
	if err != nil || again {
		return again, err
	}
	if have < size {
		return false, nil
	}
	return false, s.live.restart(ctx, jobID)
}

// matches reports whether a live log has a size and checksum. A log that was cut
// cannot be compared.
func (s *Store) matches(ctx context.Context, jobID, size int64, crc uint32) (bool, error) {
	limit, err := s.limit(ctx)
	if err != nil {
		return false, err
	}
	if have, sum, known := s.live.sum(ctx, jobID); known {
		return have > limit || have == size && sum == crc, nil
	}
	l, err := s.live.open(ctx, jobID, true)
	if err != nil {
		return false, err
	}
	if l == nil {
		return size == 0, nil
	}
	defer l.Close()
	if l.Size > limit {
		return true, nil
	}
	if l.Size != size {
		return false, nil
	}
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, l); err != nil {
		return false, err
	}
	return sum.Sum32() == crc, nil
}

// OpenLive opens a live log as it was written last, nil if there is none.
func (s *Store) OpenLive(ctx context.Context, jobID int64) (*Reader, error) {
	return s.live.open(ctx, jobID, true)
}

// Open opens a log, live or packed; nil if there is none. packed opens the packed log, nil
// if there is none: a log may be packed while it is opened or read. If the log was
// restarted, Open returns the longer version, or the newest one if newest is set.
func (s *Store) Open(ctx context.Context, jobID int64, newest bool, packed func() (*Reader, error)) (*Reader, error) {
	l, err := packed()
	if l != nil || err != nil {
		return l, err
	}
	live, err := s.live.open(ctx, jobID, newest)
	if err != nil {
		return nil, err
	}
	if live != nil {
		return &Reader{&movedLog{live: live, packed: packed}, live.Size}, nil
	}
	return packed()
}

// Sync flushes a live log to the disk.
func (s *Store) Sync(ctx context.Context, jobID int64) error { return s.live.sync(ctx, jobID) }

// Remove removes a live log, if there is one.
func (s *Store) Remove(ctx context.Context, jobID int64) error { return s.live.remove(ctx, jobID) }

// Jobs returns the jobs that have a live log.
func (s *Store) Jobs(ctx context.Context) ([]int64, error) { return s.live.jobs(ctx) }
