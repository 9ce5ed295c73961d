package ci

import (
	"context"
	"fmt"

	"svc/internal/db"
	"svc/internal/project"
)

// ProjectsDeleted deletes the project runners that have no other project.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		// A runner of this project alone has no one left to keep it.
		_, err := tx.ExecContext(ctx, `
			DELETE FROM runners WHERE kind = 'project_type' AND id IN (SELECT runner_id FROM runner_projects WHERE project_id = ?)
				AND NOT EXISTS (SELECT 1 FROM runner_projects rp WHERE rp.runner_id = runners.id AND rp.project_id <> ?)`, p.ID, p.ID)
		if err != nil {
			return err
		}
	}
	return nil
}

// expirePipelines removes pipelines that ended longer ago than the settings
// allow, with their jobs, logs and artifacts.
func (s *Service) expirePipelines(ctx context.Context) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil || settings.PipelineDays == 0 {
		return err
	}
	for {
		ids, err := db.All(ctx, s.DB, db.Value[int64], `
			SELECT id FROM pipelines WHERE created_at < ? AND finished_at IS NOT NULL AND finished_at < ? ORDER BY created_at LIMIT 20`,
			s.Now().AddDate(0, 0, -settings.PipelineDays), s.Now().AddDate(0, 0, -settings.PipelineDays))
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
		jobs, err := db.All(ctx, tx, db.Value[int64], `SELECT id FROM jobs WHERE pipeline_id = ?`, id)
		if err != nil {
			return err
		}
		for from := 0; from < len(jobs); from += 500 {
			if err := s.Artifacts.Erase(ctx, tx, jobs[from:min(from+500, len(jobs))]); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM pipelines WHERE id = ?`, id)
		return err
	})
}

// Retain removes what is older than jobs and settings allow. The queue does it
// now and then.
func (s *Service) Retain(ctx context.Context) error {
	if err := s.Artifacts.Retain(ctx); err != nil {
		return err
	}
	return s.expirePipelines(ctx)
}
