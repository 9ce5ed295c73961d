package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"svc/internal/db"
)

const (
	alertColumns = `a.id, a.iid, a.project_id, a.status, a.severity, a.started_at, a.ended_at, a.created_at, a.updated_at, a.events, a.assignee_id, a.issue_id,
		a.integration_id, a.fingerprint, a.format, a.title, a.description, a.service, a.monitoring_tool, a.environment, a.hosts, COALESCE(i.iid, 0), COALESCE(n.name, ''), p.full_path`
	alertTables = `alerts a JOIN projects p ON p.id = a.project_id LEFT JOIN issues i ON i.id = a.issue_id LEFT JOIN alert_integrations n ON n.id = a.integration_id`
)

// scanAlert reads an alert; more are additional columns.
func scanAlert(s db.Scanner, more ...any) (*Alert, error) {
	var a Alert
	var hosts string
	dest := []any{
		&a.ID, &a.IID, &a.ProjectID, (*string)(&a.Status), (*int64)(&a.Severity), db.Time(&a.StartedAt), db.NullTime(&a.EndedAt), db.Time(&a.CreatedAt), db.Time(&a.UpdatedAt),
		&a.Events, &a.AssigneeID, &a.IssueID, &a.IntegrationID, &a.Fingerprint, (*string)(&a.Format), &a.Title, &a.Description, &a.Service, &a.Tool, &a.Environment, &hosts,
		&a.IssueIID, &a.Integration, &a.ProjectPath,
	}
	if err := s.Scan(append(dest, more...)...); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(hosts), &a.Hosts); err != nil {
		return nil, fmt.Errorf("hosts of alert %d: %w", a.ID, err)
	}
	return &a, nil
}

func scanListed(s db.Scanner) (*Alert, error) { return scanAlert(s) }

// findAlert returns an alert with its payload.
func findAlert(ctx context.Context, q db.Q, projectID, iid int64) (*Alert, error) {
	var payload string
	a, err := scanAlert(q.QueryRowContext(ctx, `SELECT `+alertColumns+`, a.payload FROM `+alertTables+` WHERE a.project_id = ? AND a.iid = ?`, projectID, iid), &payload)
	if err != nil {
		return nil, db.NotFound(err, "Alert")
	}
	a.Payload = payload
	return a, nil
}

// findAlerts returns alerts by their ids, with their payloads.
func findAlerts(ctx context.Context, q db.Q, ids []int64) ([]*Alert, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return db.All(ctx, q, func(s db.Scanner) (*Alert, error) {
		var payload string
		a, err := scanAlert(s, &payload)
		if err == nil {
			a.Payload = payload
		}
		return a, err
	}, `SELECT `+alertColumns+`, a.payload FROM `+alertTables+` WHERE a.id IN `+db.In(len(ids))+` ORDER BY a.id`, db.Any(ids)...)
}

// findOpen returns the open alerts of a project that have these fingerprints,
// the oldest first.
func findOpen(ctx context.Context, q db.Q, projectID int64, prints []string) (map[string][]*Alert, error) {
	const batch = 500 // placeholders of one statement
	open := map[string][]*Alert{}
	for part := range slices.Chunk(prints, batch) {
		list, err := db.All(ctx, q, scanListed, `
			SELECT `+alertColumns+` FROM `+alertTables+`
			WHERE a.project_id = ? AND a.status <> 'resolved' AND a.fingerprint IN `+db.In(len(part))+` ORDER BY a.id`, append([]any{projectID}, db.Any(part)...)...)
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			open[a.Fingerprint] = append(open[a.Fingerprint], a)
		}
	}
	return open, nil
}

func insertAlert(ctx context.Context, q db.Q, a *Alert) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO alerts (project_id, iid, status, severity, started_at, ended_at, created_at, updated_at, events, integration_id, fingerprint, format,
			title, description, service, monitoring_tool, environment, hosts, payload)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		a.ProjectID, a.IID, string(a.Status), int64(a.Severity), a.StartedAt, a.EndedAt, a.CreatedAt, a.UpdatedAt, a.Events, a.IntegrationID, a.Fingerprint, string(a.Format),
		a.Title, a.Description, a.Service, a.Tool, a.Environment, encode(a.Hosts), a.Payload).Scan(&a.ID)
}

// saveAlert updates the columns of an alert that can change.
func saveAlert(ctx context.Context, q db.Q, a *Alert) error {
	return db.NotFound(db.ExecOne(ctx, q, `UPDATE alerts SET status = ?, ended_at = ?, updated_at = ?, events = ?, assignee_id = ?, issue_id = ? WHERE id = ?`,
		string(a.Status), a.EndedAt, a.UpdatedAt, a.Events, a.AssigneeID, a.IssueID, a.ID), "Alert")
}

