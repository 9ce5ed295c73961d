package project

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project/topic"
	"svc/internal/user"
)

// deleteWork is the background job that deletes a project.
type deleteWork struct {
	ProjectID int64 `json:"project_id"`
}

// Kind implements queue.Work.
func (deleteWork) Kind() string { return "project_delete" }

// deleteGroupWork is the background job that deletes a group.
type deleteGroupWork struct {
	GroupID int64 `json:"group_id"`
}

// Kind implements queue.Work.
func (deleteGroupWork) Kind() string { return "group_delete" }

// Deletion are the options for deleting a project or group.
type Deletion struct {
	// Permanently deletes a project or group that is already marked for deletion, at
	// once. FullPath confirms it: the current path, or the one before it was marked.
	Permanently bool
	FullPath    string

	UnmodifiedSince *time.Time
}

// Delete marks a project for deletion. It is hidden from everyone but its Owners,
// who can restore it, and deleted permanently after deletion_adjourned_period
// days, or immediately if that is 0. Its path becomes available at once. Requires
// Owner. Precondition if it was modified since; Invalid if it is marked already
// and Permanently is not set.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref Ref, d Deletion) error {
	found, err := s.Require(ctx, by, ref, Owner)
	if errs.Is(err, errs.KindNotFound) {
		marked, missing := s.markedProject(ctx, by, ref)
		if missing != nil {
			return errors.Join(err, errs.IgnoreNotFound(missing))
		}
		if err := d.confirm("Project", "project", marked.FullPath, marked.ID); err != nil {
			return err
		}
		return s.deleteNow(ctx, by, marked)
	}
	if err != nil {
		return err
	}
	if err := errs.ChangedSince(found.UpdatedAt, d.UnmodifiedSince); err != nil {
		return err
	}
	delayed, err := s.delaysDeletion(ctx)
	if err != nil {
		return err
	}
	if !delayed {
		return s.deleteNow(ctx, by, found)
	}
	if d.Permanently {
		return errs.Refused("Project must be marked for deletion first.")
	}
	if found.ReadOnly { // a restored project would stay read-only
		return errs.Conflict(beingMoved)
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := markProject(ctx, tx, found.ID, markedSuffix(found.ID), s.Now()); err != nil {
			return db.NotFound(err, "Project")
		}
		return s.record(ctx, tx, by, "project_deletion_marked", found.Entity(), audit.Target{}, audit.Details{Message: "Project marked for deletion"})
	})
	if err != nil {
		return fmt.Errorf("mark project %d for deletion: %w", found.ID, err)
	}
	return nil
}

const beingMoved = "A repository is being moved to another storage. Try again when that is done."

// confirm returns an error unless the permanent deletion of an object that is
// marked for deletion was confirmed.
func (d Deletion) confirm(thing, word, fullPath string, id int64) error {
	switch {
	case !d.Permanently:
		return errs.Refused("%s has been already marked for deletion", thing)
	case !strings.EqualFold(d.FullPath, fullPath) && !strings.EqualFold(d.FullPath, strings.TrimSuffix(fullPath, markedSuffix(id))):
		return errs.Refused("`full_path` is incorrect. You must enter the complete path for the %s.", word)
	}
	return nil
}

// delaysDeletion reports whether deleted projects and groups can be restored.
func (s *Service) delaysDeletion(ctx context.Context) (bool, error) {
	settings, err := s.Settings.Current(ctx)
	return settings.DeletionDays > 0, err
}

// deleteNow hides a project and adds the background job that deletes it.
func (s *Service) deleteNow(ctx context.Context, by actor.Actor, p *Project) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		var err error
		if p.MarkedAt != nil {
			err = unmarkProject(ctx, tx, p.ID)
		} else {
			err = hideProject(ctx, tx, p.ID, deletedSuffix(p.ID), s.Now())
		}
		if err != nil {
			return db.NotFound(err, "Project")
		}
		if err := s.record(ctx, tx, by, "project_destroyed", p.Entity(), audit.Target{}, audit.Details{Remove: "project"}); err != nil {
			return err
		}
		return s.Queue.Add(ctx, tx, deleteWork{p.ID})
	})
	if err != nil {
		return fmt.Errorf("delete project %d: %w", p.ID, err)
	}
	return nil
}

