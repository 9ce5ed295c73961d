package db_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// TestMain runs a part of a test in a process of its own, if requested.
func TestMain(m *testing.M) {
	part, path := os.Getenv("TEST_DB_CHILD"), os.Getenv("TEST_DB_PATH")
	if part == "" {
		os.Exit(m.Run())
	}
	if err := map[string]func(path string) error{"write": childWrite, "hold": childHold}[part](path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child starts the test binary again to run one part. Its output can be read while it
// runs.
func child(t *testing.T, part, path string) (*exec.Cmd, io.WriteCloser, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_DB_CHILD="+part, "TEST_DB_PATH="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, out
}

// childWrite inserts rows until it is killed, and prints the ID of each row after the
// commit.
func childWrite(path string) error {
	ctx := context.Background()
	d, err := db.Open(ctx, "", path)
	if err != nil {
		return err
	}
	fault := make(chan error)
	for n := range 4 {
		go func() {
			for {
				var id int64
				var err error
				const insert = "INSERT INTO audit_rows (text) VALUES (?) RETURNING id"
				if n%2 == 0 {
					err = d.QueryRowContext(ctx, insert, "one").Scan(&id)
				} else {
					err = d.Tx(ctx, func(tx *db.Tx) error {
						if err := tx.QueryRowContext(ctx, insert, "first").Scan(&id); err != nil {
							return err
						}
						_, err := tx.ExecContext(ctx, "INSERT INTO audit_rows (text) VALUES (?)", fmt.Sprintf("after %d", id))
						return err
					})
				}
				if err != nil {
					fault <- err
				}
				os.Stdout.WriteString(strconv.FormatInt(id, 10) + "\n") // one write, so that a line is whole or missing
			}
		}()
	}
	return <-fault
}

func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	t.Parallel()
	src := dbtest.SQLite(t)
	d := src.Open(t)
	must(t, d, "CREATE TABLE audit_rows (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	acknowledged := []int64{}
	for range 4 {
		cmd, _, out := child(t, "write", src.Path)
		lines := bufio.NewScanner(out)
		for first := true; lines.Scan(); first = false {
			id, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				t.Fatalf("the child printed %q", lines.Text())
			}
			acknowledged = append(acknowledged, id)
			if first {
				after := rand.N(150 * time.Millisecond)
				time.AfterFunc(after, func() {
					if err := cmd.Process.Kill(); err != nil {
						t.Error(err)
					}
				})
			}
		}
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("the child ended by itself: %v", err)
		}

		d, err := db.Open(t.Context(), "", src.Path)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := db.All(t.Context(), d, db.Value[int64], "SELECT id FROM audit_rows")
		if err != nil {
			t.Fatal(err)
		}
		found := map[int64]bool{}
		for _, id := range ids {
			found[id] = true
		}
		for _, id := range acknowledged {
			if !found[id] {
				t.Errorf("row %d was acknowledged and is gone", id)
			}
		}
		// Each transaction is either complete or missing.
		halves := count(t, d, "audit_rows f WHERE f.text = 'first' AND NOT EXISTS (SELECT 1 FROM audit_rows s WHERE s.text = 'after ' || f.id)")
		var check string
		if err := d.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" || halves != 0 {
			t.Errorf("%d halves, integrity %s, %v", halves, check, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(acknowledged) < 20 {
		t.Errorf("only %d rows were written: the test shows little", len(acknowledged))
	}
}

// childHold holds the write lock of the file until its input ends, as another program
// might.
func childHold(path string) error {
	ctx := context.Background()
	d, err := db.Open(ctx, "", path)
	if err != nil {
		return err
	}
	err = d.Tx(ctx, func(tx *db.Tx) error {
		fmt.Println("held")
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO settings VALUES ('child', '')")
		return err
	})
	if err != nil {
		return err
	}
	return d.Close()
}

// TestBusyIsRetried sets SQLite's busy timeout, normally some seconds, to 0, so that only our
// own retries wait.
func TestBusyIsRetried(t *testing.T) {
	t.Parallel()
	src := dbtest.SQLite(t)
	d := src.Open(t)
	must(t, d, "PRAGMA busy_timeout = 0")
	cmd, in, out := child(t, "hold", src.Path)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	refused := func() {
		t.Helper()
		if _, err := d.SQL().Exec("INSERT INTO settings VALUES ('bare', '')"); err == nil {
			t.Fatal("the file is not locked: the test shows nothing")
		}
	}
	refused()
	var wg, begun sync.WaitGroup
	begun.Add(3)
	wg.Go(func() { begun.Done(); must(t, d, "INSERT INTO settings VALUES ('exec', '')") })
	wg.Go(func() {
		begun.Done()
		err := d.QueryRowContext(t.Context(), "INSERT INTO settings VALUES ('row', '') RETURNING key").Scan(new(string))
		if err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		tries := 0
		begun.Done()
		err := d.Tx(t.Context(), func(tx *db.Tx) error {
			tries++
			must(t, tx, "INSERT INTO settings VALUES ('tx', '')")
			return nil
		})
		if err != nil || tries != 1 {
			t.Errorf("%d tries: %v", tries, err) // BEGIN takes the lock, so f ran once
		}
	})
	wg.Go(func() { // reads do not wait
		if n := count(t, d, "settings"); n > 4 {
			t.Error(n)
		}
	})
	// All writes share one connection: while statements of others fail on it, so do these.
	begun.Wait()
	for range 10 {
		refused()
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if n := count(t, d, "settings"); n != 4 {
		t.Errorf("%d rows", n)
	}
}
