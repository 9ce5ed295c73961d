package deployment

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"svc/internal/db"
	"svc/internal/project"
)

const protectedColumns = `e.id, e.project_id, e.namespace_id, e.name, e.required_approval_count, e.created_at, e.updated_at`

func scanProtected(sc db.Scanner) (*ProtectedEnvironment, error) {
	var e ProtectedEnvironment
	err := sc.Scan(&e.ID, &e.ProjectID, &e.GroupID, &e.Name, &e.RequiredApprovals, db.Time(&e.CreatedAt), db.Time(&e.UpdatedAt))
	return &e, err
}

// where is a condition on the place of protected environments e.
func (in place) where() (string, int64) {
	if in.projectID != 0 {
		return `e.project_id = ?`, in.projectID
	}
	return `e.namespace_id = ?`, in.groupID
}

func findProtected(ctx context.Context, q db.Q, in place, name string) (*ProtectedEnvironment, error) {
	cond, id := in.where()
	return scanProtected(q.QueryRowContext(ctx, `SELECT `+protectedColumns+` FROM protected_environments e WHERE `+cond+` AND e.name = ?`, id, name))
}

func listProtected(ctx context.Context, d *db.DB, in place, p db.Paging) (db.Page[*ProtectedEnvironment], error) {
	var w db.Where
	cond, id := in.where()
	w.And(cond, id)
	return db.List(ctx, d, db.Query[*ProtectedEnvironment]{
		Columns: protectedColumns, From: `protected_environments e`, Where: w, Order: []db.Order{{Name: "e.name"}}, Scan: scanProtected,
		Keys: func(e *ProtectedEnvironment) []any { return []any{e.Name} },
	}, p)
}

func countProtected(ctx context.Context, q db.Q, in place) (n int, err error) {
	cond, id := in.where()
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM protected_environments e WHERE `+cond, id).Scan(&n)
	return n, err
}

// findProtections returns the protected environment of a project and those of the
// groups above it, which are the namespaces whose path is a prefix of the project's: for
// a tier, or for all tiers if it is empty.
func findProtections(ctx context.Context, q db.Q, p *project.Project, name, tier string) ([]*ProtectedEnvironment, error) {
	return db.All(ctx, q, scanProtected, `
		SELECT `+protectedColumns+` FROM protected_environments e WHERE e.project_id = ? AND e.name = ?
		UNION ALL
		SELECT `+protectedColumns+` FROM protected_environments e WHERE (e.name = ? OR ? = '') AND e.namespace_id IN (
			WITH RECURSIVE above (id, parent_id) AS (
				SELECT n.id, n.parent_id FROM namespaces n WHERE n.id = ?
				UNION SELECT n.id, n.parent_id FROM namespaces n JOIN above a ON n.id = a.parent_id)
			SELECT id FROM above)`, p.ID, name, tier, tier, p.NamespaceID)
}

// IsProtected reports whether the environment of a job may be protected. One that was
// deleted may have been.
func IsProtected(ctx context.Context, q db.Q, jobID int64) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM jobs j JOIN projects p ON p.id = j.project_id LEFT JOIN environments v ON v.id = j.environment_id
		WHERE j.id = ? AND j.environment_id IS NOT NULL AND (
			v.id IS NULL
			OR EXISTS (SELECT 1 FROM protected_environments e WHERE e.project_id = j.project_id AND e.name = v.name)
			OR EXISTS (SELECT 1 FROM protected_environments e WHERE e.name = v.tier AND e.namespace_id IN (
				WITH RECURSIVE above (id, parent_id) AS (
					SELECT n.id, n.parent_id FROM namespaces n WHERE n.id = p.namespace_id
					UNION SELECT n.id, n.parent_id FROM namespaces n JOIN above a ON n.id = a.parent_id)
				SELECT id FROM above)))`, jobID)
}

func insertProtected(ctx context.Context, q db.Q, e *ProtectedEnvironment) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO protected_environments (project_id, namespace_id, name, required_approval_count, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		e.ProjectID, e.GroupID, e.Name, e.RequiredApprovals, e.CreatedAt, e.UpdatedAt).Scan(&e.ID)
}

func updateProtected(ctx context.Context, q db.Q, e *ProtectedEnvironment) error {
	return db.ExecOne(ctx, q, `UPDATE protected_environments SET required_approval_count = ?, updated_at = ? WHERE id = ?`, e.RequiredApprovals, e.UpdatedAt, e.ID)
}

