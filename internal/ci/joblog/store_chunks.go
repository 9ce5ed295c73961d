package joblog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/db"
)

// chunkStore stores live logs in the database, where every node can append to them
// and read them.
type chunkStore struct{ db *db.DB }

// before is the position of the first chunk of the version before a restart. It is
// negative, so that the position of a chunk distinguishes the versions.
const before = -(int64(1) << 50)

func (l *chunkStore) add(ctx context.Context, jobID, at int64, p []byte) (int64, error) {
	size, err := l.size(ctx, jobID)
	if err != nil {
		return 0, err
	}
	if size != at {
		return size, &GapError{size}
	}
	if len(p) == 0 {
		return size, nil
	}
	err = l.db.Tx(ctx, func(tx *db.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO log_chunks (job_id, position, content) VALUES (?, ?, ?)`, jobID, at, p)
		return err
	})
	if db.IsUnique(err, "log_chunks_job_id_position") { // another node was faster
		if size, err = l.size(ctx, jobID); err == nil {
			err = &GapError{size}
		}
		return size, err
	}
	return at + int64(len(p)), err
}

func (l *chunkStore) sum(context.Context, int64) (int64, uint32, bool) { return 0, 0, false }

func (l *chunkStore) size(ctx context.Context, jobID int64) (int64, error) {
	return l.sizeFrom(ctx, jobID, 0, -before)
}

// sizeFrom returns the size of the version between two positions.
func (l *chunkStore) sizeFrom(ctx context.Context, jobID, from, to int64) (int64, error) {
	var end int64
	err := l.db.QueryRowContext(ctx, `
		SELECT position + length(content) FROM log_chunks WHERE job_id = ? AND position >= ? AND position < ? ORDER BY position DESC LIMIT 1`,
		jobID, from, to).Scan(&end)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return end - from, err
}

func (l *chunkStore) restart(ctx context.Context, jobID int64) error {
	return l.db.Tx(ctx, func(tx *db.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM log_chunks WHERE job_id = ? AND position < 0`, jobID); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE log_chunks SET position = position + ? WHERE job_id = ?`, before, jobID)
		return err
	})
}

func (l *chunkStore) restarted(ctx context.Context, jobID int64) (bool, error) {
	size, err := l.sizeFrom(ctx, jobID, before, 0)
	return size > 0, err
}

func (l *chunkStore) open(ctx context.Context, jobID int64, newest bool) (*Reader, error) {
	now, err := l.size(ctx, jobID)
	if err != nil {
		return nil, err
	}
	was, err := l.sizeFrom(ctx, jobID, before, 0)
	if err != nil {
		return nil, err
	}
	from := int64(0)
	if was > now && !newest {
		now, from = was, before
	}
	if now == 0 {
		return nil, nil
	}
	return &Reader{&chunkReader{ctx: ctx, db: l.db, jobID: jobID, from: from, size: now}, now}, nil
}

func (l *chunkStore) sync(context.Context, int64) error { return nil }

func (l *chunkStore) remove(ctx context.Context, jobID int64) error {
	return l.db.Tx(ctx, func(tx *db.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM log_chunks WHERE job_id = ?`, jobID)
		return err
	})
}

func (l *chunkStore) jobs(ctx context.Context) ([]int64, error) {
	return db.All(ctx, l.db, db.Value[int64], `
		WITH RECURSIVE w (id) AS (
			SELECT (SELECT MIN(job_id) FROM log_chunks)
			UNION ALL
			SELECT (SELECT MIN(c.job_id) FROM log_chunks c WHERE c.job_id > w.id) FROM w WHERE w.id IS NOT NULL
		) SELECT id FROM w WHERE id IS NOT NULL`)
}

// chunkReader reads a log chunk by chunk.
type chunkReader struct {
	ctx   context.Context
	db    *db.DB
	jobID int64
	from  int64 // position of its first chunk
	size  int64
	at    int64

	chunk   []byte
	chunkAt int64
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) {
	if r.at >= r.size {
		return 0, io.EOF
	}
	if r.at < r.chunkAt || r.at >= r.chunkAt+int64(len(r.chunk)) {
		var position int64
		err := r.db.QueryRowContext(r.ctx, `
			SELECT position, content FROM log_chunks WHERE job_id = ? AND position <= ? AND position >= ? ORDER BY position DESC LIMIT 1`,
			r.jobID, r.from+r.at, r.from).Scan(&position, &r.chunk)
		if errors.Is(err, db.ErrNoRows) {
			return 0, io.ErrUnexpectedEOF // it was packed meanwhile
		}
		if err != nil {
			return 0, fmt.Errorf("read log of job %d: %w", r.jobID, err)
		}
		if r.chunkAt = position - r.from; r.at >= r.chunkAt+int64(len(r.chunk)) {
			return 0, io.ErrUnexpectedEOF
		}
	}
	n := copy(p, r.chunk[r.at-r.chunkAt:])
	if left := r.size - r.at; int64(n) > left {
		n = int(left)
	}
	r.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (r *chunkReader) Seek(offset int64, whence int) (int64, error) {
	return seek(&r.at, r.size, offset, whence)
}

// Close implements io.Closer.
func (r *chunkReader) Close() error { return nil }

func seek(at *int64, size, offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += *at
	case io.SeekEnd:
		offset += size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start")
	}
	*at = offset
	return offset, nil
}

// jobExists reports whether there is a job.
func jobExists(ctx context.Context, q db.Q, jobID int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM jobs WHERE id = ?`, jobID)
}
