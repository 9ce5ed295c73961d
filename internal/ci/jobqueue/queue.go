package jobqueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/ci/runners"
	"svc/internal/db"
	"svc/internal/notice"
)

// Deps are the dependencies of the queue.
type Deps struct {
	DB      *db.DB
	Notices *notice.Bus
	// Serves reports whether the project lets a runner take its jobs.
	Serves func(ctx context.Context, r *runners.Runner, projectID int64) (bool, error)
	Now    func() time.Time
}

// Queue is the job queue as this node sees it. The table job_queue has the
// pending jobs of all nodes and decides which runner gets a job.
type Queue struct {
	Deps
	polls   *longPolls
	tagSets tagSets
	lists   lists
	taken   taken
	turn    atomic.Int64 // the project that was served last

	// separate are the runners that may refuse jobs. They have their own lists, because
	// other runners can still take the jobs that they refuse.
	separate map[int64]bool
}

// New returns the queue and subscribes it to notices about pending jobs and
// runners.
func New(d Deps) *Queue {
	q := &Queue{Deps: d, polls: newLongPolls(), separate: map[int64]bool{}}
	q.tagSets.known = map[int64][]string{}
	q.lists.byKey = map[listKey]*list{}
	q.taken.jobs = map[int64]struct{}{}
	q.listen()
	return q
}

// Separate gives a runner its own list. It is called at start-up.
func (q *Queue) Separate(runnerID int64) { q.separate[runnerID] = true }

// lists caches the pending jobs of runners on this node, so that concurrent
// requests share one query.
type lists struct {
	mu    sync.Mutex
	byKey map[listKey]*list
}

const (
	// listAge and listUses limit how long, and for how many jobs, a list is used before it
	// is read again with current numbers of running jobs.
	listAge  = time.Second
	listUses = 256
	// maxLists limits the number of cached lists.
	maxLists = 256
	// atOnce is the number of projects that are compared, and jobsAtOnce the number of
	// jobs of one project that are read at once.
	atOnce     = 32
	jobsAtOnce = 16
)

// listKey identifies the runners that share a list.
type listKey struct {
	runnerType              runners.Type
	owner                   int64 // the group, or the project runner itself
	untagged, protectedOnly bool
	tags                    string
}

// list are the projects with pending jobs for the runners of a listKey.
type list struct {
	mu         sync.Mutex
	at         time.Time
	given      []int64 // jobs
	candidates []*candidate
}

// candidate is a project with pending jobs for a runner.
type candidate struct {
	projectID int64
	set       int64 // of tags
	running   int64
	jobs      []int64 // the oldest first; never empty
}

func keyOf(r *runners.Runner) listKey {
	k := listKey{runnerType: r.Type, untagged: r.RunUntagged, protectedOnly: r.ProtectedOnly, tags: strings.Join(r.Tags, "\x00")}
	switch r.Type {
	case runners.GroupType:
		k.owner = *r.GroupID
	case runners.ProjectType:
		k.owner = r.ID
	}
	return k
}

// get returns the list of a key; a new list is empty.
func (l *lists) get(k listKey) *list {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.byKey[k]
	if found == nil {
		if len(l.byKey) >= maxLists {
			clear(l.byKey)
		}
		found = &list{}
		l.byKey[k] = found
	}
	return found
}

// clear drops all lists, because there is a new pending job.
func (l *lists) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.byKey)
}

