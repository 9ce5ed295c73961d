package db

import "context"

// Lock locks a row until the transaction ends. Other transactions that lock the same row
// wait. Transactions that read a row, decide, and write it back need it. On SQLite it does
// nothing, because there is only one writer. The table is a constant, never input.
func (t *Tx) Lock(ctx context.Context, table string, id int64) error {
	if t.db.kind == sqliteKind {
		return nil
	}
	_, err := t.ExecContext(ctx, "SELECT 1 FROM "+table+" WHERE id = ? FOR UPDATE", id)
	return err
}
