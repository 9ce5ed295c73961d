package joblog

import (
	"context"

	"svc/internal/db"
)

// liveStore stores the logs of running jobs: in files on a single node, and in rows
// of the database where there may be several nodes.
//
// A log is only appended to. If the stored log differs from what the runner sent,
// the runner sends all of it again (restart). The previous version stays readable
// until the new one is longer, so that a log never shrinks for its readers.
type liveStore interface {
	// add appends a chunk at an offset, which must be the end: otherwise it returns
	// a GapError with the size. It returns the new size.
	add(ctx context.Context, jobID, at int64, p []byte) (int64, error)
	// sum returns the size and the CRC-32 of what was written since the last
	// restart; false if the log would have to be read for that.
	sum(ctx context.Context, jobID int64) (size int64, crc uint32, known bool)
	// size returns the number of bytes since the last restart.
	size(ctx context.Context, jobID int64) (int64, error)
	// restart starts a log again from offset 0; restarted reports whether that was
	// done.
	restart(ctx context.Context, jobID int64) error
	restarted(ctx context.Context, jobID int64) (bool, error)
	// open opens a log, nil if there is none: the longer version, or with newest the
	// one since the last restart.
	open(ctx context.Context, jobID int64, newest bool) (*Reader, error)
	// sync flushes the log to the disk.
	sync(ctx context.Context, jobID int64) error
	remove(ctx context.Context, jobID int64) error
	// jobs returns the jobs with a live log, in ascending order.
	jobs(ctx context.Context) ([]int64, error)
}

// openLive returns the store of live logs for the kind of database: rows of PostgreSQL,
// which may have several nodes, or files in dir.
func openLive(d *db.DB, dir string) liveStore {
	if d.Postgres() {
		return &chunkStore{d}
	}
	return &segmentStore{dir: dir, limit: segmentSize}
}
