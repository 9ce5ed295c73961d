package queue

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	"svc/internal/db"
)

// On PostgreSQL each node writes down that it lives, every pulse; the work of
// one that has not done so for some pulses is taken over by the others. River
// has a table for that and does not use it.
const (
	pulse  = 3 * time.Second
	pulses = 4
)

// nodeID tells this process from all others on the database, with the name of
// the machine for those who read it.
func nodeID() string {
	host, _ := os.Hostname()
	return host[:min(len(host), 60)] + "-" + strings.ToLower(rand.Text())
}

// takeOver readies the database for this node. On SQLite there is no other,
// so work that is marked as running was left by a process that is gone.
func (q *Queue) takeOver(ctx context.Context, id string) error {
	if q.DB.Postgres() {
		return q.beat(ctx, id)
	}
	return q.DB.Tx(ctx, func(tx *db.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM river_leader"); err != nil {
			return err
		}
		left, err := db.All(ctx, tx, scanLeft, "SELECT id, kind, attempt, max_attempts FROM river_job WHERE state = 'running'")
		if err != nil {
			return err
		}
		for _, l := range left {
			if err := q.free(ctx, tx, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// left is work that is marked as running, and which try of it.
type left struct {
	id       int64
	kind     string
	try, max int
}

func scanLeft(s db.Scanner) (left, error) {
	var l left
	err := s.Scan(&l.id, &l.kind, &l.try, &l.max)
	return l, err
}

// free lets another try begin. Work that takes the process down with it must
// come to an end too, so its tries count.
func (q *Queue) free(ctx context.Context, tx *db.Tx, l left) error {
	set := "state = 'available'"
	if l.try >= l.max {
		set = "state = 'discarded', finalized_at = CURRENT_TIMESTAMP"
	}
	// Not if it has come to its end meanwhile, or another node freed it.
	freed, err := db.ExecAny(ctx, tx, "UPDATE river_job SET "+set+" WHERE id = ? AND state = 'running' AND attempt = ?", l.id, l.try)
	if err != nil || !freed {
		return err
	}
	tx.AfterCommit(func() {
		q.Log.WarnContext(ctx, "background job was interrupted by a process that ended", "kind", l.kind, "work", l.id, "try", l.try)
	})
	return nil
}

// tend keeps this node alive in the eyes of the others, and looks after theirs.
func (q *Queue) tend(ctx context.Context, id string) {
	ticker := time.NewTicker(q.pulse)
	defer ticker.Stop()
	var suspects map[left]bool
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := q.beat(ctx, id)
		if err == nil {
			suspects, err = q.sweep(ctx, suspects)
		}
		if err != nil && ctx.Err() == nil {
			q.Log.WarnContext(ctx, "the queue cannot check the other nodes", "error", err)
		}
	}
}

func (q *Queue) beat(ctx context.Context, id string) error {
	_, err := q.DB.ExecContext(ctx, "INSERT INTO river_client (id, updated_at) VALUES (?, now()) ON CONFLICT (id) DO UPDATE SET updated_at = now()", id)
	if err != nil {
		return fmt.Errorf("heartbeat of this node: %w", err)
	}
	return nil
}

// sweep frees the work of nodes that are gone and returns what it suspects.
// It frees only what was suspected one pulse ago as well: after a crash of the
// database the table of nodes is empty until all have told again that they live.
func (q *Queue) sweep(ctx context.Context, suspects map[left]bool) (map[left]bool, error) {
	now := map[left]bool{}
	err := q.DB.Tx(ctx, func(tx *db.Tx) error {
		clear(now)
		found, err := db.All(ctx, tx, scanLeft, `
			SELECT id, kind, attempt, max_attempts FROM river_job
			WHERE state = 'running' AND NOT EXISTS (
				SELECT 1 FROM river_client c
				WHERE c.id = attempted_by[array_upper(attempted_by, 1)] AND c.updated_at > now() - make_interval(secs => ?))`,
			(pulses * q.pulse).Seconds())
		if err != nil {
			return err
		}
		for _, l := range found {
			if !suspects[l] {
				now[l] = true
				continue
			}
			if err := q.free(ctx, tx, l); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM river_client WHERE updated_at < now() - INTERVAL '1 day'")
		return err
	})
	return now, err
}

// leave forgets this node.
func (q *Queue) leave(ctx context.Context, id string) error {
	if !q.DB.Postgres() {
		return nil
	}
	_, err := q.DB.ExecContext(ctx, "DELETE FROM river_client WHERE id = ?", id)
	return err
}

// Node is the name of this node among those that do work; empty before Start.
func (q *Queue) Node() string {
	if client := q.client.Load(); client != nil {
		return client.ID()
	}
	return ""
}

// Nodes are the names of all nodes that live, as far as the others know.
func (q *Queue) Nodes(ctx context.Context) ([]string, error) {
	if !q.DB.Postgres() {
		return []string{q.Node()}, nil
	}
	return db.All(ctx, q.DB, db.Value[string], `SELECT id FROM river_client WHERE updated_at > now() - make_interval(secs => ?) ORDER BY id`,
		(pulses * q.pulse).Seconds())
}
