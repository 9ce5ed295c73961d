package todo

import (
	"context"
	"errors"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/plan"
	"svc/internal/project"
)

// Of a comment the first 1000 characters are read.
const (
	columns = `t.id, t.user_id, t.author_id, t.project_id, t.issue_id, t.merge_request_id, t.note_id, t.action, t.state, t.created_at, t.updated_at,
		COALESCE(substr(n.body, 1, 1000), '')`
	tables = `todos t JOIN projects p ON p.id = t.project_id LEFT JOIN issues i ON i.id = t.issue_id LEFT JOIN notes n ON n.id = t.note_id`
)

func scan(s db.Scanner) (*Item, error) {
	var t Item
	var issue, request *int64
	err := s.Scan(&t.ID, &t.UserID, &t.AuthorID, &t.ProjectID, &issue, &request, &t.NoteID, (*string)(&t.Action), (*string)(&t.State),
		db.Time(&t.CreatedAt), db.Time(&t.UpdatedAt), &t.NoteText)
	switch {
	case issue != nil:
		t.On = plan.Target{Kind: plan.IssueKind, ID: *issue}
	case request != nil:
		t.On = plan.Target{Kind: plan.MergeKind, ID: *request}
	}
	return &t, err
}

// column is the column with the target.
func column(kind plan.Kind) string {
	if kind == plan.MergeKind {
		return "merge_request_id"
	}
	return "issue_id"
}

// visible is the condition on items t whose target, and comment, the actor sees.
// It is checked whenever items are read, so that an item disappears with the access
// to its target.
func (s *Service) visible(by actor.Actor) (w db.Where) {
	issue, args := s.Plan.VisibleIssues(by)
	request, more := s.Projects.Readable(by, project.MergePart)
	w.And(`t.issue_id IS NOT NULL AND (`+issue+`) OR t.merge_request_id IS NOT NULL AND (`+request+`)`, append(args, more...)...)
	internal, args := s.Projects.Readable(by, project.ConfidentialPart)
	w.And(`t.note_id IS NULL OR NOT n.internal OR (`+internal+`)`, args...)
	return w
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
	switch f.Kind {
	case "":
	case plan.IssueKind, plan.MergeKind:
		w.And(`t.` + column(f.Kind) + ` IS NOT NULL`)
	default:
		w.And(`1 = 0`) // there are none of other kinds
	}
	if f.AuthorID != 0 {
		w.And(`t.author_id = ?`, f.AuthorID)
	}
	if f.ProjectID != 0 {
		w.And(`t.project_id = ?`, f.ProjectID)
	}
	if f.GroupID != 0 {
		w.And(`t.project_id IN (SELECT g.id FROM projects g JOIN namespace_tree a ON a.descendant_id = g.namespace_id WHERE a.ancestor_id = ?)`, f.GroupID)
	}
}

func list(ctx context.Context, d *db.DB, w db.Where, userID int64, f Filter, p db.Paging) (db.Page[*Item], error) {
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

// findPending returns the ID of the pending item of a user for a target; 0 if
// there is none.
func findPending(ctx context.Context, q db.Q, userID int64, on plan.Target) (id int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT t.id FROM todos t WHERE t.`+column(on.Kind)+` = ? AND t.user_id = ? AND t.state = 'pending'`, on.ID, userID).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// insert adds an item unless there is a pending one for the target; then its ID
// stays 0.
func insert(ctx context.Context, tx *db.Tx, t *Item) error {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO todos (user_id, author_id, project_id, `+column(t.On.Kind)+`, note_id, action, state, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`,
		t.UserID, t.AuthorID, t.ProjectID, t.On.ID, t.NoteID, string(t.Action), string(t.State), t.CreatedAt, t.UpdatedAt).Scan(&t.ID)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	return err
}

func saveState(ctx context.Context, tx *db.Tx, t *Item) error {
	return db.NotFound(db.ExecOne(ctx, tx, `UPDATE todos SET state = ?, updated_at = ? WHERE id = ?`, string(t.State), t.UpdatedAt, t.ID), "Todo")
}

// resolve marks the pending item of a user for a target as done, if it has one of
// the actions, or any if there are none.
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

// resolveAll is resolve for all users. It returns those who had such an item.
func resolveAll(ctx context.Context, tx *db.Tx, on plan.Target, a Action, at time.Time) ([]int64, error) {
	return db.All(ctx, tx, db.Value[int64],
		`UPDATE todos SET state = 'done', updated_at = ? WHERE `+column(on.Kind)+` = ? AND state = 'pending' AND action = ? RETURNING user_id`, at, on.ID, string(a))
}

// markAll marks pending items of a user as done, at most limit of them.
func markAll(ctx context.Context, tx *db.Tx, userID int64, f Filter, at time.Time, limit int) (int64, error) {
	var w db.Where
	narrow(&w, userID, f)
	return db.ExecCount(ctx, tx, `UPDATE todos SET state = 'done', updated_at = ? WHERE id IN (SELECT t.id FROM todos t`+w.SQL()+` ORDER BY t.id LIMIT ?)`,
		append(append([]any{at}, w.Args()...), limit)...)
}

// findProjects returns the projects of items, those of the newest ones.
func findProjects(ctx context.Context, q db.Q, userID int64, state State) ([]int64, error) {
	const newest = 1000
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT x.project_id FROM (SELECT t.project_id FROM todos t WHERE t.user_id = ? AND t.state = ? ORDER BY t.id DESC LIMIT ?) AS x`,
		userID, string(state), newest)
}

func changeAuthor(ctx context.Context, tx *db.Tx, from, to int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE todos SET author_id = ? WHERE author_id = ? AND user_id <> ?`, to, from, from)
	return err
}
