package todo

import (
	"context"
	"errors"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/alert"
	"svc/internal/db"
	"svc/internal/plan"
	"svc/internal/project"
)

// Only the first 1000 characters of a comment are read.
const (
	columns = `t.id, t.user_id, t.author_id, COALESCE(t.project_id, 0), COALESCE(t.namespace_id, 0), t.target_type, COALESCE(t.issue_id, t.merge_request_id, t.alert_id, 0),
		t.note_id, t.action, t.state, t.created_at, t.updated_at, t.commit_sha, t.commit_title, COALESCE(t.commit_comment_id, 0), a.iid, COALESCE(a.title, ''),
		COALESCE(substr(n.body, 1, 1000), substr(c.note, 1, 1000), '')`
	tables = `todos t LEFT JOIN projects p ON p.id = t.project_id LEFT JOIN issues i ON i.id = t.issue_id LEFT JOIN notes n ON n.id = t.note_id
		LEFT JOIN alerts a ON a.id = t.alert_id LEFT JOIN commit_comments c ON c.id = t.commit_comment_id`
)

func scan(s db.Scanner) (*Item, error) {
	var t Item
	var c Commit
	var a Alert
	var sha *string
	var number *int64
	err := s.Scan(&t.ID, &t.UserID, &t.AuthorID, &t.ProjectID, &t.GroupID, (*string)(&t.On.Kind), &t.On.ID,
		&t.NoteID, (*string)(&t.Action), (*string)(&t.State), db.Time(&t.CreatedAt), db.Time(&t.UpdatedAt), &sha, &c.Title, &c.CommentID, &number, &a.Title,
		&t.NoteText)
	if sha != nil {
		c.SHA = *sha
		t.Commit = &c
	}
	if number != nil {
		a.IID = *number
		t.Alert = &a
	}
	return &t, err
}

// column returns the column that refers to targets of a kind.
func column(kind plan.Kind) string {
	switch kind {
	case plan.MergeKind:
		return "merge_request_id"
	case alert.NoteKind:
		return "alert_id"
	}
	return "issue_id"
}

// visible returns the condition on items t whose target, and comment, the actor can
// see. It is checked on each read, so that users who lose access to a target no
// longer see its item.
func (s *Service) visible(by actor.Actor) (w db.Where) {
	var conds []string
	var args []any
	may := func(kind plan.Kind, cond string, more []any) {
		conds = append(conds, `t.target_type = '`+string(kind)+`' AND (`+cond+`)`)
		args = append(args, more...)
	}
	cond, more := s.Plan.VisibleIssues(by)
	may(plan.IssueKind, cond, more)
	cond, more = s.Projects.Readable(by, project.MergePart)
	may(plan.MergeKind, cond, more)
	cond, more = s.Projects.Readable(by, project.CodePart)
	may(plan.CommitKind, cond, more)
	cond, more = s.manages(by, project.Developer)
	may(alert.NoteKind, cond+` AND `+s.Projects.Monitored(), more)
	// An access request is pending as long as the member has requested_at.
	const asks = ` AND (t.state = 'done' OR EXISTS (SELECT 1 FROM members x WHERE x.user_id = t.author_id AND x.requested_at IS NOT NULL AND `
	cond, more = s.manages(by, project.Maintainer)
	may(ProjectKind, `(`+cond+`)`+asks+`x.project_id = t.project_id))`, more)
	cond, more = "1 = 1", nil
	if !by.Admin {
		cond, more = s.Projects.MemberGroups(by, project.Owner)
	}
	may(GroupKind, `EXISTS (SELECT 1 FROM namespaces n WHERE n.id = t.namespace_id AND (`+cond+`))`+asks+`x.namespace_id = t.namespace_id))`, more)
	w.And(strings.Join(conds, ` OR `), args...)
	internal, args := s.Projects.Readable(by, project.ConfidentialPart)
	w.And(`t.note_id IS NULL OR NOT n.internal OR (`+internal+`)`, args...)
	return w
}

// manages returns the condition on projects p in which the actor has at least a
// level.
func (s *Service) manages(by actor.Actor, least project.Level) (string, []any) {
	cond, args := "1 = 1", []any(nil)
	if !by.Admin {
		cond, args = s.Projects.MemberProjects(by, least)
	}
	return `p.deleted_at IS NULL AND (` + cond + `)`, args
}

