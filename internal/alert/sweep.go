package alert

import (
	"context"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/plan"
)

// sweepBatch is how many alerts go in one transaction: others write meanwhile.
const sweepBatch = 100

// Sweep removes alerts that are over and have not changed for the days of the
// settings, with what was noted of them. Those that are open stay, a user has to
// look at them; so do incidents, which belong to users. The queue calls it
// every hour.
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
