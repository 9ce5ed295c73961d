package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/user"
)

// deleteWork finishes the deletion of a project in the background.
type deleteWork struct {
	ProjectID int64 `json:"project_id"`
}

// Kind implements queue.Work.
func (deleteWork) Kind() string { return "project_delete" }

// deleteGroupWork finishes the deletion of a group in the background.
type deleteGroupWork struct {
	GroupID int64 `json:"group_id"`
}

// Kind implements queue.Work.
func (deleteGroupWork) Kind() string { return "group_delete" }

// Delete removes a project: at once for everyone who looks, in the background
// with all that hangs on it. Its path is free at once. Owners only;
// Precondition when it has changed since.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref Ref, unmodifiedSince *time.Time) error {
	found, err := s.Require(ctx, by, ref, Owner)
	if err != nil {
		return err
	}
	if err := errs.ChangedSince(found.UpdatedAt, unmodifiedSince); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := hideProject(ctx, tx, found.ID, deletedSuffix(found.ID), s.Now()); err != nil {
			return db.NotFound(err, "Project")
		}
		if err := s.record(ctx, tx, by, "project_destroyed", found.Entity(), audit.Target{}, audit.Details{Remove: "project"}); err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, deleteWork{found.ID})
	})
	if err != nil {
		return fmt.Errorf("delete project %d: %w", found.ID, err)
	}
	return nil
}

func deletedSuffix(id int64) string { return fmt.Sprintf("-deleted-%d", id) }

// finishDelete removes the rows of a project; what refers to them goes along.
func (s *Service) finishDelete(ctx context.Context, w deleteWork) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.remove(ctx, tx, hiddenProject, w.ProjectID); err != nil {
			return err
		}
		return deleteProject(ctx, tx, w.ProjectID)
	})
	if err != nil {
		return fmt.Errorf("finish deletion of project %d: %w", w.ProjectID, err)
	}
	return nil
}

// remove publishes Deleted for projects whose rows are about to be deleted.
func (s *Service) remove(ctx context.Context, tx *db.Tx, which string, args ...any) error {
	gone, err := findRemoved(ctx, tx, which, args...)
	if err != nil || len(gone) == 0 {
		return err
	}
	for _, r := range gone { // from here on none goes to another storage
		if err := tx.Lock(ctx, "projects", r.ID); err != nil {
			return err
		}
	}
	if gone, err = findRemoved(ctx, tx, which, args...); err != nil {
		return err
	}
	for _, r := range gone {
		if err := saveTopics(ctx, tx, r.ID, nil, s.Now()); err != nil {
			return err
		}
		if err := s.clear(ctx, tx, r.ID); err != nil {
			return err
		}
	}
	return s.Events.Deleted.Publish(ctx, tx, gone)
}

// DeleteGroup removes a group with all groups and projects in it: at once for
// everyone who looks, in the background with all that hangs on them. Owners
// only; Precondition when it has changed since.
func (s *Service) DeleteGroup(ctx context.Context, by actor.Actor, ref Ref, unmodifiedSince *time.Time) error {
	found, err := s.RequireGroup(ctx, by, ref, Owner)
	if err != nil {
		return err
	}
	if err := errs.ChangedSince(found.UpdatedAt, unmodifiedSince); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "namespaces", found.ID); err != nil {
			return err
		}
		n, err := findNamespace(ctx, tx, found.ID)
		if err != nil {
			return err
		}
		return s.deleteGroup(ctx, tx, by, n)
	})
	if err != nil {
		return fmt.Errorf("delete group %d: %w", found.ID, err)
	}
	return nil
}

// deleteGroup hides a group with all that is in it, frees its path, and
// leaves the rest to the background.
func (s *Service) deleteGroup(ctx context.Context, tx *db.Tx, by actor.Actor, n *Namespace) error {
	if err := hideGroups(ctx, tx, n.ID, deletedSuffix(n.ID), s.Now()); err != nil {
		return err
	}
	if err := moveBelow(ctx, tx, n.ID, n.FullPath, n.FullPath+deletedSuffix(n.ID), n.FullName, n.FullName); err != nil {
		return err
	}
	if err := s.record(ctx, tx, by, "group_destroyed", n.Entity(), audit.Target{}, audit.Details{Remove: "group"}); err != nil {
		return err
	}
	return s.Queue.Add(ctx, tx, deleteGroupWork{n.ID})
}

// finishDeleteGroup removes the rows of a group and of all below it.
func (s *Service) finishDeleteGroup(ctx context.Context, w deleteGroupWork) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.remove(ctx, tx, hiddenGroupProjects, w.GroupID); err != nil {
			return err
		}
		if err := s.clearGroups(ctx, tx, w.GroupID); err != nil {
			return err
		}
		return deleteGroups(ctx, tx, w.GroupID)
	})
	if err != nil {
		return fmt.Errorf("finish deletion of group %d: %w", w.GroupID, err)
	}
	return nil
}

// UserDeleting refuses the deletion of a user who is the only owner of a group,
// unless it is hard.
func (s *Service) UserDeleting(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	if d.Hard {
		return nil
	}
	alone, err := isSoleOwner(ctx, tx, d.UserID, s.today())
	if err != nil {
		return err
	}
	if alone {
		return errs.Conflict("User cannot be removed.")
	}
	return nil
}

// UserDeleted makes the ghost user the creator of what a deleted user created
// in the groups and projects of others, and deletes the projects in their
// namespace. A hard deletion deletes the groups too that they alone owned.
// Their namespace and memberships are deleted with the account.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	if d.Hard {
		groups, err := solelyOwned(ctx, tx, d.UserID, s.today())
		if err != nil {
			return err
		}
		for _, n := range groups {
			again, err := findNamespace(ctx, tx, n.ID)
			if errs.Is(err, errs.KindNotFound) {
				continue // it went with a group above it
			}
			if err != nil {
				return err
			}
			if err := s.deleteGroup(ctx, tx, actor.System(), again); err != nil {
				return err
			}
		}
	}
	if err := s.remove(ctx, tx, userProjects, d.UserID); err != nil {
		return err
	}
	// Stars go with the account; the counts must follow.
	if err := deleteStars(ctx, tx, d.UserID); err != nil {
		return err
	}
	return replaceCreator(ctx, tx, d.UserID, d.GhostID)
}
