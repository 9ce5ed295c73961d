package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// ApprovalSettings are the settings of a project for the approvals of merge
// requests.
type ApprovalSettings struct {
	BeforeMerge       int64 // approvals that the rule for any approver requires
	ResetOnPush       bool  // remove all approvals when commits are pushed
	SelectiveRemovals bool  // remove only the approvals of code owners whose files a push changes
	DisableOverriding bool  // merge requests have no rules of their own
	AuthorApproval    bool  // authors may approve
	DisableCommitters bool  // users who committed may not approve
	PasswordToApprove bool  // approvers enter their password
}

func defaultApprovalSettings() ApprovalSettings { return ApprovalSettings{ResetOnPush: true} }

// MaxApprovals is the largest number of approvals that a rule requires.
const MaxApprovals = 100

func (a *ApprovalSettings) check(wrong errs.Fields) {
	if a.BeforeMerge < 0 || a.BeforeMerge > MaxApprovals {
		wrong.Set("approvals_before_merge", "must be between 0 and %d", MaxApprovals)
	}
	if a.SelectiveRemovals && a.ResetOnPush {
		wrong.Set("selective_code_owner_removals", "can only be enabled if reset_approvals_on_push is disabled")
	}
}

// In returns a project by its ID in a transaction of another feature. NotFound.
func In(ctx context.Context, q db.Q, id int64) (*Project, error) { return findProject(ctx, q, id) }

// GroupIn returns a group by its ID in a transaction of another feature. NotFound.
func GroupIn(ctx context.Context, q db.Q, id int64) (*Namespace, error) {
	n, err := findNamespace(ctx, q, id)
	return n, db.NotFound(err, "Group")
}

// SettingsOf reads the settings of a project, with the rules of its groups, in a
// transaction of another feature. NotFound.
func SettingsOf(ctx context.Context, q db.Q, projectID int64) (Settings, error) {
	p, err := findProject(ctx, q, projectID)
	if err != nil {
		return Settings{}, err
	}
	return p.MergeSettings(), nil
}

// AccessOf returns the access of active users to a project, if they have any.
// Administrators are not treated specially.
func (s *Service) AccessOf(ctx context.Context, p *Project, userIDs []int64) (map[int64]Access, error) {
	found := map[int64]Access{}
	for part := range slices.Chunk(userIDs, 300) {
		sql, args := s.grants(actor.System(), source{project: p, have: Owner}, part)
		if err := findAccess(ctx, s.DB, sql, args, found); err != nil {
			return nil, fmt.Errorf("access to project %d: %w", p.ID, err)
		}
	}
	if owner := p.Namespace.UserID; owner != nil && slices.Contains(userIDs, *owner) {
		active, err := isActive(ctx, s.DB, *owner)
		if err != nil {
			return nil, fmt.Errorf("access to project %d: %w", p.ID, err)
		}
		if active {
			a := found[*owner]
			a.Direct = Owner
			found[*owner] = a
		}
	}
	return found, nil
}

// DirectMembers returns the direct members of groups by group, up to a total
// limit. Users in always are included regardless of the limit.
func (s *Service) DirectMembers(ctx context.Context, groupIDs, always []int64, limit int) (map[int64][]int64, error) {
	if len(groupIDs) == 0 {
		return nil, nil
	}
	found := map[int64][]int64{}
	for part := range slices.Chunk(groupIDs, 300) {
		if err := findDirectMembers(ctx, s.DB, s.today(), part, always, limit, found); err != nil {
			return nil, fmt.Errorf("members of groups: %w", err)
		}
		for _, id := range part {
			limit = max(0, limit-len(found[id]))
		}
	}
	return found, nil
}

// RoleMembers returns the direct members of a project with exactly this level.
func (s *Service) RoleMembers(ctx context.Context, projectID int64, level Level, limit int) ([]int64, error) {
	ids, err := findRoleMembers(ctx, s.DB, s.today(), projectID, level, limit)
	if err != nil {
		return nil, fmt.Errorf("members of project %d: %w", projectID, err)
	}
	return ids, nil
}

// NamedOwners returns the users and groups with the given usernames or full paths,
// by lowercase name.
func (s *Service) NamedOwners(ctx context.Context, names []string) (users, groups map[string]int64, err error) {
	users, groups = map[string]int64{}, map[string]int64{}
	for part := range slices.Chunk(names, 300) {
		list, err := findNamespacesByPath(ctx, s.DB, part)
		if err != nil {
			return nil, nil, fmt.Errorf("find namespaces: %w", err)
		}
		for _, n := range list {
			name := strings.ToLower(n.FullPath)
			if n.Kind == GroupNamespace {
				groups[name] = n.ID
			} else if n.UserID != nil {
				users[name] = *n.UserID
			}
		}
	}
	return users, groups, nil
}

// maxGroupsAmong is the maximum number of groups that GroupsAmong checks. Each
// takes several queries.
const maxGroupsAmong = 200

// GroupsAmong returns the groups among ids that the actor can see, by ID. At most
// maxGroupsAmong are checked.
func (s *Service) GroupsAmong(ctx context.Context, by actor.Actor, ids []int64) (map[int64]*Namespace, error) {
	found := map[int64]*Namespace{}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for _, id := range ids[:min(len(ids), maxGroupsAmong)] {
		n, err := s.RequireGroup(ctx, by, RefTo(id), NoAccess)
		if errs.IsRefusal(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[id] = n
	}
	return found, nil
}
