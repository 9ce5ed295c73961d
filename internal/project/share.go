package project

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
)

// Share gives the members of a group access to another group or a project.
type Share struct {
	ID        int64
	SourceID  int64 // shared project or group
	GroupID   int64 // invited group
	GroupName string
	GroupPath string // full path
	Level     Level  // maximum level
	ExpiresAt string // YYYY-MM-DD; empty for never
}

// NewShare has the fields of a new share.
type NewShare struct {
	GroupID   int64
	Level     Level
	ExpiresAt string
}

// maxShares is the maximum number of groups invited to a group or a project: each check of
// access reads all of them.
const maxShares = 200

// ShareWith invites a group that the actor can see. Requires Maintainer of a
// project or Owner of a group, and at least the granted level. Conflict if it is
// invited already; Forbidden, also if the group does not allow sharing; Invalid if there are
// too many.
func (s *Service) ShareWith(ctx context.Context, by actor.Actor, place Place, n NewShare) (*Share, error) {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return nil, err
	}
	if err := s.mayShare(ctx, by, in); err != nil {
		return nil, err
	}
	if err := in.mayGive(by, n.Level); err != nil {
		return nil, err
	}
	invited, err := s.RequireGroup(ctx, by, RefTo(n.GroupID), NoAccess)
	if err != nil {
		return nil, err
	}
	if err := s.checkShare(in, n); err != nil {
		return nil, err
	}
	_, sourceID := in.column()
	share := &Share{SourceID: sourceID, GroupID: invited.ID, GroupName: invited.Name, GroupPath: invited.FullPath, Level: n.Level, ExpiresAt: n.ExpiresAt}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertShare(ctx, tx, in, share, s.Now()); err != nil {
			return err
		}
		switch n, err := countShares(ctx, tx, in); {
		case err != nil:
			return err
		case n > maxShares:
			return errs.Invalid("At most %d groups can be invited: remove one first", maxShares)
		}
		return s.record(ctx, tx, by, in.kind("group_link_created"), in.entity(), groupTarget(invited.ID, invited.FullPath),
			audit.Details{Add: "group_link", To: n.Level.String()})
	})
	if err != nil {
		return nil, fmt.Errorf("share with group %d: %w", n.GroupID, err)
	}
	return share, nil
}

// mayShare checks whether the group, or the group of the project, and its ancestors allow
// sharing.
func (s *Service) mayShare(ctx context.Context, by actor.Actor, in source) error {
	if by.Admin {
		return nil
	}
	var id int64
	if in.project != nil {
		id = in.project.NamespaceID
	} else {
		id = in.group.ID
	}
	above, err := findAbove(ctx, s.DB, id)
	if err != nil {
		return fmt.Errorf("groups above namespace %d: %w", id, err)
	}
	if slices.ContainsFunc(above, func(n *Namespace) bool { return n.Settings.ShareWithGroupLock }) {
		return errs.Forbidden("")
	}
	return nil
}

func (s *Service) checkShare(in source, n NewShare) error {
	wrong := errs.Fields{}
	if !n.Level.Valid() || n.Level == Minimal {
		wrong.Set("group_access", "is not included in the list")
	}
	if n.ExpiresAt != "" && n.ExpiresAt < s.today() {
		wrong.Set("expires_at", "cannot be a date in the past")
	}
	if in.group != nil && in.group.ID == n.GroupID {
		wrong.Set("group_id", "is the group itself")
	}
	return wrong.Err()
}

// Unshare removes an invited group. Requires Maintainer of a project or Owner of a
// group, and at least the level of the share. NotFound; Forbidden.
func (s *Service) Unshare(ctx context.Context, by actor.Actor, place Place, groupID int64) error {
	in, err := s.source(ctx, s.DB, by, place, place.managerLevel())
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		shareID, path, level, err := findShare(ctx, tx, in, groupID)
		if err != nil {
			return db.NotFound(err, "")
		}
		if err := in.mayGive(by, level); err != nil {
			return err
		}
		if err := deleteShare(ctx, tx, shareID); err != nil {
			return db.NotFound(err, "")
		}
		return s.record(ctx, tx, by, in.kind("group_link_deleted"), in.entity(), groupTarget(groupID, path), audit.Details{Remove: "group_link"})
	})
	if err != nil {
		return fmt.Errorf("unshare with group %d: %w", groupID, err)
	}
	return nil
}

// kind returns the name of an audit event for a group or a project.
func (in source) kind(name string) string {
	if in.group != nil {
		return "group_" + name
	}
	return "project_" + name
}

func groupTarget(id int64, path string) audit.Target {
	return audit.Target{Type: "Group", ID: id, Details: path}
}

// shares lists the invited groups. Those who may manage them get all; other members get
// those that they can see, because invited groups may be private.
func (s *Service) shares(ctx context.Context, by actor.Actor, in source) ([]Share, error) {
	if in.have == NoAccess && !by.Admin && !by.Auditor {
		return []Share{}, nil
	}
	list, err := findShares(ctx, s.DB, in, s.today())
	if err != nil || len(list) == 0 || by.Admin || by.Auditor || in.have >= (Place{Group: in.group != nil}).managerLevel() {
		return list, err
	}
	w := s.groupsWhere(by, GroupsFilter{AllAvailable: true})
	onlyInvited(&w, in, NoAccess, true, false, s.today())
	seen, err := s.listGroups(ctx, w, Sort{}, db.Paging{Limit: maxShares})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(h Share) bool {
		return !slices.ContainsFunc(seen.Items, func(n *Namespace) bool { return n.ID == h.GroupID })
	}), nil
}
