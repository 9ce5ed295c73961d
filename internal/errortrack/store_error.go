package errortrack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"svc/internal/db"
)

const errorColumns = `e.id, e.project_id, e.type, e.title, e.culprit, e.platform, e.level, e.status, e.events, e.users,
	e.first_seen_at, e.last_seen_at, e.first_release, e.last_release`

func scanError(sc db.Scanner) (*Error, error) {
	var e Error
	err := sc.Scan(&e.ID, &e.ProjectID, &e.Type, &e.Title, &e.Culprit, &e.Platform, &e.Level, (*string)(&e.Status), &e.Events, &e.Users,
		db.Time(&e.FirstSeenAt), db.Time(&e.LastSeenAt), &e.FirstRelease, &e.LastRelease)
	return &e, err
}

func findError(ctx context.Context, q db.Q, projectID, id int64) (*Error, error) {
	return scanError(q.QueryRowContext(ctx, `SELECT `+errorColumns+` FROM errors e WHERE e.id = ? AND e.project_id = ?`, id, projectID))
}

func saveStatus(ctx context.Context, q db.Q, id int64, to Status) error {
	return db.ExecOne(ctx, q, `UPDATE errors SET status = ? WHERE id = ?`, string(to), id)
}

// listErrors reads one page. The number of errors of a project is limited, so only
// the default order needs an index.
func listErrors(ctx context.Context, d *db.DB, projectID int64, f Filter, p db.Paging) (db.Page[*Error], error) {
	var w db.Where
	w.And(`e.project_id = ?`, projectID)
	if f.Status != "" {
		w.And(`e.status = ?`, string(f.Status))
	}
	if f.Environment != "" {
		w.And(`e.id IN (SELECT n.error_id FROM error_environments n WHERE n.project_id = ? AND n.name = ?)`, projectID, f.Environment)
	}
	if f.Search != "" {
		like := db.Like(f.Search)
		w.And(`fold(e.type) LIKE ? ESCAPE '\' OR fold(e.title) LIKE ? ESCAPE '\' OR fold(e.culprit) LIKE ? ESCAPE '\'`, like, like, like)
	}
	column, key := "e.last_seen_at", func(e *Error) int64 { return e.LastSeenAt.UnixMicro() }
	switch f.Sort {
	case ByFirstSeen:
		column, key = "e.first_seen_at", func(e *Error) int64 { return e.FirstSeenAt.UnixMicro() }
	case ByFrequency:
		column, key = "e.events", func(e *Error) int64 { return e.Events }
	}
	return db.List(ctx, d, db.Query[*Error]{
		Columns: errorColumns, From: "errors e", Where: w, Order: []db.Order{{Name: column}, {Name: "e.id"}}, Desc: true, Scan: scanError,
		Keys: func(e *Error) []any { return []any{key(e), e.ID} },
	}, p)
}

func countStatuses(ctx context.Context, q db.Q, projectID int64) (map[Status]int, error) {
	counts := map[Status]int{}
	_, err := db.All(ctx, q, func(sc db.Scanner) (struct{}, error) {
		var status Status
		var n int
		err := sc.Scan((*string)(&status), &n)
		counts[status] = n
		return struct{}{}, err
	}, `SELECT status, count(*) FROM errors WHERE project_id = ? GROUP BY status`, projectID)
	return counts, err
}

func listEnvironments(ctx context.Context, q db.Q, projectID int64) ([]string, error) {
	return db.All(ctx, q, db.Value[string], `SELECT DISTINCT name FROM error_environments WHERE project_id = ? ORDER BY name LIMIT ?`, projectID, maxEnvironments)
}

func scanTally(sc db.Scanner) (Tally, error) {
	var t Tally
	err := sc.Scan(&t.Value, &t.Events)
	return t, err
}

func tallyEnvironments(ctx context.Context, q db.Q, errorID int64) ([]Tally, error) {
	return db.All(ctx, q, scanTally, `SELECT name, events FROM error_environments WHERE error_id = ? ORDER BY events DESC, name LIMIT ?`, errorID, maxEnvironments)
}

// findHours reads the number of events per hour, starting at the hour first.
func findHours(ctx context.Context, q db.Q, ids []int64, first int64) (map[int64]map[int64]int64, error) {
	counts := map[int64]map[int64]int64{}
	_, err := db.All(ctx, q, func(sc db.Scanner) (struct{}, error) {
		var id, hour, n int64
		err := sc.Scan(&id, &hour, &n)
		if counts[id] == nil {
			counts[id] = map[int64]int64{}
		}
		counts[id][hour] = n
		return struct{}{}, err
	}, `SELECT error_id, hour, events FROM error_hours WHERE error_id IN `+db.In(len(ids))+` AND hour >= ?`, append(db.Any(ids), first)...)
	return counts, err
}

// counted is the state of an error after an event was counted.
type counted struct{ id, events, users int64 }