func deletedSuffix(id int64) string { return fmt.Sprintf("-deleted-%d", id) }

// finishDelete deletes the rows of a project.
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
	for _, r := range gone { // locked, so that none is moved to another storage
		if err := tx.Lock(ctx, "projects", r.ID); err != nil {
			return err
		}
	}
	if gone, err = findRemoved(ctx, tx, which, args...); err != nil {
		return err
	}
	for _, r := range gone {
		if err := topic.Save(ctx, tx, r.ID, nil, s.Now()); err != nil {
			return err
		}
		if err := s.clear(ctx, tx, r.ID); err != nil {
			return err
		}
	}
	return s.Events.Deleted.Publish(ctx, tx, gone)
}

// DeleteGroup is Delete for a group with all its subgroups and projects.
func (s *Service) DeleteGroup(ctx context.Context, by actor.Actor, ref Ref, d Deletion) error {
	found, err := s.RequireGroup(ctx, by, ref, Owner)
	if errs.Is(err, errs.KindNotFound) {
		marked, missing := s.markedGroup(ctx, by, ref)
		if missing != nil {
			return errors.Join(err, errs.IgnoreNotFound(missing))
		}
		if err := d.confirm("Group", "group", marked.FullPath, marked.ID); err != nil {
			return err
		}
		err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.deleteMarkedGroup(ctx, tx, by, marked) })
		if err != nil {
			return fmt.Errorf("delete group %d: %w", marked.ID, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := errs.ChangedSince(found.UpdatedAt, d.UnmodifiedSince); err != nil {
		return err
	}
	delayed, err := s.delaysDeletion(ctx)
	if err != nil {
		return err
	}
	if d.Permanently && delayed {
		return errs.Refused("Group must be marked for deletion first.")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "namespaces", found.ID); err != nil {
			return err
		}
		n, err := findNamespace(ctx, tx, found.ID)
		if err != nil {
			return err
		}
		if delayed {
			return s.markGroup(ctx, tx, by, n)
		}
		return s.deleteGroup(ctx, tx, by, n)
	})
	if err != nil {
		return fmt.Errorf("delete group %d: %w", found.ID, err)
	}
	return nil
}

// deleteGroup hides a group and everything in it, frees its path, and adds the
// background job that deletes it.
func (s *Service) deleteGroup(ctx context.Context, tx *db.Tx, by actor.Actor, n *Namespace) error {
	suffix := deletedSuffix(n.ID)
	if err := hideGroups(ctx, tx, n.ID, suffix, s.Now()); err != nil {
		return err
	}
	if err := moveBelow(ctx, tx, n.ID, n.FullPath, n.FullPath+suffix, n.FullName, n.FullName); err != nil {
		return err
	}
	return s.queueDeleteGroup(ctx, tx, by, n)
}

func (s *Service) queueDeleteGroup(ctx context.Context, tx *db.Tx, by actor.Actor, n *Namespace) error {
	if err := s.record(ctx, tx, by, "group_destroyed", n.Entity(), audit.Target{}, audit.Details{Remove: "group"}); err != nil {
		return err
	}
	return s.Queue.Add(ctx, tx, deleteGroupWork{n.ID})
}

// finishDeleteGroup deletes the rows of a group and its subgroups.
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

// UserDeleted reassigns what a deleted user created in the groups and projects of
// others to the ghost user, and deletes the projects in their namespace. A hard
// deletion also deletes the groups whose only Owner they were. Their namespace and
// memberships are deleted with the account.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	if d.Hard {
		groups, err := solelyOwned(ctx, tx, d.UserID, s.today())
		if err != nil {
			return err
		}
		for _, n := range groups {
			again, err := findNamespace(ctx, tx, n.ID)
			if errs.Is(err, errs.KindNotFound) {
				continue // deleted with an ancestor group
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
	// Stars are deleted with the account, so the counts must be updated.
	if err := deleteStars(ctx, tx, d.UserID); err != nil {
		return err
	}
	return replaceCreator(ctx, tx, d.UserID, d.GhostID)
}
