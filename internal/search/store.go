package search

import (
	"context"
	"strings"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// listNotes returns the IDs of comments with a text that the actor can read: they see
// what the comment is on, and internal comments if they see confidential issues.
func (s *Service) listNotes(ctx context.Context, by actor.Actor, projectID, groupID int64, q Query, p db.Paging) (db.Page[int64], error) {
	var w db.Where
	w.And(`n.system = ''`)
	in := []string{`p.deleted_at IS NULL`}
	var args []any
	switch {
	case projectID != 0:
		w.And(`n.project_id = ?`, projectID)
	case groupID != 0:
		in = append(in, `p.namespace_id IN (SELECT t.descendant_id FROM namespace_tree t WHERE t.ancestor_id = ?)`)
		args = append(args, groupID)
	}
	if q.live() {
		in = append(in, `NOT p.archived`)
	}
	// Comments on personal snippets have no project, and are not searched.
	w.And(`EXISTS (SELECT 1 FROM projects p WHERE p.id = n.project_id AND `+strings.Join(in, ` AND `)+`)`, args...)
	issues, issueArgs := s.Plan.VisibleIssues(by)
	requests, requestArgs := s.Deps.Projects.Readable(by, project.MergePart)
	snippets, snippetArgs := s.Deps.Snippets.Visible(by)
	seen := append(append(issueArgs, requestArgs...), snippetArgs...)
	w.And(`n.noteable_type = 'Issue' AND EXISTS (SELECT 1 FROM issues i JOIN projects p ON p.id = i.project_id WHERE i.id = n.noteable_id AND (`+issues+`))
		OR n.noteable_type = 'MergeRequest' AND EXISTS (SELECT 1 FROM merge_requests i JOIN projects p ON p.id = i.project_id WHERE i.id = n.noteable_id AND (`+requests+`))
		OR n.noteable_type = 'Snippet' AND EXISTS (SELECT 1 FROM snippets s WHERE s.id = n.noteable_id AND (`+snippets+`))`, seen...)
	confidential, confidentialArgs := s.Deps.Projects.Readable(by, project.ConfidentialPart)
	w.And(`NOT n.internal OR EXISTS (SELECT 1 FROM projects p WHERE p.id = n.project_id AND (`+confidential+`))`, confidentialArgs...)
	w.Text("notes", q.Text, "n.body")
	return db.List(ctx, s.DB, db.Query[int64]{
		Columns: `n.id`, From: `notes n`, Where: w, Order: []db.Order{{Name: `n.id`}}, Desc: !q.Oldest, Scan: db.Value[int64],
		Keys: func(id int64) []any { return []any{id} },
	}, p)
}
