package notice_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"svc/internal/db"
	"svc/internal/db/dbtest"
	"svc/internal/notice"
)

// counted is a cache with a clock and a counter of reads.
type counted struct {
	*notice.Cache[string, int]
	now   time.Time
	reads int
}

func newCounted(b *notice.Bus) *counted {
	s := &counted{now: time.Unix(1000, 0)}
	s.Cache = notice.NewCache[string](notice.CacheOptions[int]{
		Bus: b, TTL: time.Minute, Now: func() time.Time { return s.now }, Max: 3,
		Group: func(v int) int64 { return int64(v) },
	})
	return s
}

// read returns the value, and whether it was read again.
func (s *counted) read(t *testing.T, key string, value int) (again bool) {
	t.Helper()
	before := s.reads
	got, err := s.Get(key, func() (int, bool, error) {
		s.reads++
		return value, true, nil
	})
	if got != value || err != nil {
		t.Errorf("%s is %d, want %d: %v", key, got, value, err)
	}
	return s.reads > before
}

func TestCache(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b, _ := start(t, d)
		s := newCounted(b)
		want := func(when, key string, value int, again bool) {
			t.Helper()
			if got := s.read(t, key, value); got != again {
				t.Errorf("%s: %s was read again: %t", when, key, got)
			}
		}
		want("at first", "a", 1, true)
		want("the second time", "a", 1, false)
		s.now = s.now.Add(time.Minute - 1)
		want("just before the TTL", "a", 1, false)
		s.now = s.now.Add(1)
		want("after the TTL", "a", 1, true)
		want("another key", "b", 2, true)
		s.DropGroup(1)
		want("after its group was dropped", "a", 1, true)
		want("after another group was dropped", "b", 2, false)
		s.Drop()
		want("after all were dropped", "b", 2, true)
		s.read(t, "a", 1)
		s.read(t, "c", 3)
		if s.read(t, "d", 4); s.Len() != 1 {
			t.Errorf("%d values are kept after the limit was reached", s.Len())
		}

		fault := errors.New("no")
		if _, err := s.Get("e", func() (int, bool, error) { return 0, true, fault }); err != fault || s.Len() != 1 {
			t.Errorf("got %v, %d values kept", err, s.Len())
		}
		if v, err := s.Get("e", func() (int, bool, error) { return 5, false, nil }); v != 5 || err != nil || s.Len() != 1 {
			t.Errorf("got %d, %v, %d values kept", v, err, s.Len())
		}
	})
}

// TestCacheDropWhileReading checks that a value that was read before a drop is not
// stored after it, because it may be outdated.
func TestCacheDropWhileReading(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b, _ := start(t, d)
		s := newCounted(b)
		for _, drop := range []func(){s.Drop, func() { s.DropGroup(7) }} {
			v, err := s.Get("a", func() (int, bool, error) { drop(); return 1, true, nil })
			if v != 1 || err != nil || s.Len() != 0 {
				t.Errorf("got %d, %v, %d values kept", v, err, s.Len())
			}
		}
	})
}

// TestCacheWithoutNotices checks that no cached value is used without confirmed
// notices.
func TestCacheWithoutNotices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := notice.New(notice.Deps{DB: d, Log: slog.New(slog.DiscardHandler), Now: time.Now}) // not started
		s := newCounted(b)
		s.read(t, "a", 1)
		if again := s.read(t, "a", 1); again != d.Postgres() {
			t.Errorf("read again: %t", again)
		}
	})
}

func TestSendOnWrite(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b, heard := start(t, d)
		b.SendOnWrite("thing", "settings")
		if _, err := d.ExecContext(t.Context(), "INSERT INTO settings VALUES ('a', 'b')"); err != nil {
			t.Fatal(err)
		}
		if got := heard.all(); got != "all" {
			t.Errorf("heard %q", got)
		}
	})
}
