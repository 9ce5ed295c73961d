package instance

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
)

// Node is a server process of the instance, as it last reported itself.
type Node struct {
	Name      string // host name and random characters
	Version   string
	Revision  string
	Schema    int64 // the newest migration of its release
	Stopping  bool
	Requests  float64       // requests per second
	Latency   time.Duration // 95th percentile of the response time
	Memory    int64         // bytes
	Polls     int64         // held requests of runners
	Caches    []Cache
	StartedAt time.Time
	SeenAt    time.Time
	// Self is true for the node that lists them, Lost for a node that has not
	// reported itself for some time.
	Self, Lost bool
}

// Cache is the cache of a node for a storage in an object store.
type Cache struct {
	Storage      string
	Bytes        int64
	Limit        int64 // limit of Bytes; 0 means no limit
	Repositories int64
	Pinned       int64 // repositories that are in use
	// The following are counted since the start of the node.
	Hits         int64 // uses of a repository that was up to date
	Fetches      int64 // packs that were fetched
	FetchedBytes int64
	Evictions    int64 // repositories that were removed to make room
}

const (
	// lostAfter is the time after which a node counts as lost: nodes report
	// themselves every 15 seconds.
	lostAfter = 45 * time.Second
	// forgetAfter is how long lost nodes are listed.
	forgetAfter = 24 * time.Hour
)

// ReportNode records the state of this node.
func (s *Service) ReportNode(ctx context.Context, n Node) error {
	n.SeenAt = s.Now()
	s.self.Store(&n)
	if !s.DB.Postgres() {
		return nil
	}
	if err := saveNode(ctx, s.DB, n); err != nil {
		return fmt.Errorf("report this node: %w", err)
	}
	if err := deleteNodesBefore(ctx, s.DB, n.SeenAt.Add(-forgetAfter)); err != nil {
		return fmt.Errorf("forget old nodes: %w", err)
	}
	return nil
}

// ForgetNode removes this node from the list when it stops.
func (s *Service) ForgetNode(ctx context.Context) error {
	n := s.self.Load()
	if n == nil || !s.DB.Postgres() {
		return nil
	}
	if err := deleteNode(ctx, s.DB, n.Name); err != nil {
		return fmt.Errorf("forget this node: %w", err)
	}
	return nil
}

// Nodes lists the nodes by name. Administrators only.
func (s *Service) Nodes(ctx context.Context, by actor.Actor) ([]Node, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	self := s.self.Load()
	var list []Node
	if s.DB.Postgres() {
		var err error
		if list, err = findNodes(ctx, s.DB); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
	} else if self != nil {
		list = []Node{*self}
	}
	for i := range list {
		list[i].Self = self != nil && list[i].Name == self.Name
		list[i].Lost = s.Now().Sub(list[i].SeenAt) > lostAfter
	}
	return list, nil
}
