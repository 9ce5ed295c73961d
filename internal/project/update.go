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
	"svc/internal/project/topic"
)

// Change are changes to a project. A nil field keeps the current value.
type Change struct {
	Name       *string
	Path       *string
	Visibility *Visibility
	Fields

	// Narrow limits the access level of merge requests if the repository becomes less
	// visible than they are, which is an error otherwise.
	Narrow bool
}

// Update changes a project. Requires Maintainer, and Owner to change the name,
// path and visibility, or the role that may override pipeline variables to or from
// a value above Maintainer. An old path is redirected. If the project becomes less
// visible, so do its forks.
func (s *Service) Update(ctx context.Context, by actor.Actor, ref Ref, c Change) (*Project, error) {
	found, err := s.Require(ctx, by, ref, Maintainer)
	if err != nil {
		return nil, err
	}
	if err := c.allowed(by, found, found.Access.Level()); err != nil {
		return nil, err
	}
	if err := c.Avatar.Check(); err != nil {
		return nil, err
	}
	if err := s.setBranch(ctx, found, c.DefaultBranch); err != nil {
		return nil, err
	}
	// The repository is moved to another storage in the background, after all other
	// changes.
	storage := c.Storage
	if storage != nil && (!by.Admin || *storage == found.Storage || s.storage == nil) {
		storage = nil
	}
	if storage != nil && !s.hasStorage(*storage) {
		return nil, errs.InvalidField("repository_storage", "is not included in the list")
	}
	c.Storage = nil
	_, err = s.change(ctx, found.ID, func(tx *db.Tx, p *Project) error {
		was := *p
		// An Owner may have changed the project since it was found.
		if err := c.allowed(by, p, found.Access.Level()); err != nil {
			return err
		}
		patch.Set(&p.Name, c.Name)
		patch.Set(&p.Path, c.Path)
		patch.Set(&p.Visibility, c.Visibility)
		if err := s.apply(by, p, c.Fields); err != nil {
			return err
		}
		if enough(by, found.Access.Level(), Owner) != nil && was.Settings.overrideRoleForOwners(&p.Settings) {
			return errs.Forbidden("Only Owners can change ci_pipeline_variables_minimum_override_role to or from owner or no_one_allowed")
		}
		if c.Narrow && p.MergeRequests.width() > p.Repository.width() {
			p.MergeRequests = p.Repository
		}
		patch.Set(&p.DefaultBranch, c.DefaultBranch)
		wrong := errs.Fields{}
		if p.Path != was.Path {
			checkPath(wrong, p.Path, false)
		}
		checkName(wrong, p.Name)
		p.check(wrong)
		if err := wrong.Err(); err != nil {
			return err
		}
		if p.Visibility.width() > was.Visibility.width() {
			if err := s.underOrigin(ctx, tx, p, p.ForkedFromID); err != nil {
				return err
			}
		}
		if p.CodeVisibility().width() < was.CodeVisibility().width() {
			if err := s.lowerForks(ctx, tx, by, p); err != nil {
				return err
			}
		}
		if c.Topics != nil {
			if err := topic.Save(ctx, tx, p.ID, p.Topics, s.Now()); err != nil {
				return err
			}
		}
		if p.Name != was.Name {
			if err := s.Events.Changed.Publish(ctx, tx, Event{Kind: ProjectRenamed, ProjectID: p.ID, UserID: by.ID, Name: p.Name}); err != nil {
				return err
			}
		}
		if p.Path != was.Path {
			if err := s.Events.Changed.Publish(ctx, tx, Event{Kind: ProjectMoved, ProjectID: p.ID, UserID: by.ID, Name: p.Name, From: was.FullPath}); err != nil {
				return err
			}
		}
		return s.recordChanges(ctx, tx, by, &was, p)
	})
	if err != nil {
		return nil, err
	}
	if err := s.setAvatar(ctx, by, found.ID, c.Avatar, c.RemoveAvatar); err != nil {
		return nil, err
	}
	if storage != nil {
		if err := s.storage(ctx, by, found, *storage); err != nil {
			return nil, err
		}
	}
	return s.Get(ctx, by, RefTo(found.ID))
}

// allowed returns an error if the change sets another name, path or visibility, and the
// level is not that of an Owner.
func (c *Change) allowed(by actor.Actor, p *Project, have Level) error {
	if c.Name != nil && *c.Name != p.Name || c.Path != nil && *c.Path != p.Path || c.Visibility != nil && *c.Visibility != p.Visibility {
		return enough(by, have, Owner)
	}
	return nil
}

// setBranch changes the default branch in the repository, before the row is
// updated.
func (s *Service) setBranch(ctx context.Context, p *Project, branch *string) error {
	if branch == nil || *branch == p.DefaultBranch {
		return nil
	}
	if s.branch == nil {
		return errs.InvalidField("default_branch", "does not exist")
	}
	return s.branch(ctx, p, *branch)
}

// change calls f with a project in a transaction and saves the project. Its old
// and new namespaces are locked, so that its path cannot be taken concurrently.
func (s *Service) change(ctx context.Context, id int64, f func(tx *db.Tx, p *Project) error) (*Project, error) {
	var p *Project
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", id); err != nil {
			return err
		}
		var err error
		if p, err = findProject(ctx, tx, id); err != nil {
			return err
		}
		was := *p
		if err := f(tx, p); err != nil {
			return err
		}
		p.UpdatedAt = s.Now()
		if p.NamespaceID == was.NamespaceID && p.Path == was.Path && p.Visibility == was.Visibility {
			return saveProject(ctx, tx, p)
		}
		return s.place(ctx, tx, &was, p)
	})
	if err != nil {
		return nil, fmt.Errorf("change project %d: %w", id, err)
	}
	return p, nil
}

