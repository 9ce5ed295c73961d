package db

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"svc/internal/lru"
)

// maxStatements is the maximum number of prepared statements of a pool. There are some
// hundred fixed queries; lists have one text per combination of filters, of which the
// least recently used are evicted.
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
		text, args := s.bind(args)
		res, err = p.db.ExecContext(ctx, text, plain(args)...)
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
		text, args := s.bind(args)
		rows, err = p.db.QueryContext(ctx, text, plain(args)...)
	}
	if err != nil {
		return nil, because(ctx, err)
	}
	return rows, nil
}

// statement returns the query in the form for the driver, prepared on SQLite. The caller
// releases it.
func (p *pool) statement(ctx context.Context, query string) (*statement, error) {
	if s := p.stmts.find(query); s != nil {
		return s, nil
	}
	if p.rebind {
		return p.stmts.add(rebound(query)), nil
	}
	s := &statement{query: query, text: steady(query)}
	stmt, err := p.db.PrepareContext(ctx, s.text)
	if err != nil {
		return nil, because(ctx, err)
	}
	s.stmt = stmt
	return p.stmts.add(s), nil
}

// rebound returns a statement of PostgreSQL.
func rebound(query string) *statement {
	return &statement{query: query, text: rebind(query), bounds: bounds(query)}
}

// statement is a query in the form for the driver.
type statement struct {
	query string // as written, with ?
	text  string // as sent to the database
	stmt  *sql.Stmt
	users int  // number of current users
	kept  bool // it has not been evicted

	bounds []bound // PostgreSQL only: the arguments that bind may write into the text
	mu     sync.Mutex
	bound  map[string]string // texts by the values of these arguments
}

// maxBound is the maximum number of texts of a statement with different limits. Lists have
// few page sizes.
const maxBound = 16

// bind returns the text of a statement and its arguments. Limits, and an offset of 0, are
// written into the text.
//
// PostgreSQL assumes that an unknown limit returns a tenth of all rows. The generic plan
// then seems far more expensive than one for the given arguments, so a list of many rows
// would be planned each time, which takes longer than reading a page.
func (s *statement) bind(args []any) (string, []any) {
	if len(s.bounds) == 0 {
		return s.text, args
	}
	var key []byte
	var inline []int
	for _, b := range s.bounds {
		if b.arg >= len(args) {
			return s.text, args
		}
		n, ok := args[b.arg].(int)
		if !ok || n < 0 || b.offset && n != 0 {
			key = append(key, '?')
			continue
		}
		key, inline = append(strconv.AppendInt(key, int64(n), 10), ','), append(inline, b.arg)
	}
	if inline == nil {
		return s.text, args
	}
	text := s.boundText(key, inline, args)
	if text == "" {
		return s.text, args
	}
	rest := make([]any, 0, len(args))
	for i, arg := range args {
		if len(inline) > 0 && inline[0] == i {
			inline = inline[1:]
			continue
		}
		rest = append(rest, arg)
	}
	return text, rest
}

// boundText returns the text with some arguments replaced by their values; empty if there
// are too many texts.
func (s *statement) boundText(key []byte, inline []int, args []any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text, ok := s.bound[string(key)]; ok || len(s.bound) >= maxBound {
		return text
	}
	if s.bound == nil {
		s.bound = map[string]string{}
	}
	n := 0
	text := replace(s.query, func(b *strings.Builder, at int) {
		if slices.Contains(inline, at-1) {
			b.WriteString(strconv.Itoa(args[at-1].(int)))
			return
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	})
	s.bound[string(key)] = text
	return text
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

// evict closes a statement, or leaves closing it to its last user.
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
		_ = s.stmt.Close() // an error means that the connection is broken
	}
}

// plain converts the arguments that our tables store in another form. It does not change the
// slice of the caller, which may be used again.
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
