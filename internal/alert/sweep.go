package alert

import (
	"context"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/plan"
)

// sweepBatch is the number of alerts per transaction, so that others can write in
// between.
const sweepBatch = 100

// Sweep deletes alerts that are resolved or ignored and have not changed for the
// number of days in the settings, with their notes. Open alerts and incidents are
// kept. It is an hourly job.
func (s *Service) Sweep(ctx context.Context) error {
	settings, err := s.Deps.Settings.Current(ctx)
	if err != nil || settings.AlertDays == 0 {
		return err
	}
	before := s.Now().Add(-time.Duration(settings.AlertDays) * 24 * time.Hour)
	err = s.DB.Batches(ctx, func(tx *db.Tx) (int64, error) {
		ids, err := findOver(ctx, tx, before, sweepBatch)
		if err != nil {
			return 0, err
		}
		images, err := findImagesOf(ctx, tx, ids)
		if err != nil {
			return 0, err
		}
		if err := s.dropAll(ctx, tx, images); err != nil {
			return 0, err
		}
		if ids, err = deleteOver(ctx, tx, before, ids); err != nil {
			return 0, err
		}
		return int64(len(ids)), plan.Forget(ctx, tx, NoteKind, ids...)
	})
	if err != nil {
		return fmt.Errorf("remove old alerts: %w", err)
	}
	return nil
}
