package setting

import (
	"context"

	"svc/internal/db"
)

func storedSettings(ctx context.Context, q db.Q) (map[string]string, error) {
	type row struct{ key, value string }
	rows, err := db.All(ctx, q, func(s db.Scanner) (row, error) {
		var r row
		err := s.Scan(&r.key, &r.value)
		return r, err
	}, `SELECT key, value FROM settings`)
	if err != nil {
		return nil, err
	}
	stored := make(map[string]string, len(rows))
	for _, r := range rows {
		stored[r.key] = r.value
	}
	return stored, nil
}

func saveSetting(ctx context.Context, q db.Q, key, value string) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO settings (key, value) VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}
