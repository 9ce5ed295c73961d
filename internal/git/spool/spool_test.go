package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"svc/internal/waittest"
)

func openSpool(t *testing.T, budget int64) *Spool {
	t.Helper()
	s, err := New(t.TempDir(), budget, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// failing accepts some bytes and then fails.
type failing struct{ left int }

var errGone = errors.New("the client is gone")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errGone
	}
	return len(p), nil
}

// pattern returns content without repetitions.
func pattern(n int) []byte {
	rnd := rand.New(rand.NewPCG(3, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// inPieces returns a function that writes content piece by piece and counts its calls.
func inPieces(content []byte, piece int, calls *atomic.Int32) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		calls.Add(1)
		for p := content; len(p) > 0; {
			n, err := w.Write(p[:min(piece, len(p))])
			if err != nil {
				return err
			}
			p = p[n:]
		}
		return nil
	}
}

func TestSpoolServesMany(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 4096, 100_000, 1 << 20} {
		s := openSpool(t, 4<<20)
		content := pattern(size)
		var calls atomic.Int32
		begin := make(chan struct{})
		write := inPieces(content, 3000, &calls)
		produce := func(ctx context.Context, w io.Writer) error {
			<-begin
			return write(ctx, w)
		}
		var wg sync.WaitGroup
		read := func() {
			var got bytes.Buffer
			if err := s.Serve(t.Context(), "repo", "key", &got, produce); err != nil || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%d bytes of %d: %v", got.Len(), size, err)
			}
		}
		for range 20 {
			wg.Go(read)
		}
		waittest.For(t, "the others have come so far", func() bool { return s.readers("key") == 20 })
		close(begin)
		wg.Wait()
		read() // and a later reader
		if n := calls.Load(); n != 1 {
			t.Errorf("made %d times", n)
		}
		if used, _ := s.Usage(); used != int64(size) {
			t.Errorf("%d bytes are counted for %d", used, size)
		}
		s.Forget("other")
		if used, _ := s.Usage(); used != int64(size) {
			t.Error("another repository was forgotten")
		}
		s.Forget("repo")
		if used, items := s.Usage(); used != 0 || items != 0 {
			t.Errorf("%d bytes are left", used)
		}
		if files, err := os.ReadDir(s.dir); err != nil || len(files) != 0 {
			t.Errorf("%v, %v", files, err)
		}
	}
}

func (s *Spool) readers(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.items[key]; ok {
		return len(i.readers)
	}
	return 0
}

