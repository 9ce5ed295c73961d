package db

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"

	"svc/internal/lru"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is a SQLite connection for reading. It calls the library directly:
// database/sql and its driver take several locks and allocations per value and
// query the name and type of every column, which costs five times as much as
// SQLite itself. A conn is used by one goroutine at a time. All memory that the
// library accesses is allocated by the library, so the garbage collector is not
// involved.
type conn struct {
	tls   *libc.TLS
	db    uintptr
	out   uintptr                 // memory for a pointer that a call returns
	stmts *lru.Map[string, *stmt] // by query

	counted int64          // the version of the database at which counts were taken
	counts  map[string]int // cached counts by query

	ctx  context.Context                // of the query that runs
	poll func(*libc.TLS, uintptr) int32 // referenced by the library
}

// connStatements bounds the prepared statements of a conn.
const connStatements = 200

// pollEvery is the number of SQLite VM instructions after which a query checks
// whether its context has ended: some microseconds.
const pollEvery = 1000

// mapped is the number of bytes at the start of the file that are memory-mapped;
// it is the maximum that SQLite allows. Reading pages that are not cached then
// costs half as much. The kernel can reclaim this memory at any time, but counts
// it as resident for each connection.
const mapped = "2147418112"

// openConn opens an existing file.
func openConn(path string) (*conn, error) {
	c := &conn{tls: libc.NewTLS(), ctx: context.Background()}
	c.stmts = lru.New(connStatements, func(_ string, s *stmt) { c.finalize(s) })
	c.out = c.alloc(8)
	c.poll = func(*libc.TLS, uintptr) int32 {
		if c.ctx.Err() != nil {
			return sqlite3.SQLITE_INTERRUPT
		}
		return sqlite3.SQLITE_OK
	}
	name := c.cstring(path)
	defer c.free(name)
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, c.out, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	c.db = *(*uintptr)(memory(c.out))
	if err := c.setUp(rc); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *conn) setUp(opened int32) error {
	if opened != sqlite3.SQLITE_OK {
		return c.fault(opened)
	}
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	sqlite3.Xsqlite3_progress_handler(c.tls, c.db, pollEvery, function(c.poll), 0)
	// With SQLITE_DBCONFIG_ENABLE_QPSG, plans do not depend on values. Otherwise a plan
	// would be recompiled for each value, which takes longer than most queries.
	list := c.alloc(16)
	defer c.free(list)
	rc := sqlite3.Xsqlite3_db_config(c.tls, c.db, sqlite3.SQLITE_DBCONFIG_ENABLE_QPSG, libc.VaList(list, int32(1), uintptr(0)))
	if rc != sqlite3.SQLITE_OK {
		return c.fault(rc)
	}
	name := c.cstring("fold")
	defer c.free(name)
	rc = sqlite3.Xsqlite3_create_function_v2(c.tls, c.db, name, 1, sqlite3.SQLITE_UTF8|sqlite3.SQLITE_DETERMINISTIC, 0, function(fold), 0, 0, 0)
	if rc != sqlite3.SQLITE_OK {
		return c.fault(rc)
	}
	for _, pragma := range []string{"busy_timeout(5000)", "temp_store(MEMORY)", "query_only(1)", "mmap_size(" + mapped + ")"} {
		s, err := c.prepare("PRAGMA " + pragma)
		if err != nil {
			return err
		}
		if _, err := c.step(s); err != nil {
			return err
		}
		c.reset(s)
	}
	return nil
}

func (c *conn) close() {
	for _, s := range c.stmts.All() {
		c.finalize(s)
	}
	sqlite3.Xsqlite3_close_v2(c.tls, c.db)
	c.free(c.out)
	c.tls.Close()
}

