package ci

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/ci/runners"
	"svc/internal/db"
)

// jobQueues caches the pending jobs of runners on this node, so that concurrent
// job requests share one query. The database still decides which runner gets a
// job.
type jobQueues struct {
	mu     sync.Mutex
	queues map[queueKey]*jobQueue
}

const (
	// queueAge and queueUses limit how long a queue is used, and for how many
	// jobs, before it is read again. Then the number of running jobs is current.
	queueAge  = time.Second
	queueUses = 256
	// maxQueues limits the number of cached queues.
	maxQueues = 256
)

// queueKey identifies the runners that share a queue.
type queueKey struct {
	kind                    runners.Type
	owner                   int64 // the group, or a project's runner itself
	untagged, protectedOnly bool
	tags                    string
}

// jobQueue is the projects with pending jobs for the runners of a queueKey.
type jobQueue struct {
	mu    sync.Mutex
	at    time.Time
	given []int64 // jobs
	list  []*candidate
}

// candidate is a project with pending jobs for a runner.
type candidate struct {
	projectID int64
	set       int64 // of tags
	running   int64
	jobs      []int64 // the oldest first; never empty
}

func keyOf(r *runners.Runner) queueKey {
	k := queueKey{kind: r.Type, untagged: r.RunUntagged, protectedOnly: r.ProtectedOnly, tags: strings.Join(r.Tags, "\x00")}
	switch r.Type {
	case runners.GroupType:
		k.owner = *r.GroupID
	case runners.ProjectType:
		k.owner = r.ID
	}
	return k
}

// get returns the queue for a key; a new queue is empty.
func (q *jobQueues) get(k queueKey) *jobQueue {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := q.queues[k]
	if found == nil {
		if len(q.queues) >= maxQueues {
			clear(q.queues)
		}
		found = &jobQueue{}
		q.queues[k] = found
	}
	return found
}

// clear drops all queues, because there is a new pending job.
func (q *jobQueues) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.queues)
}

// next returns the next job for a runner, with its project: the oldest job of the
// project with the fewest running jobs. Nil if there is no job for the runner.
func (s *Service) next(ctx context.Context, r *runners.Runner) (*candidate, int64, error) {
	key := keyOf(r)
	if _, limited := s.limits[r.ID]; limited {
		key.owner = r.ID // what it refuses is still for others
	}
	q, now := s.queues.get(key), s.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 || len(q.given) >= queueUses || now.Sub(q.at) >= queueAge {
		// Jobs that were given out may not be recorded yet.
		list, err := s.candidates(ctx, r, q.given)
		if len(list) == 0 && len(q.given) > 0 && err == nil {
			list, err = s.candidates(ctx, r, nil)
		}
		if q.list, q.at, q.given = list, now, nil; len(list) == 0 || err != nil {
			return nil, 0, err
		}
	}
	c := slices.MinFunc(q.list, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.running, b.running), cmp.Compare(a.jobs[0], b.jobs[0]))
	})
	id := c.jobs[0]
	c.jobs = c.jobs[1:]
	c.running++
	q.given = append(q.given, id)
	if len(c.jobs) == 0 {
		var err error
		if c.jobs, err = queuedJobs(ctx, s.DB, c.set, c.projectID, r.ProtectedOnly, id, jobsAtOnce); err != nil {
			return nil, 0, fmt.Errorf("look for jobs: %w", err)
		}
	}
	if len(c.jobs) == 0 {
		q.list = slices.DeleteFunc(q.list, func(other *candidate) bool { return other == c })
	}
	return c, id, nil
}

// candidates returns projects with jobs that the runner may take, without the
// jobs in but, and limited to what is compared at once. It goes round the
// projects with pending jobs by ID, starting after the last one served, so that
// every project gets its turn.
func (s *Service) candidates(ctx context.Context, r *runners.Runner, but []int64) ([]*candidate, error) {
	sets, err := s.servedSets(ctx, r)
	if err != nil || len(sets) == 0 {
		return nil, err
	}
	start := s.turn.Load()
	for at := (walk{start: start, after: start}); !at.done; {
		list, err := at.next(ctx, s.DB, r, sets)
		if err != nil {
			return nil, fmt.Errorf("look for jobs: %w", err)
		}
		served := list[:0]
		for _, c := range list {
			p, err := s.servable(ctx, r, c.projectID)
			if p == nil && err == nil {
				continue
			}
			if err == nil && slices.Contains(but, c.jobs[0]) {
				c.jobs, err = queuedJobs(ctx, s.DB, c.set, c.projectID, r.ProtectedOnly, 0, len(but)+jobsAtOnce)
				c.jobs = slices.DeleteFunc(c.jobs, func(id int64) bool { return slices.Contains(but, id) })
			}
			if err != nil {
				return nil, err
			}
			if len(c.jobs) > 0 {
				served = append(served, c)
			}
		}
		if len(served) > 0 {
			return served, nil
		}
	}
	return nil, nil
}

// walk is one round through the projects with pending jobs.
type walk struct {
	start, after  int64
	wrapped, done bool
}

// next returns the next projects of a walk that have a job for the runner.
func (w *walk) next(ctx context.Context, q db.Q, r *runners.Runner, sets []int64) ([]*candidate, error) {
	var list []*candidate
	for !w.done && len(list) < atOnce {
		more := int64(0) // where all sets have been looked at
		for _, set := range sets {
			found, err := queuedProjects(ctx, q, r, set, w.after, atOnce)
			if err != nil {
				return nil, err
			}
			if len(found) == atOnce {
				if last := found[len(found)-1].projectID; more == 0 || last < more {
					more = last
				}
			}
			list = append(list, found...)
		}
		switch {
		case more > 0 && !(w.wrapped && more >= w.start):
			w.after = more
		case !w.wrapped && w.start > 0:
			w.after, w.wrapped = 0, true
		default:
			w.done = true
		}
	}
	// Projects without a job have jobs for protected or other runners only.
	return slices.DeleteFunc(list, func(c *candidate) bool { return len(c.jobs) == 0 }), nil
}

// servedSets returns the tag sets of pending jobs that the runner serves.
func (s *Service) servedSets(ctx context.Context, r *runners.Runner) ([]int64, error) {
	waiting, err := queuedTagSets(ctx, s.DB)
	if err != nil {
		return nil, fmt.Errorf("look for jobs: %w", err)
	}
	var served []int64
	for _, id := range waiting {
		tags, err := s.tagsOf(ctx, id)
		if err != nil {
			return nil, err
		}
		if r.Serves(tags) {
			served = append(served, id)
		}
	}
	return served, nil
}
