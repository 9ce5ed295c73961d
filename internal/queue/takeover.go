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
		if err := deleteLeader(ctx, tx); err != nil {
			return err
		}
		left, err := findRunning(ctx, tx)
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

// free lets another try begin. Work that takes the process down with it must
// come to an end too, so its tries count.
func (q *Queue) free(ctx context.Context, tx *db.Tx, l left) error {
	freed, err := saveFreed(ctx, tx, l)
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
	if err := saveNode(ctx, q.DB, id); err != nil {
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
		found, err := findLeft(ctx, tx, pulses*q.pulse)
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
		return deleteOldNodes(ctx, tx)
	})
	return now, err
}

// leave forgets this node.
func (q *Queue) leave(ctx context.Context, id string) error {
	if !q.DB.Postgres() {
		return nil
	}
	return deleteNode(ctx, q.DB, id)
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
	return findNodes(ctx, q.DB, pulses*q.pulse)
}
