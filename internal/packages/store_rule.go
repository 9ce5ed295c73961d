package packages

import (
	"context"
	"errors"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

const ruleColumns = `r.id, r.project_id, r.package_type, r.name_pattern, r.push_level, r.delete_level, r.created_at, r.updated_at`

func scanRule(s db.Scanner) (*Rule, error) {
	r := &Rule{}
	var push, remove *int64
	err := s.Scan(&r.ID, &r.ProjectID, &r.Type, &r.Pattern, &push, &remove, db.Time(&r.CreatedAt), db.Time(&r.UpdatedAt))
	if push != nil {
		r.PushLevel = project.Level(*push)
	}
	if remove != nil {
		r.DeleteLevel = project.Level(*remove)
	}
	return r, err
}

// orNull stores a level; 0 is none.
func orNull(l project.Level) *int64 {
	if l == 0 {
		return nil
	}
	n := int64(l)
	return &n
}

func listRules(ctx context.Context, d *db.DB, projectID int64, pg db.Paging) (db.Page[*Rule], error) {
	var w db.Where
	w.And("r.project_id = ?", projectID)
	return db.List(ctx, d, db.Query[*Rule]{
		Columns: ruleColumns, From: "package_protection_rules r", Where: w, Order: []db.Order{{Name: "r.id"}}, Scan: scanRule,
	}, pg)
}

func rulesOf(ctx context.Context, q db.Q, projectID int64, t Type) ([]*Rule, error) {
	return db.All(ctx, q, scanRule, `SELECT `+ruleColumns+` FROM package_protection_rules r WHERE r.project_id = ? AND r.package_type = ?`, projectID, string(t))
}

func findRule(ctx context.Context, q db.Q, projectID, id int64) (*Rule, error) {
	r, err := scanRule(q.QueryRowContext(ctx, `SELECT `+ruleColumns+` FROM package_protection_rules r WHERE r.project_id = ? AND r.id = ?`, projectID, id))
	return r, db.NotFound(err, "Package protection rule")
}

func countRules(ctx context.Context, q db.Q, projectID int64) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM package_protection_rules WHERE project_id = ?`, projectID).Scan(&n)
	return n, err
}

func insertRule(ctx context.Context, tx *db.Tx, r *Rule) error {
	return patternTaken(tx.QueryRowContext(ctx, `
		INSERT INTO package_protection_rules (project_id, package_type, name_pattern, push_level, delete_level, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		r.ProjectID, string(r.Type), r.Pattern, orNull(r.PushLevel), orNull(r.DeleteLevel), r.CreatedAt, r.UpdatedAt).Scan(&r.ID))
}

func saveRule(ctx context.Context, tx *db.Tx, r *Rule) error {
	return patternTaken(db.ExecOne(ctx, tx, `
		UPDATE package_protection_rules SET package_type = ?, name_pattern = ?, push_level = ?, delete_level = ?, updated_at = ? WHERE id = ?`,
		string(r.Type), r.Pattern, orNull(r.PushLevel), orNull(r.DeleteLevel), r.UpdatedAt, r.ID))
}

func patternTaken(err error) error {
	if db.IsUnique(err, "package_protection_rules_project_id_package_type_name_pattern") {
		return errs.Unprocessable("Package name pattern has already been taken")
	}
	return err
}

func deleteRule(ctx context.Context, tx *db.Tx, id int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM package_protection_rules WHERE id = ?`, id), "Package protection rule")
}

func findPolicy(ctx context.Context, q db.Q, projectID int64) (Policy, error) {
	var p Policy
	err := q.QueryRowContext(ctx, `SELECT keep_duplicates, next_run_at FROM package_cleanup_policies WHERE project_id = ?`, projectID).
		Scan(&p.Keep, db.NullTime(&p.NextRunAt))
	if errors.Is(err, db.ErrNoRows) {
		return Policy{}, nil
	}
	return p, err
}

func savePolicy(ctx context.Context, tx *db.Tx, projectID int64, keep int, next time.Time) error {
	if keep == 0 {
		_, err := tx.ExecContext(ctx, `DELETE FROM package_cleanup_policies WHERE project_id = ?`, projectID)
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO package_cleanup_policies (project_id, keep_duplicates, next_run_at) VALUES (?, ?, ?)
		ON CONFLICT (project_id) DO UPDATE SET keep_duplicates = excluded.keep_duplicates, next_run_at = excluded.next_run_at`, projectID, keep, next)
	return err
}

