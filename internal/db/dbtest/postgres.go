package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"svc/internal/db"
	"svc/internal/waittest"
)

// PostgreSQL copies and removes a thousand files for a new database, which takes longer
// than most tests. Therefore a test empties its database and leaves it to the next test.
var (
	postgresTemplate = sync.OnceValues(func() (*template, error) { return once("postgres", makeTemplate) })
	postgresCount    atomic.Int64

	spareMu sync.Mutex
	spare   []string // databases that are equal to the template
)

// template is a migrated database. Its only rows were inserted by migrations.
type template struct {
	Name  string
	Shape string // of the schema
	Kept  string // its tables and sequences that are not empty, as an array
}

func makeTemplate() (*template, error) {
	if err := sweep(); err != nil {
		return nil, err
	}
	t := &template{Name: fmt.Sprintf("%s%d_template", prefix(), runID)}
	if err := admin("CREATE DATABASE " + t.Name); err != nil {
		return nil, err
	}
	if err := migrate(databaseURL(t.Name), ""); err != nil {
		return nil, err
	}
	return t, within(databaseURL(t.Name), func(c *sql.DB) error {
		return errors.Join(c.QueryRow(shapeOf).Scan(&t.Shape), c.QueryRow(usedIn).Scan(&t.Kept))
	})
}

const (
	// shapeOf returns a value that changes when a table, a column, an index, a constraint or
	// a migration record is added or removed.
	shapeOf = `SELECT concat_ws(' ',
		(SELECT count(*) FROM pg_class), (SELECT max(oid) FROM pg_class),
		(SELECT count(*) FROM pg_attribute WHERE NOT attisdropped),
		(SELECT count(*) FROM pg_constraint), (SELECT count(*) FROM pg_trigger),
		(SELECT count(*) FROM goose_db_version), (SELECT count(*) FROM river_migration))`

	usedIn = `SELECT array_agg(name)::text FROM (
		SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0
		UNION ALL SELECT sequencename FROM pg_sequences WHERE last_value IS NOT NULL) used`

	// empty deletes all rows that are not in the template, without checking foreign keys.
	// Deleting a few rows is much cheaper than TRUNCATE, which creates new files.
	empty = `DO $do$ DECLARE one text; kept text[] := %s; BEGIN
		SET LOCAL session_replication_role = replica;
		FOR one IN SELECT oid::regclass FROM pg_class
			WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0 AND relname != ALL (kept) LOOP
			EXECUTE 'DELETE FROM ' || one;
		END LOOP;
		PERFORM setval(format('%%I.%%I', schemaname, sequencename)::regclass, start_value, false) FROM pg_sequences
			WHERE last_value IS NOT NULL AND sequencename != ALL (kept);
	END $do$`
)

// Postgres creates a migrated database on the server of TEST_POSTGRES and releases it when
// the test ends. Statements are planned as in production, which benchmarks need.
func Postgres(t testing.TB) Source {
	t.Helper()
	return postgres(t, false)
}

// postgres is Postgres, with generic plans if requested.
func postgres(t testing.TB, generic bool) Source {
	t.Helper()
	model, err := postgresTemplate()
	if err != nil {
		t.Fatal(err)
	}
	name := takeSpare()
	if name == "" {
		name = create(t, model.Name)
	}
	url := databaseURL(name)
	keep(url, generic)
	t.Cleanup(func() {
		if t.Failed() || model.restore(t, url) != nil {
			forget(url)
			drop(t, name)
			return
		}
		spareMu.Lock()
		defer spareMu.Unlock()
		spare = append(spare, name)
	})
	return Source{URL: url}
}

func takeSpare() string {
	spareMu.Lock()
	defer spareMu.Unlock()
	if len(spare) == 0 {
		return ""
	}
	name := spare[len(spare)-1]
	spare = spare[:len(spare)-1]
	return name
}

