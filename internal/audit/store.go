package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"svc/internal/db"
)

const eventColumns = `id, event_type, author_id, author_name, author_email, author_class, entity_type, entity_id,
	entity_path, target_type, COALESCE(target_id, 0), target_details, ip_address, details, created_at`

func scanEvent(s db.Scanner) (Event, error) {
	var e Event
	var details string
	err := s.Scan(&e.ID, &e.Type, &e.By.ID, &e.By.Name, &e.By.Email, &e.By.Class, &e.Entity.Type, &e.Entity.ID,
		&e.Entity.Path, &e.Target.Type, &e.Target.ID, &e.Target.Details, &e.IP, &details, db.Time(&e.CreatedAt))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal([]byte(details), &e.Details); err != nil {
		return e, fmt.Errorf("details of audit event %d: %w", e.ID, err)
	}
	return e, nil
}

func insertEvent(ctx context.Context, q db.Q, e Event, details string) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO audit_events (event_type, author_id, author_name, author_email, author_class, entity_type, entity_id,
			entity_path, target_type, target_id, target_details, ip_address, details, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.Type, e.By.ID, e.By.Name, e.By.Email, e.By.Class, string(e.Entity.Type), e.Entity.ID,
		e.Entity.Path, e.Target.Type, e.Target.ID, e.Target.Details, e.IP, details, e.CreatedAt)
	return err
}

func findEvent(ctx context.Context, q db.Q, id int64) (Event, error) {
	e, err := scanEvent(q.QueryRowContext(ctx, `SELECT `+eventColumns+` FROM audit_events WHERE id = ?`, id))
	return e, db.NotFound(err, "Audit Event")
}

func listEvents(ctx context.Context, d *db.DB, f Filter, p db.Paging) (db.Page[Event], error) {
	var where db.Where
	where.Time("created_at >= ?", f.CreatedAfter)
	where.Time("created_at <= ?", f.CreatedBefore)
	if f.EntityType != "" {
		where.And("entity_type = ?", string(f.EntityType))
	}
	if f.EntityID != 0 {
		where.And("entity_id = ?", f.EntityID)
	}
	if f.AuthorID != 0 {
		where.And("author_id = ?", f.AuthorID)
	}
	q := db.Query[Event]{
		Columns: eventColumns,
		From:    "audit_events",
		Where:   where,
		Order:   []db.Order{{Name: "id"}},
		Desc:    true,
		Scan:    scanEvent,
		Keys:    func(e Event) []any { return []any{e.ID} },
	}
	if f.CreatedAfter != nil || f.CreatedBefore != nil { // otherwise all events outside of the period might be read
		q.Order = []db.Order{{Name: "created_at"}, {Name: "id"}}
		q.Keys = func(e Event) []any { return []any{e.CreatedAt, e.ID} }
	}
	return db.List(ctx, d, q, p)
}

// findFailures returns the events of failed sign-ins from an address since a time.
func findFailures(ctx context.Context, tx *db.Tx, address string, since time.Time) ([]failure, error) {
	return db.All(ctx, tx, func(s db.Scanner) (f failure, err error) {
		err = s.Scan(&f.id, &f.login, &f.attempts)
		return f, err
	}, `SELECT id, target_details, attempts FROM audit_events
		WHERE event_type = 'failed_login' AND ip_address = ? AND created_at > ? ORDER BY id DESC LIMIT ?`, address, since, maxLogins+1)
}

// countFailures counts the events of failed sign-ins since a time, up to
// maxFailures.
func countFailures(ctx context.Context, q db.Q, since time.Time) (n int, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT COUNT(*) FROM (SELECT 1 FROM audit_events WHERE event_type = 'failed_login' AND created_at > ? LIMIT ?) recent`, since, maxFailures).Scan(&n)
	return n, err
}

func saveAttempts(ctx context.Context, q db.Q, id, attempts int64, details string) error {
	return db.ExecOne(ctx, q, `UPDATE audit_events SET attempts = ?, details = ? WHERE id = ?`, attempts, details, id)
}

func deleteFailures(ctx context.Context, q db.Q, before time.Time, limit int64) (int64, error) {
	return db.ExecCount(ctx, q, `
		DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events WHERE event_type = 'failed_login' AND created_at < ? LIMIT ?)`, before, limit)
}
