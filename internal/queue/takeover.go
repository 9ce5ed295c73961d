package queue

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/db"
)

// On PostgreSQL each node sends a heartbeat every pulse. The jobs of a node that
// has missed several are taken over by the others. River creates a table for this
// but does not use it.
const (
	pulse  = 3 * time.Second
	pulses = 4
	// storing is the number of pulses for which a node may still store the result of a job
	// that has ended, for example while the database is unavailable.
	storing = 20
	// beatTime is the time limit of a heartbeat. The next one may get a connection that works.
	beatTime = 10 * time.Second
)

// nodeID returns a unique ID of this process, which starts with the host name.
func nodeID() string {
	host, _ := os.Hostname()
	return host[:min(len(host), 60)] + "-" + strings.ToLower(rand.Text())
}

// takeOver prepares the database for this node. On SQLite there is no other node,
// so jobs that are marked as running were left by a dead process.
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

// free lets a job be tried again. The interrupted try counts, so that a job that
// crashes the process is not retried forever.
func (q *Queue) free(ctx context.Context, tx *db.Tx, l left) error {
	freed, err := saveFreed(ctx, tx, l)
	if err != nil || !freed {
		return err
	}
	tx.AfterCommit(func() {
		q.Log.WarnContext(ctx, "background job was interrupted", "kind", l.kind, "work", l.id, "try", l.try)
	})
	return nil
}

// tend sends the heartbeats of this node and takes over the jobs of dead nodes.
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
		within, cancel := context.WithTimeout(ctx, beatTime)
		err := q.beat(within, id)
		cancel()
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

// sweep frees the jobs of dead nodes, and those of this node that it does not run,
// and returns the new suspects. It frees only jobs that were already suspects one
// pulse ago: after a crash of the database, the table of nodes is empty until all
// nodes have sent a heartbeat.
func (q *Queue) sweep(ctx context.Context, suspects map[left]bool) (map[left]bool, error) {
	current := map[left]bool{}
	err := q.DB.Tx(ctx, func(tx *db.Tx) error {
		clear(current)
		found, err := findLeft(ctx, tx, pulses*q.pulse)
		if err != nil {
			return err
		}
		lost, err := q.findLost(ctx, tx)
		if err != nil {
			return err
		}
		for _, l := range append(found, lost...) {
			if !suspects[l] {
				current[l] = true
				continue
			}
			if err := q.free(ctx, tx, l); err != nil {
				return err
			}
		}
		return deleteOldNodes(ctx, tx)
	})
	return current, err
}

// findLost returns the jobs that are marked as running on this node although it does
// not run them: when the connection to the database breaks, a node may not learn
// which jobs it has taken, or cannot store that one has ended.
func (q *Queue) findLost(ctx context.Context, tx *db.Tx) ([]left, error) {
	node := q.Node()
	if node == "" {
		return nil, nil
	}
	taken, err := findTaken(ctx, tx, node, pulses*q.pulse)
	if err != nil {
		return nil, err
	}
	known := q.running.known(storing * q.pulse)
	return slices.DeleteFunc(taken, func(l left) bool { return known[l.id] }), nil
}

// running are the jobs that this node runs.
type running struct {
	mu   sync.Mutex
	jobs map[int64]run
}

// run describes the runs of a job on this node. There may be several if the job was freed
// by mistake.
type run struct {
	now   int       // how many there are
	ended time.Time // when the last one ended
}

// begin records that a job runs until end is called.
func (r *running) begin(id int64) (end func()) {
	r.change(id, func(was run) run { return run{now: was.now + 1} })
	return func() { r.change(id, func(was run) run { return run{was.now - 1, time.Now()} }) }
}

func (r *running) change(id int64, f func(run) run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs == nil {
		r.jobs = map[int64]run{}
	}
	r.jobs[id] = f(r.jobs[id])
}

// known returns the jobs that run or ended within a time, and forgets the others.
func (r *running) known(within time.Duration) map[int64]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := make(map[int64]bool, len(r.jobs))
	for id, of := range r.jobs {
		if of.now > 0 || time.Since(of.ended) < within {
			known[id] = true
		} else {
			delete(r.jobs, id)
		}
	}
	return known
}

// leave removes this node from the list of nodes.
func (q *Queue) leave(ctx context.Context, id string) error {
	if !q.DB.Postgres() {
		return nil
	}
	return deleteNode(ctx, q.DB, id)
}

// Node returns the ID of this node; empty before Start.
func (q *Queue) Node() string {
	if client := q.client.Load(); client != nil {
		return client.ID()
	}
	return ""
}

// Nodes returns the IDs of all live nodes.
func (q *Queue) Nodes(ctx context.Context) ([]string, error) {
	if !q.DB.Postgres() {
		return []string{q.Node()}, nil
	}
	return findNodes(ctx, q.DB, pulses*q.pulse)
}