// countEvent adds an event to its error, and creates the error if needed.
func countEvent(ctx context.Context, q db.Q, projectID int64, fingerprint string, e *Event) (c counted, err error) {
	const latest = `CASE WHEN excluded.last_seen_at >= errors.last_seen_at THEN excluded.`
	err = q.QueryRowContext(ctx, `
		INSERT INTO errors (project_id, fingerprint, type, title, culprit, platform, level, status, events, users,
			first_seen_at, last_seen_at, first_release, last_release)
		VALUES (?, ?, ?, ?, ?, ?, ?, 'unresolved', 1, 0, ?, ?, ?, ?)
		ON CONFLICT (project_id, fingerprint) DO UPDATE SET
			events = errors.events + 1,
			status = CASE WHEN errors.status = 'resolved' THEN 'unresolved' ELSE errors.status END,
			type = `+latest+`type ELSE errors.type END,
			title = `+latest+`title ELSE errors.title END,
			culprit = `+latest+`culprit ELSE errors.culprit END,
			level = `+latest+`level ELSE errors.level END,
			last_release = `+latest+`last_release ELSE errors.last_release END,
			last_seen_at = `+latest+`last_seen_at ELSE errors.last_seen_at END,
			first_release = CASE WHEN excluded.first_seen_at < errors.first_seen_at THEN excluded.first_release ELSE errors.first_release END,
			first_seen_at = CASE WHEN excluded.first_seen_at < errors.first_seen_at THEN excluded.first_seen_at ELSE errors.first_seen_at END
		RETURNING id, events, users`,
		projectID, fingerprint, e.Type(), e.Title, e.culprit(), e.Platform, e.Level, e.At, e.At, e.Release, e.Release).Scan(&c.id, &c.events, &c.users)
	return c, err
}

// remember stores the ID of an event; fresh is false if it is known.
func remember(ctx context.Context, q db.Q, projectID int64, eventID string, now time.Time) (fresh bool, err error) {
	return db.ExecAny(ctx, q, `INSERT INTO error_seen (project_id, event_id, seen_at) VALUES (?, ?, ?) ON CONFLICT (project_id, event_id) DO NOTHING`, projectID, eventID, now)
}

// insertEvent stores an event; fresh is false if its ID is known.
func insertEvent(ctx context.Context, q db.Q, projectID, errorID int64, e *Event, details []byte) (fresh bool, err error) {
	tags, err := json.Marshal(e.Tags)
	if err != nil {
		return false, err
	}
	return db.ExecAny(ctx, q, `
		INSERT INTO error_events (project_id, error_id, event_id, occurred_at, environment, release, title, tags, details)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project_id, event_id) DO NOTHING`,
		projectID, errorID, e.ID, e.At, e.Environment, e.Release, e.Title, string(tags), details)
}

func countHour(ctx context.Context, q db.Q, errorID, hour int64) error {
	_, err := q.ExecContext(ctx, `
		INSERT INTO error_hours (error_id, hour, events) VALUES (?, ?, 1)
		ON CONFLICT (error_id, hour) DO UPDATE SET events = error_hours.events + 1`, errorID, hour)
	return err
}

func countEnvironment(ctx context.Context, q db.Q, projectID, errorID int64, name string) error {
	known, err := db.ExecAny(ctx, q, `UPDATE error_environments SET events = events + 1 WHERE error_id = ? AND name = ?`, errorID, name)
	if err != nil || known {
		return err
	}
	var n int
	if err := q.QueryRowContext(ctx, `SELECT count(*) FROM error_environments WHERE error_id = ?`, errorID).Scan(&n); err != nil || n >= maxEnvironments {
		return err
	}
	_, err = q.ExecContext(ctx, `INSERT INTO error_environments (error_id, project_id, name, events) VALUES (?, ?, ?, 1)`, errorID, projectID, name)
	return err
}

func countUser(ctx context.Context, q db.Q, errorID int64, digest string) error {
	fresh, err := db.ExecAny(ctx, q, `INSERT INTO error_users (error_id, digest) VALUES (?, ?) ON CONFLICT (error_id, digest) DO NOTHING`, errorID, digest)
	if err != nil || !fresh {
		return err
	}
	return db.ExecOne(ctx, q, `UPDATE errors SET users = users + 1 WHERE id = ?`, errorID)
}

// trimEvents deletes the oldest events of an error beyond KeptEvents.
func trimEvents(ctx context.Context, q db.Q, errorID int64) error {
	_, err := q.ExecContext(ctx, `
		DELETE FROM error_events WHERE error_id = ? AND id <= (SELECT id FROM error_events WHERE error_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
		errorID, errorID, KeptEvents)
	return err
}

const eventColumns = `event_id, occurred_at, environment, release, title, tags`

func scanEvent(sc db.Scanner, more ...any) (*Event, error) {
	var e Event
	var tags string
	err := sc.Scan(append([]any{&e.ID, db.Time(&e.At), &e.Environment, &e.Release, &e.Title, &tags}, more...)...)
	if err == nil {
		err = json.Unmarshal([]byte(tags), &e.Tags)
	}
	return &e, err
}

// listEvents reads the latest events of an error, without their details.
func listEvents(ctx context.Context, q db.Q, errorID int64) ([]*Event, error) {
	return db.All(ctx, q, func(sc db.Scanner) (*Event, error) { return scanEvent(sc) },
		`SELECT `+eventColumns+` FROM error_events WHERE error_id = ? ORDER BY id DESC LIMIT ?`, errorID, KeptEvents)
}

// findEvent reads an event with its details.
func findEvent(ctx context.Context, q db.Q, errorID int64, eventID string) (*Event, error) {
	var packed []byte
	e, err := scanEvent(q.QueryRowContext(ctx, `SELECT `+eventColumns+`, details FROM error_events WHERE error_id = ? AND event_id = ?`, errorID, eventID), &packed)
	if err != nil {
		return nil, err
	}
	text, err := unpack(packed)
	if err == nil {
		err = json.Unmarshal(text, &e.Details)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("details of event %s", eventID), err)
	}
	return e, nil
}
