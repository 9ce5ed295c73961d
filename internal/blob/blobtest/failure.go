package blobtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"svc/internal/blob"
	"svc/internal/errs"
)

// afterFailure checks that a failed Put has changed nothing.
func afterFailure(t *testing.T, s blob.Store) {
	t.Helper()
	check(t, s, "old", "as it was")
	checkKeys(t, s, "", "old")
}

// failures returns the lengths after which a body fails: immediately, in the first
// part of an upload, and later.
func failures() []int64 { return []int64{0, 1000, 8 * mib, 17 * mib} }

func testWrongSize(t *testing.T, s blob.Store) {
	put(t, s, "old", "as it was")
	for _, tt := range []struct{ is, said int64 }{
		{0, 10}, {9, 10}, {11, 10}, {8 * mib, 8*mib + 1}, {8*mib + 1, 8 * mib}, {9 * mib, 3}, {17 * mib, 18 * mib},
	} {
		for _, key := range []string{"old", "new"} {
			_, err := s.Put(t.Context(), key, plain{pattern(7, tt.is)}, blob.Options{Size: tt.said})
			checkKind(t, fmt.Sprintf("%d bytes announced as %d", tt.is, tt.said), err, errs.KindInvalid)
			afterFailure(t, s)
		}
	}
}

func testBodyBreaksOff(t *testing.T, s blob.Store) {
	put(t, s, "old", "as it was")
	broken := errors.New("the client went away")
	for _, n := range failures() {
		for _, key := range []string{"old", "new", "new/dir/x"} {
			body := io.MultiReader(pattern(8, n), failing{broken})
			_, err := s.Put(t.Context(), key, body, blob.Options{Size: 30 * mib})
			if !errors.Is(err, broken) {
				t.Errorf("Put of %d bytes and an error: %v", n, err)
			}
			afterFailure(t, s)
		}
	}
	// The kind of an error is kept, so that an interface can respond with its
	// status.
	_, err := s.Put(t.Context(), "new", failing{errs.TooLarge("too large")}, blob.Options{})
	checkKind(t, "body over its limit", err, errs.KindTooLarge)
	afterFailure(t, s)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func testCancelled(t *testing.T, s blob.Store) {
	put(t, s, "old", "as it was")
	for _, n := range failures() {
		for _, key := range []string{"old", "new"} {
			ctx, cancel := context.WithCancel(t.Context())
			// The body is endless: only the context stops it.
			body := io.MultiReader(pattern(9, n), calling(cancel), pattern(9, 1<<62))
			_, err := s.Put(ctx, key, body, blob.Options{})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Put cancelled after %d bytes: %v", n, err)
			}
			afterFailure(t, s)

			// The context ends at the end of the body: the object must not be stored
			// either.
			ctx, cancel = context.WithCancel(t.Context())
			_, err = s.Put(ctx, key, io.MultiReader(pattern(9, n), calling(cancel)), blob.Options{})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Put cancelled at the end of %d bytes: %v", n, err)
			}
			afterFailure(t, s)
		}
	}
}

// calling is an empty reader that calls a function when it is read.
type calling func()

func (c calling) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}

// testPutsAtOnce writes one key concurrently, with a different text and size per
// writer. Readers must always get one complete text.
func testPutsAtOnce(t *testing.T, s blob.Store) {
	const writers = 4
	texts := map[string]bool{}
	var all []string
	for i := range writers {
		// Some are uploaded in parts, others in one request.
		size := 100_000
		if i%2 == 0 {
			size = 9*mib + i
		}
		text := strings.Repeat(string(rune('a'+i)), size)
		texts[text] = true
		all = append(all, text)
	}
	put(t, s, "k", all[0])
	var wg sync.WaitGroup
	for _, text := range all {
		wg.Go(func() {
			for range 2 {
				if _, err := s.Put(t.Context(), "k", plain{strings.NewReader(text)}, blob.Options{}); err != nil {
					t.Errorf("Put: %v", err)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 8 {
				got, err := read(s, t, "k")
				if errs.Is(err, errs.KindPrecondition) {
					continue // replaced between Get and Read
				}
				if err != nil || !texts[got] {
					t.Errorf("a reader saw %d bytes, %v: none of those put", len(got), err)
				}
			}
		})
	}
	wg.Wait()
	if got, err := read(s, t, "k"); err != nil || !texts[got] {
		t.Errorf("at the end there are %d bytes, %v: none of those put", len(got), err)
	}
	checkKeys(t, s, "", "k")
}

// testPutsAndDeletesAtOnce puts and deletes objects of one directory concurrently.
// One object is kept, so that the directory is not removed: a server that stores
// objects in directories may reject a Put while it removes the directory.
func testPutsAndDeletesAtOnce(t *testing.T, s blob.Store) {
	put(t, s, "dir/sub/stays", "stays")
	PutsAndDeletes(t, s)
	checkKeys(t, s, "", "dir/sub/stays")
}

// PutsAndDeletes puts, reads and deletes objects of the directory dir/sub
// concurrently. It checks the effect of each Put and each Delete.
func PutsAndDeletes(t *testing.T, s blob.Store) {
	t.Helper()
	const workers, rounds = 8, 25
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			key := fmt.Sprintf("dir/sub/%d", w)
			for range rounds {
				if _, err := s.Put(t.Context(), key, strings.NewReader(key), blob.Options{}); err != nil {
					t.Errorf("Put(%s): %v", key, err)
				}
				check(t, s, key, key)
				if err := s.Delete(t.Context(), key); err != nil {
					t.Errorf("Delete(%s): %v", key, err)
				}
				_, err := s.Stat(t.Context(), key)
				checkKind(t, "Stat after Delete", err, errs.KindNotFound)
			}
		})
	}
	wg.Wait()
}
