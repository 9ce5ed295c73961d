package compat

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

var databases atomic.Int64

// newDatabase creates an empty database on the server of TEST_POSTGRES and returns
// its URL. It is dropped when the test ends. The databases of a killed run are
// dropped by internal/db/dbtest, which uses the same naming scheme and drops those
// whose process has ended.
func newDatabase(t *testing.T) string {
	t.Helper()
	host, _ := os.Hostname() // on an error, the name is empty
	name := fmt.Sprintf("svc_test_%08x_%d_compat%d", crc32.ChecksumIEEE([]byte(host)), os.Getpid(), databases.Add(1))
	if err := execute("CREATE DATABASE " + name + " TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execute("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(os.Getenv("TEST_POSTGRES"))
	if err != nil {
		t.Fatalf("TEST_POSTGRES: %v", err)
	}
	u.Path = "/" + name
	// A busy machine may take long to start the backend process of a connection.
	query := u.Query()
	query.Set("connect_timeout", "120")
	u.RawQuery = query.Encode()
	return u.String()
}

// execute runs a statement as the user who can create databases. It has a separate
// deadline, because the context of the test is canceled in cleanups.
func execute(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, os.Getenv("TEST_POSTGRES"))
	if err != nil {
		return fmt.Errorf("TEST_POSTGRES: %w", err)
	}
	_, err = conn.Exec(ctx, statement)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
