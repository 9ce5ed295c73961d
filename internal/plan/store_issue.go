package plan

import (
	"context"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

const (
	issueColumns = `i.id, i.iid, i.project_id, i.title, i.description, i.state, i.type, i.confidential, i.locked, COALESCE(i.due_date, ''), i.weight,
		i.position, i.notes, i.upvotes, i.downvotes, i.author_id, i.milestone_id, i.moved_to_id, i.closed_at, i.closed_by_id, i.time_estimate, i.time_spent, i.created_at, i.updated_at,
		p.full_path`
	issueTables = `issues i JOIN projects p ON p.id = i.project_id`
)

func scanIssue(s db.Scanner) (*Issue, error) {
	i := Issue{Issuable: Issuable{Kind: IssueKind}}
	err := s.Scan(&i.ID, &i.IID, &i.ProjectID, &i.Title, &i.Description, (*string)(&i.State), &i.Type, &i.Confidential, &i.Locked, &i.DueDate, &i.Weight,
		&i.Position, &i.Notes, &i.Upvotes, &i.Downvotes, &i.AuthorID, &i.MilestoneID, &i.MovedToID, db.NullTime(&i.ClosedAt), &i.ClosedByID, &i.TimeEstimate, &i.TimeSpent, db.Time(&i.CreatedAt), db.Time(&i.UpdatedAt), &i.ProjectPath)
	return &i, err
}

func findIssue(ctx context.Context, q db.Q, projectID, iid int64) (*Issue, error) {
	return scanIssue(q.QueryRowContext(ctx, `SELECT `+issueColumns+` FROM `+issueTables+` WHERE i.project_id = ? AND i.iid = ?`, projectID, iid))
}

func findIssueByID(ctx context.Context, q db.Q, id int64) (*Issue, error) {
	return scanIssue(q.QueryRowContext(ctx, `SELECT `+issueColumns+` FROM `+issueTables+` WHERE i.id = ? AND p.deleted_at IS NULL`, id))
}

// findIssues returns the issues among ids that match a condition on issues i and
// projects p.
func findIssues(ctx context.Context, q db.Q, w db.Where, ids []int64) (map[int64]*Issue, error) {
	w.And(`i.id IN `+db.In(len(ids)), db.Any(ids)...)
	list, err := db.All(ctx, q, scanIssue, `SELECT `+issueColumns+` FROM `+issueTables+w.SQL(), w.Args()...)
	found := map[int64]*Issue{}
	for _, i := range list {
		found[i.ID] = i
	}
	return found, err
}

// issueNumber returns the next issue number of a project, or want if it is set.
// Later issues are numbered after it.
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
		db.NullText(i.DueDate), i.Weight, i.Description).Scan(&i.ID)
	if db.IsUnique(err, "issues_project_id_iid") {
		return errs.Conflict("Duplicated issue")
	}
	return err
}

func saveIssue(ctx context.Context, q db.Q, i *Issue) error {
	return db.NotFound(db.ExecOne(ctx, q, `
		UPDATE issues SET state = ?, confidential = ?, milestone_id = ?, updated_at = ?, title = ?, type = ?, locked = ?, due_date = ?, weight = ?,
			position = ?, moved_to_id = ?, closed_at = ?, closed_by_id = ?, description = ? WHERE id = ?`,
		string(i.State), i.Confidential, i.MilestoneID, i.UpdatedAt, i.Title, i.Type, i.Locked, db.NullText(i.DueDate), i.Weight,
		i.Position, i.MovedToID, i.ClosedAt, i.ClosedByID, i.Description, i.ID), "Issue")
}

// findDue returns a batch of open issues that are due on a day, by ID.
func findDue(ctx context.Context, q db.Q, day string, after int64) ([]*Issue, error) {
	const batch = 200
	return db.All(ctx, q, scanIssue, `
		SELECT `+issueColumns+` FROM `+issueTables+`
		WHERE i.due_date = ? AND i.id > ? AND i.state = 'opened' AND p.deleted_at IS NULL AND NOT p.archived ORDER BY i.id LIMIT ?`, day, after, batch)
}

func deleteIssue(ctx context.Context, q db.Q, id int64) error {
	return db.NotFound(db.ExecOne(ctx, q, `DELETE FROM issues WHERE id = ?`, id), "Issue")
}

func deleteIssuesBy(ctx context.Context, tx *db.Tx, authorID int64) ([]int64, error) {
	return db.All(ctx, tx, db.Value[int64], `DELETE FROM issues WHERE author_id = ? RETURNING id`, authorID)
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

// findLabelsNamed finds labels by name; project labels take precedence over
// inherited ones.
func findLabelsNamed(ctx context.Context, q db.Q, in place, names []string) (map[string]*Label, error) {
	found := map[string]*Label{}
	cond, args := in.owns("l", true)
	for part := range slices.Chunk(names, 500) {
		list, err := db.All(ctx, q, scanLabel, `
			SELECT `+labelColumns+` FROM labels l`+labelJoin+` WHERE (`+cond+`) AND l.name IN `+db.In(len(part))+`
			ORDER BY CASE WHEN l.project_id IS NULL THEN 1 ELSE 0 END, l.namespace_id DESC`, append(append([]any{in.projectID()}, args...), db.Any(part)...)...)
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			if found[l.Name] == nil {
				found[l.Name] = l
			}
		}
	}
	return found, nil
}

