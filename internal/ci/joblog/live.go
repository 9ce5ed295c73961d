package joblog

import (
	"context"

	"svc/internal/db"
)

// liveStore keeps the logs of jobs that run. They are in files where there
// is one node, and in rows of the database where there are several.
//
// A log is only added to. When a runner finds that what is stored is not what
// it sent, it sends all of it again (restart); what was there stays readable
// until the new one is as long, so that for a reader a log never shrinks.
type liveStore interface {
	// add adds bytes at an offset, which must be the end: otherwise it returns a
	// GapError with the size. It returns the new size.
	add(ctx context.Context, jobID, at int64, p []byte) (int64, error)
	// sum is the size of what was written since the last restart, and its
	// CRC-32; false when it would have to be read for that.
	sum(ctx context.Context, jobID int64) (size int64, crc uint32, known bool)
	// size is how much was written since the last restart.
	size(ctx context.Context, jobID int64) (int64, error)
	// restart begins a log again; restarted reports whether that was done.
	restart(ctx context.Context, jobID int64) error
	restarted(ctx context.Context, jobID int64) (bool, error)
	// open reads what there is, nil when there is nothing: the longer of the
	// two, or with newest the one that was written last.
	open(ctx context.Context, jobID int64, newest bool) (*Reader, error)
	// sync has what was written survive the machine.
	sync(ctx context.Context, jobID int64) error
	remove(ctx context.Context, jobID int64) error
	// jobs are those that have a live log.
	jobs(ctx context.Context) ([]int64, error)
}

// openLive returns where the kind of database keeps live logs: rows of PostgreSQL,
// which may have several nodes, or files of dir.
func openLive(d *db.DB, dir string) liveStore {
	if d.Postgres() {
		return &chunkStore{d}
	}
	return &segmentStore{dir: dir, limit: segmentSize}
}