func deleteProtected(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM protected_environments WHERE id = ?`, id)
}

// fillRules reads the rules of protected environments.
func fillRules(ctx context.Context, q db.Q, list []*ProtectedEnvironment) error {
	if len(list) == 0 {
		return nil
	}
	byID, ids := map[int64]*ProtectedEnvironment{}, make([]int64, len(list))
	for i, e := range list {
		byID[e.ID], ids[i] = e, e.ID
	}
	_, err := db.All(ctx, q, func(sc db.Scanner) (struct{}, error) {
		var r EnvironmentRule
		var of, inheritance int64
		var kind string
		var level sql.NullInt64
		if err := sc.Scan(&r.ID, &of, &kind, &level, &r.UserID, &r.GroupID, &inheritance, &r.Required, &r.Name); err != nil {
			return struct{}{}, err
		}
		if level.Valid {
			l := project.Level(level.Int64)
			r.Level = &l
		}
		r.Inherited = inheritance == 1
		if e := byID[of]; kind == "deploy" {
			e.Deploy = append(e.Deploy, &r)
		} else {
			e.Approve = append(e.Approve, &r)
		}
		return struct{}{}, nil
	}, `SELECT r.id, r.protected_environment_id, r.kind, r.access_level, r.user_id, r.group_id, r.group_inheritance_type, r.required_approvals,
			coalesce(u.name, n.name, '')
		FROM protected_environment_rules r LEFT JOIN users u ON u.id = r.user_id LEFT JOIN namespaces n ON n.id = r.group_id
		WHERE r.protected_environment_id IN `+db.In(len(ids))+` ORDER BY r.protected_environment_id, r.id`, db.Any(ids)...)
	return err
}

// saveRules replaces the rows of the rules by those of e.
func saveRules(ctx context.Context, q db.Q, e *ProtectedEnvironment, was []*EnvironmentRule) error {
	kept := map[int64]bool{}
	save := func(kind string, r *EnvironmentRule) error {
		inheritance := 0
		if r.Inherited {
			inheritance = 1
		}
		var level *int64
		if r.Level != nil {
			l := int64(*r.Level)
			level = &l
		}
		if r.ID == 0 {
			return q.QueryRowContext(ctx, `
				INSERT INTO protected_environment_rules (protected_environment_id, kind, access_level, user_id, group_id, group_inheritance_type, required_approvals)
				VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`, e.ID, kind, level, r.UserID, r.GroupID, inheritance, r.Required).Scan(&r.ID)
		}
		kept[r.ID] = true
		return db.ExecOne(ctx, q, `
			UPDATE protected_environment_rules SET access_level = ?, user_id = ?, group_id = ?, group_inheritance_type = ?, required_approvals = ? WHERE id = ?`,
			level, r.UserID, r.GroupID, inheritance, r.Required, r.ID)
	}
	for _, r := range e.Deploy {
		if err := save("deploy", r); err != nil {
			return err
		}
	}
	for _, r := range e.Approve {
		if err := save("approve", r); err != nil {
			return err
		}
	}
	for _, r := range was {
		if kept[r.ID] {
			continue
		}
		if _, err := q.ExecContext(ctx, `DELETE FROM protected_environment_rules WHERE id = ?`, r.ID); err != nil {
			return err
		}
	}
	return nil
}

func findApprovals(ctx context.Context, q db.Q, deploymentID int64) ([]*Approval, error) {
	return db.All(ctx, q, func(sc db.Scanner) (*Approval, error) {
		var a Approval
		var status string
		err := sc.Scan(&a.ID, &a.DeploymentID, &a.UserID, &a.RuleID, &status, &a.Comment, db.Time(&a.CreatedAt))
		a.Approved = status == "approved"
		return &a, err
	}, `SELECT id, deployment_id, user_id, rule_id, status, comment, created_at FROM deployment_approvals WHERE deployment_id = ? ORDER BY id LIMIT 1000`, deploymentID)
}

func saveApproval(ctx context.Context, q db.Q, a *Approval) error {
	status := "rejected"
	if a.Approved {
		status = "approved"
	}
	return q.QueryRowContext(ctx, `
		INSERT INTO deployment_approvals (deployment_id, user_id, rule_id, status, comment, created_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (deployment_id, user_id) DO UPDATE SET rule_id = excluded.rule_id, status = excluded.status, comment = excluded.comment, created_at = excluded.created_at
		RETURNING id`, a.DeploymentID, a.UserID, a.RuleID, status, a.Comment, a.CreatedAt).Scan(&a.ID)
}

// findOfJob returns the deployment and the environment of a job; nil for a missing
// one. It returns db.ErrNoRows if the environment was deleted.
func findOfJob(ctx context.Context, q db.Q, jobID int64) (*Deployment, *Environment, error) {
	var id *int64
	err := q.QueryRowContext(ctx, `SELECT environment_id FROM jobs WHERE id = ?`, jobID).Scan(&id)
	if errors.Is(err, db.ErrNoRows) || err == nil && id == nil {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var e Environment
	err = q.QueryRowContext(ctx, `SELECT v.id, v.project_id, v.name, v.tier FROM environments v WHERE v.id = ?`, *id).Scan(&e.ID, &e.ProjectID, &e.Name, &e.Tier)
	if err != nil {
		return nil, nil, err
	}
	d, err := scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM deployments d WHERE d.job_id = ? ORDER BY d.id DESC LIMIT 1`, jobID))
	if errors.Is(err, db.ErrNoRows) {
		return nil, &e, nil
	}
	return d, &e, err
}

