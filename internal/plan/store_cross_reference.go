package plan

import (
	"context"
	"errors"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// insertCrossReference returns 0 if the cross-reference exists already.
func insertCrossReference(ctx context.Context, tx *db.Tx, from Source, m Mentioned) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `
		INSERT INTO cross_references (target_type, target_id, source_type, source_project_id, source_id, source_sha) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING RETURNING id`, string(m.Kind), m.ID, string(from.Kind), from.In.ID, from.ID, from.SHA).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

func saveCrossReference(ctx context.Context, tx *db.Tx, id, noteID int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE cross_references SET note_id = ? WHERE id = ?`, noteID, id)
	return err
}

func deleteCrossReferences(ctx context.Context, tx *db.Tx, kind Kind, ids []int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM cross_references WHERE target_type = ? AND target_id IN `+db.In(len(ids)), append([]any{string(kind)}, db.Any(ids)...)...)
	return err
}

// visibleNotes returns the condition on notes n that hides cross-references from
// sources that the actor cannot read.
func (s *Service) visibleNotes(by actor.Actor) (w db.Where) {
	issues := s.issuesIn(by, place{})
	requests, requestArgs := s.Projects.Readable(by, project.MergePart)
	code, codeArgs := s.Projects.Readable(by, project.CodePart)
	const from = ` OR EXISTS (SELECT 1 FROM cross_references x JOIN projects p ON p.id = x.source_project_id`
	w.And(`n.system <> '`+crossReference+`'`+
		from+` JOIN issues i ON i.id = x.source_id`+issues.SQL()+` AND x.note_id = n.id AND x.source_type = 'Issue')`+
		from+` JOIN merge_requests i ON i.id = x.source_id WHERE x.note_id = n.id AND x.source_type = 'MergeRequest' AND (`+requests+`))`+
		from+` WHERE x.note_id = n.id AND x.source_type = 'Commit' AND (`+code+`))`,
		append(append(issues.Args(), requestArgs...), codeArgs...)...)
	return w
}

// noteVisible reports whether the actor can see a note.
func noteVisible(ctx context.Context, q db.Q, visible db.Where, id int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM notes n WHERE n.id = ? AND (`+strings.TrimPrefix(visible.SQL(), " WHERE ")+`)`, append([]any{id}, visible.Args()...)...)
}
