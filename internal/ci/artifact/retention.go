package artifact

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Erase removes the logs and artifacts of jobs: the rows now, the files in a background
// job.
func (s *Service) Erase(ctx context.Context, tx *db.Tx, jobIDs []int64) error {
	if len(jobIDs) == 0 {
		return nil
	}
	keys, err := keysOf(ctx, tx, jobIDs, true)
	if err != nil {
		return err
	}
	return s.drop(ctx, tx, jobIDs, keys, true)
}

// Delete removes the artifacts of a job, but not its log. NotFound if there are none.
func (s *Service) Delete(ctx context.Context, tx *db.Tx, jobID int64) error {
	ids := []int64{jobID}
	keys, err := keysOf(ctx, tx, ids, false)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return errs.NotFound("")
	}
	return s.drop(ctx, tx, ids, keys, false)
}

// DeleteAll adds a background job that removes the artifacts of the finished jobs of a
// project.
func (s *Service) DeleteAll(ctx context.Context, tx *db.Tx, projectID int64) error {
	return s.Queue.Add(ctx, tx, artifactsWork{ProjectID: projectID})
}

// Keep removes the expiration time of the artifacts of a job. NotFound if it has no
// archive.
func (s *Service) Keep(ctx context.Context, tx *db.Tx, jobID int64) error {
	if _, err := find(ctx, tx, jobID, Archive); err != nil {
		return err
	}
	if err := keep(ctx, tx, jobID); err != nil {
		return err
	}
	return setJobExpiry(ctx, tx, jobID, nil)
}

// drop deletes rows of files of jobs, and adds a background job that removes the files.
func (s *Service) drop(ctx context.Context, tx *db.Tx, jobIDs []int64, keys []string, logs bool) error {
	if err := deleteOfJobs(ctx, tx, jobIDs, logs); err != nil {
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

// blobsWork removes files whose rows were deleted, and live logs.
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
		if err := s.Logs.Remove(ctx, id); err != nil {
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

// removedAtOnce is the number of jobs per transaction.
const removedAtOnce = 100

func (s *Service) removeArtifacts(ctx context.Context, w artifactsWork) error {
	for {
		ids, err := findFinishedWithArtifacts(ctx, s.DB, w.ProjectID, w.After, removedAtOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			keys, err := keysOf(ctx, tx, ids, false)
			if err != nil {
				return err
			}
			return s.drop(ctx, tx, ids, keys, false)
		})
		if err != nil {
			return err
		}
		w.After = ids[len(ids)-1]
	}
}

// ProjectsDeleted adds background jobs that remove the artifacts and job logs
// of deleted projects.
func (s *Service) ProjectsDeleted(ctx context.Context, tx *db.Tx, gone []project.Deleted) error {
	for _, p := range gone {
		keys, err := keysOfProject(ctx, tx, p.ID)
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
	}
	return nil
}

// keptAgain is the interval at which expired artifacts are checked again that are kept
// because they belong to the newest successful pipeline of their ref.
const keptAgain = 24 * time.Hour

// expireArtifacts removes expired artifacts. Those of the newest successful pipeline of
// a ref are kept if the project has that setting.
func (s *Service) expireArtifacts(ctx context.Context) error {
	for {
		now := s.Now()
		ids, err := findExpired(ctx, s.DB, now, removedAtOnce)
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
	j, err := findJob(ctx, s.DB, id)
	if err != nil {
		return err
	}
	kept, err := s.keepsLatest(ctx, j)
	if err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if kept {
			return postpone(ctx, tx, id, now, now.Add(keptAgain))
		}
		keys, err := deleteExpired(ctx, tx, id, now)
		if err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, blobsWork{Keys: keys})
	})
}

// keepsLatest reports whether the artifacts of a job are kept because its pipeline is
// the newest successful one of its ref.
func (s *Service) keepsLatest(ctx context.Context, j *job) (bool, error) {
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(j.projectID), project.NoAccess)
	if errs.Is(err, errs.KindNotFound) {
		return false, nil
	}
	if err != nil || !p.Settings.KeepLatestArtifact {
		return false, err
	}
	newest, err := newestSuccess(ctx, s.DB, j)
	return err == nil && newest != nil && *newest == j.pipelineID, err
}

// expireLogs removes logs that are older than the settings allow.
func (s *Service) expireLogs(ctx context.Context) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil || settings.LogDays == 0 {
		return err
	}
	for {
		ids, err := findLogsBefore(ctx, s.DB, s.Now().AddDate(0, 0, -settings.LogDays), removedAtOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			keys, err := deleteFiles(ctx, tx, ids)
			if err != nil {
				return err
			}
			return s.Queue.Add(ctx, tx, blobsWork{Keys: keys})
		})
		if err != nil {
			return fmt.Errorf("expire logs: %w", err)
		}
	}
}

// Retain removes what is older than jobs and settings allow.
func (s *Service) Retain(ctx context.Context) error {
	for _, do := range []func(context.Context) error{s.sweepUploads, s.expireArtifacts, s.expireLogs} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}
