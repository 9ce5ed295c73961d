package ci

import (
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/db"
	"svc/internal/errs"
)

// TakeOverLogs brings the live logs of an instance that came from a backup to
// where its kind of database keeps them: in files of dir, or in rows. No server
// may run on it; svc restore calls it.
func TakeOverLogs(ctx context.Context, d *db.DB, dir string) error {
	var from, to liveLog = &logChunks{d}, &logSegments{dir: dir, limit: segmentSize}
	if d.Postgres() {
		from, to = to, from
	}
	jobs, err := from.jobs(ctx)
	if err != nil {
		return fmt.Errorf("live logs: %w", err)
	}
	for _, id := range jobs {
		if err := takeOverLog(ctx, d, from, to, id); err != nil {
			return fmt.Errorf("live log of job %d: %w", id, err)
		}
	}
	return nil
}

func takeOverLog(ctx context.Context, d *db.DB, from, to liveLog, jobID int64) error {
	_, err := findAnyJob(ctx, d, jobID)
	if errs.Is(err, errs.KindNotFound) { // it came after the backup of the database
		return from.remove(ctx, jobID)
	}
	if err != nil {
		return err
	}
	log, err := from.open(ctx, jobID, false)
	if log == nil || err != nil {
		return err
	}
	defer log.Close()
	piece := make([]byte, 1<<20)
	for at := int64(0); ; {
		n, err := io.ReadFull(log, piece)
		if n > 0 {
			if at, err = to.add(ctx, jobID, at, piece[:n]); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		break
	}
	if err := to.sync(ctx, jobID); err != nil {
		return err
	}
	return from.remove(ctx, jobID)
}
