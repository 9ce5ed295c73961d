package app

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/config"
	"svc/internal/instance"
	"svc/internal/queue"
	"svc/internal/web"
)

const (
	// The samples of one hour are kept.
	sampleEvery = 15 * time.Second
	samples     = 240
)

// sampler takes samples of this node and keeps the latest in memory, for the charts
// in the admin area.
type sampler struct {
	server *Server

	// answers counts requests by the smallest of requestBuckets that is at least
	// their duration; the last counter is for longer requests.
	answers []atomic.Int64

	mu   sync.Mutex
	ring []web.Sample
	at   time.Time // of the last sample
	node instance.Node
	seen []int64 // values of answers at the last sample
}

func newSampler(s *Server) *sampler {
	n := len(requestBuckets()) + 1
	return &sampler{server: s, answers: make([]atomic.Int64, n), seen: make([]int64, n)}
}

// answered counts a request. Long polls are left out, because their duration says
// nothing about the server.
func (s *sampler) answered(route, media string, took time.Duration) {
	if route == "/jobs/request" || strings.HasPrefix(media, "text/event-stream") {
		return
	}
	i := 0
	for _, bound := range requestBuckets() {
		if took.Seconds() <= bound {
			break
		}
		i++
	}
	s.answers[i].Add(1)
}

// start takes samples until stop is called. ended is closed when it has stopped.
func (s *sampler) start() (stop context.CancelFunc, ended <-chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			if err := s.sample(ctx); err != nil && ctx.Err() == nil {
				s.server.Log.Warn("cannot sample this node", "error", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return stop, done
}

// list returns the samples, oldest first.
func (s *sampler) list() []web.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]web.Sample(nil), s.ring...)
}

func (s *sampler) sample(ctx context.Context) error {
	size, err := s.server.DB.Size(ctx)
	if err != nil {
		return fmt.Errorf("size of the database: %w", err)
	}
	counts, err := s.server.Queue.Stats(ctx)
	if err != nil {
		return fmt.Errorf("state of the queue: %w", err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	look := web.Sample{At: s.server.now(), Database: float64(size), Memory: float64(memory.Sys - memory.HeapReleased)}
	for _, c := range counts {
		if c.State == queue.Waiting || c.State == queue.Running || c.State == queue.Retry {
			look.Queue += float64(c.N)
		}
	}
	return s.report(ctx, s.keep(look))
}

// keep completes a sample with the requests since the last one, and stores it.
func (s *sampler) keep(look web.Sample) web.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := make([]int64, len(s.answers))
	var all int64
	for i := range s.answers {
		n := s.answers[i].Load()
		since[i], s.seen[i] = n-s.seen[i], n
		all += since[i]
	}
	// The first sample has no requests, because there is no earlier one to compare
	// with.
	if passed := look.At.Sub(s.at).Seconds(); !s.at.IsZero() && passed > 0 {
		look.Requests, look.Latency = float64(all)/passed, quantile(0.95, since, all)
	}
	s.at = look.At
	s.ring = append(s.ring, look)
	if len(s.ring) > samples {
		s.ring = s.ring[1:]
	}
	return look
}

// report stores the sample for the other nodes.
func (s *sampler) report(ctx context.Context, look web.Sample) error {
	if s.node.Name == "" {
		_, schema, err := s.server.DB.Version(ctx)
		if err != nil {
			return fmt.Errorf("version of the schema: %w", err)
		}
		s.node = instance.Node{Name: s.server.Queue.Node(), Version: config.Version(), Revision: config.Revision(), Schema: schema, StartedAt: look.At}
	}
	n := s.node
	n.Stopping = s.server.stopping.Load()
	n.Requests, n.Latency = look.Requests, time.Duration(look.Latency*float64(time.Second))
	n.Memory, n.Polls = int64(look.Memory), int64(s.server.CI.JobQueue.Held())
	for _, b := range s.server.buckets.storages {
		now := b.Stats()
		n.Caches = append(n.Caches, instance.Cache{
			Storage: b.Name, Bytes: now.Bytes, Limit: b.CacheSize, Repositories: now.Repositories,
			Pinned: now.Pinned,
			Hits:   now.Hits, Fetches: now.Fetches, FetchedBytes: now.FetchedBytes, Evictions: now.Evictions,
		})
	}
	return s.server.Instance.ReportNode(ctx, n)
}

// quantile returns the smallest of requestBuckets, in seconds, that is at least the
// duration of that share of the requests; 0 if there were none. Requests that took
// longer than all bounds count as the largest.
func quantile(share float64, answers []int64, all int64) float64 {
	if all <= 0 {
		return 0
	}
	bounds := requestBuckets()
	var sum int64
	for i, bound := range bounds {
		sum += answers[i]
		if float64(sum) >= share*float64(all) {
			return bound
		}
	}
	return bounds[len(bounds)-1]
}
