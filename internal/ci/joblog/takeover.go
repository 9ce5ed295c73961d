package joblog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"svc/internal/db"
)

// TakeOver moves the live logs of a restored instance to the store of its kind of
// database: files in dir, or rows. svc restore calls it while no server is running.
func TakeOver(ctx context.Context, d *db.DB, dir string) error {
	var from, to liveStore = &chunkStore{d}, &segmentStore{dir: dir, limit: segmentSize}
	if d.Postgres() {
		from, to = to, from
	}
	jobs, err := from.jobs(ctx)
	if err != nil {
		return fmt.Errorf("live logs: %w", err)
	}
	for _, id := range jobs {
		if err := takeOver(ctx, d, from, to, id); err != nil {
			return fmt.Errorf("live log of job %d: %w", id, err)
		}
	}
	return nil
}

func takeOver(ctx context.Context, d *db.DB, from, to liveStore, jobID int64) error {
	found, err := jobExists(ctx, d, jobID)
	if err != nil {
		return err
	}
	if !found { // it is newer than the backup of the database
		return from.remove(ctx, jobID)
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
