package errortrack

import (
	"context"
	"fmt"
	"time"

	"svc/internal/db"
)

// keptErrors is the maximum number of errors of a project; the most recent are
// kept. Without it, the owner of a key could fill the database with distinct
// errors.
const keptErrors = 10_000

// sweepBatch is the number of errors that are deleted with their events in one
// transaction, so that others are not blocked.
const sweepBatch = 50

// Sweep deletes expired data: errors that have not occurred for the number of days
// in the settings, errors beyond the limit of a project, old event IDs, and counts
// that are no longer shown. It is an hourly job.
func (s *Service) Sweep(ctx context.Context) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	if days := settings.ErrorDays; days > 0 {
		before := s.Now().Add(-time.Duration(days) * 24 * time.Hour)
		err := s.DB.Batches(ctx, func(tx *db.Tx) (int64, error) { return deleteUnseen(ctx, tx, before, sweepBatch) })
		if err != nil {
			return fmt.Errorf("remove old errors: %w", err)
		}
	}
	full, err := crowded(ctx, s.DB, keptErrors)
	if err != nil {
		return fmt.Errorf("projects with many errors: %w", err)
	}
	for _, projectID := range full {
		err := s.DB.Batches(ctx, func(tx *db.Tx) (int64, error) { return deleteBeyond(ctx, tx, projectID, keptErrors, sweepBatch) })
		if err != nil {
			return fmt.Errorf("remove errors of project %d: %w", projectID, err)
		}
	}
	known := s.Now().Add(-remembered)
	err = s.DB.Batches(ctx, func(tx *db.Tx) (int64, error) { return deleteSeen(ctx, tx, known, 100*sweepBatch) })
	if err != nil {
		return fmt.Errorf("forget ids of events: %w", err)
	}
	first := hourOf(s.Now()) - (plotDays+1)*dayHours
	err = s.DB.Batches(ctx, func(tx *db.Tx) (int64, error) { return deleteHours(ctx, tx, first, 100*sweepBatch) })
	if err != nil {
		return fmt.Errorf("remove old counts of errors: %w", err)
	}
	return nil
}