// nextPolicy returns a policy that is due; 0 if there is none.
func nextPolicy(ctx context.Context, q db.Q, now time.Time) (projectID int64, keep int, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT project_id, keep_duplicates FROM package_cleanup_policies WHERE next_run_at <= ? ORDER BY next_run_at LIMIT 1`, now).Scan(&projectID, &keep)
	if errors.Is(err, db.ErrNoRows) {
		return 0, 0, nil
	}
	return projectID, keep, err
}

func setNextRun(ctx context.Context, q db.Q, projectID int64, next time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE package_cleanup_policies SET next_run_at = ? WHERE project_id = ?`, next, projectID)
	return err
}

// packagesAfter returns the IDs of packages of a project that are greater than after.
func packagesAfter(ctx context.Context, q db.Q, projectID, after int64, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT id FROM packages WHERE project_id = ? AND id > ? ORDER BY id LIMIT ?`, projectID, after, limit)
}

func findDuplicates(ctx context.Context, q db.Q, packages []int64, keep, limit int) ([]duplicate, error) {
	return db.All(ctx, q, func(s db.Scanner) (d duplicate, err error) {
		err = s.Scan(&d.packageID, &d.name)
		return d, err
	}, `SELECT f.package_id, f.name FROM package_files f WHERE f.package_id IN `+db.In(len(packages))+` GROUP BY f.package_id, f.name HAVING count(*) > ? LIMIT ?`,
		append(db.Any(packages), keep, limit)...)
}

// olderFiles returns the files of a name except the newest.
func olderFiles(ctx context.Context, q db.Q, packageID int64, name string, keep, limit int) ([]*File, error) {
	return db.All(ctx, q, scanFile, `
		SELECT `+fileColumns+` FROM `+fileTables+` WHERE f.package_id = ? AND f.name = ? ORDER BY f.id DESC LIMIT ? OFFSET ?`, packageID, name, limit, keep)
}

func defaultGroupSettings() Settings { return Settings{GenericDuplicatesAllowed: true} }

func findSettings(ctx context.Context, q db.Q, namespaceID int64) (Settings, error) {
	return scanSettings(q.QueryRowContext(ctx, `
		SELECT generic_duplicates_allowed, generic_duplicate_except FROM package_settings WHERE namespace_id = ?`, namespaceID))
}

// settingsAbove returns the rules of the nearest group above a project.
func settingsAbove(ctx context.Context, q db.Q, namespaceID int64) (Settings, error) {
	return scanSettings(q.QueryRowContext(ctx, `
		SELECT s.generic_duplicates_allowed, s.generic_duplicate_except FROM namespace_tree t JOIN package_settings s ON s.namespace_id = t.ancestor_id
		WHERE t.descendant_id = ? ORDER BY t.depth LIMIT 1`, namespaceID))
}

func scanSettings(s db.Scanner) (Settings, error) {
	var t Settings
	err := s.Scan(&t.GenericDuplicatesAllowed, &t.GenericDuplicateExcept)
	if errors.Is(err, db.ErrNoRows) {
		return defaultGroupSettings(), nil
	}
	return t, err
}

func saveSettings(ctx context.Context, tx *db.Tx, namespaceID int64, t Settings) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO package_settings (namespace_id, generic_duplicates_allowed, generic_duplicate_except) VALUES (?, ?, ?)
		ON CONFLICT (namespace_id) DO UPDATE SET generic_duplicates_allowed = excluded.generic_duplicates_allowed,
			generic_duplicate_except = excluded.generic_duplicate_except`, namespaceID, t.GenericDuplicatesAllowed, t.GenericDuplicateExcept)
	return err
}