// restore resets a database to the template, if that is simple. The test has closed its
// connections, but the server ends processes of closed connections in its own time.
// Processes of the server itself, such as autovacuum, are not waited for.
func (t *template) restore(tb testing.TB, url string) error {
	tb.Helper()
	conns := keptBy(url).idle(tb)
	if len(conns) == 0 { // another process of the test uses the database
		if err := within(url, func(c *sql.DB) error { return c.Ping() }); err != nil {
			return err
		}
		conns = keptBy(url).idle(tb)
	}
	defer func() {
		for i, c := range conns {
			if i >= maxIdle {
				_ = c.Conn().Close(context.Background()) // Release then drops it
			}
			c.Release()
		}
	}()
	if err := cleaned(conns); err != nil {
		return err
	}
	ctx, c := context.Background(), conns[0]
	pids := make([]uint32, len(conns))
	for i, c := range conns {
		pids[i] = c.Conn().PgConn().PID()
	}
	waittest.For(tb, "the connections of the test are closed", func() bool {
		var others int
		err := c.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid != ALL ($1) AND backend_type = 'client backend'`, pids).Scan(&others)
		return err != nil || others == 0
	})
	var shape string
	if err := c.QueryRow(ctx, shapeOf).Scan(&shape); err != nil {
		return err
	}
	if shape != t.Shape {
		return errors.New("the test changed the schema")
	}
	_, err := c.Exec(ctx, fmt.Sprintf(empty, "'"+t.Kept+"'"))
	return err
}

// bare creates an empty database and drops it when the test ends.
func bare(t testing.TB) Source {
	t.Helper()
	name := create(t, "template0")
	t.Cleanup(func() { drop(t, name) })
	return Source{URL: databaseURL(name)}
}

// create creates a database as a copy of another one, to which no client is connected.
func create(t testing.TB, model string) string {
	t.Helper()
	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%s%d_%d", prefix(), os.Getpid(), postgresCount.Add(1))
	if err := admin("CREATE DATABASE " + name + " TEMPLATE " + model + " STRATEGY file_copy"); err != nil {
		t.Fatal(err)
	}
	return name
}

func drop(t testing.TB, name string) {
	t.Helper()
	if err := admin("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
		t.Errorf("drop database: %v", err)
	}
}

// prefix returns the prefix of the names of test databases of this machine, which is
// followed by the process ID.
func prefix() string {
	host, _ := os.Hostname() // without a name, machines cannot be distinguished
	return fmt.Sprintf("svc_test_%08x_", crc32.ChecksumIEEE([]byte(host)))
}

// sweep drops the databases of dead processes, because a process cannot drop its template
// and spare databases when it exits. It runs before this process creates its first
// database, so that databases with its process ID belong to an earlier process.
var sweep = sync.OnceValue(func() error {
	d, err := db.Open(context.Background(), os.Getenv("TEST_POSTGRES"), "")
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := db.All(context.Background(), d, db.Value[string], "SELECT datname FROM pg_database WHERE starts_with(datname, ?)", prefix())
	if err != nil {
		return err
	}
	for _, name := range names {
		var pid int
		if _, err := fmt.Sscanf(name[len(prefix()):], "%d_", &pid); err != nil {
			continue
		}
		if pid != os.Getpid() && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		_ = admin("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") // another process may drop it too
	}
	return nil
})

func admin(statement string) error {
	return within(os.Getenv("TEST_POSTGRES"), func(c *sql.DB) error {
		_, err := c.Exec(statement)
		return err
	})
}

// within runs do in a database, and closes the connection.
func within(url string, do func(c *sql.DB) error) error {
	d, err := db.Open(context.Background(), url, "")
	if err != nil {
		return err
	}
	return errors.Join(do(d.SQL()), d.Close())
}

func databaseURL(name string) string {
	u, err := url.Parse(os.Getenv("TEST_POSTGRES"))
	if err != nil {
		panic(fmt.Sprintf("TEST_POSTGRES: %v", err))
	}
	u.Path = "/" + strings.TrimPrefix(name, "/")
	return u.String()
}
