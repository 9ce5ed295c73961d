package ci

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/db"
)

// lines are what waits for runners, as this node read it a moment ago: many
// who ask at once are served from one look at the database. Who takes a job is
// still decided there.
type lines struct {
	mu   sync.Mutex
	made map[lineKey]*line
}

const (
	// lineTime and lineJobs are how long a line is used, and how often, before
	// it is read again: then the jobs that ended in the meantime count.
	lineTime = time.Second
	lineJobs = 256
	// linesKept is how many are kept at all.
	linesKept = 256
)

// lineKey is what runners have in common that are served from one line.
type lineKey struct {
	kind                    RunnerKind
	owner                   int64 // the group, or a project's runner itself
	untagged, protectedOnly bool
	tags                    string
}

// line is the projects with jobs for some runners.
type line struct {
	mu    sync.Mutex
	at    time.Time
	given []int64 // jobs
	list  []*candidate
}

// candidate is a project that has jobs for a runner.
type candidate struct {
	projectID int64
	set       int64 // of tags
	running   int64
	jobs      []int64 // the oldest first; never empty
}

func (r *Runner) line() lineKey {
	k := lineKey{kind: r.Kind, untagged: r.RunUntagged, protectedOnly: r.ProtectedOnly, tags: strings.Join(r.Tags, "\x00")}
	switch r.Kind {
	case GroupRunner:
		k.owner = *r.GroupID
	case ProjectRunner:
		k.owner = r.ID
	}
	return k
}

// of gives the line of a runner; a new one is empty.
func (l *lines) of(k lineKey) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.made[k]
	if found == nil {
		if len(l.made) >= linesKept {
			clear(l.made)
		}
		found = &line{}
		l.made[k] = found
	}
	return found
}

// forget has all lines read again: something new waits.
func (l *lines) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.made)
}

// next gives the job that a runner is to have next, with its project: of the
// projects that wait one that has the fewest jobs running, and its oldest job.
// Nil when nothing waits for the runner.
func (s *Service) next(ctx context.Context, r *Runner) (*candidate, int64, error) {
	key := r.line()
	if _, limited := s.limits[r.ID]; limited {
		key.owner = r.ID // what it refuses is still for others
	}
	l, now := s.lines.of(key), s.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == 0 || len(l.given) >= lineJobs || now.Sub(l.at) >= lineTime {
		// What was given may not be written yet.
		list, err := s.candidates(ctx, r, l.given)
		if len(list) == 0 && len(l.given) > 0 && err == nil {
			list, err = s.candidates(ctx, r, nil)
		}
		if l.list, l.at, l.given = list, now, nil; len(list) == 0 || err != nil {
			return nil, 0, err
		}
	}
	c := slices.MinFunc(l.list, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.running, b.running), cmp.Compare(a.jobs[0], b.jobs[0]))
	})
	id := c.jobs[0]
	c.jobs = c.jobs[1:]
	c.running++
	l.given = append(l.given, id)
	if len(c.jobs) == 0 {
		var err error
		if c.jobs, err = waitingJobs(ctx, s.DB, c.set, c.projectID, r.ProtectedOnly, id, jobsAtOnce); err != nil {
			return nil, 0, fmt.Errorf("look for jobs: %w", err)
		}
	}
	if len(c.jobs) == 0 {
		l.list = slices.DeleteFunc(l.list, func(other *candidate) bool { return other == c })
	}
	return c, id, nil
}

// candidates are projects with jobs that the runner may take, not more than
// are compared at once, and but for some jobs. It goes once round the projects that wait, by their
// ids, from where the last one was served: so each is looked at in its turn,
// however many there are.
func (s *Service) candidates(ctx context.Context, r *Runner, but []int64) ([]*candidate, error) {
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
				c.jobs, err = waitingJobs(ctx, s.DB, c.set, c.projectID, r.ProtectedOnly, 0, len(but)+jobsAtOnce)
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

// walk is a way round the projects that wait.
type walk struct {
	start, after  int64
	wrapped, done bool
}

// next are the next projects of a walk that have a job for the runner.
func (w *walk) next(ctx context.Context, q db.Q, r *Runner, sets []int64) ([]*candidate, error) {
	var list []*candidate
	for !w.done && len(list) < atOnce {
		more := int64(0) // where all sets have been looked at
		for _, set := range sets {
			found, err := waitingProjects(ctx, q, r, set, w.after, atOnce)
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
	// Those without one have jobs for protected runners only, or others.
	return slices.DeleteFunc(list, func(c *candidate) bool { return len(c.jobs) == 0 }), nil
}

// servedSets are the sets of tags that jobs wait with and the runner serves.
func (s *Service) servedSets(ctx context.Context, r *Runner) ([]int64, error) {
	waiting, err := waitingSets(ctx, s.DB)
	if err != nil {
		return nil, fmt.Errorf("look for jobs: %w", err)
	}
	var served []int64
	for _, id := range waiting {
		tags, err := s.tagsOf(ctx, id)
		if err != nil {
			return nil, err
		}
		if r.serves(tags) {
			served = append(served, id)
		}
	}
	return served, nil
}
