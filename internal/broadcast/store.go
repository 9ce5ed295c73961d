package broadcast

import (
	"context"
	"time"

	"svc/internal/db"
)

const columns = `m.id, m.message, m.starts_at, m.ends_at, m.type, m.theme, m.color, m.font, m.target_path, m.target_access_levels, m.dismissable, m.created_at`

func scan(sc db.Scanner) (*Message, error) {
	var m Message
	var levels string
	err := sc.Scan(&m.ID, &m.Text, db.Time(&m.StartsAt), db.Time(&m.EndsAt), (*string)(&m.Type), &m.Theme, &m.Color, &m.Font, &m.Path, &levels, &m.Dismissable,
		db.Time(&m.CreatedAt))
	m.Levels = splitLevels(levels)
	return &m, err
}

func find(ctx context.Context, q db.Q, id int64) (*Message, error) {
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM broadcast_messages m WHERE m.id = ?`, id))
}

func list(ctx context.Context, d *db.DB, p db.Paging) (db.Page[*Message], error) {
	return db.List(ctx, d, db.Query[*Message]{
		Columns: columns, From: `broadcast_messages m`, Order: []db.Order{{Name: "m.ends_at"}, {Name: "m.id"}}, Desc: true, Scan: scan,
		Keys: func(m *Message) []any { return []any{m.EndsAt.UnixMicro(), m.ID} },
	}, p)
}

// unended reads the messages that are active or will become active.
func unended(ctx context.Context, q db.Q, now time.Time) ([]*Message, error) {
	return db.All(ctx, q, scan, `SELECT `+columns+` FROM broadcast_messages m WHERE m.ends_at > ? ORDER BY m.ends_at, m.id LIMIT ?`, now, maxMessages)
}

func count(ctx context.Context, q db.Q) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM broadcast_messages`).Scan(&n)
	return n, err
}

func insert(ctx context.Context, q db.Q, m *Message) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO broadcast_messages (message, starts_at, ends_at, type, theme, color, font, target_path, target_access_levels, dismissable, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		m.Text, m.StartsAt, m.EndsAt, string(m.Type), m.Theme, m.Color, m.Font, m.Path, joinLevels(m.Levels), m.Dismissable, m.CreatedAt).Scan(&m.ID)
}

func update(ctx context.Context, q db.Q, m *Message) error {
	return db.ExecOne(ctx, q, `
		UPDATE broadcast_messages SET message = ?, starts_at = ?, ends_at = ?, type = ?, theme = ?, color = ?, font = ?, target_path = ?, target_access_levels = ?,
			dismissable = ? WHERE id = ?`,
		m.Text, m.StartsAt, m.EndsAt, string(m.Type), m.Theme, m.Color, m.Font, m.Path, joinLevels(m.Levels), m.Dismissable, m.ID)
}

func remove(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `DELETE FROM broadcast_messages WHERE id = ?`, id)
}