// narrow adds the conditions of a filter on items t of projects p.
func narrow(w *db.Where, userID int64, f Filter) {
	w.And(`t.user_id = ?`, userID)
	if f.State != "" {
		w.And(`t.state = ?`, string(f.State))
	}
	if f.Action != "" {
		w.And(`t.action = ?`, string(f.Action))
	}
	if f.Kind != "" {
		w.And(`t.target_type = ?`, string(f.Kind))
	}
	if f.AuthorID != 0 {
		w.And(`t.author_id = ?`, f.AuthorID)
	}
	if f.ProjectID != 0 {
		w.And(`t.project_id = ?`, f.ProjectID)
	}
	if f.GroupID != 0 && f.few {
		w.And(`t.id IN (`+inGroup+`)`, groupArgs(userID, f)...)
	} else if f.GroupID != 0 {
		w.And(`t.project_id IN (SELECT g.id FROM projects g JOIN namespace_tree a ON a.descendant_id = g.namespace_id WHERE a.ancestor_id = ?)
			OR t.namespace_id IN (SELECT a.descendant_id FROM namespace_tree a WHERE a.ancestor_id = ?)`, f.GroupID, f.GroupID)
	}
}

// inGroup selects the items of a user in a group and its subgroups. It uses an
// index.
const inGroup = `
	SELECT x.id FROM todos x WHERE x.user_id = ? AND x.state = ?
		AND x.project_id IN (SELECT g.id FROM projects g JOIN namespace_tree a ON a.descendant_id = g.namespace_id WHERE a.ancestor_id = ?)
	UNION ALL
	SELECT x.id FROM todos x WHERE x.user_id = ? AND x.state = ? AND x.target_type = 'Namespace'
		AND x.namespace_id IN (SELECT a.descendant_id FROM namespace_tree a WHERE a.ancestor_id = ?)`

func groupArgs(userID int64, f Filter) []any {
	return []any{userID, string(f.State), f.GroupID, userID, string(f.State), f.GroupID}
}

// fewInGroup reports whether a user has few items in a group. If so, all of them are
// read and sorted; otherwise the list is read in its order and filtered.
func fewInGroup(ctx context.Context, d *db.DB, userID int64, f Filter) (bool, error) {
	if f.GroupID == 0 || f.State == "" {
		return false, nil
	}
	_, over, err := d.Total(ctx, `(`+inGroup+`) AS few`, groupArgs(userID, f)...)
	return !over, err
}

func list(ctx context.Context, d *db.DB, w db.Where, userID int64, f Filter, p db.Paging) (db.Page[*Item], error) {
	var err error
	if f.few, err = fewInGroup(ctx, d, userID, f); err != nil {
		return db.Page[*Item]{}, err
	}
	narrow(&w, userID, f)
	return db.List(ctx, d, db.Query[*Item]{
		Columns: columns, From: tables, Where: w, Order: []db.Order{{Name: "t.id"}}, Desc: true, Scan: scan,
		Keys: func(t *Item) []any { return []any{t.ID} },
	}, p)
}

func find(ctx context.Context, q db.Q, w db.Where, userID, id int64) (*Item, error) {
	w.And(`t.id = ? AND t.user_id = ?`, id, userID)
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM `+tables+w.SQL(), w.Args()...))
}

// count counts the pending items of a user up to a limit.
func count(ctx context.Context, q db.Q, w db.Where, userID int64, limit int) (n int, err error) {
	narrow(&w, userID, Filter{State: Pending})
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM `+tables+w.SQL()+` LIMIT ?) AS counted`, w.Args(limit)...).Scan(&n)
	return n, err
}

