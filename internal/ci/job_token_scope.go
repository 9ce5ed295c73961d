package ci

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// TokenScope is the setting of a project that limits which job tokens it accepts.
type TokenScope struct {
	Inbound  bool // only job tokens of listed projects come in
	Outbound bool // job tokens of the project open nothing else
}

// maxAllowed is how many projects and groups a list may hold.
const maxAllowed = 400

// JobTokenScope returns which job tokens a project accepts. Maintainers only.
func (s *Service) JobTokenScope(ctx context.Context, by actor.Actor, ref project.Ref) (TokenScope, error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return TokenScope{}, err
	}
	inbound, err := inboundScope(ctx, s.DB, p.ID)
	return TokenScope{inbound, p.Settings.CIJobTokenScopeEnabled}, err
}

// LimitJobTokens sets whether a project accepts only the job tokens of listed
// projects. Maintainers only.
func (s *Service) LimitJobTokens(ctx context.Context, by actor.Actor, ref project.Ref, limit bool) error {
	p, err := s.Projects.RequireChange(ctx, by, ref, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO job_token_settings (project_id, inbound) VALUES (?, ?)
			ON CONFLICT (project_id) DO UPDATE SET inbound = excluded.inbound`, p.ID, limit)
		if err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "secure_ci_job_token_inbound_changed", Entity: projectEntity(p),
			Details: audit.Details{Change: "ci_inbound_job_token_scope_enabled", To: fmt.Sprint(limit)},
		})
	})
	if err != nil {
		return fmt.Errorf("limit job tokens of project %d: %w", p.ID, err)
	}
	return nil
}

// AllowedProjects lists the projects whose job tokens are accepted: the project
// itself, and those of its list. Maintainers only.
func (s *Service) AllowedProjects(ctx context.Context, by actor.Actor, ref project.Ref, pg db.Paging) (db.Page[*project.Project], error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return db.Page[*project.Project]{}, err
	}
	ids, err := db.All(ctx, s.DB, db.Value[int64], `
		SELECT a.target_project_id FROM job_token_allowlist a JOIN projects t ON t.id = a.target_project_id
		WHERE a.project_id = ? AND t.deleted_at IS NULL ORDER BY a.id`, p.ID)
	if err != nil {
		return db.Page[*project.Project]{}, fmt.Errorf("list allowed projects: %w", err)
	}
	return pick(append([]int64{p.ID}, ids...), pg, func(id int64) (*project.Project, error) {
		return s.Projects.Get(ctx, actor.System(), project.RefTo(id))
	})
}

// AllowedGroups lists the groups whose projects' job tokens are accepted.
// Maintainers only.
func (s *Service) AllowedGroups(ctx context.Context, by actor.Actor, ref project.Ref, pg db.Paging) (db.Page[*project.Namespace], error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return db.Page[*project.Namespace]{}, err
	}
	ids, err := db.All(ctx, s.DB, db.Value[int64], `
		SELECT a.target_namespace_id FROM job_token_allowlist a WHERE a.project_id = ? AND a.target_namespace_id IS NOT NULL ORDER BY a.id`, p.ID)
	if err != nil {
		return db.Page[*project.Namespace]{}, fmt.Errorf("list allowed groups: %w", err)
	}
	return pick(ids, pg, func(id int64) (*project.Namespace, error) {
		return s.Projects.RequireGroup(ctx, actor.System(), project.RefTo(id), project.NoAccess)
	})
}

// pick reads one page of a short list.
func pick[K, T any](ids []K, pg db.Paging, read func(K) (T, error)) (db.Page[T], error) {
	page := db.Page[T]{Items: []T{}, Total: len(ids)}
	from := min(pg.Offset, len(ids))
	to := min(from+pg.Limit, len(ids))
	page.More = to < len(ids)
	for _, id := range ids[from:to] {
		item, err := read(id)
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

// Allowed is an entry of the list: one of the two is set.
type Allowed struct{ ProjectID, GroupID int64 }

// Allow lets in the job tokens of a project, or of all projects of a group,
// that the actor sees. Maintainers only; NotFound when they do not see it,
// Invalid when it is listed already or the list is full.
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
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM job_token_allowlist WHERE project_id = ?`, p.ID).Scan(&n); err != nil {
			return err
		}
		if n >= maxAllowed {
			return errs.Invalid("The list has its maximum of %d entries", maxAllowed)
		}
		var adder *int64
		if by.ID > 0 {
			adder = &by.ID
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO job_token_allowlist (project_id, `+column+`, added_by, created_at) VALUES (?, ?, ?, ?)`, p.ID, id, adder, s.Now())
		if db.IsUnique(err, "job_token_allowlist_project_id_"+column) {
			return errs.Invalid("%s", "Target "+target.Type+" is already in the job token scope")
		}
		if err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "secure_ci_job_token_" + target.Type + "_added", Entity: projectEntity(p), Target: target, Details: audit.Details{Add: "job_token_scope"},
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

// Disallow takes an entry off the list. Maintainers only; NotFound.
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
		if err := db.ExecOne(ctx, tx, `DELETE FROM job_token_allowlist WHERE project_id = ? AND `+column+` = ?`, p.ID, id); err != nil {
			return db.NotFound(err, "")
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "secure_ci_job_token_" + kind + "_removed", Entity: projectEntity(p), Target: audit.Target{Type: kind, ID: id},
			Details: audit.Details{Remove: "job_token_scope"},
		})
	})
	if err != nil {
		return fmt.Errorf("disallow job tokens: %w", err)
	}
	return nil
}

// inboundScope reports whether a project lets in only what it lists.
func inboundScope(ctx context.Context, q db.Q, projectID int64) (inbound bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT inbound FROM job_token_settings WHERE project_id = ?`, projectID).Scan(&inbound)
	if errors.Is(err, db.ErrNoRows) {
		return true, nil
	}
	return inbound, err
}

// allowlisted reports whether a project lists another one, or a group above it.
func allowlisted(ctx context.Context, q db.Q, projectID int64, source *project.Project) (bool, error) {
	var one int
	err := q.QueryRowContext(ctx, `
		SELECT 1 FROM job_token_allowlist a WHERE a.project_id = ? AND (a.target_project_id = ?
			OR a.target_namespace_id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)) LIMIT 1`,
		projectID, source.ID, source.NamespaceID).Scan(&one)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
