package dbtest

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"svc/internal/db"
	"svc/internal/waittest"
)

// A PostgreSQL process reads the catalog when it first uses a table, and it plans each
// statement. On new connections this takes longer than the statements of most tests, so
// tests that use the same database one after another share its connections.

// kept are the connections to one database. When a pool of a test closes a connection, it
// stays open for the next test.
type kept struct {
	mu      sync.Mutex
	pools   map[string]*pgxpool.Pool // by the setUp of db.Connector
	generic bool                     // connections use generic plans
}

// generic makes PostgreSQL plan a statement once on each connection, without the values of
// its arguments. By default it plans many statements for each use, because that seems
// cheaper for tables without statistics. Results do not depend on it.
const generic = "SET plan_cache_mode = force_generic_plan"

const (
	// maxKept is more than the servers of a test need.
	maxKept = 200
	// maxIdle is the number of connections that stay open between two tests. Most tests need
	// about a dozen, and the server has a limit for all databases.
	maxIdle = 12
)

var (
	keptMu sync.Mutex
	keptOf = map[string]*kept{} // by URL of the database
)

func init() { db.ReplaceConnector(connect) }

// connect is the db.Connector of tests. It keeps connections to the databases of
// Postgres only.
func connect(cfg *pgx.ConnConfig, setUp string) driver.Connector {
	keptMu.Lock()
	k := keptOf[cfg.ConnString()]
	keptMu.Unlock()
	if k == nil {
		return db.Connect(cfg, setUp)
	}
	pool, err := k.pool(cfg, setUp)
	if err != nil {
		panic(fmt.Sprintf("dbtest: %v", err)) // the configuration is from a valid one
	}
	return stdlib.GetPoolConnector(pool)
}

func (k *kept) pool(cfg *pgx.ConnConfig, setUp string) (*pgxpool.Pool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generic {
		setUp = generic + "; " + setUp
	}
	if p := k.pools[setUp]; p != nil {
		return p, nil
	}
	c, err := pgxpool.ParseConfig(cfg.ConnString())
	if err != nil {
		return nil, err
	}
	c.ConnConfig = cfg.Copy()
	c.MaxConns = maxKept
	// A test may have ended the process of a connection.
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	if setUp != "" {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, setUp)
			return err
		}
	}
	p, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		return nil, err
	}
	k.pools[setUp] = p
	return p, nil
}

// keep keeps the connections to a database from now on.
func keep(url string, generic bool) {
	keptMu.Lock()
	defer keptMu.Unlock()
	k := keptOf[url]
	if k == nil {
		k = &kept{pools: map[string]*pgxpool.Pool{}}
		keptOf[url] = k
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.generic = generic
}

// keptBy returns the connections to a database of Postgres.
func keptBy(url string) *kept {
	keptMu.Lock()
	defer keptMu.Unlock()
	return keptOf[url]
}

// forget closes the connections to a database.
func forget(url string) {
	keptMu.Lock()
	k := keptOf[url]
	delete(keptOf, url)
	keptMu.Unlock()
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pools {
		p.Reset()    // closes what no one uses
		go p.Close() // waits for a test that left a connection open
	}
}

// idle waits until the test has returned all connections, and takes them. The caller must
// release them.
func (k *kept) idle(t testing.TB) []*pgxpool.Conn {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	var conns []*pgxpool.Conn
	for _, p := range k.pools {
		waittest.For(t, "the test closes its connections", func() bool {
			s := p.Stat() // a connection that no one waits for any more becomes idle as well
			return s.AcquiredConns()+s.ConstructingConns() == 0
		})
		conns = append(conns, p.AcquireAllIdle(context.Background())...)
	}
	return conns
}

// clean resets a session to the state of a new connection, except for prepared statements
// and the setUp of its pool.
const clean = "CLOSE ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES"

// cleaned cleans connections.
func cleaned(conns []*pgxpool.Conn) error {
	var errs []error
	for _, c := range conns {
		_, err := c.Conn().PgConn().Exec(context.Background(), clean).ReadAll()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
