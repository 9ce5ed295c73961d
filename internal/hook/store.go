package hook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"svc/internal/db"
)

const columns = `h.id, h.kind, h.project_id, h.namespace_id, h.name, h.description, h.url, h.triggers, h.branch_strategy, h.branch_filter, h.template,
	h.verify_tls, h.disabled, h.secrets, h.options, h.created_at, h.updated_at, t.failures, t.disabled_until`

const tables = `hooks h JOIN hook_states t ON t.hook_id = h.id`

func scan(s db.Scanner) (*Hook, error) {
	var h Hook
	var triggers, options string
	err := s.Scan(&h.ID, (*string)(&h.Kind), &h.ProjectID, &h.GroupID, &h.Name, &h.Description, &h.URL, &triggers, (*string)(&h.Strategy), &h.Filter, &h.Template,
		&h.VerifyTLS, &h.Disabled, &h.sealed, &options, db.Time(&h.CreatedAt), db.Time(&h.UpdatedAt), &h.Failures, db.NullTime(&h.DisabledUntil))
	if err != nil {
		return nil, err
	}
	h.Triggers = splitTriggers(triggers)
	return &h, json.Unmarshal([]byte(options), &h.Options)
}

func splitTriggers(text string) []Trigger {
	list := []Trigger{}
	for _, name := range strings.Fields(text) {
		list = append(list, Trigger(name))
	}
	return list
}

func joinTriggers(list []Trigger) string {
	var names []string
	for _, t := range list {
		names = append(names, string(t))
	}
	return strings.Join(names, " ")
}

// where selects the hooks of a kind in a place.
func (o owner) where(kind Kind) (w db.Where) {
	projectID, groupID := o.ids()
	switch {
	case projectID != nil:
		w.And(`h.project_id = ?`, *projectID)
	case groupID != nil:
		w.And(`h.namespace_id = ?`, *groupID)
	default:
		w.And(`h.project_id IS NULL AND h.namespace_id IS NULL`)
	}
	w.And(`h.kind = ?`, string(kind))
	return w
}

func listHooks(ctx context.Context, d *db.DB, in owner, p db.Paging) (db.Page[*Hook], error) {
	return db.List(ctx, d, db.Query[*Hook]{
		Columns: columns, From: tables, Where: in.where(Webhook), Order: []db.Order{{Name: "h.id"}}, Scan: scan,
		Keys: func(h *Hook) []any { return []any{h.ID} },
	}, p)
}

func countHooks(ctx context.Context, q db.Q, in owner) (n int64, err error) {
	w := in.where(Webhook)
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM hooks h`+w.SQL(), w.Args()...).Scan(&n)
	return n, err
}

func findHook(ctx context.Context, q db.Q, in owner, id int64) (*Hook, error) {
	w := in.where(Webhook)
	w.And(`h.id = ?`, id)
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM `+tables+w.SQL(), w.Args()...))
}

// findIntegration returns the integration of a kind in a place.
func findIntegration(ctx context.Context, q db.Q, in owner, kind Kind) (*Hook, error) {
	w := in.where(kind)
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM `+tables+w.SQL()+` ORDER BY h.id LIMIT 1`, w.Args()...))
}

// findAny returns a hook of any place and kind.
func findAny(ctx context.Context, q db.Q, id int64) (*Hook, error) {
	return scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM `+tables+` WHERE h.id = ?`, id))
}

func insertHook(ctx context.Context, tx *db.Tx, h *Hook) error {
	err := tx.QueryRowContext(ctx, `
		INSERT INTO hooks (kind, project_id, namespace_id, url, triggers, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		string(h.Kind), h.ProjectID, h.GroupID, h.URL, joinTriggers(h.Triggers), h.CreatedAt, h.UpdatedAt).Scan(&h.ID)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO hook_states (hook_id) VALUES (?)`, h.ID)
	return err
}

func saveHook(ctx context.Context, tx *db.Tx, h *Hook) error {
	options, err := json.Marshal(h.Options)
	if err != nil {
		return err
	}
	return db.ExecOne(ctx, tx, `
		UPDATE hooks SET name = ?, description = ?, url = ?, triggers = ?, branch_strategy = ?, branch_filter = ?, template = ?, verify_tls = ?,
			disabled = ?, secrets = ?, options = ?, updated_at = ? WHERE id = ?`,
		h.Name, h.Description, h.URL, joinTriggers(h.Triggers), string(h.Strategy), h.Filter, h.Template, h.VerifyTLS,
		h.Disabled, h.sealed, string(options), h.UpdatedAt, h.ID)
}

func deleteHook(ctx context.Context, tx *db.Tx, id int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `DELETE FROM hooks WHERE id = ?`, id), "Hook")
}

