package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// migrateLock is the number of the PostgreSQL advisory lock of migrations.
const migrateLock = 0x737663_6d6967 // "svc" "mig"

const (
	// ddlWait is how long a statement of a migration waits for a lock on PostgreSQL.
	// Other users of the table wait behind it.
	ddlWait = 2 * time.Second
	// ddlTries is the maximum number of attempts of a migration that does not get its lock,
	// over about two minutes.
	ddlTries = 30
	// ddlPause is the longest pause between two tries.
	ddlPause = 3 * time.Second

	// nodeLost is the time after which a node without a heartbeat is ignored, and
	// olderWait how long a migration waits for incompatible nodes.
	nodeLost  = 45 * time.Second
	olderWait = time.Minute
	// postAfter is how long post-deployment migrations wait after the other
	// migrations, so that an upgrade can be reverted.
	postAfter = 24 * time.Hour
)

// Migrate runs the pending migrations under a lock, so that several processes may
// start concurrently. Nodes of older releases may run at the same time if the
// migrations allow it; otherwise it waits up to a minute for them to stop.
// Post-deployment migrations run if they are due: see MigratePost. A database that
// a newer release has migrated is used if this release is compatible with it, and
// refused otherwise.
func (d *DB) Migrate(ctx context.Context) error {
	unlock, err := d.lock(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer unlock()
	m, err := d.newMigrator()
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer m.close()
	if err := m.run(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := m.retry(ctx, func() error { return m.migrateQueue(ctx) }); err != nil {
		return fmt.Errorf("migrate queue: %w", err)
	}
	return nil
}

// MigratePost runs the post-deployment migrations that are due: no running node has an
// incompatible release, and the other migrations ran a day ago, unless now is true. It
// returns the names of the migrations that are not due.
func (d *DB) MigratePost(ctx context.Context, now bool) (waiting []string, err error) {
	s, err := d.Schema(ctx)
	if err != nil || len(s.Post) == 0 || s.Have > s.Know {
		return nil, err
	}
	unlock, err := d.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer unlock()
	m, err := d.newMigrator()
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer m.close()
	if waiting, err = m.runPost(ctx, now); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return waiting, nil
}

// Version returns the newest migration of the database, and the newest migration of this
// release.
func (d *DB) Version(ctx context.Context) (have, know int64, err error) {
	p, err := d.provider(d.writer.db)
	if err != nil {
		return 0, 0, err
	}
	return p.GetVersions(ctx)
}

// Schema is the state of the schema, as this release sees it.
type Schema struct {
	Have, Know int64 // the newest migration of the database and of this release
	// Pending are the migrations that the next start of a node runs, Post the
	// post-deployment migrations that have not run.
	Pending, Post []string
	// Needs is the schema version of the oldest release that may run on this
	// database. It is known if the database is newer than this release.
	Needs int64
}

// Schema returns the state of the schema.
func (d *DB) Schema(ctx context.Context) (Schema, error) {
	var s Schema
	var err error
	if s.Have, s.Know, err = d.Version(ctx); err != nil {
		return s, err
	}
	list, err := d.pending(ctx, d.writer.db)
	if err != nil {
		return s, err
	}
	for _, m := range list {
		if m.post {
			s.Post = append(s.Post, m.name)
		} else {
			s.Pending = append(s.Pending, m.name)
		}
	}
	if s.Have > s.Know {
		s.Needs, err = d.needs(ctx, s.Know)
	}
	return s, err
}

// Refused returns an error if this release cannot run on the database because a
// newer one has migrated it.
func (s Schema) Refused() error {
	if s.Have > s.Know && s.Needs > s.Know {
		return fmt.Errorf("the database has schema version %d, which needs a release with schema version %d or newer; this release has %d: run a newer release", s.Have, s.Needs, s.Know)
	}
	return nil
}

// pending returns the migrations of this release that the database does not have.
func (d *DB) pending(ctx context.Context, q plainQuery) ([]migration, error) {
	all, err := d.listMigrations()
	if err != nil {
		return nil, err
	}
	applied, err := column[int64](ctx, q, `SELECT version_id FROM goose_db_version WHERE is_applied`)
	if err != nil {
		return nil, err
	}
	has := map[int64]bool{}
	for _, version := range applied {
		has[version] = true
	}
	var list []migration
	for _, m := range all {
		if !has[m.version] {
			list = append(list, m)
		}
	}
	return list, nil
}

// needs returns the schema version of the oldest release that is compatible with
// the migrations after know, as recorded by the releases that ran them. Without a
// record, no older release is compatible.
func (d *DB) needs(ctx context.Context, know int64) (int64, error) {
	var oldest int64
	err := d.QueryRowContext(ctx, `SELECT COALESCE(MAX(COALESCE(s.oldest, g.version_id)), 0)
		FROM goose_db_version g LEFT JOIN schema_versions s ON s.version = g.version_id WHERE g.is_applied AND g.version_id > ?`, know).Scan(&oldest)
	return oldest, err
}

// migrator runs migrations while the lock is held. Its connections to PostgreSQL wait for
// locks of tables for a limited time.
type migrator struct {
	*DB
	pool *sql.DB
}

func (d *DB) newMigrator() (*migrator, error) {
	if d.kind == sqliteKind {
		return &migrator{d, d.writer.db}, nil
	}
	pool, err := openImpatient(d.url)
	if err != nil {
		return nil, err
	}
	return &migrator{d, pool}, nil
}

func (m *migrator) close() {
	if m.kind == postgresKind {
		_ = m.pool.Close() // everything is committed
	}
}

func (m *migrator) run(ctx context.Context) error {
	s, err := m.Schema(ctx)
	if err != nil {
		return err
	}
	if s.Have > s.Know {
		return s.Refused()
	}
	list, err := m.pending(ctx, m.pool)
	if err != nil {
		return err
	}
	if err := m.record(ctx); err != nil {
		return err
	}
	if s.Have == 0 {
		return m.fill(ctx)
	}
	for _, one := range list {
		if one.post {
			continue
		}
		if err := m.awaitOlder(ctx, one); err != nil {
			return err
		}
		if err := m.apply(ctx, one); err != nil {
			return err
		}
	}
	if err := m.record(ctx); err != nil || len(s.Post) == 0 {
		return err
	}
	_, err = m.runPost(ctx, false)
	return err
}

// fill runs all migrations on an empty database in order. There are no other
// nodes.
func (m *migrator) fill(ctx context.Context) error {
	p, err := m.provider(m.pool)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return err
	}
	return m.record(ctx)
}

func (m *migrator) runPost(ctx context.Context, now bool) (waiting []string, err error) {
	list, err := m.pending(ctx, m.pool)
	if err != nil {
		return nil, err
	}
	var age time.Duration
	if !now {
		if age, err = m.age(ctx); err != nil {
			return nil, err
		}
	}
	for _, one := range list {
		if !one.post {
			return nil, fmt.Errorf("the migration %s comes first: start this release", one.name)
		}
		older, err := m.olderNodes(ctx, one.oldest)
		if err != nil {
			return nil, err
		}
		if len(older) > 0 || len(waiting) > 0 || !now && age < postAfter {
			waiting = append(waiting, one.name)
			continue
		}
		if err := m.apply(ctx, one); err != nil {
			return nil, err
		}
	}
	return waiting, nil
}

// apply runs a migration and retries if it did not get a lock.
func (m *migrator) apply(ctx context.Context, mig migration) error {
	pool := m.pool
	if mig.concurrent {
		pool = m.writer.db // it waits for long, but does not block others
	}
	p, err := m.provider(pool)
	if err != nil {
		return err
	}
	err = m.retry(ctx, func() error {
		_, err := p.ApplyVersion(ctx, mig.version, true)
		return err
	})
	if errors.Is(mapError(err), errBusy) {
		return fmt.Errorf("%s: the tables were locked by other transactions. Find long transactions in pg_stat_activity, and try again: %w", mig.name, err)
	}
	return err
}

// retry runs f until it gets its locks, up to ddlTries times.
func (m *migrator) retry(ctx context.Context, f func() error) error {
	pause := 50 * time.Millisecond
	for try := 1; ; try++ {
		err := f()
		if err == nil || try == ddlTries || !errors.Is(mapError(err), errBusy) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause): // lets others use the table
		}
		pause = min(2*pause, ddlPause)
	}
}

