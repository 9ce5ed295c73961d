package plan

import (
	"context"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

const (
	issueColumns = `i.id, i.iid, i.project_id, i.title, i.description, i.state, i.type, i.confidential, i.locked, COALESCE(i.due_date, ''), i.weight,
		i.position, i.notes, i.author_id, i.milestone_id, i.moved_to_id, i.closed_at, i.closed_by_id, i.created_at, i.updated_at, p.full_path`
	issueTables = `issues i JOIN projects p ON p.id = i.project_id`
)

func scanIssue(s db.Scanner) (*Issue, error) {
	var i Issue
	err := s.Scan(&i.ID, &i.IID, &i.ProjectID, &i.Title, &i.Description, (*string)(&i.State), &i.Type, &i.Confidential, &i.Locked, &i.DueDate, &i.Weight,
		&i.Position, &i.Notes, &i.AuthorID, &i.MilestoneID, &i.MovedToID, db.NullTime(&i.ClosedAt), &i.ClosedByID, db.Time(&i.CreatedAt), db.Time(&i.UpdatedAt), &i.ProjectPath)
	return &i, err
}

func findIssue(ctx context.Context, q db.Q, projectID, iid int64) (*Issue, error) {
	return scanIssue(q.QueryRowContext(ctx, `SELECT `+issueColumns+` FROM `+issueTables+` WHERE i.project_id = ? AND i.iid = ?`, projectID, iid))
}

func findIssueByID(ctx context.Context, q db.Q, id int64) (*Issue, error) {
	return scanIssue(q.QueryRowContext(ctx, `SELECT `+issueColumns+` FROM `+issueTables+` WHERE i.id = ? AND p.deleted_at IS NULL`, id))
}

// findIssues gives those of the issues that a condition on issues i and projects
// p leaves.
func findIssues(ctx context.Context, q db.Q, w db.Where, ids []int64) (map[int64]*Issue, error) {
	w.And(`i.id IN `+db.In(len(ids)), db.Any(ids)...)
	list, err := db.All(ctx, q, scanIssue, `SELECT `+issueColumns+` FROM `+issueTables+w.SQL(), w.Args()...)
	found := map[int64]*Issue{}
	for _, i := range list {
		found[i.ID] = i
	}
	return found, err
}

// issueNumber gives the next number, or the one that was asked for, after which
// the next ones come.
func issueNumber(ctx context.Context, tx *db.Tx, projectID int64, want *int64) (int64, error) {
	if want == nil {
		return project.NextNumber(ctx, tx, projectID, "issue")
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO project_counters (project_id, kind, value) VALUES (?, 'issue', ?)
		ON CONFLICT (project_id, kind) DO UPDATE SET value = CASE WHEN project_counters.value > excluded.value THEN project_counters.value ELSE excluded.value END`,
		projectID, *want)
	return *want, err
}

func insertIssue(ctx context.Context, q db.Q, i *Issue) error {
	err := q.QueryRowContext(ctx, `
		INSERT INTO issues (project_id, iid, state, confidential, author_id, milestone_id, created_at, updated_at, title, type, locked, due_date, weight, description)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		i.ProjectID, i.IID, string(i.State), i.Confidential, i.AuthorID, i.MilestoneID, i.CreatedAt, i.UpdatedAt, i.Title, i.Type, i.Locked,
		textOrNull(i.DueDate), i.Weight, i.Description).Scan(&i.ID)
	if db.IsUnique(err, "issues_project_id_iid") {
		return errs.Conflict("Duplicated issue")
	}
	return err
}

func saveIssue(ctx context.Context, q db.Q, i *Issue) error {
	return notFound(db.ExecOne(ctx, q, `
		UPDATE issues SET state = ?, confidential = ?, milestone_id = ?, updated_at = ?, title = ?, type = ?, locked = ?, due_date = ?, weight = ?,
			position = ?, moved_to_id = ?, closed_at = ?, closed_by_id = ?, description = ? WHERE id = ?`,
		string(i.State), i.Confidential, i.MilestoneID, i.UpdatedAt, i.Title, i.Type, i.Locked, textOrNull(i.DueDate), i.Weight,
		i.Position, i.MovedToID, i.ClosedAt, i.ClosedByID, i.Description, i.ID), "Issue")
}

func deleteIssue(ctx context.Context, q db.Q, id int64) error {
	return notFound(db.ExecOne(ctx, q, `DELETE FROM issues WHERE id = ?`, id), "Issue")
}

func deleteIssuesBy(ctx context.Context, tx *db.Tx, authorID int64) ([]int64, error) {
	return db.All(ctx, tx, db.Value[int64], `DELETE FROM issues WHERE author_id = ? RETURNING id`, authorID)
}

// pair is a row of a table that joins two things.
type pair struct{ first, second int64 }

func scanPair(s db.Scanner) (p pair, err error) {
	err = s.Scan(&p.first, &p.second)
	return p, err
}

// findAssignees gives the ids of the assignees of issues, in order.
func findAssignees(ctx context.Context, q db.Q, issues []int64) (map[int64][]int64, error) {
	list, err := db.All(ctx, q, scanPair, `SELECT issue_id, user_id FROM issue_assignees WHERE issue_id IN `+db.In(len(issues))+` ORDER BY user_id`, db.Any(issues)...)
	found := map[int64][]int64{}
	for _, a := range list {
		found[a.first] = append(found[a.first], a.second)
	}
	return found, err
}

func saveAssignees(ctx context.Context, tx *db.Tx, issueID int64, users []int64) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM issue_assignees WHERE issue_id = ?`, issueID); err != nil {
		return err
	}
	for _, id := range users {
		if _, err := tx.ExecContext(ctx, `INSERT INTO issue_assignees (issue_id, user_id) VALUES (?, ?)`, issueID, id); err != nil {
			return err
		}
	}
	return nil
}

func findUsernames(ctx context.Context, q db.Q, ids []int64) (map[int64]string, error) {
	type row struct {
		id   int64
		name string
	}
	found := map[int64]string{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := db.All(ctx, q, func(s db.Scanner) (r row, err error) {
		err = s.Scan(&r.id, &r.name)
		return r, err
	}, `SELECT id, username FROM users WHERE id IN `+db.In(len(ids)), db.Any(ids)...)
	for _, r := range list {
		found[r.id] = r.name
	}
	return found, err
}

// findIssueLabels gives the labels of issues, by name, with the order that the
// project of each has.
func findIssueLabels(ctx context.Context, q db.Q, issues []int64) (map[int64][]*Label, error) {
	type row struct {
		issue int64
		label *Label
	}
	list, err := db.All(ctx, q, func(s db.Scanner) (row, error) {
		r := row{label: &Label{}}
		l := r.label
		err := s.Scan(&r.issue, &l.ID, &l.ProjectID, &l.GroupID, &l.Name, &l.Color, &l.Description, db.Time(&l.CreatedAt), db.Time(&l.UpdatedAt), &l.Priority)
		return r, err
	}, `SELECT x.issue_id, `+labelColumns+` FROM issue_labels x JOIN issues i ON i.id = x.issue_id JOIN labels l ON l.id = x.label_id
			LEFT JOIN label_priorities o ON o.label_id = l.id AND o.project_id = i.project_id
		WHERE x.issue_id IN `+db.In(len(issues))+` ORDER BY l.name, l.id`, db.Any(issues)...)
	found := map[int64][]*Label{}
	for _, r := range list {
		found[r.issue] = append(found[r.issue], r.label)
	}
	return found, err
}

// findLabelNamed finds the label that issues of a project get by a name.
func findLabelNamed(ctx context.Context, q db.Q, in place, name string) (*Label, error) {
	cond, args := in.owns("l", true)
	return scanLabel(q.QueryRowContext(ctx, `
		SELECT `+labelColumns+` FROM labels l`+labelJoin+` WHERE (`+cond+`) AND l.name = ?
		ORDER BY CASE WHEN l.project_id IS NULL THEN 1 ELSE 0 END, l.namespace_id DESC LIMIT 1`, append(append([]any{in.projectID()}, args...), name)...))
}

func changeLabels(ctx context.Context, tx *db.Tx, issueID int64, added, removed []*Label) error {
	for _, l := range added {
		if _, err := tx.ExecContext(ctx, `INSERT INTO issue_labels (issue_id, label_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, issueID, l.ID); err != nil {
			return err
		}
	}
	for _, l := range removed {
		if _, err := tx.ExecContext(ctx, `DELETE FROM issue_labels WHERE issue_id = ? AND label_id = ?`, issueID, l.ID); err != nil {
			return err
		}
	}
	return nil
}

