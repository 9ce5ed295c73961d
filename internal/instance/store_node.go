package instance

import (
	"context"
	"encoding/json"
	"time"

	"svc/internal/db"
)

func saveNode(ctx context.Context, q db.Q, n Node) error {
	caches, err := json.Marshal(n.Caches)
	if err != nil {
		return err
	}
	_, err = q.ExecContext(ctx, `
		INSERT INTO nodes (name, version, revision, schema_version, stopping, requests, latency, memory, polls, caches, started_at, seen_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET version = excluded.version, revision = excluded.revision, schema_version = excluded.schema_version,
			stopping = excluded.stopping, requests = excluded.requests, latency = excluded.latency, memory = excluded.memory,
			polls = excluded.polls, caches = excluded.caches, started_at = excluded.started_at, seen_at = excluded.seen_at`,
		n.Name, n.Version, n.Revision, n.Schema, n.Stopping, n.Requests, n.Latency.Seconds(), n.Memory, n.Polls, string(caches), n.StartedAt, n.SeenAt)
	return err
}

// maxNodes limits the list of nodes.
const maxNodes = 1000

func findNodes(ctx context.Context, q db.Q) ([]Node, error) {
	return db.All(ctx, q, func(s db.Scanner) (Node, error) {
		var n Node
		var latency float64
		var caches string
		err := s.Scan(&n.Name, &n.Version, &n.Revision, &n.Schema, &n.Stopping, &n.Requests, &latency, &n.Memory, &n.Polls, &caches, db.Time(&n.StartedAt), db.Time(&n.SeenAt))
		if err != nil {
			return n, err
		}
		n.Latency = time.Duration(latency * float64(time.Second))
		return n, json.Unmarshal([]byte(caches), &n.Caches)
	}, `SELECT name, version, revision, schema_version, stopping, requests, latency, memory, polls, caches, started_at, seen_at FROM nodes ORDER BY name LIMIT ?`, maxNodes)
}

func deleteNode(ctx context.Context, q db.Q, name string) error {
	_, err := q.ExecContext(ctx, `DELETE FROM nodes WHERE name = ?`, name)
	return err
}

func deleteNodesBefore(ctx context.Context, q db.Q, at time.Time) error {
	_, err := q.ExecContext(ctx, `DELETE FROM nodes WHERE seen_at < ?`, at)
	return err
}
