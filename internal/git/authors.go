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

// AuthorCount is how far a count of the commits of each author has come.
type AuthorCount struct {
	Authors []Contributor // with the lines that they changed, from CountLines
	Commits int           // that have been read
	Done    bool
	Partial bool // the time limit ended a count of lines before the oldest commits
}

// counting is a count that is under way.
type counting struct {
	lines bool
	done  chan struct{}
	err   error

	before *contributions // what was counted for an earlier tip; may be nil

	mu  sync.Mutex
	sum *contributions
}

// CountAuthors is Contributors without lines, for those who do not wait for the
// end: it answers after wait with what has been counted by then, and goes on. The
// newest commits are counted first. Commits that were counted for an earlier tip
// are not read again. It returns ErrBadRevision and ErrNotFound.
func (r Repo) CountAuthors(ctx context.Context, rev string, wait time.Duration) (*AuthorCount, error) {
	return r.countWithin(ctx, rev, wait, false)
}

// CountLines is CountAuthors with the lines that each author changed, which takes
// several times as long because every commit is compared with its parent. One such
// count runs at a time. It ends at a time limit, with the newest commits; then the
// count is partial.
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
		name = "contributors" // what Contributors has counted is used as well
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

// copy returns one that does not change with the original.
func (s *contributions) copy() *contributions {
	other := &contributions{by: make(map[string]Contributor, len(s.by)), order: s.order[:len(s.order):len(s.order)]}
	for mail, c := range s.by {
		c.Weeks = maps.Clone(c.Weeks)
		other.by[mail] = c
	}
	return other
}

// maxCounts is how many counts can be under way; of lines, most of them waiting
// for their turn. Neither kind takes the places of the other one.
const maxCounts = 50

// startCount starts a count, or returns the one that is under way; nil if too many
// are. The key latest is that of the last count of the repository.
func (r Repo) startCount(ctx context.Context, key, latest cacheKey, tip OID, lines bool) (*counting, error) {
	var before *contributions
	if v, ok := r.engine.cache.get(latest); ok {
		known := v.(*contributions)
		is, err := r.IsAncestor(ctx, string(known.tip), string(tip))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if is {
			before = known
		}
	}
	r.engine.countsMu.Lock()
	defer r.engine.countsMu.Unlock()
	if c := r.engine.counts[key]; c != nil {
		return c, nil
	}
	others := 0
	for _, c := range r.engine.counts {
		if c.lines == lines {
			others++
		}
	}
	if others >= maxCounts {
		return nil, nil
	}
	c := &counting{lines: lines, done: make(chan struct{}), before: before, sum: &contributions{tip: tip, by: map[string]Contributor{}}}
	if r.engine.counts == nil {
		r.engine.counts = map[cacheKey]*counting{}
	}
	r.engine.counts[key] = c
	// It goes on when the one who asked first has left: others ask again and
	// again until it is done.
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

// count reads the history of a tip up to what was counted before.
func (r Repo) count(ctx context.Context, c *counting) error {
	do := command{args: logContributions(c.sum.tip, c.before)}
	if c.lines {
		r.engine.lining.Lock()
		defer r.engine.lining.Unlock()
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
