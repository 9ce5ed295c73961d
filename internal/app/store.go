package app

import (
	"context"
	"errors"

	"svc/internal/db"
)

// keyOwner returns the ID of the instance key that the database was created with.
func keyOwner(ctx context.Context, q db.Q) (id string, err error) {
	err = q.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, keySetting).Scan(&id)
	return id, err
}

// claimKey stores the ID of the instance key, unless one is stored already.
func claimKey(ctx context.Context, q db.Q, id string) error {
	_, err := q.ExecContext(ctx, `INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING`, keySetting, id)
	return err
}

func (s *Server) exampleState(ctx context.Context) (string, error) {
	var state string
	err := s.DB.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, exampleSetting).Scan(&state)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	return state, err
}

func (s *Server) setExample(ctx context.Context, state string) error {
	_, err := s.DB.ExecContext(ctx, `
		INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, exampleSetting, state)
	return err
}

type sealedRow struct {
	id   int64
	text string
}

func (s sealedColumn) read(ctx context.Context, q db.Q) ([]sealedRow, error) {
	return db.All(ctx, q, func(sc db.Scanner) (sealedRow, error) {
		var r sealedRow
		err := sc.Scan(&r.id, &r.text)
		return r, err
	}, `SELECT id, `+s.column+` FROM `+s.table+` WHERE `+s.column+` <> '' ORDER BY id`)
}

// replace stores a value that was encrypted again, unless the row has changed since
// it was read.
func (s sealedColumn) replace(ctx context.Context, q db.Q, r sealedRow, text string) error {
	_, err := q.ExecContext(ctx, `UPDATE `+s.table+` SET `+s.column+` = ? WHERE id = ? AND `+s.column+` = ?`, text, r.id, r.text)
	return err
}