// place saves a project with a new path or visibility.
func (s *Service) place(ctx context.Context, tx *db.Tx, was, p *Project) error {
	if err := tx.Lock(ctx, "namespaces", p.NamespaceID); err != nil {
		return err
	}
	into, err := findNamespace(ctx, tx, p.NamespaceID)
	if err != nil {
		return err
	}
	if err := p.putInto(into, nil); err != nil {
		return err
	}
	if !strings.EqualFold(was.FullPath, p.FullPath) {
		if err := requireFree(ctx, tx, p.FullPath); err != nil {
			return err
		}
		if err := keepPath(ctx, tx, was, s.Now()); err != nil {
			return err
		}
		if err := dropRedirect(ctx, tx, p.FullPath); err != nil {
			return err
		}
	}
	return saveProject(ctx, tx, p)
}

// recordChanges adds an audit event for each important attribute that changed.
func (s *Service) recordChanges(ctx context.Context, tx *db.Tx, by actor.Actor, was, p *Project) error {
	for _, c := range []struct{ kind, what, from, to string }{
		{"project_name_updated", "name", was.Name, p.Name},
		{"project_path_updated", "path", was.Path, p.Path},
		{"project_visibility_level_updated", "visibility", string(was.Visibility), string(p.Visibility)},
		{"project_repository_access_level_updated", "repository_access_level", string(was.Repository), string(p.Repository)},
		{"project_merge_requests_access_level_updated", "merge_requests_access_level", string(was.MergeRequests), string(p.MergeRequests)},
		{"project_issues_access_level_updated", "issues_access_level", string(was.Issues), string(p.Issues)},
		{"project_builds_access_level_updated", "builds_access_level", string(was.Builds), string(p.Builds)},
		{"project_pages_access_level_updated", "pages_access_level", string(was.Settings.Pages), string(p.Settings.Pages)},
		{"project_merge_method_updated", "merge method", was.Settings.MergeMethod, p.Settings.MergeMethod},
		{"project_only_allow_merge_if_pipeline_succeeds_updated", "only_allow_merge_if_pipeline_succeeds",
			fmt.Sprint(was.Settings.OnlyAllowMergeIfPipelineSucceeds), fmt.Sprint(p.Settings.OnlyAllowMergeIfPipelineSucceeds)},
		{"project_only_allow_merge_if_all_discussions_are_resolved_updated", "only_allow_merge_if_all_discussions_are_resolved",
			fmt.Sprint(was.Settings.OnlyAllowMergeIfAllDiscussionsAreResolved), fmt.Sprint(p.Settings.OnlyAllowMergeIfAllDiscussionsAreResolved)},
		{"project_approvals_before_merge_updated", "approvals_before_merge",
			fmt.Sprint(was.Settings.Approvals.BeforeMerge), fmt.Sprint(p.Settings.Approvals.BeforeMerge)},
		{"project_reset_approvals_on_push_updated", "reset_approvals_on_push",
			fmt.Sprint(was.Settings.Approvals.ResetOnPush), fmt.Sprint(p.Settings.Approvals.ResetOnPush)},
		{"project_selective_code_owner_removals_updated", "selective_code_owner_removals",
			fmt.Sprint(was.Settings.Approvals.SelectiveRemovals), fmt.Sprint(p.Settings.Approvals.SelectiveRemovals)},
		{"project_disable_overriding_approvers_per_merge_request_updated", "disable_overriding_approvers_per_merge_request",
			fmt.Sprint(was.Settings.Approvals.DisableOverriding), fmt.Sprint(p.Settings.Approvals.DisableOverriding)},
		{"project_merge_requests_author_approval_updated", "merge_requests_author_approval",
			fmt.Sprint(was.Settings.Approvals.AuthorApproval), fmt.Sprint(p.Settings.Approvals.AuthorApproval)},
		{"project_merge_requests_disable_committers_approval_updated", "merge_requests_disable_committers_approval",
			fmt.Sprint(was.Settings.Approvals.DisableCommitters), fmt.Sprint(p.Settings.Approvals.DisableCommitters)},
		{"project_require_password_to_approve_updated", "require_password_to_approve",
			fmt.Sprint(was.Settings.Approvals.PasswordToApprove), fmt.Sprint(p.Settings.Approvals.PasswordToApprove)},
	} {
		if c.from == c.to {
			continue
		}
		if err := s.record(ctx, tx, by, c.kind, p.Entity(), audit.Target{}, audit.Details{Change: c.what, From: c.from, To: c.to}); err != nil {
			return err
		}
	}
	return nil
}

// SetArchived archives or unarchives a project. Requires Owner. It is not an error
// if the state does not change.
func (s *Service) SetArchived(ctx context.Context, by actor.Actor, ref Ref, archived bool) (*Project, error) {
	found, err := s.Require(ctx, by, ref, Owner)
	if err != nil {
		return nil, err
	}
	_, err = s.change(ctx, found.ID, func(tx *db.Tx, p *Project) error {
		if p.Archived == archived {
			return nil
		}
		p.Archived = archived
		kind := map[bool]string{true: "project_archived", false: "project_unarchived"}[archived]
		return s.record(ctx, tx, by, kind, p.Entity(), audit.Target{}, audit.Details{Change: "archived", From: fmt.Sprint(!archived), To: fmt.Sprint(archived)})
	})
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, by, RefTo(found.ID))
}
