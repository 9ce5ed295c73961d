package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
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
		// The suffix keeps the path of what is going apart from what may come.
		err := db.ExecOne(ctx, tx, `
			UPDATE projects SET deleted_at = ?, path = path || ?, full_path = full_path || ? WHERE id = ? AND deleted_at IS NULL`,
			s.Now(), deletedSuffix(found.ID), deletedSuffix(found.ID), found.ID)
		if err != nil {
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
		if err := s.remove(ctx, tx, `p.id = ? AND p.deleted_at IS NOT NULL`, w.ProjectID); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM projects WHERE id = ? AND deleted_at IS NOT NULL`, w.ProjectID)
		return err
	})
	if err != nil {
		return fmt.Errorf("finish deletion of project %d: %w", w.ProjectID, err)
	}
	return nil
}

// remove calls the Removers for projects whose rows are about to be deleted.
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
	for _, r := range s.removers {
		if err := r(ctx, tx, gone); err != nil {
			return err
		}
	}
	return nil
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
	for _, table := range []string{"namespaces SET deleted_at = ? WHERE id IN ", "projects SET deleted_at = ? WHERE namespace_id IN "} {
		if _, err := tx.ExecContext(ctx, `UPDATE `+table+below+` AND deleted_at IS NULL`, s.Now(), n.ID); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE namespaces SET path = path || ? WHERE id = ?`, deletedSuffix(n.ID), n.ID); err != nil {
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

// finishDeleteGroup removes the rows of a group and of all below it in one
// statement, so that parents and children go together.
func (s *Service) finishDeleteGroup(ctx context.Context, w deleteGroupWork) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.remove(ctx, tx, `p.namespace_id IN (SELECT n.id FROM namespaces n WHERE n.deleted_at IS NOT NULL AND n.id IN `+below+`)`, w.GroupID); err != nil {
			return err
		}
		if err := s.clearGroups(ctx, tx, w.GroupID); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM namespaces WHERE deleted_at IS NOT NULL AND id IN `+below, w.GroupID)
		return err
	})
	if err != nil {
		return fmt.Errorf("finish deletion of group %d: %w", w.GroupID, err)
	}
	return nil
}

// guardUser refuses the deletion of a user who alone owns a group: it would be
// left without anyone. A hard deletion takes such groups along.
func (s *Service) guardUser(ctx context.Context, tx *db.Tx, userID int64, hard bool) error {
	if hard {
		return nil
	}
	alone, err := db.Exists(ctx, tx, `SELECT 1 FROM namespaces n WHERE `+soleOwner+` LIMIT 1`, userID, s.today(), userID, s.today())
	if err != nil {
		return err
	}
	if alone {
		return errs.Conflict("User cannot be removed.")
	}
	return nil
}

// leaveUser takes part in the deletion of a user: what they made elsewhere is
// the ghost's from now on, and a hard deletion takes the groups along that they
// alone owned. Their namespace and memberships go with the account.
func (s *Service) leaveUser(ctx context.Context, tx *db.Tx, userID, ghostID int64, hard bool) error {
	if hard {
		groups, err := db.All(ctx, tx, scanNamespace, `SELECT `+namespaceColumns+` FROM namespaces n WHERE `+soleOwner+` ORDER BY n.full_path`,
			userID, s.today(), userID, s.today())
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
	if err := s.remove(ctx, tx, `p.namespace_id IN (SELECT n.id FROM namespaces n WHERE n.user_id = ?)`, userID); err != nil {
		return err
	}
	// Stars go with the account; the counts must follow.
	for _, query := range []string{
		`UPDATE projects SET star_count = star_count - 1 WHERE id IN (SELECT s.project_id FROM stars s WHERE s.user_id = ?)`,
		`DELETE FROM stars WHERE user_id = ?`,
	} {
		if _, err := tx.ExecContext(ctx, query, userID); err != nil {
			return err
		}
	}
	for _, query := range []string{
		`UPDATE projects SET creator_id = ? WHERE creator_id = ?`,
		`UPDATE namespaces SET created_by = ? WHERE created_by = ?`,
		`UPDATE members SET created_by = ? WHERE created_by = ?`,
		`UPDATE deploy_tokens SET created_by = ? WHERE created_by = ?`,
		`UPDATE deploy_keys SET created_by = ? WHERE created_by = ?`,
	} {
		if _, err := tx.ExecContext(ctx, query, ghostID, userID); err != nil {
			return err
		}
	}
	return nil
}
