package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

// readers is the maximum number of concurrent reading connections. Each has a page
// cache of up to 2 MiB.
const readers = 8

// reader reads a SQLite file with several connections, which are opened on demand.
type reader struct {
	path string
	busy chan struct{} // one element for each connection in use

	mu     sync.Mutex
	idle   []*conn // most recently used last, because its cache is warm
	closed bool
	waits  int64
	waited time.Duration
}

func newReader(path string) *reader { return &reader{path: path, busy: make(chan struct{}, readers)} }

func (r *reader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, c := range r.idle {
		c.close()
	}
	r.idle = nil
}

// stats returns statistics like those of database/sql.
func (r *reader) stats() sql.DBStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := len(r.busy)
	return sql.DBStats{
		MaxOpenConnections: readers, OpenConnections: used + len(r.idle), InUse: used, Idle: len(r.idle),
		WaitCount: r.waits, WaitDuration: r.waited,
	}
}

// query runs a query up to its first row.
func (r *reader) query(ctx context.Context, query string, args []any) (*cursor, error) {
	args, err := values(plain(args))
	if err != nil {
		return nil, err
	}
	c, err := r.take(ctx)
	if err != nil {
		return nil, because(ctx, err)
	}
	c.ctx = ctx
	rows := &cursor{ctx: ctx, reader: r, conn: c}
	if err := rows.start(query, args); err != nil {
		rows.end()
		return nil, because(ctx, err)
	}
	return rows, nil
}

// maxCounts is the maximum number of counts that a connection caches.
const maxCounts = 100

// count runs a count query, or returns the cached result if the database has not changed.
// SQLite's data version shows changes of any process: a result is stored under the version
// before the query, and a write during the query creates another version.
func (r *reader) count(ctx context.Context, key, query string, args []any) (int, error) {
	args, err := values(plain(args))
	if err != nil {
		return 0, err
	}
	c, err := r.take(ctx)
	if err != nil {
		return 0, because(ctx, err)
	}
	c.ctx = ctx
	rows := &cursor{ctx: ctx, reader: r, conn: c}
	defer rows.end()
	version, err := c.version()
	if err != nil {
		return 0, because(ctx, err)
	}
	if version != c.counted || len(c.counts) >= maxCounts {
		c.counted, c.counts = version, map[string]int{}
	}
	if n, ok := c.counts[key]; ok {
		return n, nil
	}
	if err := rows.start(query, args); err != nil {
		return 0, because(ctx, err)
	}
	if !rows.Next() {
		return 0, fmt.Errorf("count: no row: %w", rows.Err())
	}
	var n int
	if err := rows.Scan(&n); err != nil {
		return 0, err
	}
	c.counts[key] = n
	return n, nil
}

// take returns a connection, which the caller must return.
func (r *reader) take(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case r.busy <- struct{}{}:
	default:
		if err := r.wait(ctx); err != nil {
			return nil, err
		}
	}
	c, err := r.get()
	if err != nil {
		<-r.busy
		return nil, err
	}
	return c, nil
}

func (r *reader) wait(ctx context.Context) error {
	start := time.Now()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waits++
		r.waited += time.Since(start)
	}()
	select {
	case r.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *reader) get() (*conn, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errors.New("the database is closed")
	}
	if last := len(r.idle) - 1; last >= 0 {
		c := r.idle[last]
		r.idle = r.idle[:last]
		r.mu.Unlock()
		return c, nil
	}
	r.mu.Unlock()
	c, err := openConn(r.path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", r.path, err)
	}
	return c, nil
}

// give returns a connection.
func (r *reader) give(c *conn) {
	r.mu.Lock()
	if r.closed {
		c.close()
	} else {
		r.idle = append(r.idle, c)
	}
	r.mu.Unlock()
	<-r.busy
}

// cursor is the rows of a query.
type cursor struct {
	ctx     context.Context
	reader  *reader
	conn    *conn // nil after it was returned
	stmt    *stmt
	columns int
	ahead   bool // the first row was read ahead
	err     error
}

func (r *cursor) start(query string, args []any) error {
	var err error
	if r.stmt, err = r.conn.prepare(query); err != nil {
		return err
	}
	if err := r.conn.bind(r.stmt, args); err != nil {
		return err
	}
	if r.ahead, err = r.conn.step(r.stmt); err != nil {
		return err
	}
	if !r.ahead {
		r.end()
		return nil
	}
	r.columns = r.conn.columns(r.stmt)
	return nil
}

// Next advances to the next row.
func (r *cursor) Next() bool {
	if r.conn == nil {
		return false
	}
	if r.ahead {
		r.ahead = false
		return true
	}
	more, err := false, r.ctx.Err()
	if err == nil {
		more, err = r.conn.step(r.stmt)
	}
	if !more {
		r.err = because(r.ctx, err)
		r.end()
	}
	return more
}

// Err returns the error that ended the rows early, if any.
func (r *cursor) Err() error { return r.err }

// Close ends the rows; it may be called more than once.
func (r *cursor) Close() error {
	r.end()
	return nil
}

// end returns the connection.
func (r *cursor) end() {
	if r.conn == nil {
		return
	}
	if r.stmt != nil {
		r.conn.reset(r.stmt)
	}
	r.conn.ctx = context.Background() // drops references to the caller
	r.reader.give(r.conn)
	r.conn = nil
}
