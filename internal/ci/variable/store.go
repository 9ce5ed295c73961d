package variable

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const columns = `v.id, v.key, v.description, v.variable_type, v.value, v.environment_scope, v.protected, v.masked, v.hidden, v.raw`

func scan(s db.Scanner) (Variable, error) {
	var v Variable
	err := s.Scan(&v.ID, &v.Key, &v.Description, &v.Type, &v.Value, &v.Scope, &v.Protected, &v.Masked, &v.Hidden, &v.Raw)
	return v, err
}

func list(ctx context.Context, d *db.DB, o owner, p db.Paging) (db.Page[Variable], error) {
	column, id := o.column()
	var where db.Where
	where.And("v."+column+" = ?", id)
	return db.List(ctx, d, db.Query[Variable]{
		Columns: columns, From: "ci_variables v", Where: where, Order: []db.Order{{Name: "v.id"}},
		Scan: scan, Keys: func(v Variable) []any { return []any{v.ID} },
	}, p)
}

// find finds a variable by its key and, if there are several, its scope.
func find(ctx context.Context, q db.Q, o owner, key string, scope *string) (*Variable, error) {
	column, id := o.column()
	query, args := `SELECT `+columns+` FROM ci_variables v WHERE v.`+column+` = ? AND v.key = ?`, []any{id, key}
	if scope != nil {
		query, args = query+` AND v.environment_scope = ?`, append(args, *scope)
	}
	found, err := db.All(ctx, q, scan, query+` ORDER BY v.id LIMIT 2`, args...)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, errs.NotFound("Variable")
	case len(found) > 1:
		return nil, errs.Conflict("There are multiple variables with provided parameters. Please use 'filter[environment_scope]'")
	}
	return &found[0], nil
}

func insert(ctx context.Context, tx *db.Tx, o owner, v *Variable, now time.Time) error {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO ci_variables (project_id, namespace_id, key, environment_scope, hidden, value, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, '', ?, ?) RETURNING id`, o.projectID, o.namespaceID, v.Key, v.Scope, v.Hidden, now, now).Scan(&v.ID)
	return taken(err, v)
}

func taken(err error, v *Variable) error {
	for _, index := range []string{
		"ci_variables_project_id_key_environment_scope", "ci_variables_namespace_id_key_environment_scope",
	} {
		if db.IsUnique(err, index) {
			return errs.InvalidField("key", "(%s) has already been taken", v.Key)
		}
	}
	return err
}

func update(ctx context.Context, tx *db.Tx, v *Variable, sealed string, now time.Time) error {
	err := db.ExecOne(ctx, tx, `
		UPDATE ci_variables SET description = ?, variable_type = ?, value = ?, environment_scope = ?, protected = ?, masked = ?, raw = ?, updated_at = ?
		WHERE id = ?`, v.Description, string(v.Type), sealed, v.Scope, v.Protected, v.Masked, v.Raw, now, v.ID)
	return taken(err, v)
}

func updatedAt(ctx context.Context, q db.Q, id int64) (at time.Time, err error) {
	err = q.QueryRowContext(ctx, `SELECT updated_at FROM ci_variables WHERE id = ?`, id).Scan(db.Time(&at))
	return at, err
}

// findAll returns the variables that the jobs of a project may use, in ascending
// precedence: of the instance, of the groups from the top down, of the project.
func findAll(ctx context.Context, q db.Q, namespaceID, projectID int64) (instance, others []Variable, err error) {
	instance, err = db.All(ctx, q, scanInstance, `SELECT `+instanceColumns+` FROM instance_variables ORDER BY id`)
	if err != nil {
		return nil, nil, err
	}
	groups, err := db.All(ctx, q, scan, `
		SELECT `+columns+` FROM namespace_tree t JOIN ci_variables v ON v.namespace_id = t.ancestor_id
		WHERE t.descendant_id = ? ORDER BY t.depth DESC, length(v.environment_scope), v.id`, namespaceID)
	if err != nil {
		return nil, nil, err
	}
	own, err := db.All(ctx, q, scan, `
		SELECT `+columns+` FROM ci_variables v WHERE v.project_id = ? ORDER BY length(v.environment_scope), v.id`, projectID)
	return instance, append(groups, own...), err
}

func remove(ctx context.Context, tx *db.Tx, id int64) error {
	return db.ExecOne(ctx, tx, `DELETE FROM ci_variables WHERE id = ?`, id)
}
