package hook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"svc/internal/db"
)

// captured is the payload of an event, as it is stored.
type captured struct {
	id int64
	// uuid is the key of the delivery whose receiver caused the event, or a random UUID.
	uuid      string
	projectID *int64
	trigger   Trigger
	header    string
	payload   []byte
	pending   string // JSON: what is read from the repository before the first delivery
	at        time.Time
}

func insertEvent(ctx context.Context, tx *db.Tx, e *captured) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO hook_events (uuid, project_id, trigger, header, payload, pending, created_at) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		e.uuid, e.projectID, string(e.trigger), e.header, string(e.payload), e.pending, e.at).Scan(&e.id)
}

func findEvent(ctx context.Context, q db.Q, id int64) (*captured, error) {
	var e captured
	var payload string
	err := q.QueryRowContext(ctx, `SELECT id, uuid, project_id, trigger, header, payload, pending, created_at FROM hook_events WHERE id = ?`, id).
		Scan(&e.id, &e.uuid, &e.projectID, (*string)(&e.trigger), &e.header, &payload, &e.pending, db.Time(&e.at))
	e.payload = []byte(payload)
	return &e, err
}

func completeEvent(ctx context.Context, q db.Q, e *captured) error {
	_, err := q.ExecContext(ctx, `UPDATE hook_events SET payload = ?, pending = '' WHERE id = ?`, string(e.payload), e.id)
	return err
}

// insertDeliveries stores the deliveries of one event.
func insertDeliveries(ctx context.Context, tx *db.Tx, list []*Delivery) error {
	for part := range slices.Chunk(list, 100) {
		args := []any{}
		for _, d := range part {
			args = append(args, d.HookID, d.eventID, d.waiting, d.Key, d.Error, d.CreatedAt)
		}
		rows := strings.TrimPrefix(strings.Repeat(", (?, ?, ?, ?, ?, ?)", len(part)), ", ")
		if _, err := tx.ExecContext(ctx, `INSERT INTO hook_deliveries (hook_id, event_id, waiting, key, error, created_at) VALUES `+rows, args...); err != nil {
			return err
		}
	}
	return nil
}

func insertDelivery(ctx context.Context, tx *db.Tx, d *Delivery) error {
	return tx.QueryRowContext(ctx, `INSERT INTO hook_deliveries (hook_id, event_id, waiting, key, error, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		d.HookID, d.eventID, d.waiting, d.Key, d.Error, d.CreatedAt).Scan(&d.ID)
}

// findTriggered returns the hook of the delivery with a key, and the hooks by whose
// deliveries its event was caused, at most limit. A resent delivery has the key of the
// first one, so UNION removes duplicates at each step.
func findTriggered(ctx context.Context, q db.Q, key string, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		WITH RECURSIVE chain (hook_id, cause, position) AS (
			SELECT d.hook_id, e.uuid, 1 FROM hook_deliveries d JOIN hook_events e ON e.id = d.event_id WHERE d.key = ?
			UNION
			SELECT d.hook_id, e.uuid, c.position + 1 FROM chain c
			JOIN hook_deliveries d ON d.key = c.cause JOIN hook_events e ON e.id = d.event_id WHERE c.position < ?)
		SELECT hook_id FROM chain ORDER BY position`, key, limit)
}

const deliveryColumns = `d.id, d.hook_id, d.event_id, d.waiting, d.key, d.attempts, d.url, d.request_headers, d.request_body, d.response_status, d.response_headers,
	d.response_body, d.error, d.duration, d.created_at, d.delivered_at, e.trigger, e.payload`

// oversize stands for a body that is too large for the log.
const oversize = `{"oversize":true}`

// listedColumns are deliveryColumns without large bodies, which would make a list
// several megabytes long.
var listedColumns = func() string {
	short := deliveryColumns
	for _, body := range []string{"d.request_body", "e.payload"} {
		short = strings.Replace(short, body, `CASE WHEN length(`+body+`) <= 65536 THEN `+body+` ELSE '`+oversize+`' END`, 1)
	}
	return short
}()

func scanDelivery(s db.Scanner) (*Delivery, error) {
	var d Delivery
	var duration int64
	err := s.Scan(&d.ID, &d.HookID, &d.eventID, &d.waiting, &d.Key, &d.Attempts, &d.URL, &d.requestHeaders, &d.body, &d.Status, &d.responseHeaders,
		&d.ResponseBody, &d.Error, &duration, db.Time(&d.CreatedAt), db.NullTime(&d.DeliveredAt), (*string)(&d.Trigger), &d.payload)
	d.Duration = time.Duration(duration) * time.Microsecond
	return &d, err
}

