package plan

import (
	"context"

	"svc/internal/db"
)

// listThreads returns the IDs of threads, ordered by their first notes.
func listThreads(ctx context.Context, d *db.DB, on Noteable, p db.Paging) (db.Page[*Discussion], error) {
	w := on.where()
	w.And(`n.type <> '' AND n.system = ''`)
	return listFirstNotes(ctx, d, w, p)
}

func countThreads(ctx context.Context, q db.Q, on Noteable) (n ThreadCount, err error) {
	w := on.where()
	w.And(`n.type <> '' AND n.system = ''`)
	err = q.QueryRowContext(ctx, `SELECT count(DISTINCT n.discussion_id), count(DISTINCT CASE WHEN n.resolved_at IS NULL THEN n.discussion_id END) FROM notes n`+w.SQL(),
		w.Args()...).Scan(&n.Total, &n.Open)
	return n, err
}

func findOpenThreads(ctx context.Context, q db.Q, on Noteable, only string, limit int) ([]string, error) {
	w := on.where()
	w.And(`n.type <> '' AND n.system = '' AND n.resolved_at IS NULL`)
	if only != "" {
		w.And(`n.discussion_id = ?`, only)
	}
	return db.All(ctx, q, db.Value[string], `SELECT n.discussion_id FROM notes n`+w.SQL()+` GROUP BY n.discussion_id ORDER BY min(n.id) LIMIT ?`, append(w.Args(), limit)...)
}
