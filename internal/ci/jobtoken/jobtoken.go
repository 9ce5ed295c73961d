// Package jobtoken manages which job tokens a project accepts, by the job token scope
// and its allowlist of projects and groups, and issues the ID tokens of jobs.
package jobtoken

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/signing"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Users    *user.Service
	Projects *project.Service
	Signing  *signing.Service
	Now      func() time.Time
}

// Service manages job token scopes and ID tokens.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{d} }

// Scope is the setting of a project that limits job tokens.
type Scope struct {
	Inbound  bool // only job tokens of listed projects are accepted
	Outbound bool // job tokens of the project are for the project only
}

// maxAllowed is the maximum number of entries of an allowlist.
const maxAllowed = 400

// Scope returns which job tokens a project accepts. Maintainers only.
func (s *Service) Scope(ctx context.Context, by actor.Actor, ref project.Ref) (Scope, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return Scope{}, err
	}
	inbound, err := inboundScope(ctx, s.DB, p.ID)
	return Scope{inbound, p.Settings.CIJobTokenScopeEnabled}, err
}

// Limit sets whether a project accepts only the job tokens of listed
// projects. Maintainers only.
func (s *Service) Limit(ctx context.Context, by actor.Actor, ref project.Ref, limit bool) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveInbound(ctx, tx, p.ID, limit); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "secure_ci_job_token_inbound_changed", Entity: p.Entity(),
			Details: audit.Details{Change: "ci_inbound_job_token_scope_enabled", To: fmt.Sprint(limit)},
		})
	})
	if err != nil {
		return fmt.Errorf("limit job tokens of project %d: %w", p.ID, err)
	}
	return nil
}

// AllowedProjects lists the projects whose job tokens are accepted: the project itself
// and those of its allowlist. Maintainers only.
func (s *Service) AllowedProjects(ctx context.Context, by actor.Actor, ref project.Ref, pg db.Paging) (db.Page[*project.Project], error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return db.Page[*project.Project]{}, err
	}
	ids, err := allowedProjects(ctx, s.DB, p.ID)
	if err != nil {
		return db.Page[*project.Project]{}, fmt.Errorf("list allowed projects: %w", err)
	}
	return db.Pick(append([]int64{p.ID}, ids...), pg, func(id int64) (*project.Project, error) {
		return s.Projects.Get(ctx, actor.System(), project.RefTo(id))
	})
}

// AllowedGroups lists the groups whose projects' job tokens are accepted. Maintainers
// only.
func (s *Service) AllowedGroups(ctx context.Context, by actor.Actor, ref project.Ref, pg db.Paging) (db.Page[*project.Namespace], error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return db.Page[*project.Namespace]{}, err
	}
	ids, err := allowedGroups(ctx, s.DB, p.ID)
	if err != nil {
		return db.Page[*project.Namespace]{}, fmt.Errorf("list allowed groups: %w", err)
	}
	return db.Pick(ids, pg, func(id int64) (*project.Namespace, error) {
		return s.Projects.RequireGroup(ctx, actor.System(), project.RefTo(id), project.NoAccess)
	})
}

// Allowed is an entry of the allowlist. One of the IDs is set.
type Allowed struct{ ProjectID, GroupID int64 }

// Allow adds a project or group that the actor can see to the allowlist. Maintainers
// only; NotFound if they cannot see it, Invalid if it is listed or the list is full.
func (s *Service) Allow(ctx context.Context, by actor.Actor, ref project.Ref, a Allowed) (*project.Project, error) {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	target, column, id, err := s.allowTarget(ctx, by, p, a)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		n, err := countAllowed(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if n >= maxAllowed {
			return errs.Invalid("The list has its maximum of %d entries", maxAllowed)
		}
		var adder *int64
		if by.ID > 0 {
			adder = &by.ID
		}
		err = insertAllowed(ctx, tx, p.ID, column, id, adder, s.Now())
		if db.IsUnique(err, "job_token_allowlist_project_id_"+column) {
			return errs.Invalid("%s", "Target "+target.Type+" is already in the job token scope")
		}
		if err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "secure_ci_job_token_" + target.Type + "_added", Entity: p.Entity(), Target: target, Details: audit.Details{Add: "job_token_scope"},
		})
	})
	if err != nil {
		return nil, fmt.Errorf("allow job tokens: %w", err)
	}
	return p, nil
}

func (s *Service) allowTarget(ctx context.Context, by actor.Actor, p *project.Project, a Allowed) (audit.Target, string, int64, error) {
	if a.GroupID != 0 {
		g, err := s.Projects.RequireGroup(ctx, by, project.RefTo(a.GroupID), project.NoAccess)
		if errs.Is(err, errs.KindNotFound) {
			return audit.Target{}, "", 0, errs.NotFound("target_group")
		}
		if err != nil {
			return audit.Target{}, "", 0, err
		}
		return audit.Target{Type: "group", ID: g.ID, Details: g.FullPath}, "target_namespace_id", g.ID, nil
	}
	t, err := s.Projects.Require(ctx, by, project.RefTo(a.ProjectID), project.NoAccess)
	switch {
	case errs.Is(err, errs.KindNotFound):
		return audit.Target{}, "", 0, errs.NotFound("target_project")
	case err != nil:
		return audit.Target{}, "", 0, err
	case t.ID == p.ID:
		return audit.Target{}, "", 0, errs.Invalid("Can't add the source project to its own list")
	}
	return audit.Target{Type: "project", ID: t.ID, Details: t.FullPath}, "target_project_id", t.ID, nil
}

// Disallow removes an entry of the allowlist. Maintainers only; NotFound.
func (s *Service) Disallow(ctx context.Context, by actor.Actor, ref project.Ref, a Allowed) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	kind, column, id := "project", "target_project_id", a.ProjectID
	if a.GroupID != 0 {
		kind, column, id = "group", "target_namespace_id", a.GroupID
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := deleteAllowed(ctx, tx, p.ID, column, id); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "secure_ci_job_token_" + kind + "_removed", Entity: p.Entity(), Target: audit.Target{Type: kind, ID: id},
			Details: audit.Details{Remove: "job_token_scope"},
		})
	})
	if err != nil {
		return fmt.Errorf("disallow job tokens: %w", err)
	}
	return nil
}

// Accepts reports whether a project accepts the job tokens of another project.
func (s *Service) Accepts(ctx context.Context, from, to int64) (bool, error) {
	source, err := s.Projects.Require(ctx, actor.System(), project.RefTo(from), project.NoAccess)
	if err != nil {
		return false, err
	}
	if source.Settings.CIJobTokenScopeEnabled { // its tokens are for itself only
		return false, nil
	}
	inbound, err := inboundScope(ctx, s.DB, to)
	if err != nil || !inbound {
		return !inbound, err
	}
	return allowlisted(ctx, s.DB, to, source)
}
