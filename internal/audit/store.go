package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"svc/internal/db"
	"svc/internal/errs"
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
	if errors.Is(err, db.ErrNoRows) {
		return e, errs.NotFound("Audit Event")
	}
	return e, err
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
	return db.List(ctx, d, db.Query[Event]{
		Columns: eventColumns,
		From:    "audit_events",
		Where:   where,
		Order:   []db.Order{{Name: "id"}},
		Desc:    true,
		Scan:    scanEvent,
		Keys:    func(e Event) []any { return []any{e.ID} },
	}, p)
}
