package joblog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// TestLiveLog runs the same tests on both implementations of liveStore.
func TestLiveLog(t *testing.T) {
	t.Parallel()
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		testLiveLog(t, &segmentStore{dir: t.TempDir(), limit: 16})
	})
	t.Run("chunks", func(t *testing.T) {
		t.Parallel()
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			testLiveLog(t, &chunkStore{chunkDB(t, d)})
		})
	})
}

// chunkDB inserts the jobs that the chunks belong to.
func chunkDB(t *testing.T, d *db.DB) *db.DB {
	t.Helper()
	err := d.Tx(t.Context(), func(tx *db.Tx) error {
		for _, query := range []string{
			`INSERT INTO namespaces (id, kind, path, name, full_path, full_name, created_at, updated_at) VALUES (1, 'group', 'g', 'g', 'g', 'g', 0, 0)`,
			`INSERT INTO projects (id, namespace_id, path, name, full_path, last_activity_at, created_at, updated_at) VALUES (1, 1, 'p', 'p', 'g/p', 0, 0, 0)`,
			`INSERT INTO pipelines (id, project_id, iid, status, source, ref, sha, before_sha, created_at, updated_at) VALUES (1, 1, 1, 'running', 'api', 'main', '', '', 0, 0)`,
			`INSERT INTO jobs (id, project_id, pipeline_id, status, name, stage, stage_index, run_when, ref, timeout, created_at, updated_at)
				VALUES (7, 1, 1, 'running', 'a', 'b', 0, 'on_success', 'main', 1, 0, 0), (8, 1, 1, 'running', 'a', 'b', 0, 'on_success', 'main', 1, 0, 0)`,
		} {
			if _, err := tx.ExecContext(t.Context(), query); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func testLiveLog(t *testing.T, l liveStore) {
	ctx := t.Context()
	if r, err := l.open(ctx, 7, false); r != nil || err != nil {
		t.Fatalf("a log that is not there: %v %v", r, err)
	}
	add := func(at int64, text string) (int64, error) { return l.add(ctx, 7, at, []byte(text)) }
	if n, err := add(0, "hello "); n != 6 || err != nil {
		t.Fatalf("add: %d %v", n, err)
	}
	for _, at := range []int64{0, 5, 7} {
		var gap *GapError
		if _, err := add(at, "x"); !errors.As(err, &gap) || gap.Size != 6 {
			t.Errorf("add at %d: %v, want a gap at 6", at, err)
		}
	}
	if n, err := add(6, "world"); n != 11 || err != nil {
		t.Fatalf("add: %d %v", n, err)
	}
	if got := readLog(t, l, 7, false); got != "hello world" {
		t.Errorf("log is %q", got)
	}
	seekLog(t, l)
	if n, err := l.add(ctx, 8, 0, []byte("other")); n != 5 || err != nil {
		t.Errorf("another job: %d %v", n, err)
	}

	// Of many concurrent appends at one offset, one succeeds.
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 8 {
		wg.Go(func() {
			if _, err := add(11, "!"); err == nil {
				mu.Lock()
				defer mu.Unlock()
				won++
			}
		})
	}
	if wg.Wait(); won != 1 {
		t.Errorf("%d appends at one offset succeeded", won)
	}

	// A restarted log does not shrink for readers.
	if again, err := l.restarted(ctx, 7); again || err != nil {
		t.Errorf("restarted: %v %v", again, err)
	}
	if err := l.restart(ctx, 7); err != nil {
		t.Fatal(err)
	}
	if again, err := l.restarted(ctx, 7); !again || err != nil {
		t.Errorf("restarted: %v %v", again, err)
	}
	if n, err := l.size(ctx, 7); n != 0 || err != nil {
		t.Errorf("size after restart: %d %v", n, err)
	}
	if _, err := add(0, "HELLO"); err != nil {
		t.Fatal(err)
	}
	if got := readLog(t, l, 7, false); got != "hello world!" {
		t.Errorf("log is %q", got)
	}
	if got := readLog(t, l, 7, true); got != "HELLO" {
		t.Errorf("newest log is %q", got)
	}
	if _, err := add(5, " WORLD!!"); err != nil {
		t.Fatal(err)
	}
	if got := readLog(t, l, 7, false); got != "HELLO WORLD!!" {
		t.Errorf("log is %q", got)
	}
	if ids, err := l.jobs(ctx); err != nil || len(ids) != 2 || ids[0] != 7 || ids[1] != 8 {
		t.Errorf("jobs: %v %v", ids, err)
	}
	if err := errors.Join(l.sync(ctx, 7), l.remove(ctx, 7), l.remove(ctx, 7)); err != nil {
		t.Fatal(err)
	}
	if ids, err := l.jobs(ctx); err != nil || len(ids) != 1 {
		t.Errorf("jobs: %v %v", ids, err)
	}
}

func readLog(t *testing.T, l liveStore, jobID int64, newest bool) string {
	t.Helper()
	r, err := l.open(t.Context(), jobID, newest)
	if err != nil || r == nil {
		t.Fatalf("open: %v %v", r, err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(text)) != r.Size {
		t.Errorf("the log has %d bytes and says %d", len(text), r.Size)
	}
	return string(text)
}

// seekLog reads from every offset of "hello world".
func seekLog(t *testing.T, l liveStore) {
	t.Helper()
	r, err := l.open(context.WithoutCancel(t.Context()), 7, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for from := range int64(12) {
		if _, err := r.Seek(from, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(text, []byte("hello world")[from:]) {
			t.Errorf("from %d: %q %v", from, text, err)
		}
	}
}