// BlockedJobs returns those of the jobs whose deployments wait for approvals.
func BlockedJobs(ctx context.Context, q db.Q, jobs []int64) (map[int64]bool, error) {
	found := map[int64]bool{}
	for part := range slices.Chunk(jobs, 500) {
		list, err := db.All(ctx, q, db.Value[int64], `SELECT job_id FROM deployments WHERE status = ? AND job_id IN `+db.In(len(part)),
			append([]any{string(Blocked)}, db.Any(part)...)...)
		if err != nil {
			return nil, err
		}
		for _, id := range list {
			found[id] = true
		}
	}
	return found, nil
}

const freezeColumns = `f.id, f.project_id, f.freeze_start, f.freeze_end, f.cron_timezone, f.created_at, f.updated_at`

func scanFreeze(sc db.Scanner) (*FreezePeriod, error) {
	var f FreezePeriod
	err := sc.Scan(&f.ID, &f.ProjectID, &f.Start, &f.End, &f.Timezone, db.Time(&f.CreatedAt), db.Time(&f.UpdatedAt))
	return &f, err
}

func findFreeze(ctx context.Context, q db.Q, projectID, id int64) (*FreezePeriod, error) {
	return scanFreeze(q.QueryRowContext(ctx, `SELECT `+freezeColumns+` FROM freeze_periods f WHERE f.project_id = ? AND f.id = ?`, projectID, id))
}

func listFreezes(ctx context.Context, d *db.DB, projectID int64, p db.Paging) (db.Page[*FreezePeriod], error) {
	var w db.Where
	w.And(`f.project_id = ?`, projectID)
	return db.List(ctx, d, db.Query[*FreezePeriod]{
		Columns: freezeColumns, From: `freeze_periods f`, Where: w, Order: []db.Order{{Name: "f.id"}}, Scan: scanFreeze,
		Keys: func(f *FreezePeriod) []any { return []any{f.ID} },
	}, p)
}

func allFreezes(ctx context.Context, q db.Q, projectID int64) ([]*FreezePeriod, error) {
	return db.All(ctx, q, scanFreeze, `SELECT `+freezeColumns+` FROM freeze_periods f WHERE f.project_id = ? ORDER BY f.id`, projectID)
}

func countFreezes(ctx context.Context, q db.Q, projectID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM freeze_periods WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

func insertFreeze(ctx context.Context, q db.Q, f *FreezePeriod) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO freeze_periods (project_id, freeze_start, freeze_end, cron_timezone, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		f.ProjectID, f.Start, f.End, f.Timezone, f.CreatedAt, f.UpdatedAt).Scan(&f.ID)
}

func updateFreeze(ctx context.Context, q db.Q, f *FreezePeriod) error {
	return db.ExecOne(ctx, q, `UPDATE freeze_periods SET freeze_start = ?, freeze_end = ?, cron_timezone = ?, updated_at = ? WHERE id = ?`,
		f.Start, f.End, f.Timezone, f.UpdatedAt, f.ID)
}

func deleteFreeze(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM freeze_periods WHERE id = ?`, id)
}
