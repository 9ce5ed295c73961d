package repo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/queue"
)

// handleAnnexWork takes on the background work on annexes.
func (s *Service) handleAnnexWork() {
	queue.Handle(s.Queue, s.tidyAnnex, queue.Timeout(2*time.Hour))
	queue.Handle(s.Queue, s.finishRemoveAnnex, queue.Timeout(time.Hour))
	queue.Handle(s.Queue, s.removeOrphans, queue.Timeout(time.Hour))
	queue.Handle(s.Queue, func(ctx context.Context, w sumWork) error { return s.sumAnnexes(ctx, w.ProjectID) })
	s.Queue.Every("repo_annex_sweep", sweepAge, s.sweepAnnexes)
	s.Queue.Every("repo_annex_orphans", time.Hour, func(ctx context.Context) error { return s.removeOrphans(ctx, orphanWork{}) })
	s.Projects.OnRemove(func(ctx context.Context, tx *db.Tx, _ []project.Removed) error { return s.DropOrphans(ctx, tx) })
	s.Users.OnDelete(func(ctx context.Context, tx *db.Tx, _, _ int64, _ bool) error { return s.DropOrphans(ctx, tx) })
}

// tidyAnnexWork is tidyWork for an annex.
type tidyAnnexWork struct {
	AnnexID int64 `json:"annex_id"`
	Full    bool  `json:"full,omitempty"`
}

// Kind names the work in the queue.
func (tidyAnnexWork) Kind() string { return "repo_tidy_annex" }

func (s *Service) addAnnexTidying(ctx context.Context, tx *db.Tx, annexID int64, full bool) error {
	return s.Queue.Add(ctx, tx, tidyAnnexWork{annexID, full}, queue.In(lane), queue.Unique(), queue.Priority(4))
}

func (s *Service) tidyAnnex(ctx context.Context, w tidyAnnexWork) error {
	a, err := orNone(findAnnex(ctx, s.DB, "id", w.AnnexID))
	if err != nil || a == nil {
		return err
	}
	r, err := s.OpenAnnex(a)
	if err != nil {
		return err
	}
	needs, err := r.Needs(ctx)
	if errors.Is(err, git.ErrNoRepository) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at annex %d: %w", a.ID, err)
	}
	if (needs.Any() || w.Full) && !a.ReadOnly {
		if _, err := r.Housekeep(ctx, git.HousekeepOptions{Now: s.Now(), Full: w.Full}); err != nil {
			return fmt.Errorf("housekeeping of annex %d: %w", a.ID, err)
		}
	}
	return s.measureAnnex(ctx, a, r)
}

// measureAnnex brings the size of an annex up to date, and the statistics of the
// project that it belongs to.
func (s *Service) measureAnnex(ctx context.Context, a *Annex, r git.Repo) error {
	size, err := r.Size(ctx)
	if err != nil {
		return fmt.Errorf("size of annex %d: %w", a.ID, err)
	}
	if err := saveAnnexSize(ctx, s.DB, a.ID, size); err != nil {
		return fmt.Errorf("size of annex %d: %w", a.ID, err)
	}
	projectID, err := annexProject(ctx, s.DB, a.ID)
	if errors.Is(err, db.ErrNoRows) || err == nil && projectID == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("project of annex %d: %w", a.ID, err)
	}
	return s.sumAnnexes(ctx, *projectID)
}

// sumAnnexes brings the sizes up to date that a project shows of its annexes.
func (s *Service) sumAnnexes(ctx context.Context, projectID int64) error {
	wiki, snippets, err := annexSizes(ctx, s.DB, projectID)
	if err != nil {
		return fmt.Errorf("annexes of project %d: %w", projectID, err)
	}
	return s.Projects.MeasuredAnnexes(ctx, projectID, wiki, snippets)
}

// sumWork is the work of sumAnnexes.
type sumWork struct {
	ProjectID int64 `json:"project_id"`
}

// Kind names the work in the queue.
func (sumWork) Kind() string { return "repo_sum_annexes" }

// SumAnnexes brings the sizes up to date that a project shows of its annexes,
// once tx, in which one of them goes, is committed.
func (s *Service) SumAnnexes(ctx context.Context, tx *db.Tx, projectID int64) error {
	return s.Queue.Add(ctx, tx, sumWork{projectID}, queue.In(lane), queue.Unique(), queue.Priority(4))
}

// sweepAnnexes is sweep for annexes.
func (s *Service) sweepAnnexes(ctx context.Context) error {
	var last int64
	for {
		ids, err := changedAnnexes(ctx, s.DB, s.Now().Add(-2*sweepAge), last, 500)
		if err != nil {
			return fmt.Errorf("sweep annexes: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error {
			for _, id := range ids {
				if err := s.addAnnexTidying(ctx, tx, id, true); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("sweep annexes: %w", err)
		}
		last = ids[len(ids)-1]
	}
}

// orphanWork removes the annexes whose owners are gone.
type orphanWork struct{}

// Kind names the work in the queue.
func (orphanWork) Kind() string { return "repo_annex_orphans" }

// DropOrphans has annexes removed whose owners go in this transaction.
func (s *Service) DropOrphans(ctx context.Context, tx *db.Tx) error {
	return s.Queue.Add(ctx, tx, orphanWork{}, queue.In(lane), queue.Unique())
}

// removeOrphans gives the files of orphans to removal, with their rows.
func (s *Service) removeOrphans(ctx context.Context, _ orphanWork) error {
	for {
		list, err := findOrphans(ctx, s.DB, 100)
		if err != nil {
			return fmt.Errorf("find orphans: %w", err)
		}
		for _, a := range list {
			err := s.DB.Tx(ctx, func(tx *db.Tx) error {
				storage, err := deleteAnnex(ctx, tx, a.ID)
				if err != nil {
					return err
				}
				return s.Queue.Add(ctx, tx, removeAnnexWork{a.ID, a.Kind, storage}, queue.In(lane))
			})
			if err != nil && !errors.Is(err, db.ErrNoRows) { // another node was quicker
				return fmt.Errorf("remove annex %d: %w", a.ID, err)
			}
		}
		if len(list) < 100 {
			return nil
		}
	}
}

// removeAnnexWork removes the files of an annex that is gone.
type removeAnnexWork struct {
	AnnexID int64     `json:"annex_id"`
	Of      AnnexKind `json:"of"`
	Storage string    `json:"storage"`
}

// Kind names the work in the queue.
func (removeAnnexWork) Kind() string { return "repo_remove_annex" }

func (s *Service) finishRemoveAnnex(_ context.Context, w removeAnnexWork) error {
	r, err := s.OpenAnnex(&Annex{ID: w.AnnexID, Kind: w.Of, Storage: w.Storage})
	if err != nil {
		return err
	}
	if err := discard(r); err != nil {
		return fmt.Errorf("remove annex %d: %w", w.AnnexID, err)
	}
	return nil
}
