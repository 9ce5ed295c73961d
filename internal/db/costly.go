package db

import (
	"context"
	"strings"
	"time"

	"svc/internal/errs"
	"svc/internal/limit"
)

// ReadLimits limits the lists of requests, so that slow lists leave connections for others.
// They do not apply to background jobs.
type ReadLimits struct {
	// Timeout is the time limit for the queries of one list, and Anonymous the limit
	// for callers who are not signed in. 0 means no limit.
	Timeout, Anonymous time.Duration
	// Wait is how long a search waits for one of the connections for searches.
	Wait time.Duration
}

// DefaultReadLimits are the limits of a database that has not been given others.
var DefaultReadLimits = ReadLimits{Timeout: 10 * time.Second, Anonymous: 5 * time.Second, Wait: 5 * time.Second}

// LimitReads sets the limits. It is called at startup.
func (d *DB) LimitReads(l ReadLimits) {
	d.limits = l
	share := limit.ShareLimits{Total: readers / 2, Reserve: readers / 4, PerUser: 2, PerAddress: 1, Queue: 16, Wait: l.Wait}
	if d.kind == postgresKind {
		share = limit.ShareLimits{Total: postgresConns / 3, Reserve: postgresConns / 6, PerUser: 4, PerAddress: 2, Queue: 16, Wait: l.Wait}
	}
	d.searches = limit.NewShare("searches", share)
}

// Searches are the connections that searches can use at the same time, a part of all
// reading connections.
func (d *DB) Searches() *limit.Share { return d.searches }

// deepOffset is the offset from which a page counts as a search.
const deepOffset = 1000

// searches is part of conditions that search for a text.
const searches = " LIKE ?"

// search reports whether a list may have to read many more rows than it returns,
// because it searches for a text without an index, or has a large offset.
func (q Query[T]) search(p Paging) bool {
	return p.Offset >= deepOffset || q.Where.search() || q.CountWhere.search()
}

func (w *Where) search() bool {
	for _, cond := range w.conds {
		if strings.Contains(cond, searches) {
			return true
		}
	}
	return false
}

// Search runs f, whose queries may have to read many rows, as a search: with one of
// the connections for searches, and within the time limit of its caller. f must not
// search again.
func (d *DB) Search(ctx context.Context, f func(ctx context.Context) error) error {
	return d.limited(ctx, true, f)
}

// limited runs the queries of a list within the limits of its caller. It returns
// errs.Unavailable if there is no connection for a search, or the queries took too
// long.
func (d *DB) limited(ctx context.Context, search bool, f func(ctx context.Context) error) error {
	caller := limit.CallerOf(ctx)
	if caller == (limit.Caller{}) {
		return f(ctx)
	}
	if search {
		release, err := d.searches.Acquire(ctx)
		if err != nil {
			return err
		}
		defer release()
	}
	timeout := d.limits.Timeout
	if caller.Anonymous() {
		timeout = d.limits.Anonymous
	}
	if timeout <= 0 {
		return f(ctx)
	}
	own, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := f(own)
	if err != nil && own.Err() != nil && ctx.Err() == nil {
		return errs.Unavailable("The search took too long. Narrow it with more filters or a smaller scope.").Because(err)
	}
	return err
}
