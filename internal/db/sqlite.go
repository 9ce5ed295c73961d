package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// openSQLite opens the file with one writing and several reading connections. With
// WAL, readers are not blocked by a writer; with synchronous=FULL, a commit
// survives a power failure.
func openSQLite(ctx context.Context, path string) (*DB, error) {
	drv, err := sqliteDriver()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	// Within a process, writers wait for their turn. The busy timeout is for other
	// processes, and retryBusy continues after it.
	common := []string{"busy_timeout(5000)", "foreign_keys(1)", "synchronous(FULL)", "temp_store(MEMORY)"}
	d := &DB{kind: sqliteKind, path: path}
	// The journal mode is kept in the file, so the writer sets it before any
	// reader opens the file.
	d.writer.db = sql.OpenDB(connector{drv, dsn(path, "immediate", append(common, "journal_mode(WAL)", "wal_autocheckpoint(4000)"))})
	d.writer.db.SetMaxOpenConns(1)
	d.turn = newTurn()
	d.reader = newReader(path)
	err = retryBusy(ctx, func() (err error) {
		d.points, err = preparePoints(ctx, d.writer.db)
		return mapError(err)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), d.Close())
	}
	return d, nil
}

func sqliteDriver() (*sqlite.Driver, error) {
	drv := &sqlite.Driver{}
	// fold converts text to lower case for searches, as on PostgreSQL: SQLite's own
	// lower supports ASCII letters only.
	err := drv.RegisterDeterministicScalarFunction("fold", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if s, ok := args[0].(string); ok {
			return strings.ToLower(s), nil
		}
		return args[0], nil
	})
	return drv, err
}

// create creates an empty file that only our user can read, unless it exists,
// because it will contain digests and personal data. The file is renamed after it
// was closed, because closing a file releases all locks of the process on it, and
// another DB may be open on it.
func create(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func dsn(path, lock string, pragmas []string) string {
	// Libraries that store times themselves compare them as text, so all times must have
	// the same zone and format.
	q := url.Values{"_txlock": {lock}, "_pragma": pragmas, "_timezone": {"UTC"}, "_time_format": {"sqlite"}}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// connector opens connections of our own driver instance, which has the function fold. The
// instance that the library registers is shared by the whole process.
type connector struct {
	driver *sqlite.Driver
	dsn    string
}

// Connect implements driver.Connector.
func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return c.driver }
