package joblog

import (
	"bytes"
	"io"
	"testing"

	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// TestMovedLog packs logs while they are read: a reader gets exactly the bytes that
// the log had when it was opened.
func TestMovedLog(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := &chunkStore{chunkDB(t, d)}
		ctx := t.Context()
		for at, text := range map[int64]string{0: "one ", 4: "two ", 8: "three"} {
			if err := d.Tx(ctx, func(tx *db.Tx) error {
				_, err := tx.ExecContext(ctx, `INSERT INTO log_chunks (job_id, position, content) VALUES (7, ?, ?)`, at, []byte(text))
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		open := func() *movedLog {
			live, err := l.open(ctx, 7, false)
			if err != nil {
				t.Fatal(err)
			}
			return &movedLog{live: live, packed: func() (*Reader, error) {
				return &Reader{bytesCloser{bytes.NewReader([]byte("one two three and more"))}, 20}, nil
			}}
		}
		whole, half, gone := open(), open(), open()
		gone.packed = func() (*Reader, error) { return nil, nil }
		start := make([]byte, 6)
		if _, err := io.ReadFull(half, start); err != nil || string(start) != "one tw" {
			t.Fatalf("%q %v", start, err)
		}
		if err := l.remove(ctx, 7); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(half); err != nil || string(rest) != "o three" {
			t.Errorf("from the middle: %q %v", rest, err)
		}
		if n, err := half.Seek(-5, io.SeekEnd); n != 8 || err != nil {
			t.Errorf("seek: %d %v", n, err)
		}
		if rest, err := io.ReadAll(half); err != nil || string(rest) != "three" {
			t.Errorf("from another place: %q %v", rest, err)
		}
		if all, err := io.ReadAll(whole); err != nil || string(all) != "one two three" {
			t.Errorf("from the start: %q %v", all, err)
		}
		if all, err := io.ReadAll(gone); err != io.ErrUnexpectedEOF {
			t.Errorf("a log that was removed: %q %v", all, err)
		}
		for _, r := range []*movedLog{whole, half, gone} {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

type bytesCloser struct{ *bytes.Reader }

// Close implements io.Closer.
func (bytesCloser) Close() error { return nil }
