package errortrack

import (
	"context"
	"fmt"
	"time"

	"svc/internal/db"
)

// keptErrors is how many errors of a project are kept, those that came last. Who
// has a key can send as many as they like, each another one.
const keptErrors = 10_000

// sweepBatch is how many errors go in one transaction, with all their events:
// others write meanwhile.
const sweepBatch = 50

// Sweep removes what is not to be kept any longer: errors that have not come for
// the days of the settings, those beyond the limit of a project, ids that no one
// sends again, and counts that no plot shows. The queue calls it every hour.
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
