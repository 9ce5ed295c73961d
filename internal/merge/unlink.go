package merge

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/queue"
)

// ForkUnlinked adds a background job that closes the open merge requests between a
// project that is no longer a fork and its former fork network.
func (s *Service) ForkUnlinked(ctx context.Context, tx *db.Tx, u project.Unlinked) error {
	return s.Queue.Add(ctx, tx, unlinkedWork{u.ProjectID, u.By}, queue.In(lane))
}

// unlinkedWork is the background job that closes merge requests between two fork
// networks.
type unlinkedWork struct {
	ProjectID int64 `json:"project_id"`
	UserID    int64 `json:"user_id"`
}

// Kind implements queue.Work.
func (unlinkedWork) Kind() string { return "merge_unlinked" }

func (s *Service) workUnlinked(ctx context.Context, w unlinkedWork) error {
	list, err := findAcross(ctx, s.DB, w.ProjectID)
	if err != nil {
		return fmt.Errorf("merge requests of former fork %d: %w", w.ProjectID, err)
	}
	by, err := s.Users.As(ctx, w.UserID)
	if err != nil && !errs.IsRefusal(err) {
		return err
	}
	for _, m := range list {
		if err := s.closeUnlinked(ctx, by, m); err != nil {
			return fmt.Errorf("close merge request %d: %w", m.ID, err)
		}
	}
	return nil
}

// closeUnlinked closes a merge request unless its projects are in the same fork
// network, which they are if the relationship was created again. by is anonymous if
// the user who removed the relationship was blocked or deleted in the meantime.
func (s *Service) closeUnlinked(ctx context.Context, by actor.Actor, m *MergeRequest) error {
	in, err := s.system(ctx, &m.ProjectID)
	if err != nil || in == nil {
		return err
	}
	linked, err := s.linked(ctx, in, m)
	if err != nil || linked {
		return err
	}
	if by.Anonymous() {
		by = actor.Actor{ID: m.AuthorID}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		return s.change(ctx, tx, by, in, m.ID, Fields{Fields: plan.Fields{Event: "close"}}, "")
	})
	return ignoreRefusal(err)
}

// linked reports whether the source project of a merge request exists and is in the
// fork network of the target project.
func (s *Service) linked(ctx context.Context, target *project.Project, m *MergeRequest) (bool, error) {
	if !m.FromFork() {
		return true, nil
	}
	source, err := s.system(ctx, m.SourceProjectID)
	if err != nil || source == nil {
		return false, err
	}
	return s.Projects.SameNetwork(ctx, source, target)
}