// awaitOlder waits until no incompatible node is running.
func (m *migrator) awaitOlder(ctx context.Context, mig migration) error {
	for end := time.Now().Add(olderWait); ; {
		older, err := m.olderNodes(ctx, mig.oldest)
		if err != nil || len(older) == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s cannot run beside nodes of a release with a schema version below %d: stop %s first", mig.name, mig.oldest, strings.Join(older, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// olderNodes returns the names of running nodes whose release has an older schema
// than oldest.
func (m *migrator) olderNodes(ctx context.Context, oldest int64) ([]string, error) {
	if m.kind == sqliteKind {
		return nil, nil
	}
	if has, err := m.hasTable(ctx, "nodes"); err != nil || !has {
		return nil, err
	}
	return column[string](ctx, m.pool, `SELECT name FROM nodes WHERE schema_version < $1 AND seen_at > $2 ORDER BY name LIMIT 20`,
		oldest, time.Now().Add(-nodeLost).UnixMicro())
}

// age returns how long ago the latest migration ran.
func (m *migrator) age(ctx context.Context) (time.Duration, error) {
	query := `SELECT unixepoch() - unixepoch(MAX(tstamp)) FROM goose_db_version`
	if m.kind == postgresKind {
		query = `SELECT CAST(EXTRACT(EPOCH FROM CAST(now() AS timestamp) - MAX(tstamp)) AS BIGINT) FROM goose_db_version`
	}
	found, err := column[int64](ctx, m.pool, query)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return time.Duration(found[0]) * time.Second, nil
}

// record stores which releases each migration is compatible with, for older releases that
// do not contain the migration.
func (m *migrator) record(ctx context.Context) error {
	if has, err := m.hasTable(ctx, "schema_versions"); err != nil || !has {
		return err
	}
	list, err := m.listMigrations()
	if err != nil {
		return err
	}
	recorded, err := column[int64](ctx, m.pool, `SELECT version FROM schema_versions`)
	if err != nil {
		return err
	}
	has := map[int64]bool{}
	for _, version := range recorded {
		has[version] = true
	}
	var rows []string
	var args []any
	for _, one := range list {
		if !has[one.version] {
			rows = append(rows, fmt.Sprintf(`($%d, $%d)`, len(args)+1, len(args)+2))
			args = append(args, one.version, one.oldest)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err = m.pool.ExecContext(ctx, `INSERT INTO schema_versions (version, oldest) VALUES `+strings.Join(rows, `, `)+` ON CONFLICT DO NOTHING`, args...)
	return err
}

func (m *migrator) hasTable(ctx context.Context, name string) (bool, error) {
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name = $1`
	if m.kind == postgresKind {
		query = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1`
	}
	found, err := column[string](ctx, m.pool, query, name)
	return len(found) > 0, err
}

func (d *DB) provider(pool *sql.DB) (*goose.Provider, error) {
	source, err := d.source()
	if err != nil {
		return nil, err
	}
	dialect := goose.DialectSQLite3
	if d.kind == postgresKind {
		dialect = goose.DialectPostgres
	}
	return goose.NewProvider(dialect, pool, dialectFS{source, d.kind}, goose.WithDisableGlobalRegistry(true))
}

func (m *migrator) migrateQueue(ctx context.Context) error {
	if m.kind == postgresKind {
		return migrateRiver(ctx, func() (*rivermigrate.Migrator[*sql.Tx], error) {
			return rivermigrate.New(riverdatabasesql.New(m.pool), nil)
		})
	}
	return migrateRiver(ctx, func() (*rivermigrate.Migrator[*sql.Tx], error) {
		return rivermigrate.New(riversqlite.New(m.pool), nil)
	})
}

func migrateRiver(ctx context.Context, open func() (*rivermigrate.Migrator[*sql.Tx], error)) error {
	m, err := open()
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// lock prevents concurrent migrations: with an advisory lock on PostgreSQL, with a
// lock file beside the database on SQLite.
func (d *DB) lock(ctx context.Context) (unlock func(), err error) {
	if d.kind == postgresKind {
		return d.lockPostgres(ctx)
	}
	f, err := os.OpenFile(d.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lockPostgres polls the lock: a statement that waits for it would be an open
// transaction, which a concurrent index build waits for.
func (d *DB) lockPostgres(ctx context.Context) (unlock func(), err error) {
	conn, err := d.writer.db.Conn(ctx)
	if err != nil {
		return nil, because(ctx, err)
	}
	for {
		var locked bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", int64(migrateLock)).Scan(&locked); err != nil {
			return nil, errors.Join(because(ctx, err), conn.Close())
		}
		if locked {
			break
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), conn.Close())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return func() {
		if _, err := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrateLock)); err != nil {
			// Closing the connection releases the lock.
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = conn.Close()
	}, nil
}