// hasOther reports whether another alert with the same fingerprint is open.
func hasOther(ctx context.Context, q db.Q, a *Alert) (has bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) > 0 FROM alerts WHERE project_id = ? AND fingerprint = ? AND status <> 'resolved' AND id <> ?`,
		a.ProjectID, a.Fingerprint, a.ID).Scan(&has)
	return has, err
}

// where are the conditions of a filter on alerts a.
func (f Filter) where(projectID int64) db.Where {
	var w db.Where
	w.And(`a.project_id = ?`, projectID)
	if len(f.Statuses) > 0 {
		w.And(`a.status IN `+db.In(len(f.Statuses)), texts(f.Statuses)...)
	}
	if len(f.Severities) > 0 {
		w.And(`a.severity IN `+db.In(len(f.Severities)), numbersOf(f.Severities)...)
	}
	if len(f.IIDs) > 0 {
		w.And(`a.iid IN `+db.In(len(f.IIDs)), db.Any(f.IIDs)...)
	}
	switch {
	case f.Unassigned:
		w.And(`a.assignee_id IS NULL`)
	case f.Assigned:
		w.And(`a.assignee_id IS NOT NULL`)
	case f.AssigneeID != 0:
		w.And(`a.assignee_id = ?`, f.AssigneeID)
	case f.AssigneeUsername != "":
		w.And(`a.assignee_id IN (SELECT u.id FROM users u WHERE lower(u.username) = lower(?))`, f.AssigneeUsername)
	}
	if f.Tool != "" {
		w.And(`a.monitoring_tool = ?`, f.Tool)
	}
	if f.Environment != "" {
		w.And(`a.environment = ?`, f.Environment)
	}
	if f.Search != "" {
		like := db.Like(f.Search)
		w.And(`fold(a.title) LIKE ? ESCAPE '\' OR fold(a.description) LIKE ? ESCAPE '\' OR fold(a.service) LIKE ? ESCAPE '\' OR fold(a.monitoring_tool) LIKE ? ESCAPE '\'`,
			like, like, like, like)
	}
	w.Time(`a.started_at > ?`, f.StartedAfter)
	w.Time(`a.started_at < ?`, f.StartedBefore)
	return w
}

func texts(list []Status) []any {
	var args []any
	for _, s := range list {
		args = append(args, string(s))
	}
	return args
}

func numbersOf(list []Severity) []any {
	var args []any
	for _, s := range list {
		args = append(args, int64(s))
	}
	return args
}

func listAlerts(ctx context.Context, d *db.DB, w db.Where, by Order, p db.Paging) (db.Page[*Alert], error) {
	keys := func(a *Alert) []any { return []any{a.StartedAt.UnixMicro(), a.ID} }
	column := "a.started_at"
	switch by.By {
	case "created_at":
		column, keys = "", func(a *Alert) []any { return []any{a.ID} }
	case "updated_at":
		column, keys = "a.updated_at", func(a *Alert) []any { return []any{a.UpdatedAt.UnixMicro(), a.ID} }
	case "severity":
		column, keys = "a.severity", func(a *Alert) []any { return []any{int64(a.Severity), a.ID} }
	case "event_count":
		column, keys = "a.events", func(a *Alert) []any { return []any{a.Events, a.ID} }
	}
	order := []db.Order{{Name: column}, {Name: "a.id"}}
	if column == "" {
		order = order[1:]
	}
	return db.List(ctx, d, db.Query[*Alert]{
		Columns: alertColumns, From: alertTables, CountFrom: "alerts a", Where: w, Order: order, Desc: by.Desc, Scan: scanListed, Keys: keys,
	}, p)
}

// countAlerts counts up to db.CountLimit; over is true when there are more.
func countAlerts(ctx context.Context, d *db.DB, w db.Where) (n int, over bool, err error) {
	return d.Total(ctx, "alerts a"+w.SQL(), w.Args()...)
}

// deleteOver deletes those of the alerts that are resolved or ignored and have not
// changed since, and returns their IDs.
func deleteOver(ctx context.Context, q db.Q, before time.Time, ids []int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		DELETE FROM alerts WHERE status IN ('resolved', 'ignored') AND updated_at < ? AND id IN `+db.In(len(ids))+` RETURNING id`, append([]any{before}, db.Any(ids)...)...)
}

func findSettings(ctx context.Context, q db.Q, projectID int64) (Settings, error) {
	t := defaults()
	err := q.QueryRowContext(ctx, `SELECT create_issue, auto_close_incident, send_email FROM alert_settings WHERE project_id = ?`, projectID).
		Scan(&t.CreateIssue, &t.AutoClose, &t.SendEmail)
	if errors.Is(err, db.ErrNoRows) {
		return defaults(), nil
	}
	return t, err
}

func saveSettings(ctx context.Context, q db.Q, projectID int64, t Settings) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO alert_settings (project_id, create_issue, auto_close_incident, send_email) VALUES (?, ?, ?, ?)
		ON CONFLICT (project_id) DO UPDATE SET create_issue = excluded.create_issue, auto_close_incident = excluded.auto_close_incident, send_email = excluded.send_email`,
		projectID, t.CreateIssue, t.AutoClose, t.SendEmail)
	return err
}
