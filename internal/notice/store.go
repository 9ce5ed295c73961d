package notice

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"svc/internal/db"
)

// notify sends a notice to the other nodes when the transaction is committed.
func notify(ctx context.Context, tx *db.Tx, payload string) error {
	_, err := tx.ExecContext(ctx, "SELECT pg_notify(?, ?)", channel, payload)
	return err
}

// beat sends a heartbeat on the connection that receives it.
func (b *Bus) beat(ctx context.Context, conn *pgx.Conn, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := conn.Exec(ctx, "SELECT pg_notify($1, $2)", beatChannel+b.node, strconv.FormatUint(number, 10))
	return err
}