// findPending returns the ID of the pending item of a user for a target; 0 if there
// is none.
func findPending(ctx context.Context, q db.Q, userID int64, on plan.Target) (id int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT t.id FROM todos t WHERE t.`+column(on.Kind)+` = ? AND t.user_id = ? AND t.state = 'pending'`, on.ID, userID).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// hasPending reports whether another item for the same target is pending.
func hasPending(ctx context.Context, q db.Q, t *Item) (bool, error) {
	cond, args := column(t.On.Kind)+` = ?`, []any{t.On.ID}
	switch t.On.Kind {
	case plan.CommitKind:
		cond, args = `commit_sha = ? AND project_id = ?`, []any{t.Commit.SHA, t.ProjectID}
	case ProjectKind:
		cond, args = `target_type = 'Project' AND project_id = ? AND author_id = ?`, []any{t.ProjectID, t.AuthorID}
	case GroupKind:
		cond, args = `target_type = 'Namespace' AND namespace_id = ? AND author_id = ?`, []any{t.GroupID, t.AuthorID}
	}
	return db.Exists(ctx, q, `SELECT 1 FROM todos WHERE `+cond+` AND user_id = ? AND state = 'pending'`, append(args, t.UserID)...)
}

// insert adds an item, unless the user has a pending one for the target; then the ID
// of t stays 0.
func insert(ctx context.Context, tx *db.Tx, t *Item) error {
	c := Commit{}
	if t.Commit != nil {
		c = *t.Commit
	}
	err := tx.QueryRowContext(ctx, `
		INSERT INTO todos (user_id, author_id, project_id, namespace_id, target_type, `+column(t.On.Kind)+`, note_id, action, state, created_at, updated_at,
			commit_sha, commit_title, commit_comment_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`,
		t.UserID, t.AuthorID, nullID(t.ProjectID), nullID(t.GroupID), string(t.On.Kind), nullID(t.On.ID), t.NoteID, string(t.Action), string(t.State),
		t.CreatedAt, t.UpdatedAt, db.NullText(c.SHA), c.Title, nullID(c.CommentID)).Scan(&t.ID)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	return err
}

func nullID(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}

func saveState(ctx context.Context, tx *db.Tx, t *Item) error {
	return db.NotFound(db.ExecOne(ctx, tx, `UPDATE todos SET state = ?, updated_at = ? WHERE id = ?`, string(t.State), t.UpdatedAt, t.ID), "Todo")
}

// resolve marks the pending item of a user for a target as done, if it has one of
// the actions; without actions, any item.
func resolve(ctx context.Context, tx *db.Tx, userID int64, on plan.Target, at time.Time, actions ...Action) (bool, error) {
	cond, args := ``, []any{at, on.ID, userID}
	if len(actions) > 0 {
		cond = ` AND action IN ` + db.In(len(actions))
		for _, a := range actions {
			args = append(args, string(a))
		}
	}
	return db.ExecAny(ctx, tx, `UPDATE todos SET state = 'done', updated_at = ? WHERE `+column(on.Kind)+` = ? AND user_id = ? AND state = 'pending'`+cond, args...)
}

// resolveAll marks the pending items of all users for a target with an action as
// done, and returns these users.
func resolveAll(ctx context.Context, tx *db.Tx, on plan.Target, a Action, at time.Time) ([]int64, error) {
	return db.All(ctx, tx, db.Value[int64],
		`UPDATE todos SET state = 'done', updated_at = ? WHERE `+column(on.Kind)+` = ? AND state = 'pending' AND action = ? RETURNING user_id`, at, on.ID, string(a))
}

// resolveCommit marks the pending item of a user for a commit as done.
func resolveCommit(ctx context.Context, tx *db.Tx, userID, projectID int64, sha string, at time.Time) (bool, error) {
	return db.ExecAny(ctx, tx, `UPDATE todos SET state = 'done', updated_at = ? WHERE commit_sha = ? AND project_id = ? AND user_id = ? AND state = 'pending'`,
		at, sha, projectID, userID)
}

// resolveRequest marks the pending items of an access request as done, and returns
// their users.
func resolveRequest(ctx context.Context, tx *db.Tx, r project.AccessRequest, at time.Time) ([]int64, error) {
	cond, id := `target_type = 'Project' AND project_id = ?`, r.ProjectID
	if r.GroupID != 0 {
		cond, id = `target_type = 'Namespace' AND namespace_id = ?`, r.GroupID
	}
	return db.All(ctx, tx, db.Value[int64], `UPDATE todos SET state = 'done', updated_at = ? WHERE `+cond+` AND author_id = ? AND state = 'pending' RETURNING user_id`,
		at, id, r.UserID)
}

// markAll marks up to limit pending items of a user as done, and returns their
// number.
func markAll(ctx context.Context, tx *db.Tx, userID int64, f Filter, at time.Time, limit int) (int64, error) {
	var w db.Where
	narrow(&w, userID, f)
	return db.ExecCount(ctx, tx, `UPDATE todos SET state = 'done', updated_at = ? WHERE id IN (SELECT t.id FROM todos t`+w.SQL()+` ORDER BY t.id LIMIT ?)`,
		append(append([]any{at}, w.Args()...), limit)...)
}

// findProjects returns the IDs of up to 500 projects with items of a user.
func findProjects(ctx context.Context, q db.Q, userID int64, state State) ([]int64, error) {
	const most = 500
	const next = `SELECT min(t.project_id) FROM todos t WHERE t.user_id = ? AND t.state = ?`
	return db.All(ctx, q, db.Value[int64], `
		WITH RECURSIVE used (id) AS (
			`+next+`
			UNION ALL SELECT (`+next+` AND t.project_id > used.id) FROM used WHERE used.id IS NOT NULL)
		SELECT u.id FROM used u WHERE u.id IS NOT NULL LIMIT ?`,
		userID, string(state), userID, string(state), most)
}

// changeAuthor changes the author of the items that a user caused, and deletes those
// of access requests, which end with the account.
func changeAuthor(ctx context.Context, tx *db.Tx, from, to int64) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM todos WHERE author_id = ? AND target_type IN ('Project', 'Namespace')`, from); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE todos SET author_id = ? WHERE author_id = ? AND user_id <> ?`, to, from, from)
	return err
}
