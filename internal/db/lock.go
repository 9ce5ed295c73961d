package db

import "context"

// Lock makes other transactions wait that want to lock the same row, until
// this one ends. A transaction that reads a row, decides, and writes it back
// whole needs it. On SQLite it does nothing: there is only one writer. The
// table is a name in our code, never input.
func (t *Tx) Lock(ctx context.Context, table string, id int64) error {
	if t.db.kind == sqliteKind {
		return nil
	}
	_, err := t.ExecContext(ctx, "SELECT 1 FROM "+table+" WHERE id = ? FOR UPDATE", id)
	return err
}