// fold is the SQL function fold, which the writer registers through its driver: see
// openSQLite.
func fold(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) {
	arg := *(*uintptr)(memory(args))
	if sqlite3.Xsqlite3_value_type(tls, arg) != sqlite3.SQLITE_TEXT {
		sqlite3.Xsqlite3_result_value(tls, ctx, arg)
		return
	}
	at := sqlite3.Xsqlite3_value_text(tls, arg)
	text := view(at, sqlite3.Xsqlite3_value_bytes(tls, arg))
	plain, upper := true, false
	for i := range len(text) {
		plain = plain && text[i] < utf8.RuneSelf
		upper = upper || 'A' <= text[i] && text[i] <= 'Z'
	}
	if plain && !upper {
		sqlite3.Xsqlite3_result_value(tls, ctx, arg)
		return
	}
	if plain {
		copied := libc.Xmalloc(tls, libc.Tsize_t(len(text)+1))
		for i, to := 0, unsafe.Slice((*byte)(memory(copied)), len(text)); i < len(text); i++ {
			if to[i] = text[i]; 'A' <= text[i] && text[i] <= 'Z' {
				to[i] += 'a' - 'A'
			}
		}
		sqlite3.Xsqlite3_result_text(tls, ctx, copied, int32(len(text)), function(libc.Xfree))
		return
	}
	lower := strings.ToLower(text)
	copied := libc.Xmalloc(tls, libc.Tsize_t(len(lower)+1))
	copy(unsafe.Slice((*byte)(memory(copied)), len(lower)), lower)
	sqlite3.Xsqlite3_result_text(tls, ctx, copied, int32(len(lower)), function(libc.Xfree))
}

// stmt is a prepared statement.
type stmt struct {
	p      uintptr
	params int
	room   uintptr // memory for bound texts and blobs
	size   int     // of the room
}

// prepare returns the statement of a query.
func (c *conn) prepare(query string) (*stmt, error) {
	if s, ok := c.stmts.Get(query); ok {
		return s, nil
	}
	text := c.cstring(query)
	defer c.free(text)
	rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, text, int32(len(query)+1), sqlite3.SQLITE_PREPARE_PERSISTENT, c.out, 0)
	if rc != sqlite3.SQLITE_OK {
		return nil, c.fault(rc)
	}
	s := &stmt{p: *(*uintptr)(memory(c.out))}
	s.params = int(sqlite3.Xsqlite3_bind_parameter_count(c.tls, s.p))
	c.stmts.Put(query, s, 1)
	return s, nil
}

func (c *conn) finalize(s *stmt) {
	sqlite3.Xsqlite3_finalize(c.tls, s.p)
	c.free(s.room)
}

// version returns a number that changes whenever another connection has written.
func (c *conn) version() (int64, error) {
	s, err := c.prepare("PRAGMA data_version")
	if err != nil {
		return 0, err
	}
	defer c.reset(s)
	if _, err := c.step(s); err != nil {
		return 0, err
	}
	return c.integer(c.column(s, 0)), nil
}

// bind binds the arguments of a statement.
func (c *conn) bind(s *stmt, args []any) error {
	if len(args) != s.params {
		return fmt.Errorf("the query has %d placeholders, not %d", s.params, len(args))
	}
	size := 0
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			size += len(v) + 1
		case []byte:
			size += len(v) + 1
		}
	}
	if size > s.size {
		c.free(s.room)
		s.room, s.size = c.alloc(size), size
	}
	at := s.room
	for i, arg := range args {
		n := int32(i + 1)
		var rc int32
		switch v := arg.(type) {
		case nil:
			rc = sqlite3.Xsqlite3_bind_null(c.tls, s.p, n)
		case int64:
			rc = sqlite3.Xsqlite3_bind_int64(c.tls, s.p, n, v)
		case int:
			rc = sqlite3.Xsqlite3_bind_int64(c.tls, s.p, n, int64(v))
		case float64:
			rc = sqlite3.Xsqlite3_bind_double(c.tls, s.p, n, v)
		case bool:
			var bit int64
			if v {
				bit = 1
			}
			rc = sqlite3.Xsqlite3_bind_int64(c.tls, s.p, n, bit)
		case string:
			copy(unsafe.Slice((*byte)(memory(at)), len(v)), v)
			rc = sqlite3.Xsqlite3_bind_text(c.tls, s.p, n, at, int32(len(v)), sqlite3.SQLITE_STATIC)
			at += uintptr(len(v) + 1)
		case []byte:
			if v == nil {
				rc = sqlite3.Xsqlite3_bind_null(c.tls, s.p, n)
				break
			}
			copy(unsafe.Slice((*byte)(memory(at)), len(v)), v)
			rc = sqlite3.Xsqlite3_bind_blob(c.tls, s.p, n, at, int32(len(v)), sqlite3.SQLITE_STATIC)
			at += uintptr(len(v) + 1)
		default:
			return fmt.Errorf("argument %d is a %T", n, arg)
		}
		if rc != sqlite3.SQLITE_OK {
			return c.fault(rc)
		}
	}
	return nil
}

