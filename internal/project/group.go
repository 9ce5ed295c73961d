package project

import (
	"context"
	"fmt"
	"strings"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/picture"
)

// NewGroup has the fields of a new group.
type NewGroup struct {
	Name        string
	Path        string
	ParentID    *int64
	Description string
	Visibility  *Visibility // default: that of the parent, or private at the top level
	Change      func(*GroupSettings)
	Avatar      *picture.File
}

// maxDepth is the maximum depth of nested groups.
const maxDepth = 20

// CreateGroup creates a group; the actor becomes its Owner. A top-level group
// requires permission to create groups; a subgroup requires Owner of the parent,
// or Maintainer if the parent allows it. Forbidden; Invalid, also if the path is
// taken.
func (s *Service) CreateGroup(ctx context.Context, by actor.Actor, g NewGroup) (*Namespace, error) {
	if err := s.mayCreateGroup(ctx, by, g.ParentID); err != nil {
		return nil, err
	}
	if err := g.Avatar.Check(); err != nil {
		return nil, err
	}
	wrong := errs.Fields{}
	checkPath(wrong, g.Path, g.ParentID == nil)
	checkName(wrong, g.Name)
	checkDescription(wrong, g.Description, 500)
	n := &Namespace{
		Kind: GroupNamespace, ParentID: g.ParentID, Path: g.Path, Name: g.Name, Description: g.Description, Visibility: Private,
		Settings: defaultGroupSettings(), CreatedAt: s.Now(), UpdatedAt: s.Now(),
	}
	if by.ID > 0 {
		n.CreatedBy = &by.ID
	}
	if g.Change != nil {
		g.Change(&n.Settings)
	}
	n.Settings.check(wrong)
	if g.Visibility != nil {
		g.Visibility.check(wrong)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		parent, err := s.above(ctx, tx, g.ParentID)
		if err != nil {
			return err
		}
		if err := n.putBelow(parent, g.Visibility); err != nil {
			return err
		}
		if err := requireFree(ctx, tx, n.FullPath); err != nil {
			return err
		}
		if err := insertGroup(ctx, tx, n); err != nil {
			return err
		}
		if err := inheritRules(ctx, tx, n.ID); err != nil {
			return err
		}
		if err := dropRedirect(ctx, tx, n.FullPath); err != nil {
			return err
		}
		if by.ID > 0 {
			if err := s.addOwner(ctx, tx, by, source{group: n}); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, by, "group_created", n.Entity(), audit.Target{}, audit.Details{Add: "group"})
	})
	if err != nil {
		return nil, fmt.Errorf("create group: %w", err)
	}
	return s.setGroupAvatar(ctx, by, n, g.Avatar, false)
}

func (s *Service) mayCreateGroup(ctx context.Context, by actor.Actor, parentID *int64) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	if parentID != nil {
		parent, have, err := s.requireGroup(ctx, s.DB, by, RefTo(*parentID), NoAccess)
		if err != nil {
			return err
		}
		return parent.mayHoldGroupOf(by, have)
	}
	if by.Admin {
		return nil
	}
	u, err := s.Users.Self(ctx, by)
	if err != nil {
		return err
	}
	if !u.MayCreateGroups() {
		return errs.Forbidden("")
	}
	return nil
}

// mayHoldGroupOf checks the subgroup creation level of a group for an actor with
// the level have.
func (n *Namespace) mayHoldGroupOf(by actor.Actor, have Level) error {
	need := Owner
	if n.Settings.SubgroupCreationLevel == "maintainer" {
		need = Maintainer
	}
	return enough(by, have, need)
}

// above locks and returns the parent of a group, so that nothing is moved into or
// out of it; nil at the top level.
func (s *Service) above(ctx context.Context, tx *db.Tx, parentID *int64) (*Namespace, error) {
	if parentID == nil {
		return nil, nil
	}
	if err := tx.Lock(ctx, "namespaces", *parentID); err != nil {
		return nil, err
	}
	parent, err := findNamespace(ctx, tx, *parentID)
	if err == nil && parent.Kind != GroupNamespace {
		err = errs.InvalidField("parent_id", "must be a group")
	}
	return parent, err
}

// putBelow sets the parent and the visibility of a group. Invalid if the group
// would be more visible than its parent.
func (n *Namespace) putBelow(parent *Namespace, v *Visibility) error {
	n.ParentID, n.FullPath, n.FullName = nil, n.Path, n.Name
	patch.Set(&n.Visibility, v)
	if parent == nil {
		return nil
	}
	n.ParentID, n.FullPath, n.FullName = &parent.ID, parent.FullPath+"/"+n.Path, parent.FullName+" / "+n.Name
	if v == nil {
		n.Visibility = parent.Visibility
	}
	if strings.Count(n.FullPath, "/") >= maxDepth {
		return errs.InvalidField("parent_id", "has too deep level of nesting")
	}
	if n.Visibility.width() > parent.Visibility.width() {
		return errs.InvalidField("visibility_level", "%s is not allowed since the parent group has a %s visibility.", n.Visibility, parent.Visibility)
	}
	return nil
}

// Group returns a group that the actor can see. NotFound; an old path returns
// Moved.
func (s *Service) Group(ctx context.Context, by actor.Actor, ref Ref) (*Namespace, error) {
	n, have, err := s.requireGroup(ctx, s.DB, by, ref, NoAccess)
	if err != nil {
		return nil, err
	}
	n.Shares, err = s.shares(ctx, by, source{group: n, have: have})
	return n, err
}

// GroupChange are changes to a group. A nil field keeps the current value.
type GroupChange struct {
	Name        *string
	Path        *string
	Description *string
	Visibility  *Visibility
	Settings    func(*GroupSettings)

	Avatar       *picture.File
	RemoveAvatar bool // only if Avatar is nil
}

// UpdateGroup changes a group. A new path changes the paths of everything in the
// group; the old ones are redirected. Requires Owner.
func (s *Service) UpdateGroup(ctx context.Context, by actor.Actor, ref Ref, c GroupChange) (*Namespace, error) {
	found, err := s.RequireGroup(ctx, by, ref, Owner)
	if err != nil {
		return nil, err
	}
	if err := c.Avatar.Check(); err != nil {
		return nil, err
	}
	n, err := s.changeGroup(ctx, by, found.ID, func(tx *db.Tx, n *Namespace) error {
		was := *n
		patch.Set(&n.Name, c.Name)
		patch.Set(&n.Path, c.Path)
		patch.Set(&n.Description, c.Description)
		patch.Set(&n.Visibility, c.Visibility)
		if c.Settings != nil {
			c.Settings(&n.Settings)
		}
		if err := s.checkGroup(ctx, tx, &was, n); err != nil {
			return err
		}
		return s.recordGroupChanges(ctx, tx, by, &was, n)
	})
	if err != nil {
		return nil, err
	}
	if n, err = s.setGroupAvatar(ctx, by, n, c.Avatar, c.RemoveAvatar); err != nil {
		return nil, err
	}
	n.Shares, err = s.shares(ctx, by, source{group: n, have: Owner})
	return n, err
}

// changeGroup calls f with a group in a transaction and saves the group, with the
// paths that depend on it.
func (s *Service) changeGroup(ctx context.Context, by actor.Actor, id int64, f func(tx *db.Tx, n *Namespace) error) (*Namespace, error) {
	var n *Namespace
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "namespaces", id); err != nil {
			return err
		}
		var err error
		if n, err = findNamespace(ctx, tx, id); err != nil {
			return err
		}
		was := *n
		if err := f(tx, n); err != nil {
			return err
		}
		n.UpdatedAt = s.Now()
		parent, err := s.above(ctx, tx, n.ParentID)
		if err != nil {
			return err
		}
		if err := n.putBelow(parent, &n.Visibility); err != nil {
			return err
		}
		return s.placeGroup(ctx, tx, by, &was, n)
	})
	if err != nil {
		return nil, fmt.Errorf("change group %d: %w", id, err)
	}
	return n, nil
}

// placeGroup saves a group and, if its path has changed, the paths of everything
// in it.
func (s *Service) placeGroup(ctx context.Context, tx *db.Tx, by actor.Actor, was, n *Namespace) error {
	if !strings.EqualFold(was.FullPath, n.FullPath) {
		if err := requireFree(ctx, tx, n.FullPath); err != nil {
			return err
		}
		if err := keepPaths(ctx, tx, n.ID, s.Now()); err != nil {
			return err
		}
	}
	if err := saveGroup(ctx, tx, n); err != nil {
		return err
	}
	if was.rules() != n.rules() || !same(was.ParentID, n.ParentID) {
		if err := inheritRules(ctx, tx, n.ID); err != nil {
			return err
		}
	}
	if was.FullPath == n.FullPath && was.FullName == n.FullName {
		return nil
	}
	if err := moveBelow(ctx, tx, n.ID, was.FullPath, n.FullPath, was.FullName, n.FullName); err != nil {
		return err
	}
	if err := s.publishMoved(ctx, tx, by.ID, n.ID, was.FullPath, n.FullPath); err != nil {
		return err
	}
	return dropRedirect(ctx, tx, n.FullPath)
}

// publishMoved publishes the projects that were moved with a namespace.
func (s *Service) publishMoved(ctx context.Context, tx *db.Tx, userID, namespaceID int64, was, is string) error {
	if was == is {
		return nil // only the name has changed
	}
	list, err := findPlacesBelow(ctx, tx, namespaceID)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := s.Events.Changed.Publish(ctx, tx, Event{Kind: ProjectMoved, ProjectID: p.id, UserID: userID, Name: p.name, From: was + p.path[len(is):]}); err != nil {
			return err
		}
	}
	return nil
}

// checkGroup validates a changed group, also with regard to its content.
func (s *Service) checkGroup(ctx context.Context, tx *db.Tx, was, n *Namespace) error {
	wrong := errs.Fields{}
	if n.Path != was.Path {
		checkPath(wrong, n.Path, n.ParentID == nil)
	}
	checkName(wrong, n.Name)
	checkDescription(wrong, n.Description, 500)
	n.Settings.check(wrong)
	if n.Settings.DefaultBranch == was.Settings.DefaultBranch { // the value may be older than the rule
		delete(wrong, "default_branch")
	}
	n.Visibility.check(wrong)
	if n.Visibility.width() < was.Visibility.width() {
		wider, err := widerBelow(ctx, tx, n)
		if err != nil {
			return err
		}
		if wider {
			wrong.Set("visibility_level", "%s is not allowed since there are groups or projects inside with higher visibility.", n.Visibility)
		}
	}
	return wrong.Err()
}

func (s *Service) recordGroupChanges(ctx context.Context, tx *db.Tx, by actor.Actor, was, n *Namespace) error {
	for _, c := range []struct{ kind, what, from, to string }{
		{"group_name_updated", "name", was.Name, n.Name},
		{"group_path_updated", "path", was.Path, n.Path},
		{"group_visibility_level_updated", "visibility", string(was.Visibility), string(n.Visibility)},
		{"group_request_access_enabled_updated", "request_access_enabled", fmt.Sprint(was.Settings.RequestAccessEnabled), fmt.Sprint(n.Settings.RequestAccessEnabled)},
		{"group_project_creation_level_updated", "project_creation_level", was.Settings.ProjectCreationLevel, n.Settings.ProjectCreationLevel},
		{"group_subgroup_creation_level_updated", "subgroup_creation_level", was.Settings.SubgroupCreationLevel, n.Settings.SubgroupCreationLevel},
		{"group_share_with_group_lock_updated", "share_with_group_lock", fmt.Sprint(was.Settings.ShareWithGroupLock), fmt.Sprint(n.Settings.ShareWithGroupLock)},
		{"group_only_allow_merge_if_pipeline_succeeds_updated", "only_allow_merge_if_pipeline_succeeds",
			fmt.Sprint(was.Settings.OnlyAllowMergeIfPipelineSucceeds), fmt.Sprint(n.Settings.OnlyAllowMergeIfPipelineSucceeds)},
		{"group_allow_merge_on_skipped_pipeline_updated", "allow_merge_on_skipped_pipeline",
			fmt.Sprint(was.Settings.AllowMergeOnSkippedPipeline), fmt.Sprint(n.Settings.AllowMergeOnSkippedPipeline)},
		{"group_only_allow_merge_if_all_discussions_are_resolved_updated", "only_allow_merge_if_all_discussions_are_resolved",
			fmt.Sprint(was.Settings.OnlyAllowMergeIfAllDiscussionsAreResolved), fmt.Sprint(n.Settings.OnlyAllowMergeIfAllDiscussionsAreResolved)},
		{"group_allow_author_approval_updated", "allow_author_approval", fmt.Sprint(!was.Settings.Approvals.PreventAuthor), fmt.Sprint(!n.Settings.Approvals.PreventAuthor)},
		{"group_allow_committer_approval_updated", "allow_committer_approval",
			fmt.Sprint(!was.Settings.Approvals.PreventCommitters), fmt.Sprint(!n.Settings.Approvals.PreventCommitters)},
		{"group_allow_overrides_to_approver_list_updated", "allow_overrides_to_approver_list_per_merge_request",
			fmt.Sprint(!was.Settings.Approvals.PreventOverriding), fmt.Sprint(!n.Settings.Approvals.PreventOverriding)},
		{"group_retain_approvals_on_push_updated", "retain_approvals_on_push", fmt.Sprint(!was.Settings.Approvals.ResetOnPush), fmt.Sprint(!n.Settings.Approvals.ResetOnPush)},
		{"group_selective_code_owner_removals_updated", "selective_code_owner_removals",
			fmt.Sprint(was.Settings.Approvals.SelectiveRemovals), fmt.Sprint(n.Settings.Approvals.SelectiveRemovals)},
		{"group_require_password_to_approve_updated", "require_password_to_approve",
			fmt.Sprint(was.Settings.Approvals.PasswordToApprove), fmt.Sprint(n.Settings.Approvals.PasswordToApprove)},
		{"group_membership_lock_updated", "membership_lock", fmt.Sprint(was.Settings.MembershipLock), fmt.Sprint(n.Settings.MembershipLock)},
	} {
		if c.from == c.to {
			continue
		}
		if err := s.record(ctx, tx, by, c.kind, n.Entity(), audit.Target{}, audit.Details{Change: c.what, From: c.from, To: c.to}); err != nil {
			return err
		}
	}
	return nil
}