// nextDelivery returns the first waiting delivery of a hook; nil if there is none.
func nextDelivery(ctx context.Context, q db.Q, hookID int64) (*Delivery, error) {
	d, err := scanDelivery(q.QueryRowContext(ctx, `
		SELECT `+deliveryColumns+` FROM hook_deliveries d JOIN hook_events e ON e.id = d.event_id WHERE d.hook_id = ? AND d.waiting ORDER BY d.id LIMIT 1`, hookID))
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return d, err
}

func hasWaiting(ctx context.Context, q db.Q, hookID int64) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM hook_deliveries WHERE hook_id = ? AND waiting LIMIT 1`, hookID)
}

func saveDelivery(ctx context.Context, q db.Q, d *Delivery) error {
	_, err := q.ExecContext(ctx, `
		UPDATE hook_deliveries SET waiting = ?, attempts = ?, url = ?, request_headers = ?, request_body = ?, response_status = ?, response_headers = ?,
			response_body = ?, error = ?, duration = ?, delivered_at = ? WHERE id = ?`,
		d.waiting, d.Attempts, d.URL, d.requestHeaders, d.body, d.Status, d.responseHeaders, d.ResponseBody, d.Error, d.Duration.Microseconds(), d.DeliveredAt, d.ID)
	return err
}

func listDeliveries(ctx context.Context, dbase *db.DB, hookID int64, f LogFilter, p db.Paging) (db.Page[*Delivery], error) {
	var w db.Where
	w.And(`d.hook_id = ?`, hookID)
	switch {
	case f.Status == 0 && f.Upper == 0:
		w.And(`(NOT d.waiting OR d.delivered_at IS NOT NULL)`)
	case f.Upper != 0:
		w.And(`d.response_status >= ? AND d.response_status < ?`, f.Status, f.Upper)
	default:
		w.And(`d.response_status = ?`, f.Status)
	}
	return db.List(ctx, dbase, db.Query[*Delivery]{
		Columns: listedColumns, From: `hook_deliveries d JOIN hook_events e ON e.id = d.event_id`, Where: w, Order: []db.Order{{Name: "d.id"}}, Desc: true, Scan: scanDelivery,
		Keys: func(d *Delivery) []any { return []any{d.ID} },
	}, p)
}

func findDelivery(ctx context.Context, q db.Q, hookID, id int64) (*Delivery, error) {
	return scanDelivery(q.QueryRowContext(ctx, `
		SELECT `+deliveryColumns+` FROM hook_deliveries d JOIN hook_events e ON e.id = d.event_id WHERE d.hook_id = ? AND d.id = ?`, hookID, id))
}

// giveUp ends all waiting deliveries of a hook with an error.
func giveUp(ctx context.Context, tx *db.Tx, hookID int64, why string, at time.Time) error {
	n, err := db.ExecCount(ctx, tx, `UPDATE hook_deliveries SET waiting = FALSE, error = ?, delivered_at = ? WHERE hook_id = ? AND waiting`, why, at, hookID)
	if err != nil || n == 0 {
		return err
	}
	return countLogged(ctx, tx, hookID, n)
}

// trimLog deletes all but the newest rows of a delivery log.
func trimLog(ctx context.Context, tx *db.Tx, hookID int64, keep int) error {
	_, err := tx.ExecContext(ctx, `
		DELETE FROM hook_deliveries WHERE hook_id = ? AND NOT waiting AND id <= COALESCE((
			SELECT d.id FROM hook_deliveries d WHERE d.hook_id = ? AND NOT d.waiting ORDER BY d.id DESC LIMIT 1 OFFSET ?), 0)`, hookID, hookID, keep)
	if err != nil {
		return err
	}
	return recountLogged(ctx, tx, hookID)
}

func recountLogged(ctx context.Context, tx *db.Tx, hookID int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE hook_states SET logged = (SELECT count(*) FROM hook_deliveries d WHERE d.hook_id = ? AND NOT d.waiting) WHERE hook_id = ?`, hookID, hookID)
	return err
}

