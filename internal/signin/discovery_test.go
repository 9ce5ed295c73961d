package signin

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDocumentTimeout checks that a provider that does not respond is asked once in
// the time of a request and of a remembered failure.
func TestDocumentTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDocument[string](time.Now)
		reads := 0
		fault := errors.New("timeout")
		read := func(context.Context) (*string, error) {
			reads++
			time.Sleep(requestTime)
			return nil, fault
		}
		for range 3 {
			go func() {
				if _, err := d.get(t.Context(), rediscover, read); !errors.Is(err, fault) {
					t.Errorf("got %v, want the failure", err)
				}
			}()
			time.Sleep(6 * time.Second) // until 0:18, after the failure at 0:10
		}
		synctest.Wait()
		if reads != 1 {
			t.Errorf("%d reads, want 1", reads)
		}
		if _, err := d.get(t.Context(), rediscover, read); !errors.Is(err, fault) || reads != 2 {
			t.Errorf("after the failure was forgotten: %d reads, %v", reads, err)
		}
	})
}

// TestDocumentWhileRead checks who waits while the document is read.
func TestDocumentWhileRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDocument[string](time.Now)
		old, fresh := "old", "fresh"
		slow := func(text *string) func(context.Context) (*string, error) {
			return func(context.Context) (*string, error) {
				time.Sleep(requestTime)
				return text, nil
			}
		}
		get := func(ctx context.Context, life time.Duration) (string, error) {
			found, err := d.get(ctx, life, slow(&fresh))
			if err != nil {
				return "", err
			}
			return *found, nil
		}

		// A request that gives up does not wait longer.
		go func() { _, _ = d.get(t.Context(), rediscover, slow(&old)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := get(ctx, rediscover); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}

		// The old document is used while it is read again, unless a younger one is needed.
		time.Sleep(rediscover + requestTime)
		go func() { _, _ = get(t.Context(), rediscover) }()
		synctest.Wait()
		start = time.Now()
		if text, err := get(t.Context(), rediscover); text != old || err != nil || time.Since(start) != 0 {
			t.Errorf("after %v: %q, %v", time.Since(start), text, err)
		}
		if text, err := get(t.Context(), refreshKeys); text != fresh || err != nil || time.Since(start) != requestTime {
			t.Errorf("after %v: %q, %v", time.Since(start), text, err)
		}
	})
}
