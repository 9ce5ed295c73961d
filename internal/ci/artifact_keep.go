package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// KeepArtifacts keeps the artifacts of a job forever. Developers only; NotFound
// when there are none.
func (s *Service) KeepArtifacts(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) (*Job, error) {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		j, err := findJob(ctx, tx, p.ID, jobID)
		if err != nil {
			return err
		}
		if _, err := findArtifact(ctx, tx, j.ID, ArchiveFile); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE job_artifacts SET expires_at = NULL WHERE job_id = ? AND kind <> ?`, j.ID, string(TraceFile)); err != nil {
			return err
		}
		return db.ExecOne(ctx, tx, `UPDATE jobs SET artifacts_expire_at = NULL WHERE id = ?`, j.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("keep artifacts of job %d: %w", jobID, err)
	}
	return s.Job(ctx, by, ref, jobID)
}

// DeleteArtifacts removes the artifacts of a job, but not its log. Maintainers
// only; NotFound when there are none.
func (s *Service) DeleteArtifacts(ctx context.Context, by actor.Actor, ref project.Ref, jobID int64) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.BuildsPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		j, err := findJob(ctx, tx, p.ID, jobID)
		if err != nil {
			return err
		}
		keys, err := artifactBlobs(ctx, tx, []int64{j.ID}, false)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return errs.NotFound("")
		}
		return s.dropArtifacts(ctx, tx, []int64{j.ID}, keys, false)
	})
	if err != nil {
		return fmt.Errorf("delete artifacts of job %d: %w", jobID, err)
	}
	return nil
}

// DeleteAllArtifacts removes the artifacts of a project, as far as they may
// go; the queue does it. Maintainers only.
func (s *Service) DeleteAllArtifacts(ctx context.Context, by actor.Actor, ref project.Ref) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.BuildsPart, project.Maintainer)
	if err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error { return s.Queue.Add(ctx, tx, artifactsWork{ProjectID: p.ID}) })
}
