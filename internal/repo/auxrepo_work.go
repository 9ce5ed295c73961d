package repo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/queue"
	"svc/internal/user"
)

// handleAuxRepoWork registers the background jobs for auxiliary repositories.
func (s *Service) handleAuxRepoWork() {
	queue.Handle(s.Queue, s.tidyAuxRepo, queue.Timeout(2*time.Hour))
	queue.Handle(s.Queue, s.finishRemoveAuxRepo, queue.Timeout(time.Hour))
	queue.Handle(s.Queue, s.removeOrphans, queue.Timeout(time.Hour))
	queue.Handle(s.Queue, func(ctx context.Context, w sumWork) error { return s.sumAuxRepos(ctx, w.ProjectID) })
	s.Queue.Every("repo_annex_sweep", sweepAge, s.sweepAuxRepos)
	s.Queue.Every("repo_annex_orphans", time.Hour, func(ctx context.Context) error { return s.removeOrphans(ctx, orphanWork{}) })
}

// tidyAuxRepoWork is tidyWork for an auxiliary repository.
type tidyAuxRepoWork struct {
	AuxRepoID int64 `json:"annex_id"`
	Full      bool  `json:"full,omitempty"`
}

// Kind implements queue.Work.
func (tidyAuxRepoWork) Kind() string { return "repo_tidy_annex" }

func (s *Service) addAuxRepoTidying(ctx context.Context, tx *db.Tx, auxRepoID int64, full bool) error {
	return s.Queue.Add(ctx, tx, tidyAuxRepoWork{auxRepoID, full}, queue.In(lane), queue.Unique(), queue.Priority(4))
}

func (s *Service) tidyAuxRepo(ctx context.Context, w tidyAuxRepoWork) error {
	a, err := orNone(findAuxRepo(ctx, s.DB, "id", w.AuxRepoID))
	if err != nil || a == nil {
		return err
	}
	r, err := s.OpenAuxRepo(a)
	if err != nil {
		return err
	}
	needs, err := r.Needs(ctx)
	if errors.Is(err, git.ErrNoRepository) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at auxiliary repository %d: %w", a.ID, err)
	}
	if (needs.Any() || w.Full) && !a.ReadOnly {
		if _, err := r.Housekeep(ctx, git.HousekeepOptions{Now: s.Now(), Full: w.Full}); err != nil {
			return fmt.Errorf("housekeeping of auxiliary repository %d: %w", a.ID, err)
		}
	}
	return s.measureAuxRepo(ctx, a, r)
}

// measureAuxRepo updates the size of an auxiliary repository, and the
// statistics of its project.
func (s *Service) measureAuxRepo(ctx context.Context, a *AuxRepo, r git.Repo) error {
	size, err := r.Size(ctx)
	if err != nil {
		return fmt.Errorf("size of auxiliary repository %d: %w", a.ID, err)
	}
	if err := saveAuxRepoSize(ctx, s.DB, a.ID, size); err != nil {
		return fmt.Errorf("size of auxiliary repository %d: %w", a.ID, err)
	}
	projectID, err := auxRepoProject(ctx, s.DB, a.ID)
	if errors.Is(err, db.ErrNoRows) || err == nil && projectID == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("project of auxiliary repository %d: %w", a.ID, err)
	}
	return s.sumAuxRepos(ctx, *projectID)
}

// sumAuxRepos updates the sizes of the wiki and the snippets in the statistics
// of a project.
func (s *Service) sumAuxRepos(ctx context.Context, projectID int64) error {
	wiki, snippets, err := auxRepoSizes(ctx, s.DB, projectID)
	if err != nil {
		return fmt.Errorf("auxiliary repositories of project %d: %w", projectID, err)
	}
	return s.Projects.MeasuredAuxRepos(ctx, projectID, wiki, snippets)
}

// sumWork is the background job that runs sumAuxRepos.
type sumWork struct {
	ProjectID int64 `json:"project_id"`
}

// Kind implements queue.Work.
func (sumWork) Kind() string { return "repo_sum_annexes" }

// SumAuxRepos updates the sizes of the wiki and the snippets in the statistics
// of a project after tx, which deletes an auxiliary repository, is committed.
func (s *Service) SumAuxRepos(ctx context.Context, tx *db.Tx, projectID int64) error {
	return s.Queue.Add(ctx, tx, sumWork{projectID}, queue.In(lane), queue.Unique(), queue.Priority(4))
}

// sweepAuxRepos is sweep for auxiliary repositories.
func (s *Service) sweepAuxRepos(ctx context.Context) error {
	var last int64
	for {
		ids, err := changedAuxRepos(ctx, s.DB, s.Now().Add(-2*sweepAge), last, 500)
		if err != nil {
			return fmt.Errorf("sweep auxiliary repositories: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, id := range ids {
				if err := s.addAuxRepoTidying(ctx, tx, id, true); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("sweep auxiliary repositories: %w", err)
		}
		last = ids[len(ids)-1]
	}
}

// orphanWork is the background job that removes auxiliary repositories whose
// owners were deleted.
type orphanWork struct{}

// Kind implements queue.Work.
func (orphanWork) Kind() string { return "repo_annex_orphans" }

// UserDeleted adds a background job that removes the repositories of the snippets
// of a deleted user.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, _ user.Deletion) error {
	return s.DropOrphans(ctx, tx)
}

// DropOrphans adds a background job that removes the auxiliary repositories
// whose owners are deleted in this transaction.
func (s *Service) DropOrphans(ctx context.Context, tx *db.Tx) error {
	return s.Queue.Add(ctx, tx, orphanWork{}, queue.In(lane), queue.Unique())
}

// removeOrphans deletes the rows of orphans and adds background jobs that
// remove their files.
func (s *Service) removeOrphans(ctx context.Context, _ orphanWork) error {
	for {
		list, err := findOrphans(ctx, s.DB, 100)
		if err != nil {
			return fmt.Errorf("find orphans: %w", err)
		}
		for _, a := range list {
			err := s.DB.Tx(ctx, func(tx *db.Tx) error {
				storage, err := deleteAuxRepo(ctx, tx, a.ID)
				if err != nil {
					return err
				}
				return s.Queue.Add(ctx, tx, removeAuxRepoWork{a.ID, a.Kind, storage}, queue.In(lane))
			})
			if err != nil && !errors.Is(err, db.ErrNoRows) { // another node has done it
				return fmt.Errorf("remove auxiliary repository %d: %w", a.ID, err)
			}
		}
		if len(list) < 100 {
			return nil
		}
	}
}

// removeAuxRepoWork is the background job that removes the files of a deleted
// auxiliary repository.
type removeAuxRepoWork struct {
	AuxRepoID int64       `json:"annex_id"`
	Of        AuxRepoKind `json:"of"`
	Storage   string      `json:"storage"`
}

// Kind implements queue.Work.
func (removeAuxRepoWork) Kind() string { return "repo_remove_annex" }

func (s *Service) finishRemoveAuxRepo(ctx context.Context, w removeAuxRepoWork) error {
	r, err := s.OpenAuxRepo(&AuxRepo{ID: w.AuxRepoID, Kind: w.Of, Storage: w.Storage})
	if err != nil {
		return err
	}
	if err := Discard(ctx, r); err != nil {
		return fmt.Errorf("remove auxiliary repository %d: %w", w.AuxRepoID, err)
	}
	return nil
}
