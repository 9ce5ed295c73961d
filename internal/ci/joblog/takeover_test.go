package joblog

import (
	"bytes"
	"io"
	"os"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// TestTakeOver moves live logs from the store of the other kind of database.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		chunkDB(t, d)
		dir := t.TempDir()
		places := func() (other, own liveStore) {
			other, own = &chunkStore{d}, &segmentStore{dir: dir, limit: segmentSize}
			if d.Postgres() {
				other, own = own, other
			}
			return other, own
		}
		long := bytes.Repeat([]byte("0123456789abcdef"), 1<<16+1) // more than is moved at once
		other, _ := places()
		for id, text := range map[int64][]byte{7: long, 8: []byte("short")} {
			if _, err := other.add(t.Context(), id, 0, text); err != nil {
				t.Fatal(err)
			}
		}
		if d.Postgres() { // only files can belong to a missing job
			if _, err := other.add(t.Context(), 99, 0, []byte("orphan")); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second call changes nothing
			if err := TakeOver(t.Context(), d, dir); err != nil {
				t.Fatal(err)
			}
		}
		other, own := places()
		if left, err := other.jobs(t.Context()); len(left) != 0 || err != nil {
			t.Errorf("left behind: %v %v", left, err)
		}
		log, err := own.open(t.Context(), 7, true)
		if log == nil || err != nil {
			t.Fatal(log, err)
		}
		defer log.Close()
		if text, err := io.ReadAll(log); !bytes.Equal(text, long) || err != nil {
			t.Errorf("%d bytes, %v", len(text), err)
		}
		if ids, err := own.jobs(t.Context()); len(ids) != 2 || err != nil {
			t.Errorf("jobs %v, %v", ids, err)
		}
		if list, err := os.ReadDir(dir); d.Postgres() && len(list) != 0 || err != nil {
			t.Errorf("files stay: %v %v", list, err)
		}
	})
}
