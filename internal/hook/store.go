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
func (o owner) where(kind Kind) db.Where {
	w := o.place()
	w.And(`h.kind = ?`, string(kind))
	return w
}

// place selects the hooks of a place.
func (o owner) place() (w db.Where) {
	projectID, groupID := o.ids()
	switch {
	case projectID != nil:
		w.And(`h.project_id = ?`, *projectID)
	case groupID != nil:
		w.And(`h.namespace_id = ?`, *groupID)
	default:
		w.And(`h.project_id IS NULL AND h.namespace_id IS NULL`)
	}
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

// listIntegrations returns the active integrations of a place by their titles.
func listIntegrations(ctx context.Context, q db.Q, in owner) ([]*Hook, error) {
	w := in.place()
	w.And(`h.kind <> 'webhook' AND NOT h.disabled`)
	return db.All(ctx, q, scan, `SELECT `+columns+` FROM `+tables+w.SQL()+` ORDER BY h.kind, h.id`, w.Args()...)
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

const listenerColumns = `h.id, h.kind, h.triggers, h.branch_strategy, h.branch_filter, h.options, h.disabled`

func scanListener(s db.Scanner) (listener, error) {
	var l listener
	var strategy Strategy
	var triggers, options, filter string
	if err := s.Scan(&l.id, (*string)(&l.kind), &triggers, (*string)(&strategy), &filter, &options, &l.disabled, &l.distance); err != nil {
		return l, err
	}
	l.branches = newBranchFilter(strategy, filter)
	l.triggers = splitTriggers(triggers)
	if l.distance == systemDistance {
		l.triggers = append(l.triggers, system)
	}
	return l, json.Unmarshal([]byte(options), &l.options)
}

// findListeners returns the enabled webhooks and all integrations of a project, of
// the groups above a namespace and of the instance. Without a project it returns
// those of a group. Inactive integrations are included, because they override those of
// the groups above.
func findListeners(ctx context.Context, q db.Q, projectID, namespaceID int64) ([]listener, error) {
	return db.All(ctx, q, scanListener, `
		SELECT `+listenerColumns+`, 0 FROM hooks h WHERE h.project_id = ? AND (NOT h.disabled OR h.kind <> 'webhook')
		UNION ALL
		SELECT `+listenerColumns+`, a.depth + 1 FROM hooks h JOIN namespace_tree a ON a.ancestor_id = h.namespace_id
		WHERE a.descendant_id = ? AND (NOT h.disabled OR h.kind <> 'webhook')
		UNION ALL
		SELECT `+listenerColumns+`, 1000000 FROM hooks h WHERE h.project_id IS NULL AND h.namespace_id IS NULL AND NOT h.disabled
		ORDER BY 1`, projectID, namespaceID)
}

// state is the state of the deliveries to a hook.
type state struct {
	failures      int64
	disabledUntil *time.Time
	slow          bool
	minute, calls int64
	updated       time.Time // of the configuration
}

func findState(ctx context.Context, q db.Q, id int64) (state, error) {
	var t state
	err := q.QueryRowContext(ctx, `
		SELECT t.failures, t.disabled_until, t.slow, t.minute, t.calls, h.updated_at FROM hook_states t JOIN hooks h ON h.id = t.hook_id WHERE t.hook_id = ?`, id).
		Scan(&t.failures, db.NullTime(&t.disabledUntil), &t.slow, &t.minute, &t.calls, db.Time(&t.updated))
	return t, err
}

// findShare returns the owner of a hook and whether the hook is slow.
func findShare(ctx context.Context, q db.Q, id int64) (share, error) {
	var s share
	err := q.QueryRowContext(ctx, `
		SELECT COALESCE(h.project_id, 0), COALESCE(h.namespace_id, 0), t.slow FROM hooks h JOIN hook_states t ON t.hook_id = h.id WHERE h.id = ?`, id).
		Scan(&s.projectID, &s.groupID, &s.slow)
	return s, err
}

// findSlow returns those of the hooks that are slow.
func findSlow(ctx context.Context, q db.Q, ids []int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT hook_id FROM hook_states WHERE slow AND hook_id IN `+db.In(len(ids)), db.Any(ids)...)
}

// setDue makes a hook due unless it already is, or is being delivered to.
func setDue(ctx context.Context, q db.Q, id int64, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE hook_states SET due_at = ? WHERE hook_id = ? AND due_at IS NULL`, at, id)
	return err
}

// resetState enables a hook again.
func resetState(ctx context.Context, tx *db.Tx, id int64) error {
	return db.NotFound(db.ExecOne(ctx, tx, `
		UPDATE hook_states SET failures = 0, disabled_until = NULL, due_at = CASE WHEN disabled_until IS NULL THEN due_at ELSE CAST(0 AS BIGINT) END
		WHERE hook_id = ?`, id), "Hook")
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

// saveState saves the state of a hook; false if its configuration has changed since
// the state was read.
func saveState(ctx context.Context, q db.Q, id int64, t state) (bool, error) {
	return db.ExecAny(ctx, q, `
		UPDATE hook_states SET failures = ?, disabled_until = ?, slow = ?, minute = ?, calls = ?
		WHERE hook_id = ? AND EXISTS (SELECT 1 FROM hooks h WHERE h.id = ? AND h.updated_at = ?)`,
		t.failures, t.disabledUntil, t.slow, t.minute, t.calls, id, id, t.updated)
}

// countLogged adds rows to the count of the delivery log.
func countLogged(ctx context.Context, q db.Q, id, n int64) error {
	_, err := q.ExecContext(ctx, `UPDATE hook_states SET logged = logged + ? WHERE hook_id = ?`, n, id)
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

// findFull returns hooks whose delivery log exceeds its limit.
func findFull(ctx context.Context, q db.Q, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT hook_id FROM hook_states WHERE logged > 1000 ORDER BY logged DESC LIMIT ?`, limit)
}
