package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresConns is the maximum number of connections of a node. A PostgreSQL
// server allows 100 by default, so several nodes fit.
const postgresConns = 24

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

// openImpatient opens a pool whose statements wait for locks at most for ddlWait.
func openImpatient(url string) (*sql.DB, error) {
	cfg, err := postgresConfig(url)
	if err != nil {
		return nil, err
	}
	pool := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", ddlWait.Milliseconds()))
		return err
	}))
	pool.SetMaxOpenConns(2)
	return pool, nil
}

func openPostgres(ctx context.Context, url string) (*DB, error) {
	cfg, err := postgresConfig(url)
	if err != nil {
		return nil, err
	}
	sqlDB := stdlib.OpenDB(*cfg)
	sqlDB.SetMaxOpenConns(postgresConns)
	sqlDB.SetMaxIdleConns(postgresConns) // each caches prepared statements
	sqlDB.SetConnMaxIdleTime(5 * time.Minute)
	if err := sqlDB.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", mapError(err)), sqlDB.Close())
	}
	d := &DB{kind: postgresKind, url: url}
	d.writer.db, d.writer.rebind = sqlDB, true
	return d, nil
}
