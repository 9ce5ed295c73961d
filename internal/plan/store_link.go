package plan

import (
	"context"
	"errors"

	"svc/internal/db"
	"svc/internal/errs"
)

const linkColumns = `k.id, k.source_id, k.target_id, k.kind, k.created_at, k.updated_at`

func scanLink(s db.Scanner) (*Link, error) {
	var l Link
	err := s.Scan(&l.ID, &l.SourceID, &l.TargetID, (*string)(&l.Kind), db.Time(&l.CreatedAt), db.Time(&l.UpdatedAt))
	return &l, err
}

func findLinks(ctx context.Context, q db.Q, issueID int64) ([]*Link, error) {
	return db.All(ctx, q, scanLink, `SELECT `+linkColumns+` FROM issue_links k WHERE k.source_id = ? OR k.target_id = ? ORDER BY k.id`, issueID, issueID)
}

func findLink(ctx context.Context, q db.Q, issueID, id int64) (*Link, error) {
	return scanLink(q.QueryRowContext(ctx, `SELECT `+linkColumns+` FROM issue_links k WHERE k.id = ? AND (k.source_id = ? OR k.target_id = ?)`, id, issueID, issueID))
}

func insertLink(ctx context.Context, tx *db.Tx, l *Link) error {
	exists, err := db.Exists(ctx, tx, `
		SELECT 1 FROM issue_links WHERE source_id = ? AND target_id = ? OR source_id = ? AND target_id = ? LIMIT 1`, l.SourceID, l.TargetID, l.TargetID, l.SourceID)
	if err != nil {
		return err
	}
	if exists {
		return errs.Conflict("Issue(s) already assigned")
	}
	err = tx.QueryRowContext(ctx, `INSERT INTO issue_links (source_id, target_id, kind, created_at, updated_at) VALUES (?, ?, ?, ?, ?) RETURNING id`,
		l.SourceID, l.TargetID, string(l.Kind), l.CreatedAt, l.UpdatedAt).Scan(&l.ID)
	if db.IsUnique(err, "issue_links_source_id_target_id") {
		return errs.Conflict("Issue(s) already assigned")
	}
	return err
}

func deleteLink(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM issue_links WHERE id = ?`, id), "")
}

// findMilestoneTitled returns the ID of the milestone with this title that issues
// of a project can have, or nil.
func findMilestoneTitled(ctx context.Context, q db.Q, in place, title string) (*int64, error) {
	cond, args := in.owns("m", true)
	var id int64
	err := q.QueryRowContext(ctx, `SELECT m.id FROM milestones m WHERE (`+cond+`) AND m.title = ? LIMIT 1`, append(args, title)...).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &id, err
}

// moveLinks moves the links of an issue to another one, which has none.
func moveLinks(ctx context.Context, tx *db.Tx, from, to int64) error {
	for _, column := range []string{"source_id", "target_id"} {
		if _, err := tx.ExecContext(ctx, `UPDATE issue_links SET `+column+` = ? WHERE `+column+` = ?`, to, from); err != nil {
			return err
		}
	}
	return nil
}

// findNoteTexts returns the texts of the notes that copyNotes copies, up to a size.
func findNoteTexts(ctx context.Context, q db.Q, of Target, most int) ([]noteText, error) {
	var list []noteText
	err := db.Each(ctx, q, func(s db.Scanner) (n noteText, err error) {
		err = s.Scan(&n.discussion, &n.body)
		return n, err
	}, func(n noteText) error {
		if most -= len(n.body); most >= 0 {
			list = append(list, n)
		}
		return nil
	}, `SELECT n.discussion_id, n.body FROM notes n WHERE n.noteable_type = ? AND n.noteable_id = ? AND n.system <> '`+crossReference+`' ORDER BY n.id`,
		string(of.Kind), of.ID)
	return list, err
}

// copyNotes copies the notes of an issue, with other texts if there are any.
func copyNotes(ctx context.Context, tx *db.Tx, from Target, to *Issue, texts []noteText) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO notes (project_id, noteable_type, noteable_id, noteable_iid, discussion_id, type, author_id, system, internal, resolved_at, resolved_by_id,
			created_at, updated_at, body)
		SELECT CAST(? AS BIGINT), n.noteable_type, CAST(? AS BIGINT), CAST(? AS BIGINT), n.discussion_id, n.type, n.author_id, n.system, n.internal, n.resolved_at, n.resolved_by_id,
			n.created_at, n.updated_at, n.body
		FROM notes n WHERE n.noteable_type = ? AND n.noteable_id = ? AND n.system <> '`+crossReference+`' ORDER BY n.id`,
		to.ProjectID, to.ID, to.IID, string(from.Kind), from.ID)
	if err != nil {
		return err
	}
	for _, n := range texts {
		_, err := tx.ExecContext(ctx, `UPDATE notes SET body = ? WHERE noteable_type = 'Issue' AND noteable_id = ? AND discussion_id = ? AND body = ?`,
			n.copied, to.ID, n.discussion, n.body)
		if err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE issues SET notes = (SELECT count(*) FROM notes n WHERE n.noteable_type = 'Issue' AND n.noteable_id = issues.id AND n.system = '') WHERE id = ?`, to.ID)
	return err
}

// between returns a position between two issues.
func between(ctx context.Context, tx *db.Tx, projectID int64, after, before *int64) (int64, error) {
	position := func(id int64) (at int64, err error) {
		err = tx.QueryRowContext(ctx, `
			SELECT `+positionSQL()+` FROM issues i WHERE i.id = ? AND i.project_id = ?`, id, projectID).Scan(&at)
		return at, db.NotFound(err, "Issue")
	}
	var low, high int64
	var err error
	if after != nil {
		if low, err = position(*after); err != nil {
			return 0, err
		}
	}
	if before != nil {
		if high, err = position(*before); err != nil {
			return 0, err
		}
	}
	switch {
	case before == nil:
		return low + gap/2, nil
	case after == nil:
		return high - gap/2, nil
	}
	return low + (high-low)/2, nil
}

func savePosition(ctx context.Context, tx *db.Tx, id, at int64) error {
	if at == 0 {
		at = 1 // 0 means that the issue was never moved
	}
	return db.NotFound(db.ExecOne(ctx, tx, `UPDATE issues SET position = ? WHERE id = ?`, at, id), "Issue")
}
