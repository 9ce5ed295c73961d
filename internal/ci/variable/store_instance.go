package variable

import (
	"context"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
)

const instanceColumns = `id, key, description, variable_type, value, protected, masked, raw`

func scanInstance(s db.Scanner) (Variable, error) {
	var v Variable
	err := s.Scan(&v.ID, &v.Key, &v.Description, &v.Type, &v.Value, &v.Protected, &v.Masked, &v.Raw)
	return v, err
}

func findInstance(ctx context.Context, q db.Q, key string) (Variable, error) {
	v, err := scanInstance(q.QueryRowContext(ctx, `SELECT `+instanceColumns+` FROM instance_variables WHERE key = ?`, key))
	return v, db.NotFound(err, "InstanceVariable")
}

func listInstance(ctx context.Context, d *db.DB, p db.Paging) (db.Page[Variable], error) {
	return db.List(ctx, d, db.Query[Variable]{
		Columns: instanceColumns, From: "instance_variables", Order: []db.Order{{Name: "id"}},
		Scan: scanInstance, Keys: func(v Variable) []any { return []any{v.ID} },
	}, p)
}

func countInstance(ctx context.Context, q db.Q) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM instance_variables`).Scan(&n)
	return n, err
}

func insertInstance(ctx context.Context, q db.Q, v *Variable, now time.Time) error {
	err := q.QueryRowContext(ctx, `
		INSERT INTO instance_variables (key, value, created_at, updated_at) VALUES (?, '', ?, ?) RETURNING id`,
		v.Key, now, now).Scan(&v.ID)
	if db.IsUnique(err, "instance_variables_key") {
		return errs.InvalidField("key", "(%s) has already been taken", v.Key)
	}
	return err
}

func updateInstance(ctx context.Context, q db.Q, v *Variable, sealed string, now time.Time) error {
	return db.ExecOne(ctx, q, `
		UPDATE instance_variables SET description = ?, variable_type = ?, value = ?, protected = ?, masked = ?, raw = ?, updated_at = ?
		WHERE id = ?`, v.Description, string(v.Type), sealed, v.Protected, v.Masked, v.Raw, now, v.ID)
}

func instanceUpdatedAt(ctx context.Context, q db.Q, id int64) (at time.Time, err error) {
	err = q.QueryRowContext(ctx, `SELECT updated_at FROM instance_variables WHERE id = ?`, id).Scan(db.Time(&at))
	return at, err
}

func deleteInstance(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM instance_variables WHERE id = ?`, id)
}
