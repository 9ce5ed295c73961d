package db

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"svc/internal/lru"
)

// maxStatements bounds the prepared statements of a pool. Our fixed queries
// are some hundreds; a list query has one text per set of filters, and of
// those the least used make room.
const maxStatements = 500

// pool is a sql.DB with its prepared statements.
type pool struct {
	db     *sql.DB
	rebind bool // ? becomes $1; statements are prepared by pgx, not here
	stmts  statements
}

func (p *pool) exec(ctx context.Context, query string, args []any) (sql.Result, error) {
	s, err := p.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	defer p.stmts.release(s)
	var res sql.Result
	if s.stmt != nil {
		res, err = s.stmt.ExecContext(ctx, plain(args)...)
	} else {
		res, err = p.db.ExecContext(ctx, s.text, plain(args)...)
	}
	return res, because(ctx, err)
}

func (p *pool) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	s, err := p.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	defer p.stmts.release(s)
	var rows *sql.Rows
	if s.stmt != nil {
		rows, err = s.stmt.QueryContext(ctx, plain(args)...)
	} else {
		rows, err = p.db.QueryContext(ctx, s.text, plain(args)...)
	}
	if err != nil {
		return nil, because(ctx, err)
	}
	return rows, nil
}

// statement returns the query as the driver wants it, prepared on SQLite. The
// caller releases it.
func (p *pool) statement(ctx context.Context, query string) (*statement, error) {
	if s := p.stmts.find(query); s != nil {
		return s, nil
	}
	s := &statement{query: query}
	if p.rebind {
		s.text = rebind(query)
	} else {
		s.text = steady(query)
		stmt, err := p.db.PrepareContext(ctx, s.text)
		if err != nil {
			return nil, because(ctx, err)
		}
		s.stmt = stmt
	}
	return p.stmts.add(s), nil
}

// statement is a query as the driver wants it.
type statement struct {
	query string // as we wrote it
	text  string // as the database reads it
	stmt  *sql.Stmt
	users int  // number of current users
	kept  bool // it has not been evicted
}

// statements is a cache of the most recently used statements.
type statements struct {
	mu   sync.Mutex
	kept *lru.Map[string, *statement] // by query; nil before the first
}

// find returns the statement of a query and counts the caller as a user, or nil.
func (c *statements) find(query string) *statement {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		return nil
	}
	s, ok := c.kept.Get(query)
	if !ok {
		return nil
	}
	s.users++
	return s
}

// add adds s, with the caller as a user, or returns the one that another caller
// has added concurrently.
func (c *statements) add(s *statement) *statement {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = lru.New(maxStatements, evict)
	}
	if have, ok := c.kept.Peek(s.query); ok {
		s.close()
		have.users++
		return have
	}
	s.kept = true
	s.users++
	c.kept.Put(s.query, s, 1)
	return s
}

// evict closes a statement, or leaves that to its last user.
func evict(_ string, s *statement) {
	s.kept = false
	if s.users == 0 {
		s.close()
	}
}

// release records that the caller has run the statement. Its rows may still be
// open: database/sql closes the statement after them.
func (c *statements) release(s *statement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users--
	if s.users == 0 && !s.kept {
		s.close()
	}
}

func (s *statement) close() {
	if s.stmt != nil {
		_ = s.stmt.Close() // what fails here fails with its connection
	}
}

// plain replaces the arguments that have their own form in our tables. The
// caller's slice stays as it is: it may be used again.
func plain(args []any) []any {
	copied := false
	for i, arg := range args {
		var value any
		switch v := arg.(type) {
		case time.Time:
			value = v.UnixMicro()
		case *time.Time:
			if v != nil {
				value = v.UnixMicro()
			}
		default:
			continue
		}
		if !copied {
			args, copied = append([]any(nil), args...), true
		}
		args[i] = value
	}
	return args
}
