package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// postgresConns is the maximum number of connections of a node, apart from genericConns.
	// A PostgreSQL server allows 100 by default, so several nodes fit.
	postgresConns = 24
	// genericConns is the maximum number of connections for queries whose plans are kept.
	genericConns = 6
)

// connectTime is the default time limit for connecting. An unreachable server must
// not block requests.
const connectTime = 10 * time.Second

func postgresConfig(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err) // pgx hides the password
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "svc"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTime
	}
	return cfg, nil
}

// idleTimeout is the setting that ends the connection of a transaction that sends no statement for
// a while. A node that is frozen would keep its row locks, and all connections of other nodes
// would wait for them in the end. It is not in the parameters of the connection, because
// connection poolers refuse it there.
const idleTimeout = "idle_in_transaction_session_timeout"

// openImpatient opens a pool whose statements wait for locks for at most ddlWait.
func openImpatient(url string) (*sql.DB, error) {
	cfg, err := postgresConfig(url)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(Connect(cfg, fmt.Sprintf("SET lock_timeout = %d", ddlWait.Milliseconds())))
	pool.SetMaxOpenConns(2)
	return pool, nil
}

func openPostgres(ctx context.Context, url string) (*DB, error) {
	cfg, err := postgresConfig(url)
	if err != nil {
		return nil, err
	}
	pool := func(most int, setUp string) *sql.DB {
		p := sql.OpenDB(connect(cfg, setUp))
		p.SetMaxOpenConns(most)
		p.SetMaxIdleConns(most) // each caches prepared statements
		p.SetConnMaxIdleTime(5 * time.Minute)
		return p
	}
	setUp := ""
	if cfg.RuntimeParams[idleTimeout] == "" {
		setUp = fmt.Sprintf("SET %s = %d", idleTimeout, patience.Milliseconds())
	}
	sqlDB := pool(postgresConns, setUp)
	if err := sqlDB.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", mapError(err)), sqlDB.Close())
	}
	d := &DB{kind: postgresKind, url: url}
	d.writer.db, d.writer.rebind = sqlDB, true
	d.generic.db, d.generic.rebind = pool(genericConns, "SET plan_cache_mode = force_generic_plan"), true
	return d, nil
}

// Connector opens the connections of a pool. Each connection is new and has run setUp, if
// that is not empty.
type Connector func(cfg *pgx.ConnConfig, setUp string) driver.Connector

// connect is the Connector of this process.
var connect Connector = Connect

// ReplaceConnector replaces the Connector of PostgreSQL pools, for tests. It must be called
// before a database is opened.
func ReplaceConnector(c Connector) { connect = c }

// Connect is the Connector of the server.
func Connect(cfg *pgx.ConnConfig, setUp string) driver.Connector {
	return stdlib.GetConnector(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		if setUp == "" {
			return nil
		}
		_, err := c.Exec(ctx, setUp)
		return err
	}))
}

// planned returns the database for short queries whose best plan does not depend on the
// values of their arguments, because they start with a few candidates.
//
// PostgreSQL plans a statement for the values of its arguments each time it runs, if it
// expects that plan to be cheaper than the generic plan. Conditions on what a user can see
// take several milliseconds to plan, but less than one to run for a page. Therefore these
// queries have their own connections, which always use the generic plan.
func (d *DB) planned() Q {
	if d.kind == postgresKind {
		return planned{d}
	}
	return d
}

// planned runs queries that only read with generic plans.
type planned struct{ *DB }

func (p planned) QueryContext(ctx context.Context, query string, args ...any) (*Rows, error) {
	return p.queryRows(ctx, &p.generic, query, args)
}

func (p planned) QueryRowContext(ctx context.Context, query string, args ...any) *Row {
	rows, err := p.QueryContext(ctx, query, args...)
	return &Row{rows: rows, err: err}
}