// values converts arguments to types that bind supports.
func values(args []any) ([]any, error) {
	copied := false
	for i, arg := range args {
		switch arg.(type) {
		case nil, int64, int, float64, bool, string, []byte:
			continue
		}
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		if !copied {
			args, copied = append([]any(nil), args...), true
		}
		args[i] = value
	}
	return args, nil
}

// step advances to the next row, if there is one.
func (c *conn) step(s *stmt) (bool, error) {
	switch rc := sqlite3.Xsqlite3_step(c.tls, s.p); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, c.fault(rc)
	}
}

func (c *conn) reset(s *stmt) { sqlite3.Xsqlite3_reset(c.tls, s.p) }

func (c *conn) columns(s *stmt) int { return int(sqlite3.Xsqlite3_column_count(c.tls, s.p)) }

// column returns a value of the current row. It is valid until the next step.
func (c *conn) column(s *stmt, i int32) uintptr { return sqlite3.Xsqlite3_column_value(c.tls, s.p, i) }

// kind returns the type of a value: SQLITE_INTEGER and so on.
func (c *conn) kind(column uintptr) int32 { return sqlite3.Xsqlite3_value_type(c.tls, column) }

func (c *conn) integer(column uintptr) int64 { return sqlite3.Xsqlite3_value_int64(c.tls, column) }

// text returns a text that refers to memory of the library. It must be copied before the
// next call.
func (c *conn) text(column uintptr) string {
	at := sqlite3.Xsqlite3_value_text(c.tls, column)
	return view(at, sqlite3.Xsqlite3_value_bytes(c.tls, column))
}

// value returns a value as drivers return it.
func (c *conn) value(column uintptr) any {
	switch c.kind(column) {
	case sqlite3.SQLITE_INTEGER:
		return c.integer(column)
	case sqlite3.SQLITE_FLOAT:
		return sqlite3.Xsqlite3_value_double(c.tls, column)
	case sqlite3.SQLITE_TEXT:
		return strings.Clone(c.text(column))
	case sqlite3.SQLITE_BLOB:
		at := sqlite3.Xsqlite3_value_blob(c.tls, column)
		return []byte(view(at, sqlite3.Xsqlite3_value_bytes(c.tls, column)))
	}
	return nil
}

// sqliteFault is an error of the SQLite library.
type sqliteFault struct {
	code int
	text string
}

// Error returns the text for logs.
func (e *sqliteFault) Error() string { return fmt.Sprintf("%s (%d)", e.text, e.code) }

func (c *conn) fault(rc int32) error {
	e := &sqliteFault{code: int(rc), text: libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))}
	if c.db != 0 {
		e.text += ": " + libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
	}
	return e
}

// alloc allocates memory of the library. It panics if there is none.
func (c *conn) alloc(size int) uintptr {
	p := libc.Xcalloc(c.tls, 1, libc.Tsize_t(size))
	if p == 0 {
		panic("sqlite: out of memory")
	}
	return p
}

func (c *conn) free(p uintptr) { libc.Xfree(c.tls, p) }

// cstring copies a text to memory of the library and terminates it with a 0.
func (c *conn) cstring(s string) uintptr {
	p := c.alloc(len(s) + 1)
	copy(unsafe.Slice((*byte)(memory(p)), len(s)), s)
	return p
}

// memory converts an address to a pointer to memory of the library, which is not managed by
// Go and does not move.
func memory(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// view returns a text that refers to memory of the library. It must be copied before the
// next call of the library.
func view(address uintptr, size int32) string {
	if address == 0 || size == 0 {
		return ""
	}
	return unsafe.String((*byte)(memory(address)), size)
}

// function returns the address through which the library calls f. The caller must keep a
// reference to f as long as the library may call it.
func function[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }
