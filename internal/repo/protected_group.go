package repo

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Protected branches of a group apply to all projects of the group and its subgroups, in
// addition to the rules of the projects. They can be added to top-level groups only; a group
// that becomes a subgroup keeps them. Their entries are access levels; users, groups and
// deploy keys are refused.

// groupRules returns a group as the owner of rules to its Owners. NotFound,
// Forbidden.
func (s *Service) groupRules(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Namespace, ruleOwner, error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return nil, ruleOwner{}, err
	}
	return g, ruleOwner{groupID: g.ID, entity: g.Entity()}, nil
}

// GroupProtectedBranches lists the protected branches of a group, for
// Owners. search is a part of the name. NotFound, Forbidden.
func (s *Service) GroupProtectedBranches(ctx context.Context, by actor.Actor, ref project.Ref, search string, pg db.Paging) (db.Page[*Protected], error) {
	_, of, err := s.groupRules(ctx, by, ref)
	if err != nil {
		return db.Page[*Protected]{}, err
	}
	page, err := listGroupProtected(ctx, s.DB, of.groupID, BranchRef, search, pg)
	if err != nil {
		return page, fmt.Errorf("list protected branches of group: %w", err)
	}
	return page, s.fillAccess(ctx, s.DB, page.Items)
}

// GroupProtectedBranch returns a rule of a group by its exact name, for
// Owners. NotFound, Forbidden.
func (s *Service) GroupProtectedBranch(ctx context.Context, by actor.Actor, ref project.Ref, name string) (*Protected, error) {
	_, of, err := s.groupRules(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	return s.findProtected(ctx, s.DB, of, BranchRef, name)
}

// ProtectInGroup protects branches of all projects of a top-level group, for
// Owners. NotFound, Forbidden; Conflict if there is a rule with that name;
// Unprocessable if the name or an entry is not valid.
func (s *Service) ProtectInGroup(ctx context.Context, by actor.Actor, ref project.Ref, n NewProtected) (*Protected, error) {
	g, of, err := s.groupRules(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if g.ParentID != nil {
		return nil, errs.Unprocessable("Branches can be protected in top-level groups only")
	}
	if err := checkPattern(BranchRef, n.Name); err != nil {
		return nil, err
	}
	n.Access = withDefaults(BranchRef, n.Access)
	for _, a := range n.Access {
		if err := checkLevel(a); err != nil {
			return nil, err
		}
	}
	return s.protect(ctx, by, of, BranchRef, n)
}

// ChangeProtectedInGroup changes a rule of a group, for Owners.
// NotFound, Forbidden, Unprocessable.
func (s *Service) ChangeProtectedInGroup(ctx context.Context, by actor.Actor, ref project.Ref, name string, c ProtectedChange) (*Protected, error) {
	_, of, err := s.groupRules(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	for _, a := range c.Access {
		if a.Remove {
			continue
		}
		if err := checkLevel(a.RefAccess); err != nil {
			return nil, err
		}
	}
	return s.changeProtected(ctx, by, of, BranchRef, name, c)
}

// UnprotectInGroup deletes a rule of a group, for Owners. NotFound,
// Forbidden.
func (s *Service) UnprotectInGroup(ctx context.Context, by actor.Actor, ref project.Ref, name string) error {
	_, of, err := s.groupRules(ctx, by, ref)
	if err != nil {
		return err
	}
	found, err := s.findProtected(ctx, s.DB, of, BranchRef, name)
	if err != nil {
		return err
	}
	return s.unprotect(ctx, by, of, found)
}

// checkLevel checks an entry of the rule of a group.
func checkLevel(a RefAccess) error {
	if a.UserID != nil || a.GroupID != nil || a.DeployKeyID != nil {
		return errs.Unprocessable("Protected branches of groups support access levels only, not users, groups and deploy keys")
	}
	if !slices.Contains([]project.Level{project.NoAccess, project.Developer, project.Maintainer, AdminLevel}, a.Level) {
		return errs.Unprocessable("Access level is not included in the list")
	}
	return nil
}