func TestSpoolIsBounded(t *testing.T) {
	t.Parallel()
	s := openSpool(t, 400_000)
	var calls atomic.Int32
	read := func(key string, size int, w io.Writer) {
		t.Helper()
		var got bytes.Buffer
		content := pattern(size)
		if err := s.Serve(t.Context(), "repo", key, io.MultiWriter(&got, w), inPieces(content, 5000, &calls)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if !bytes.Equal(got.Bytes(), content) {
			t.Errorf("%s: %d of %d bytes", key, got.Len(), size)
		}
	}
	// The most recently used item is kept.
	for _, key := range []string{"a", "b", "c", "a", "d", "a"} {
		read(key, 120_000, io.Discard)
	}
	if n := calls.Load(); n != 4 {
		t.Errorf("made %d times", n)
	}
	if used, _ := s.Usage(); used > s.budget {
		t.Errorf("%d bytes", used)
	}
	// Output that is larger than the spool is served, but not shared.
	most := atomic.Int64{}
	watch := writerFunc(func(p []byte) (int, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		most.Store(max(most.Load(), s.used))
		return len(p), nil
	})
	read("large", 3_000_000, watch)
	read("large", 3_000_000, watch)
	if n := calls.Load(); n != 6 || most.Load() > s.budget {
		t.Errorf("made %d times, %d of %d bytes", n, most.Load(), s.budget)
	}
	// Two concurrent items share the space, and a third one without space is not spooled.
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() { read(fmt.Sprint("many", i), 50_000+i, watch) })
	}
	wg.Wait()
	if used, _ := s.Usage(); most.Load() > s.budget || used > s.budget {
		t.Errorf("%d and %d of %d bytes", most.Load(), used, s.budget)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestSpoolReaderLeaves(t *testing.T) {
	t.Parallel()
	s := openSpool(t, 1<<20)
	content := pattern(300_000)
	next, ended := make(chan struct{}), make(chan error, 1)
	produce := func(ctx context.Context, w io.Writer) (err error) {
		defer func() { ended <- err }()
		for at := 0; at < len(content); at += 1000 {
			select {
			case <-next:
			case <-ctx.Done():
				return ctx.Err()
			}
			if _, err := w.Write(content[at : at+1000]); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, failed, whole := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { first <- s.Serve(ctx, "repo", "k", io.Discard, produce) }()
	waittest.For(t, "the others have come so far", func() bool { return s.readers("k") == 1 })
	go func() { failed <- s.Serve(t.Context(), "repo", "k", &failing{5000}, nil) }()
	var got bytes.Buffer
	go func() { whole <- s.Serve(t.Context(), "repo", "k", &got, nil) }()
	waittest.For(t, "the others have come so far", func() bool { return s.readers("k") == 3 })
	for range 10 {
		next <- struct{}{}
	}
	if err := <-failed; !errors.Is(err, errGone) {
		t.Error(err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) { // the caller that started it
		t.Error(err)
	}
	close(next)
	if err := <-whole; err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	// The producer stops after its last reader.
	s.Forget("repo")
	next = make(chan struct{})
	ctx, cancel = context.WithCancel(t.Context())
	go func() { first <- s.Serve(ctx, "repo", "k", io.Discard, produce) }()
	waittest.For(t, "the others have come so far", func() bool { return s.readers("k") == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-first
	waittest.For(t, "the others have come so far", func() bool { used, items := s.Usage(); return used == 0 && items == 0 })
}

func TestSpoolFails(t *testing.T) {
	t.Parallel()
	s := openSpool(t, 1<<20)
	broken := errors.New("the disk is on fire")
	begin := make(chan struct{})
	produce := func(_ context.Context, w io.Writer) error {
		<-begin
		_, err := w.Write([]byte("half"))
		return errors.Join(err, broken)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var got bytes.Buffer
			if err := s.Serve(t.Context(), "repo", "k", &got, produce); !errors.Is(err, broken) || got.String() != "half" {
				t.Errorf("%q, %v", got.String(), err)
			}
		})
	}
	waittest.For(t, "the others have come so far", func() bool { return s.readers("k") == 3 })
	close(begin)
	wg.Wait()
	if used, items := s.Usage(); used != 0 || items != 0 {
		t.Errorf("%d bytes are kept", used)
	}
	var calls atomic.Int32
	if err := s.Serve(t.Context(), "repo", "k", io.Discard, inPieces([]byte("x"), 1, &calls)); err != nil || calls.Load() != 1 {
		t.Errorf("the next one: %v", err)
	}
	var none *Spool
	var got bytes.Buffer
	if err := none.Serve(t.Context(), "repo", "k", &got, inPieces([]byte("x"), 1, &calls)); err != nil || got.String() != "x" {
		t.Errorf("without a spool: %q, %v", got.String(), err)
	}
}

// TestSpoolTimes checks that a reader that makes no progress is cut off when others need the
// space, and that complete items expire.
func TestSpoolTimes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(dir, 8*4096, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		content := pattern(50 * 4096)
		var calls atomic.Int32
		begin := make(chan struct{})
		write := inPieces(content, 4096, &calls)
		produce := func(ctx context.Context, w io.Writer) error {
			<-begin
			return write(ctx, w)
		}
		slow, quick := make(chan error), make(chan error)
		stuck := make(chan struct{})
		go func() {
			slow <- s.Serve(t.Context(), "repo", "k", writerFunc(func(p []byte) (int, error) { <-stuck; return len(p), nil }), produce)
		}()
		var got bytes.Buffer
		go func() { quick <- s.Serve(t.Context(), "repo", "k", &got, produce) }()
		synctest.Wait()
		close(begin)
		began := time.Now()
		if err := <-quick; err != nil || !bytes.Equal(got.Bytes(), content) || calls.Load() != 1 {
			t.Errorf("%d bytes, %v", got.Len(), err)
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("after %v", took)
		}
		close(stuck)
		if err := <-slow; !errors.Is(err, errCutOff) {
			t.Error(err)
		}
		small := inPieces(content[:10], 10, &calls)
		for _, pause := range []time.Duration{0, 59 * time.Minute, 2 * time.Minute} {
			time.Sleep(pause)
			if err := s.Serve(t.Context(), "repo", "small", io.Discard, small); err != nil {
				t.Error(err)
			}
		}
		if n := calls.Load(); n != 3 {
			t.Errorf("made %d times", n)
		}
		time.Sleep(2 * time.Hour)
		if used, items := s.Usage(); used != 0 || items != 0 {
			t.Errorf("%d bytes are left", used)
		}
		s.Close()
	})
}