// findLabelNamed is findLabelsNamed for one name.
func findLabelNamed(ctx context.Context, q db.Q, in place, name string) (*Label, error) {
	cond, args := in.owns("l", true)
	return scanLabel(q.QueryRowContext(ctx, `
		SELECT `+labelColumns+` FROM labels l`+labelJoin+` WHERE (`+cond+`) AND l.name = ?
		ORDER BY CASE WHEN l.project_id IS NULL THEN 1 ELSE 0 END, l.namespace_id DESC LIMIT 1`, append(append([]any{in.projectID()}, args...), name)...))
}

// authoredOrAssigned is the condition on issues i that the actor wrote or is
// assigned to.
const authoredOrAssigned = `i.author_id = ? OR EXISTS (SELECT 1 FROM issue_assignees a WHERE a.issue_id = i.id AND a.user_id = ?)`

// Concerns returns authoredOrAssigned as a condition on events e of issues.
func Concerns(by actor.Actor) (string, []any) {
	return `EXISTS (SELECT 1 FROM issues i WHERE i.id = e.subject_id AND (` + authoredOrAssigned + `))`, []any{by.ID, by.ID}
}

// VisibleIssues returns the condition on issues i of projects p that the actor can
// see, for lists of other features.
func (s *Service) VisibleIssues(by actor.Actor) (cond string, args []any) {
	w := s.issuesIn(by, place{})
	return w.Cond(), w.Args()
}

// countAssigned counts the open issues that are assigned to a user, up to a limit.
func countAssigned(ctx context.Context, q db.Q, w db.Where, userID int64, limit int) (n int, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT count(*) FROM (
			SELECT 1 FROM issue_assignees x JOIN issues i ON i.id = x.issue_id JOIN projects p ON p.id = i.project_id
			WHERE x.user_id = ? AND i.state = 'opened' AND NOT p.archived AND (`+w.Cond()+`) LIMIT ?) AS counted`,
		append(append([]any{userID}, w.Args()...), limit)...).Scan(&n)
	return n, err
}

// countOpen counts the open issues of projects, each up to 10,000, with an index
// range per project.
func countOpen(ctx context.Context, q db.Q, projects []int64, confidential bool, into map[int64]*int64) error {
	if len(projects) == 0 {
		return nil
	}
	public := ""
	if !confidential {
		public = ` AND NOT i.confidential`
	}
	_, err := db.All(ctx, q, func(s db.Scanner) (none struct{}, err error) {
		var id, n int64
		err = s.Scan(&id, &n)
		into[id] = &n
		return none, err
	}, `SELECT p.id, (SELECT count(*) FROM (SELECT 1 FROM issues i WHERE i.project_id = p.id AND i.state = 'opened'`+public+` ORDER BY i.created_at, i.id LIMIT 10000) AS open)
		FROM projects p WHERE p.id IN `+db.In(len(projects)), db.Any(projects)...)
	return err
}

// issuesIn returns the conditions on issues i of projects p in a place that the
// actor can see. It must agree with issue, which checks access to a single issue.
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
			w.And(`NOT i.confidential OR `+authoredOrAssigned, by.ID, by.ID)
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
		w.And(`NOT i.confidential OR `+authoredOrAssigned+` OR (`+cond+`)`, append([]any{by.ID, by.ID}, args...)...)
	}
	return w
}

// requestsIn returns the conditions on the merge requests i of projects p in a place
// that the actor can read.
func (s *Service) requestsIn(by actor.Actor, in place) (w db.Where) {
	if in.project != nil {
		w.And(`i.project_id = ?`, in.project.ID)
		if !in.project.MayRead(by, project.MergePart) {
			w.And(`1 = 0`)
		}
		return w
	}
	if in.group != nil {
		w.And(`p.namespace_id IN `+below, in.group.ID)
	}
	cond, args := s.Projects.Readable(by, project.MergePart)
	w.And(cond, args...)
	return w
}

func completeIssues(ctx context.Context, d *db.DB, w db.Where, projectID int64, t listing.Typed) ([]*Issue, error) {
	t.Match(&w, listing.Issues, projectID)
	from, args := t.From(d, listing.Issues, issueTables, projectID)
	return db.All(ctx, d, scanIssue, `SELECT `+issueColumns+` FROM `+from+w.SQL()+t.Order(), append(args, w.Args()...)...)
}
