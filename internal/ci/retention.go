package ci

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// eraseFiles removes the logs and artifacts of jobs: their rows now, what is in
// the store by the queue.
func (s *Service) eraseFiles(ctx context.Context, tx *db.Tx, jobIDs []int64) error {
	if len(jobIDs) == 0 {
		return nil
	}
	keys, err := artifactBlobs(ctx, tx, jobIDs, true)
	if err != nil {
		return err
	}
	return s.dropArtifacts(ctx, tx, jobIDs, keys, true)
}

// dropArtifacts removes rows of files of jobs, and has the files removed.
func (s *Service) dropArtifacts(ctx context.Context, tx *db.Tx, jobIDs []int64, keys []string, logs bool) error {
	query := `DELETE FROM job_artifacts WHERE job_id IN ` + db.In(len(jobIDs)) + ``
	if !logs {
		query += ` AND kind <> 'trace'`
	}
	if _, err := tx.ExecContext(ctx, query, db.Any(jobIDs)...); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE jobs SET artifacts_expire_at = NULL WHERE artifacts_expire_at IS NOT NULL AND id IN `+db.In(len(jobIDs)), db.Any(jobIDs)...)
	if err != nil {
		return err
	}
	w := blobsWork{Keys: keys}
	if logs {
		w.Logs = jobIDs
	}
	if len(w.Keys) == 0 && len(w.Logs) == 0 {
		return nil
	}
	return s.Queue.Add(ctx, tx, w)
}

// blobsWork removes files that no row names any more, and live logs.
type blobsWork struct {
	Keys []string
	Logs []int64
}

// Kind implements queue.Work.
func (blobsWork) Kind() string { return "ci.remove_files" }

func (s *Service) removeFiles(ctx context.Context, w blobsWork) error {
	for _, key := range w.Keys {
		if err := s.Blobs.Delete(ctx, key); err != nil {
			return fmt.Errorf("remove %s: %w", key, err)
		}
	}
	for _, id := range w.Logs {
		if err := s.logs.Remove(ctx, id); err != nil {
			return fmt.Errorf("remove live log of job %d: %w", id, err)
		}
	}
	return nil
}

// artifactsWork removes the artifacts of a project.
type artifactsWork struct {
	ProjectID int64
	After     int64
}

// Kind implements queue.Work.
func (artifactsWork) Kind() string { return "ci.remove_artifacts" }

// removedAtOnce is how many jobs are worked off in one transaction.
const removedAtOnce = 100

func (s *Service) removeArtifacts(ctx context.Context, w artifactsWork) error {
	for {
		ids, err := db.All(ctx, s.DB, db.Value[int64], `
			SELECT j.id FROM jobs j WHERE j.project_id = ? AND j.id > ?
				AND j.status IN ('success', 'failed', 'canceled', 'skipped')
				AND EXISTS (SELECT 1 FROM job_artifacts a WHERE a.job_id = j.id AND a.kind <> 'trace') ORDER BY j.id LIMIT ?`,
			w.ProjectID, w.After, removedAtOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			keys, err := artifactBlobs(ctx, tx, ids, false)
			if err != nil {
				return err
			}
			return s.dropArtifacts(ctx, tx, ids, keys, false)
		})
		if err != nil {
			return err
		}
		w.After = ids[len(ids)-1]
	}
}

// forgetProjects takes part when projects are deleted permanently: the rows go with
// them.
func (s *Service) forgetProjects(ctx context.Context, tx *db.Tx, gone []project.Removed) error {
	for _, p := range gone {
		keys, err := db.All(ctx, tx, db.Value[string], `SELECT a.blob FROM job_artifacts a JOIN jobs j ON j.id = a.job_id WHERE j.project_id = ?`, p.ID)
		if err != nil {
			return err
		}
		for len(keys) > 0 {
			n := min(len(keys), 1000)
			if err := s.Queue.Add(ctx, tx, blobsWork{Keys: keys[:n]}); err != nil {
				return err
			}
			keys = keys[n:]
		}
		// A runner of this project alone has no one left to keep it.
		_, err = tx.ExecContext(ctx, `
			DELETE FROM runners WHERE kind = 'project_type' AND id IN (SELECT runner_id FROM runner_projects WHERE project_id = ?)
				AND NOT EXISTS (SELECT 1 FROM runner_projects rp WHERE rp.runner_id = runners.id AND rp.project_id <> ?)`, p.ID, p.ID)
		if err != nil {
			return err
		}
	}
	return nil
}

// keptAgain is when artifacts are looked at again that have expired but
// belong to the newest pipeline of their ref.
const keptAgain = 24 * time.Hour

// expireArtifacts removes the artifacts whose time is over. Those of the
// newest successful pipeline of a ref stay, where the project wants it.
func (s *Service) expireArtifacts(ctx context.Context) error {
	for {
		now := s.Now()
		ids, err := db.All(ctx, s.DB, db.Value[int64], `
			SELECT DISTINCT a.job_id FROM job_artifacts a WHERE a.expires_at <= ? AND a.kind <> 'trace' ORDER BY a.job_id LIMIT ?`, now, removedAtOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := s.expireJob(ctx, id, now); err != nil {
				return fmt.Errorf("expire artifacts of job %d: %w", id, err)
			}
		}
	}
}

func (s *Service) expireJob(ctx context.Context, id int64, now time.Time) error {
	j, err := findAnyJob(ctx, s.DB, id)
	if err != nil {
		return err
	}
	kept, err := s.keepsLatest(ctx, j)
	if err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if kept {
			_, err := tx.ExecContext(ctx, `UPDATE job_artifacts SET expires_at = ? WHERE job_id = ? AND expires_at <= ?`, now.Add(keptAgain), id, now)
			return err
		}
		keys, err := db.All(ctx, tx, db.Value[string], `SELECT blob FROM job_artifacts WHERE job_id = ? AND kind <> 'trace' AND expires_at <= ?`, id, now)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM job_artifacts WHERE job_id = ? AND kind <> 'trace' AND expires_at <= ?`, id, now)
		if err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, blobsWork{Keys: keys})
	})
}

