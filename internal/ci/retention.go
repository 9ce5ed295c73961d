package ci

import (
	"context"
	"fmt"

	"svc/internal/db"
)

// expirePipelines deletes pipelines that ended longer ago than the settings
// allow, with their jobs, logs and artifacts.
func (s *Service) expirePipelines(ctx context.Context) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil || settings.PipelineDays == 0 {
		return err
	}
	for {
		ids, err := findFinishedBefore(ctx, s.DB, s.Now().AddDate(0, 0, -settings.PipelineDays))
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := s.dropPipeline(ctx, id); err != nil {
				return fmt.Errorf("expire pipeline %d: %w", id, err)
			}
		}
	}
}

func (s *Service) dropPipeline(ctx context.Context, id int64) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		jobs, err := findJobIDs(ctx, tx, id)
		if err != nil {
			return err
		}
		for from := 0; from < len(jobs); from += 500 {
			if err := s.Artifacts.Erase(ctx, tx, jobs[from:min(from+500, len(jobs))]); err != nil {
				return err
			}
		}
		return deletePipeline(ctx, tx, id)
	})
}

// Retain removes pipelines, logs and artifacts that have expired. The queue calls it
// regularly.
func (s *Service) Retain(ctx context.Context) error {
	if err := s.Artifacts.Retain(ctx); err != nil {
		return err
	}
	return s.expirePipelines(ctx)
}
