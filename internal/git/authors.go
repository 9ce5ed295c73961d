package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"
)

// AuthorCount is the result of a count of commits by author, which may still be
// running.
type AuthorCount struct {
	Authors []Contributor // with changed lines if counted by CountLines
	Commits int           // number of commits read so far
	Done    bool
	Partial bool // a count of lines reached the time limit and skipped the oldest commits
}

// counting is a count in progress.
type counting struct {
	lines bool
	done  chan struct{}
	err   error

	before *contributions // result for an earlier tip; may be nil

	mu  sync.Mutex
	sum *contributions
}

// CountAuthors counts the commits of each author, newest first. It returns the
// intermediate result after wait, while the count continues in the background.
// Commits counted for an earlier tip are not read again. It returns ErrBadRevision
// and ErrNotFound.
func (r Repo) CountAuthors(ctx context.Context, rev string, wait time.Duration) (*AuthorCount, error) {
	return r.countWithin(ctx, rev, wait, false)
}

// CountLines is CountAuthors with the lines that each author changed. It takes
// several times as long, because every commit is diffed with its parent. Only one
// such count runs at a time. It stops at a time limit; then the count is partial
// and covers only the newest commits.
func (r Repo) CountLines(ctx context.Context, rev string, wait time.Duration) (*AuthorCount, error) {
	return r.countWithin(ctx, rev, wait, true)
}

func (r Repo) countWithin(ctx context.Context, rev string, wait time.Duration, lines bool) (*AuthorCount, error) {
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return nil, err
	}
	name := "authors"
	if lines {
		name = "contributors" // shares the cache with Contributors
	}
	key := cacheKey{r.scope(), kindAnswer, name + " " + string(id)}
	if v, ok := r.engine.cache.get(key); ok {
		return v.(*contributions).count(), nil
	}
	c, err := r.startCount(ctx, key, cacheKey{r.scope(), kindAnswer, name}, id, lines)
	if err != nil || c == nil {
		return &AuthorCount{}, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.done:
		if c.err != nil {
			return nil, c.err
		}
		return c.sum.count(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	part := c.sum.copy()
	if c.before != nil {
		part.join(c.before)
	}
	count := part.count()
	count.Done = false
	return count, nil
}

func (s *contributions) count() *AuthorCount {
	n := 0
	for _, c := range s.by {
		n += c.Commits
	}
	return &AuthorCount{Authors: s.list(), Commits: n, Done: true, Partial: s.partial}
}

// copy returns an independent copy.
func (s *contributions) copy() *contributions {
	other := &contributions{by: make(map[string]Contributor, len(s.by)), order: s.order[:len(s.order):len(s.order)]}
	for mail, c := range s.by {
		c.Weeks = maps.Clone(c.Weeks)
		other.by[mail] = c
	}
	return other
}

// maxCounts is the maximum number of counts of each kind in progress. Counts of
// lines run one at a time; the others wait.
const maxCounts = 50

// startCount starts a count, or returns the one in progress. It returns nil if too
// many are in progress. latest is the cache key of the most recent count of the
// repository.
func (r Repo) startCount(ctx context.Context, key, latest cacheKey, tip OID, lines bool) (*counting, error) {
	var before *contributions
	if v, ok := r.engine.cache.get(latest); ok {
		previous := v.(*contributions)
		isAncestor, err := r.IsAncestor(ctx, string(previous.tip), string(tip))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if isAncestor {
			before = previous
		}
	}
	r.engine.countsMu.Lock()
	defer r.engine.countsMu.Unlock()
	if c := r.engine.counts[key]; c != nil {
		return c, nil
	}
	running := 0
	for _, c := range r.engine.counts {
		if c.lines == lines {
			running++
		}
	}
	if running >= maxCounts {
		return nil, nil
	}
	c := &counting{lines: lines, done: make(chan struct{}), before: before, sum: &contributions{tip: tip, by: map[string]Contributor{}}}
	if r.engine.counts == nil {
		r.engine.counts = map[cacheKey]*counting{}
	}
	r.engine.counts[key] = c
	// The count continues after the first caller has returned, because callers poll
	// until it is done.
	go func() {
		defer close(c.done)
		c.err = r.count(context.WithoutCancel(ctx), c)
		if c.err == nil {
			r.engine.cache.put(key, c.sum, c.sum.size())
			r.engine.cache.put(latest, c.sum, c.sum.size())
		}
		r.engine.countsMu.Lock()
		defer r.engine.countsMu.Unlock()
		delete(r.engine.counts, key)
	}()
	return c, nil
}

// count reads the history of the tip that has not been counted before.
func (r Repo) count(ctx context.Context, c *counting) error {
	do := command{args: logContributions(c.sum.tip, c.before)}
	if c.lines {
		r.engine.linesMu.Lock()
		defer r.engine.linesMu.Unlock()
		do = command{work: upkeep, args: logContributions(c.sum.tip, c.before, lineArgs...), limit: r.engine.limits.Lines}
	}
	mail := ""
	err := r.run(ctx, do, func(out io.Reader) error {
		return eachLine(out, func(line string) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			mail = c.sum.readLine(line, mail)
			return nil
		})
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines && (errors.Is(err, ErrTimeout) || errors.Is(err, context.DeadlineExceeded)) {
		c.sum.partial, err = true, nil
	}
	if err != nil {
		return fmt.Errorf("count authors: %w", err)
	}
	if c.before != nil {
		c.sum.join(c.before)
	}
	return nil
}
