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
)

// markedSuffix is appended to the path and name of an object that is marked for
// deletion, so that both become available.
func markedSuffix(id int64) string { return fmt.Sprintf("-deletion_scheduled-%d", id) }

// DeletionDays returns how many days a deleted project or group can be restored,
// or 0 if it is deleted immediately.
func (s *Service) DeletionDays(ctx context.Context) (int, error) {
	settings, err := s.Settings.Current(ctx)
	return settings.DeletionDays, err
}

// DeletionDate returns the date on which an object that was marked for deletion is
// deleted permanently.
func (s *Service) DeletionDate(ctx context.Context, markedAt time.Time) (time.Time, error) {
	settings, err := s.Settings.Current(ctx)
	return markedAt.AddDate(0, 0, settings.DeletionDays), err
}

// GetMarked is Get, but also returns a project that is marked for deletion to its
// Owners.
func (s *Service) GetMarked(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, err := s.Get(ctx, by, ref)
	if !errs.Is(err, errs.KindNotFound) {
		return p, err
	}
	marked, missing := s.markedProject(ctx, by, ref)
	if missing != nil {
		return nil, errors.Join(err, errs.IgnoreNotFound(missing))
	}
	if err := s.complete(ctx, by, marked); err != nil {
		return nil, fmt.Errorf("project %d: %w", marked.ID, err)
	}
	marked.Shares, err = s.shares(ctx, by, source{project: marked, have: marked.Access.Level()})
	return marked, err
}

// GroupMarked is Group, but also returns a group that is marked for deletion to
// its Owners.
func (s *Service) GroupMarked(ctx context.Context, by actor.Actor, ref Ref) (*Namespace, error) {
	n, err := s.Group(ctx, by, ref)
	if !errs.Is(err, errs.KindNotFound) {
		return n, err
	}
	marked, missing := s.markedGroup(ctx, by, ref)
	if missing != nil {
		return nil, errors.Join(err, errs.IgnoreNotFound(missing))
	}
	return marked, nil
}

// markedProject returns a project that is marked for deletion and not in a group
// that is. Requires Owner. NotFound.
func (s *Service) markedProject(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	p, err := findMarkedProject(ctx, s.DB, ref)
	if err != nil {
		return nil, err
	}
	if p.Access, err = s.access(ctx, s.DB, by, p); err != nil {
		return nil, fmt.Errorf("access to project %d: %w", p.ID, err)
	}
	if enough(by, p.Access.Level(), Owner) != nil {
		return nil, errs.NotFound("Project")
	}
	return p, nil
}

// markedGroup is markedProject for groups.
func (s *Service) markedGroup(ctx context.Context, by actor.Actor, ref Ref) (*Namespace, error) {
	n, err := findMarkedGroup(ctx, s.DB, ref)
	if err != nil {
		return nil, err
	}
	have, err := s.groupLevel(ctx, s.DB, by, n.ID)
	if err != nil {
		return nil, fmt.Errorf("access to group %d: %w", n.ID, err)
	}
	if enough(by, have, Owner) != nil {
		return nil, errs.NotFound("Group")
	}
	return n, nil
}

// Restore restores a project that is marked for deletion. If its path is taken, it
// gets another one, and if its group is less visible now, so is the project.
// Requires Owner. Invalid if it is not marked.
func (s *Service) Restore(ctx context.Context, by actor.Actor, ref Ref) (*Project, error) {
	marked, err := s.markedProject(ctx, by, ref)
	if errs.Is(err, errs.KindNotFound) {
		if _, err := s.Require(ctx, by, ref, Owner); err != nil {
			return nil, err
		}
		return nil, errs.Refused("Project has not been marked for deletion")
	}
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "namespaces", marked.NamespaceID); err != nil {
			return err
		}
		into, err := findNamespace(ctx, tx, marked.NamespaceID)
		if err != nil {
			return err
		}
		if into.Kind == UserNamespace {
			if err := s.underLimit(ctx, tx, into); err != nil {
				return err
			}
		}
		path, name, err := restoredPath(ctx, tx, into.FullPath+"/", marked.ID, marked.Path, marked.Name)
		if err != nil {
			return err
		}
		if err := dropRedirect(ctx, tx, into.FullPath+"/"+path); err != nil {
			return err
		}
		if err := restoreProject(ctx, tx, marked.ID, path, name, into.FullPath+"/"+path, s.Now()); err != nil {
			return db.NotFound(err, "Project")
		}
		if into.Kind != UserNamespace && marked.Visibility.width() > into.Visibility.width() {
			if err := s.lower(ctx, tx, by, marked, into.Visibility); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, by, "project_restored", marked.Entity(), audit.Target{}, audit.Details{Message: "Project restored"})
	})
	if err != nil {
		return nil, fmt.Errorf("restore project %d: %w", marked.ID, err)
	}
	return s.Get(ctx, by, RefTo(marked.ID))
}

