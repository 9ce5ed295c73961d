package wiki

import (
	"context"
	"errors"

	"svc/internal/db"
)

// keepPage saves a page that has events, and returns its ID. A renamed page keeps
// its ID.
func keepPage(ctx context.Context, tx *db.Tx, auxRepoID int64, c changed) (id int64, err error) {
	if c.was != "" {
		id, err = rename(ctx, tx, auxRepoID, c)
		if err != nil || id != 0 {
			return id, err
		}
	}
	err = tx.QueryRowContext(ctx, `
		INSERT INTO wiki_pages (annex_id, slug, title, format) VALUES (?, ?, ?, ?)
		ON CONFLICT (annex_id, slug) DO UPDATE SET title = excluded.title, format = excluded.format RETURNING id`,
		auxRepoID, c.Slug, c.Title, string(c.Format)).Scan(&id)
	return id, err
}

// rename updates the slug of a page, unless another page had that slug before;
// then id is 0.
func rename(ctx context.Context, tx *db.Tx, auxRepoID int64, c changed) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `
		UPDATE wiki_pages SET slug = ?, title = ?, format = ? WHERE annex_id = ? AND slug = ?
			AND NOT EXISTS (SELECT 1 FROM wiki_pages o WHERE o.annex_id = ? AND o.slug = ?) RETURNING id`,
		c.Slug, c.Title, string(c.Format), auxRepoID, c.was, auxRepoID, c.Slug).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

func findPages(ctx context.Context, q db.Q, ids []int64) (map[int64]Page, error) {
	type row struct {
		id int64
		Page
	}
	rows, err := db.All(ctx, q, func(s db.Scanner) (row, error) {
		var r row
		err := s.Scan(&r.id, &r.Slug, &r.Title, (*string)(&r.Format))
		return r, err
	}, `SELECT p.id, p.slug, p.title, p.format FROM wiki_pages p WHERE p.id IN `+db.In(len(ids)), db.Any(ids)...)
	found := make(map[int64]Page, len(rows))
	for _, r := range rows {
		found[r.id] = r.Page
	}
	return found, err
}