// keepsLatest reports whether a job's artifacts stay because its pipeline is
// the newest successful one of its ref.
func (s *Service) keepsLatest(ctx context.Context, j *Job) (bool, error) {
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(j.ProjectID), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return false, nil
	}
	if err != nil || !p.Settings.KeepLatestArtifact {
		return false, err
	}
	var newest *int64
	err = s.DB.QueryRowContext(ctx, `SELECT MAX(id) FROM pipelines WHERE project_id = ? AND ref = ? AND tag = ? AND status = 'success' AND NOT child`, j.ProjectID, j.Ref, j.Tag).Scan(&newest)
	return err == nil && newest != nil && *newest == j.PipelineID, err
}

// expireLogs removes logs that are older than the settings allow.
func (s *Service) expireLogs(ctx context.Context) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil || settings.LogDays == 0 {
		return err
	}
	for {
		ids, err := db.All(ctx, s.DB, db.Value[int64], `
			SELECT a.id FROM job_artifacts a WHERE a.kind = 'trace' AND a.created_at < ? ORDER BY a.created_at LIMIT ?`,
			s.Now().AddDate(0, 0, -settings.LogDays), removedAtOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			keys, err := db.All(ctx, tx, db.Value[string], `SELECT blob FROM job_artifacts WHERE id IN `+db.In(len(ids)), db.Any(ids)...)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM job_artifacts WHERE id IN `+db.In(len(ids)), db.Any(ids)...); err != nil {
				return err
			}
			return s.Queue.Add(ctx, tx, blobsWork{Keys: keys})
		})
		if err != nil {
			return fmt.Errorf("expire logs: %w", err)
		}
	}
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
			if err := s.eraseFiles(ctx, tx, jobs[from:min(from+500, len(jobs))]); err != nil {
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
	for _, do := range []func(context.Context) error{s.sweepUploads, s.expireArtifacts, s.expireLogs, s.expirePipelines} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}
