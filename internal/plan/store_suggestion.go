package plan

import (
	"context"

	"svc/internal/db"
)

func findSuggestedNotes(ctx context.Context, q db.Q, on Noteable, ids []int64) ([]*Note, error) {
	w := on.where()
	w.And(`n.id IN (SELECT s.note_id FROM suggestions s WHERE s.id IN `+db.In(len(ids))+`)`, db.Any(ids)...)
	return db.All(ctx, q, scanNote, `SELECT `+noteColumns+` FROM notes n`+w.SQL()+` ORDER BY n.id`, w.Args()...)
}

func findSuggestionTarget(ctx context.Context, q db.Q, id int64) (target Target, projectID, iid int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT n.noteable_type, n.noteable_id, n.project_id, n.noteable_iid FROM suggestions s JOIN notes n ON n.id = s.note_id WHERE s.id = ? AND n.project_id IS NOT NULL`, id).
		Scan((*string)(&target.Kind), &target.ID, &projectID, &iid)
	return target, projectID, iid, err
}

func findSuggestedDiscussions(ctx context.Context, q db.Q, ids []int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `
		SELECT DISTINCT n.discussion_id FROM suggestions s JOIN notes n ON n.id = s.note_id WHERE s.id IN `+db.In(len(ids)), db.Any(ids)...)
}