// mine is a condition on issues i: those that an actor wrote or is to do.
const mine = `i.author_id = ? OR EXISTS (SELECT 1 FROM issue_assignees a WHERE a.issue_id = i.id AND a.user_id = ?)`

// concerns is mine for events, which know the id of an issue.
func concerns(by actor.Actor) (string, []any) {
	return `EXISTS (SELECT 1 FROM issues i WHERE i.id = e.subject_id AND (` + mine + `))`, []any{by.ID, by.ID}
}

// issuesIn are the conditions on issues i of projects p: those of a place that
// the actor sees. It says in SQL what the gate says of a single issue.
func (s *Service) issuesIn(by actor.Actor, in place) db.Where {
	var w db.Where
	if in.project != nil {
		w.And(`i.project_id = ?`, in.project.ID)
		if !in.project.MayRead(by, project.IssuePart) {
			w.And(`1 = 0`)
		}
		switch {
		case in.project.MayRead(by, project.ConfidentialPart):
		case by.Anonymous():
			w.And(`NOT i.confidential`)
		default:
			w.And(`NOT i.confidential OR `+mine, by.ID, by.ID)
		}
		return w
	}
	if in.group != nil {
		w.And(`p.namespace_id IN `+below, in.group.ID)
	}
	cond, args := s.Projects.Readable(by, project.IssuePart)
	w.And(cond, args...)
	switch {
	case by.Admin || by.Auditor:
	case by.Anonymous():
		w.And(`NOT i.confidential`)
	default:
		cond, args := s.Projects.Readable(by, project.ConfidentialPart)
		w.And(`NOT i.confidential OR `+mine+` OR (`+cond+`)`, append([]any{by.ID, by.ID}, args...)...)
	}
	return w
}