// findPlace returns when a project was created and its namespace.
func findPlace(ctx context.Context, q db.Q, projectID int64) (created time.Time, namespaceID int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT created_at, namespace_id FROM projects WHERE id = ?`, projectID).Scan(db.Time(&created), &namespaceID)
	if errors.Is(err, db.ErrNoRows) {
		return created, 0, nil // deleted: only system hooks are left
	}
	return created, namespaceID, err
}

const listenerColumns = `h.id, h.kind, h.triggers, h.branch_strategy, h.branch_filter, h.options, h.project_id IS NULL AND h.namespace_id IS NULL, h.project_id IS NOT NULL`

func scanListener(s db.Scanner) (listener, error) {
	var l listener
	var triggers, options string
	if err := s.Scan(&l.id, (*string)(&l.kind), &triggers, (*string)(&l.strategy), &l.filter, &options, &l.system, &l.project); err != nil {
		return l, err
	}
	l.triggers = splitTriggers(triggers)
	if l.system {
		l.triggers = append(l.triggers, system)
	}
	return l, json.Unmarshal([]byte(options), &l.options)
}

// findListeners returns the enabled hooks of a project, of the groups above a
// namespace and of the instance. Without a project it returns those of a group.
func findListeners(ctx context.Context, q db.Q, projectID, namespaceID int64) ([]listener, error) {
	return db.All(ctx, q, scanListener, `
		SELECT `+listenerColumns+` FROM hooks h WHERE h.project_id = ? AND NOT h.disabled
		UNION ALL
		SELECT `+listenerColumns+` FROM hooks h JOIN namespace_tree a ON a.ancestor_id = h.namespace_id WHERE a.descendant_id = ? AND NOT h.disabled
		UNION ALL
		SELECT `+listenerColumns+` FROM hooks h WHERE h.project_id IS NULL AND h.namespace_id IS NULL AND NOT h.disabled
		ORDER BY 1`, projectID, namespaceID)
}

// state is what deliveries know of a hook.
type state struct {
	failures      int64
	disabledUntil *time.Time
	slow          bool
	minute, calls int64
}

func findState(ctx context.Context, q db.Q, id int64) (state, error) {
	var t state
	err := q.QueryRowContext(ctx, `SELECT failures, disabled_until, slow, minute, calls FROM hook_states WHERE hook_id = ?`, id).
		Scan(&t.failures, db.NullTime(&t.disabledUntil), &t.slow, &t.minute, &t.calls)
	return t, err
}

// resetState enables a hook again.
func resetState(ctx context.Context, tx *db.Tx, id int64) error {
	return db.ExecOne(ctx, tx, `UPDATE hook_states SET failures = 0, disabled_until = NULL, due_at = CASE WHEN disabled_until IS NULL THEN due_at ELSE CAST(0 AS BIGINT) END WHERE hook_id = ?`, id)
}

// claim takes the lease of a hook: until it ends, no other worker delivers to it.
func claim(ctx context.Context, q db.Q, id int64, now, until time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `UPDATE hook_states SET due_at = ? WHERE hook_id = ? AND (due_at IS NULL OR due_at <= ?)`, until, id, now)
}

// extend moves the end of a lease; false if another worker has it.
func extend(ctx context.Context, q db.Q, id int64, lease, until time.Time) (bool, error) {
	return db.ExecAny(ctx, q, `UPDATE hook_states SET due_at = ? WHERE hook_id = ? AND due_at = ?`, until, id, lease)
}

// endLease ends a lease. next is when the hook is due again; nil: with its next
// event.
func endLease(ctx context.Context, q db.Q, id int64, lease time.Time, next *time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE hook_states SET due_at = ? WHERE hook_id = ? AND due_at = ?`, next, id, lease)
	return err
}

func saveState(ctx context.Context, q db.Q, id int64, t state) error {
	_, err := q.ExecContext(ctx, `UPDATE hook_states SET failures = ?, disabled_until = ?, slow = ?, minute = ?, calls = ?, logged = logged + 1 WHERE hook_id = ?`,
		t.failures, t.disabledUntil, t.slow, t.minute, t.calls, id)
	return err
}

func setDisabled(ctx context.Context, tx *db.Tx, id int64, disabled bool) error {
	_, err := tx.ExecContext(ctx, `UPDATE hooks SET disabled = ? WHERE id = ? AND disabled <> ? AND kind = 'webhook'`, disabled, id, disabled)
	return err
}

// findDue returns hooks whose next delivery is due, or whose lease has ended.
func findDue(ctx context.Context, q db.Q, now time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT hook_id FROM hook_states WHERE due_at <= ? ORDER BY due_at LIMIT ?`, now, limit)
}

// findFull returns hooks whose log is longer than it is kept.
func findFull(ctx context.Context, q db.Q, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT hook_id FROM hook_states WHERE logged > 1000 ORDER BY logged DESC LIMIT ?`, limit)
}
