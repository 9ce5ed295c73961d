package limit

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"svc/internal/errs"
)

// from returns the context of a request by a user, or by an anonymous client if user
// is 0.
func from(addr string, user int64) context.Context {
	ctx := WithAddress(context.Background(), addr)
	Identify(ctx, user)
	return ctx
}

func hold(t *testing.T, s *Share, ctx context.Context) func() {
	t.Helper()
	release, err := s.Acquire(ctx)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return release
}

func wantBusy(t *testing.T, s *Share, ctx context.Context) {
	t.Helper()
	if _, err := s.Acquire(ctx); !errs.Is(err, errs.KindUnavailable) {
		t.Fatalf("got %v, want a refusal because the server is busy", err)
	}
}

func TestShareKeepsAReserve(t *testing.T) {
	t.Parallel()
	s := NewShare("transfers", ShareLimits{Total: 4, Reserve: 2, PerUser: 1, PerAddress: 1, Wait: 0})
	hold(t, s, from("192.0.2.1:1000", 0))
	wantBusy(t, s, from("192.0.2.1:2000", 0)) // the same address
	hold(t, s, from("[2001:db8::1]:1", 0))
	wantBusy(t, s, from("[2001:db8::2]:1", 0)) // the same /64
	wantBusy(t, s, from("192.0.2.3:1", 0))     // only the reserved slots are free
	release := hold(t, s, from("192.0.2.1:1", 7))
	wantBusy(t, s, from("192.0.2.9:1", 7)) // the same user
	hold(t, s, from("192.0.2.1:1", 8))
	wantBusy(t, s, from("192.0.2.1:1", 9)) // no slot is free
	release()
	release() // the second call does nothing
	hold(t, s, context.Background())
	wantBusy(t, s, context.Background())
	if s.Held() != 4 {
		t.Errorf("%d slots are held, want 4", s.Held())
	}
}

func TestSharePassesOverThoseWhoHoldTheirShare(t *testing.T) {
	t.Parallel()
	s := NewShare("transfers", ShareLimits{Total: 2, PerUser: 1, Wait: time.Hour})
	first := hold(t, s, from("192.0.2.1:1", 1))
	second := hold(t, s, from("192.0.2.1:1", 2))
	got := make(chan int64, 2)
	var wg sync.WaitGroup
	for i, user := range []int64{1, 3} { // user 1 calls before user 3
		wg.Go(func() {
			release, err := s.Acquire(from("192.0.2.1:1", user))
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			got <- user
		})
		for s.queued() != i+1 {
			runtime.Gosched()
		}
	}
	second()
	if user := <-got; user != 3 {
		t.Errorf("user %d got the slot, want 3: user 1 holds its share", user)
	}
	first()
	if user := <-got; user != 1 {
		t.Errorf("user %d got the slot, want 1", user)
	}
	wg.Wait()
	if len(s.held) != 0 || len(s.waiting) != 0 || len(s.queue) != 0 || s.total != 0 || s.anonymous != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

func TestShareBoundsThoseWhoWait(t *testing.T) {
	t.Parallel()
	s := NewShare("transfers", ShareLimits{Total: 1, Wait: time.Hour, Queue: 1})
	release := hold(t, s, from("192.0.2.1:1", 1))
	ctx, cancel := context.WithCancel(from("192.0.2.1:1", 1))
	ended := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx)
		ended <- err
	}()
	for s.queued() != 1 {
		runtime.Gosched()
	}
	wantBusy(t, s, from("192.0.2.1:1", 1))
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
	release()
	hold(t, s, from("192.0.2.1:1", 1))
}

func TestAddressKey(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1:80":          "192.0.2.1",
		"192.0.2.1":             "192.0.2.1",
		"[::ffff:192.0.2.1]:80": "192.0.2.1",
		"2001:db8:1:2:3:4:5:6":  "2001:db8:1:2::/64",
		"[2001:db8:1:2::9]:443": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:443":    "fe80::/64",
		"pipe":                  "pipe",
		"":                      "",
	} {
		if got := AddressKey(addr); got != want {
			t.Errorf("AddressKey(%q) = %q, want %q", addr, got, want)
		}
	}
}

// queued returns the number of waiting calls.
func (s *Share) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}