// Next returns the next job for a runner, with its project: the oldest job of the
// project with the fewest running jobs. Both are 0 if there is no job.
func (q *Queue) Next(ctx context.Context, r *runners.Runner) (projectID, jobID int64, err error) {
	key := keyOf(r)
	if q.separate[r.ID] {
		key.owner = r.ID
	}
	l, now := q.lists.get(key), q.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.candidates) == 0 || len(l.given) >= listUses || now.Sub(l.at) >= listAge {
		// Recently assigned jobs may not be recorded yet.
		found, err := q.candidates(ctx, r, l.given)
		if len(found) == 0 && len(l.given) > 0 && err == nil {
			found, err = q.candidates(ctx, r, nil)
		}
		if l.candidates, l.at, l.given = found, now, nil; len(found) == 0 || err != nil {
			return 0, 0, err
		}
	}
	c := slices.MinFunc(l.candidates, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.running, b.running), cmp.Compare(a.jobs[0], b.jobs[0]))
	})
	id := c.jobs[0]
	c.jobs = c.jobs[1:]
	c.running++
	l.given = append(l.given, id)
	if len(c.jobs) == 0 {
		if c.jobs, err = queuedJobs(ctx, q.DB, c.set, c.projectID, r.ProtectedOnly, id, jobsAtOnce); err != nil {
			return 0, 0, fmt.Errorf("look for jobs: %w", err)
		}
	}
	if len(c.jobs) == 0 {
		l.candidates = slices.DeleteFunc(l.candidates, func(other *candidate) bool { return other == c })
	}
	return c.projectID, id, nil
}

// Served records that a project was served: the next list starts after it.
func (q *Queue) Served(projectID int64) { q.turn.Store(projectID) }

// candidates returns projects with jobs that the runner may take, except the jobs in but,
// up to atOnce. It cycles through the projects with pending jobs by ID, starting after the
// last one served, so that every project gets its turn.
func (q *Queue) candidates(ctx context.Context, r *runners.Runner, but []int64) ([]*candidate, error) {
	sets, err := q.servedSets(ctx, r)
	if err != nil || len(sets) == 0 {
		return nil, err
	}
	start := q.turn.Load()
	for at := (walk{start: start, after: start}); !at.done; {
		list, err := at.next(ctx, q.DB, r, sets)
		if err != nil {
			return nil, fmt.Errorf("look for jobs: %w", err)
		}
		served := list[:0]
		for _, c := range list {
			ok, err := q.Serves(ctx, r, c.projectID)
			if !ok && err == nil {
				continue
			}
			if err == nil && slices.Contains(but, c.jobs[0]) {
				c.jobs, err = queuedJobs(ctx, q.DB, c.set, c.projectID, r.ProtectedOnly, 0, len(but)+jobsAtOnce)
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

// walk is one cycle through the projects with pending jobs.
type walk struct {
	start, after  int64
	wrapped, done bool
}

// next returns the next projects of a walk that have a job for the runner.
func (w *walk) next(ctx context.Context, q db.Q, r *runners.Runner, sets []int64) ([]*candidate, error) {
	var list []*candidate
	for !w.done && len(list) < atOnce {
		more := int64(0) // the ID up to which all sets were read
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
	// Projects without a job have only jobs for other runners or protected runners.
	return slices.DeleteFunc(list, func(c *candidate) bool { return len(c.jobs) == 0 }), nil
}

// servedSets returns the tag sets of pending jobs that the runner serves.
func (q *Queue) servedSets(ctx context.Context, r *runners.Runner) ([]int64, error) {
	queued, err := queuedTagSets(ctx, q.DB)
	if err != nil {
		return nil, fmt.Errorf("look for jobs: %w", err)
	}
	var served []int64
	for _, id := range queued {
		tags, err := q.tagsOf(ctx, id)
		if err != nil {
			return nil, err
		}
		if r.Serves(tags) {
			served = append(served, id)
		}
	}
	return served, nil
}

// taken is the set of jobs that requests of this node are claiming, so that
// concurrent requests do not compete for the same one.
type taken struct {
	mu   sync.Mutex
	jobs map[int64]struct{}
}

// Take reserves a job for a request of this node; false if another request has
// it.
func (q *Queue) Take(jobID int64) bool {
	q.taken.mu.Lock()
	defer q.taken.mu.Unlock()
	if _, there := q.taken.jobs[jobID]; there {
		return false
	}
	q.taken.jobs[jobID] = struct{}{}
	return true
}

// Drop ends the reservation of a job.
func (q *Queue) Drop(jobID int64) {
	q.taken.mu.Lock()
	defer q.taken.mu.Unlock()
	delete(q.taken.jobs, jobID)
}
