package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"

	"svc/internal/db"
)

// insertPlain inserts the row that River would insert for a job that can run
// immediately. River's own statement is slower on SQLite: it is parsed each time,
// within a savepoint, while the write lock is held.
func (q *Queue) insertPlain(ctx context.Context, tx *db.Tx, it item, o river.InsertOpts) error {
	var now *string // nil means the clock of the database
	if at := (clock{q.Now}).NowUTCOrNil(); at != nil {
		text := at.Round(time.Millisecond).Format("2006-01-02 15:04:05.999")
		now = &text
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO river_job (args, created_at, kind, max_attempts, metadata, priority, queue, scheduled_at, state, tags)
		VALUES (?, COALESCE(?, datetime('now', 'subsec')), ?, ?, json('{}'), ?, ?, COALESCE(?, datetime('now', 'subsec')), 'available', json('[]'))`,
		[]byte(it.args), now, it.kind, o.MaxAttempts, max(o.Priority, 1), o.Queue, now)
	return err
}

// isWaiting reports whether the same job is waiting in the lane, and keeps it from
// starting until tx has ended, so that it sees the changes of tx. River's unique
// jobs would wait for running jobs to be completed, which could deadlock. This
// does not wait: two concurrent transactions may both add the job, which then runs
// one time more than necessary.
func (q *Queue) isWaiting(ctx context.Context, tx *db.Tx, it item, lane string) (bool, error) {
	query := `SELECT id FROM river_job
		WHERE state IN ('available', 'retryable', 'scheduled') AND queue = ? AND kind = ? AND `
	if q.DB.Postgres() {
		query += "args = CAST(? AS jsonb) LIMIT 1 FOR UPDATE SKIP LOCKED"
	} else {
		query += "CAST(args AS text) = ? LIMIT 1" // River stores the text unchanged
	}
	var id int64
	err := tx.QueryRowContext(ctx, query, lane, it.kind, string(it.args)).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Conditions on jobs that this node has handlers for. Their arguments are the
// kinds, everyKind and the names of periodic jobs; lists are JSON.
const (
	knownPostgres = `(kind IN (SELECT json_array_elements_text(CAST(? AS json)))
		OR kind = ? AND args ->> 'name' IN (SELECT json_array_elements_text(CAST(? AS json))))`
	knownSQLite = `(kind IN (SELECT value FROM json_each(?))
		OR kind = ? AND json_extract(CAST(args AS TEXT), '$.name') IN (SELECT value FROM json_each(?)))`
)

// take marks available jobs of a lane as running on this node if this node has a
// handler for them, and returns their IDs. River's own query takes jobs of every
// kind. kinds and periodic are JSON lists.
func take(ctx context.Context, d *db.DB, p *riverdriver.JobGetAvailableParams, kinds, periodic string) ([]int64, error) {
	if d.Postgres() {
		var now *string
		if p.Now != nil {
			text := p.Now.UTC().Format("2006-01-02 15:04:05.000000Z07:00")
			now = &text
		}
		return db.All(ctx, d, db.Value[int64], `
			WITH chosen AS (
				SELECT id FROM river_job
				WHERE state = 'available' AND queue = ? AND scheduled_at <= COALESCE(CAST(? AS TIMESTAMPTZ), now())
					AND `+knownPostgres+`
				ORDER BY priority, scheduled_at, id LIMIT ? FOR UPDATE SKIP LOCKED)
			UPDATE river_job SET state = 'running', attempt = river_job.attempt + 1, attempted_at = COALESCE(CAST(? AS TIMESTAMPTZ), now()),
				attempted_by = array_append(CASE WHEN array_length(river_job.attempted_by, 1) >= ? THEN river_job.attempted_by[2:] ELSE river_job.attempted_by END, CAST(? AS TEXT))
			FROM chosen WHERE river_job.id = chosen.id RETURNING river_job.id`,
			p.Queue, now, kinds, everyKind, periodic, p.MaxToLock, now, p.MaxAttemptedBy, p.ClientID)
	}
	var now *string
	if p.Now != nil {
		text := p.Now.UTC().Round(time.Millisecond).Format("2006-01-02 15:04:05.999")
		now = &text
	}
	return db.All(ctx, d, db.Value[int64], `
		UPDATE river_job SET state = 'running', attempt = attempt + 1, attempted_at = COALESCE(?, datetime('now', 'subsec')),
			attempted_by = json_insert(CASE WHEN json_array_length(attempted_by) >= ? THEN json_remove(attempted_by, '$[0]') ELSE COALESCE(attempted_by, '[]') END, '$[#]', ?)
		WHERE id IN (
			SELECT id FROM river_job
			WHERE priority >= 0 AND queue = ? AND scheduled_at <= COALESCE(?, datetime('now', 'subsec')) AND state = 'available'
				AND `+knownSQLite+`
			ORDER BY priority, scheduled_at, id LIMIT ?)
		RETURNING id`,
		now, p.MaxAttemptedBy, p.ClientID, p.Queue, now, kinds, everyKind, periodic, p.MaxToLock)
}

// laneHasWork reports whether the lane has available jobs. Jobs that are not due
// yet have another state.
func laneHasWork(ctx context.Context, d *db.DB, lane string) (bool, error) {
	return db.Exists(ctx, d, "SELECT 1 FROM river_job WHERE priority >= 0 AND queue = ? AND state = 'available'", lane)
}

// stateCase is the State of a row.
const stateCase = `CASE
			WHEN state = 'running' THEN 'running'
			WHEN state = 'discarded' THEN 'failed'
			WHEN state = 'cancelled' THEN 'given_up'
			WHEN attempt > 0 THEN 'retry'
			ELSE 'waiting' END`

func scanItem(s db.Scanner) (Item, error) {
	var i Item
	var added, due int64
	err := s.Scan(&i.ID, &i.Kind, &i.Lane, &i.State, &i.Try, &i.Tries, &added, &due, &i.Error)
	i.AddedAt, i.DueAt = time.Unix(added, 0).UTC(), time.Unix(due, 0).UTC()
	return i, err
}

// find returns the jobs that have not succeeded, newest first.
func (q *Queue) find(ctx context.Context, state State, limit, offset int) ([]Item, error) {
	seconds, fault := "unixepoch(%s)", "json_extract(errors, '$[#-1].error')"
	if q.DB.Postgres() {
		seconds, fault = "CAST(EXTRACT(EPOCH FROM %s) AS BIGINT)", "errors[array_length(errors, 1)] ->> 'error'"
	}
	return db.All(ctx, q.DB, scanItem, `
		SELECT id, kind, queue, `+stateCase+`, attempt, max_attempts, `+fmt.Sprintf(seconds, "created_at")+`, `+fmt.Sprintf(seconds, "scheduled_at")+`,
			COALESCE(`+fault+`, '')
		FROM river_job WHERE state <> 'completed' AND kind <> ? AND (CAST(? AS TEXT) = '' OR `+stateCase+` = ?)
		ORDER BY id DESC LIMIT ? OFFSET ?`, everyKind, string(state), string(state), limit, offset)
}

// Stats counts the jobs that have not succeeded, sorted by kind and state.
func (q *Queue) Stats(ctx context.Context) ([]Count, error) {
	return db.All(ctx, q.DB, func(s db.Scanner) (Count, error) {
		var c Count
		err := s.Scan(&c.Kind, &c.State, &c.N)
		return c, err
	}, `SELECT kind, `+stateCase+` AS s, count(*)
		FROM river_job WHERE state <> 'completed' AND kind <> ?
		GROUP BY kind, s ORDER BY kind, s`, everyKind)
}

// busy reports whether a job is due or running.
func (q *Queue) busy(ctx context.Context) (bool, error) {
	// Read before the query: the query finds the jobs that these jobs have added.
	finished := q.finished.copy()
	due, args, known := "now()", []any(nil), knownPostgres
	if !q.DB.Postgres() {
		due, known = "datetime('now', 'subsec')", knownSQLite
	}
	if q.Now != nil {
		due, args = "CAST(? AS TIMESTAMPTZ)", []any{q.now().Format("2006-01-02 15:04:05.000Z07:00")}
		if !q.DB.Postgres() {
			due, args = "?", []any{q.now().Format("2006-01-02 15:04:05.000")}
		}
	}
	found, err := db.All(ctx, q.DB, func(s db.Scanner) (id int64, err error) { return id, s.Scan(&id) }, `
		SELECT id FROM river_job WHERE state = 'running'
			OR state IN ('available', 'pending', 'scheduled', 'retryable') AND scheduled_at <= `+due+` AND `+known,
		append(args, q.driver.pilot.kinds, everyKind, q.driver.pilot.periodic)...)
	return slices.ContainsFunc(found, func(id int64) bool { return !finished[id] }), err
}