// trimWaiting gives up all but the newest waiting deliveries of a hook.
func trimWaiting(ctx context.Context, tx *db.Tx, hookID int64, keep int, at time.Time) error {
	var last int64
	err := tx.QueryRowContext(ctx, `SELECT d.id FROM hook_deliveries d WHERE d.hook_id = ? AND d.waiting ORDER BY d.id DESC LIMIT 1 OFFSET ?`, hookID, keep).Scan(&last)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return endWaiting(ctx, tx, hookID, last, at)
}

// endWaiting gives up the waiting deliveries of a hook up to an ID.
func endWaiting(ctx context.Context, tx *db.Tx, hookID, last int64, at time.Time) error {
	n, err := db.ExecCount(ctx, tx, `
		UPDATE hook_deliveries SET waiting = FALSE, error = 'too many deliveries were waiting', delivered_at = ? WHERE hook_id = ? AND waiting AND id <= ?`, at, hookID, last)
	if err != nil || n == 0 {
		return err
	}
	return countLogged(ctx, tx, hookID, n)
}

// findLarge returns hooks that got an event since a time whose payload is larger than a
// size. Databases know the size of a value without reading it.
func findLarge(ctx context.Context, q db.Q, since time.Time, size int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT d.hook_id FROM hook_events e JOIN hook_deliveries d ON d.event_id = e.id
		WHERE e.created_at >= ? AND octet_length(e.payload) > ? ORDER BY d.hook_id`, since, size)
}

// findOver returns the newest delivery of the queue or log of a hook with which the payloads
// exceed a size; 0 if there is none.
func findOver(ctx context.Context, q db.Q, hookID int64, waiting bool, size int64) (id int64, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT CAST(coalesce(max(s.id), 0) AS BIGINT) FROM (
			SELECT d.id, sum(octet_length(e.payload)) OVER (ORDER BY d.id DESC) AS size
			FROM hook_deliveries d JOIN hook_events e ON e.id = d.event_id WHERE d.hook_id = ? AND d.waiting = ?) s
		WHERE s.size > ?`, hookID, waiting, size).Scan(&id)
	return id, err
}

// dropLogged deletes the rows of a delivery log up to an ID, and their events if nothing
// else refers to them.
func dropLogged(ctx context.Context, tx *db.Tx, hookID, last int64) error {
	events, err := db.All(ctx, tx, db.Value[int64], `DELETE FROM hook_deliveries WHERE hook_id = ? AND NOT waiting AND id <= ? RETURNING event_id`, hookID, last)
	if err != nil || len(events) == 0 {
		return err
	}
	if err := deleteLoose(ctx, tx, events); err != nil {
		return err
	}
	return recountLogged(ctx, tx, hookID)
}

// findCrowded returns hooks for which more deliveries wait than are kept.
func findCrowded(ctx context.Context, q db.Q, keep int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT hook_id FROM hook_deliveries WHERE waiting GROUP BY hook_id HAVING count(*) > ?`, keep)
}

// saveAttempts records an attempt that failed because the payload could not be completed.
func saveAttempts(ctx context.Context, q db.Q, d *Delivery) error {
	_, err := q.ExecContext(ctx, `UPDATE hook_deliveries SET attempts = ? WHERE id = ?`, d.Attempts, d.ID)
	return err
}

// dropEvents deletes old events with their deliveries, at most limit.
func dropEvents(ctx context.Context, tx *db.Tx, before time.Time, limit int) (int64, error) {
	return db.ExecCount(ctx, tx, `DELETE FROM hook_events WHERE id IN (SELECT id FROM hook_events WHERE created_at < ? ORDER BY created_at, id LIMIT ?)`, before, limit)
}

// findLoose returns old events without deliveries.
func findLoose(ctx context.Context, q db.Q, before time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT e.id FROM hook_events e WHERE e.created_at < ? AND NOT EXISTS (SELECT 1 FROM hook_deliveries d WHERE d.event_id = e.id)
		ORDER BY e.created_at, e.id LIMIT ?`, before, limit)
}

// deleteLoose deletes those of the events that have no deliveries.
func deleteLoose(ctx context.Context, tx *db.Tx, events []int64) error {
	for part := range slices.Chunk(events, 500) {
		_, err := tx.ExecContext(ctx, `
			DELETE FROM hook_events WHERE id IN `+db.In(len(part))+` AND NOT EXISTS (SELECT 1 FROM hook_deliveries d WHERE d.event_id = hook_events.id)`, db.Any(part)...)
		if err != nil {
			return err
		}
	}
	return nil
}
