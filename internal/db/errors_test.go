package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"svc/internal/errs"
)

func mapPostgres40001() error { return mapError(&pgconn.PgError{Code: "40001"}) }

func TestMapError(t *testing.T) {
	t.Parallel()
	if mapError(nil) != nil {
		t.Error("nil is mapped")
	}
	if err := mapError(context.Canceled); err != context.Canceled {
		t.Error(err)
	}
	for code, kind := range map[string]errs.Kind{
		"53100": errs.KindUnavailable,
		"54000": errs.KindInvalid,
		"53300": errs.KindUnavailable,
		"57P01": errs.KindUnavailable,
		"57P02": errs.KindUnavailable,
		"57P03": errs.KindUnavailable,
		"08006": errs.KindUnavailable,
		"42P01": 0,
	} {
		cause := &pgconn.PgError{Code: code}
		err := mapError(fmt.Errorf("query: %w", cause))
		if errs.KindOf(err) != kind || !errors.Is(err, cause) || errors.Is(err, errBusy) {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, lost := range []error{io.EOF, io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, closedConn{}} {
		if err := mapError(fmt.Errorf("query: %w", lost)); !errs.Is(err, errs.KindUnavailable) || !errors.Is(err, errCut) {
			t.Errorf("%v: %v", lost, err)
		}
		if err := unsure(mapError(lost)); !errs.Is(err, errs.KindUnavailable) || errors.Is(err, errCut) {
			t.Errorf("%v in a commit: %v", lost, err)
		}
	}
	for _, code := range []string{"40001", "40P01", "55P03"} {
		if err := mapError(&pgconn.PgError{Code: code}); !errors.Is(err, errBusy) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func TestIndexNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"constraint failed: UNIQUE constraint failed: index 'users_username' (2067)":                   "users_username",
		"constraint failed: UNIQUE constraint failed: settings.key (1555)":                             "settings_key",
		"constraint failed: UNIQUE constraint failed: follows.follower_id, follows.followed_id (1555)": "follows_follower_id_followed_id",
		"constraint failed: CHECK constraint failed: a > 0 (275)":                                      "",
	} {
		if got := sqliteIndex(text); got != want {
			t.Errorf("sqliteIndex(%q) = %q", text, got)
		}
	}
	for _, c := range []struct {
		err  pgconn.PgError
		want string
	}{
		{pgconn.PgError{TableName: "users", ConstraintName: "users_username", Detail: "Key (lower(username))=(a) already exists."}, "users_username"},
		{pgconn.PgError{TableName: "settings", ConstraintName: "settings_pkey", Detail: "Key (key)=(a)=(b) already exists."}, "settings_key"},
		{pgconn.PgError{TableName: "follows", ConstraintName: "follows_pkey", Detail: "Key (follower_id, followed_id)=(1, 2) already exists."}, "follows_follower_id_followed_id"},
		{pgconn.PgError{TableName: "follows", ConstraintName: "follows_pkey"}, "follows_pkey"},
	} {
		if got := postgresIndex(&c.err); got != c.want {
			t.Errorf("%s: %q, want %q", c.err.Detail, got, c.want)
		}
	}
}

// closedConn is an error as pgconn returns it for a connection that was closed
// before the statement was sent.
type closedConn struct{}

func (closedConn) Error() string     { return "conn closed" }
func (closedConn) SafeToRetry() bool { return true }