// RestoreGroup restores a group that is marked for deletion, with everything that
// was hidden with it. If its parent is less visible now, so is all of this.
// Requires Owner. Invalid if it is not marked.
func (s *Service) RestoreGroup(ctx context.Context, by actor.Actor, ref Ref) (*Namespace, error) {
	marked, err := s.markedGroup(ctx, by, ref)
	if errs.Is(err, errs.KindNotFound) {
		if _, err := s.RequireGroup(ctx, by, ref, Owner); err != nil {
			return nil, err
		}
		return nil, errs.Refused("Group has not been marked for deletion")
	}
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "namespaces", marked.ID); err != nil {
			return err
		}
		above, aboveName := "", ""
		limit := marked.Visibility
		if marked.ParentID != nil {
			if err := tx.Lock(ctx, "namespaces", *marked.ParentID); err != nil {
				return err
			}
			parent, err := findNamespace(ctx, tx, *marked.ParentID)
			if err != nil {
				return err
			}
			above, aboveName = parent.FullPath+"/", parent.FullName+" / "
			if parent.Visibility.width() < limit.width() {
				limit = parent.Visibility
			}
		}
		path, name, err := restoredPath(ctx, tx, above, marked.ID, marked.Path, marked.Name)
		if err != nil {
			return err
		}
		if err := dropRedirect(ctx, tx, above+path); err != nil {
			return err
		}
		if err := restoreGroups(ctx, tx, marked.ID, path, name, s.Now()); err != nil {
			return db.NotFound(err, "Group")
		}
		if err := moveBelow(ctx, tx, marked.ID, marked.FullPath, above+path, marked.FullName, aboveName+name); err != nil {
			return err
		}
		if limit != marked.Visibility {
			if err := s.lowerBelow(ctx, tx, by, marked, limit); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, by, "group_restored", marked.Entity(), audit.Target{}, audit.Details{Message: "Group restored"})
	})
	if err != nil {
		return nil, fmt.Errorf("restore group %d: %w", marked.ID, err)
	}
	return s.Group(ctx, by, RefTo(marked.ID))
}

// lower reduces the visibility of a project and its forks.
func (s *Service) lower(ctx context.Context, tx *db.Tx, by actor.Actor, p *Project, limit Visibility) error {
	was := p.Visibility
	p.Visibility = limit
	if err := saveVisibility(ctx, tx, p.ID, limit, s.Now()); err != nil {
		return fmt.Errorf("lower project %d: %w", p.ID, err)
	}
	if err := s.lowerForks(ctx, tx, by, p); err != nil {
		return err
	}
	return s.record(ctx, tx, by, "project_visibility_level_updated", p.Entity(), audit.Target{}, audit.Details{Change: "visibility", From: string(was), To: string(limit)})
}

// lowerBelow reduces the visibility of a group and of everything in it.
func (s *Service) lowerBelow(ctx context.Context, tx *db.Tx, by actor.Actor, n *Namespace, limit Visibility) error {
	projects, err := findWiderBelow(ctx, tx, n.ID, limit)
	if err != nil {
		return fmt.Errorf("find projects of group %d: %w", n.ID, err)
	}
	for _, p := range projects {
		if err := s.lower(ctx, tx, by, p, limit); err != nil {
			return err
		}
	}
	if err := lowerGroups(ctx, tx, n.ID, limit, s.Now()); err != nil {
		return fmt.Errorf("lower group %d: %w", n.ID, err)
	}
	return s.record(ctx, tx, by, "group_visibility_level_updated", n.Entity(), audit.Target{}, audit.Details{Change: "visibility", From: string(n.Visibility), To: string(limit)})
}

// restoredPath returns the path and name of a restored object: the original ones,
// or with a suffix if the path is taken.
func restoredPath(ctx context.Context, tx *db.Tx, above string, id int64, path, name string) (string, string, error) {
	path, name = strings.TrimSuffix(path, markedSuffix(id)), strings.TrimSuffix(name, markedSuffix(id))
	err := requireFree(ctx, tx, above+path)
	if !errs.Is(err, errs.KindInvalid) {
		return path, name, err
	}
	suffix := fmt.Sprintf("-restored-%d", id)
	return path + suffix, name + suffix, requireFree(ctx, tx, above+path+suffix)
}

// markGroup hides a group and everything in it until it is restored or deleted
// permanently.
func (s *Service) markGroup(ctx context.Context, tx *db.Tx, by actor.Actor, n *Namespace) error {
	moving, err := hasReadOnly(ctx, tx, n.ID)
	if err != nil {
		return err
	}
	if moving {
		return errs.Conflict(beingMoved)
	}
	suffix := markedSuffix(n.ID)
	if err := markGroups(ctx, tx, n.ID, suffix, s.Now()); err != nil {
		return db.NotFound(err, "Group")
	}
	if err := moveBelow(ctx, tx, n.ID, n.FullPath, n.FullPath+suffix, n.FullName, n.FullName+suffix); err != nil {
		return err
	}
	return s.record(ctx, tx, by, "group_deletion_marked", n.Entity(), audit.Target{}, audit.Details{Message: "Group marked for deletion"})
}

func (s *Service) deleteMarkedGroup(ctx context.Context, tx *db.Tx, by actor.Actor, n *Namespace) error {
	if err := unmarkGroup(ctx, tx, n.ID); err != nil {
		return db.NotFound(err, "Group")
	}
	return s.queueDeleteGroup(ctx, tx, by, n)
}

// DeleteMarked permanently deletes objects that were marked for deletion long
// enough ago. It is a periodic job.
func (s *Service) DeleteMarked(ctx context.Context) error {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return err
	}
	before := s.Now().AddDate(0, 0, -settings.DeletionDays)
	groups, err := findMarkedGroupsBefore(ctx, s.DB, before)
	if err != nil {
		return fmt.Errorf("find groups marked for deletion: %w", err)
	}
	var faults []error
	for _, n := range groups {
		err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.deleteMarkedGroup(ctx, tx, actor.System(), n) })
		faults = append(faults, errs.IgnoreNotFound(err))
	}
	projects, err := findMarkedProjectsBefore(ctx, s.DB, before)
	if err != nil {
		return fmt.Errorf("find projects marked for deletion: %w", err)
	}
	for _, p := range projects {
		faults = append(faults, errs.IgnoreNotFound(s.deleteNow(ctx, actor.System(), p)))
	}
	return errors.Join(faults...)
}
