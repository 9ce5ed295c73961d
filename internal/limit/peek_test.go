package limit

import (
	"testing"
	"time"
)

// TestPeek checks that Peek returns the decision of Allow and does not take
// requests.
func TestPeek(t *testing.T) {
	t.Parallel()
	l, c := newLimiter(1000)
	rate := Rate{Name: "sign_in", Requests: 2, Period: time.Minute}
	for range 5 {
		if d := l.Peek("k", rate); !d.OK || d.Remaining != 1 {
			t.Fatalf("before any: %+v", d)
		}
	}
	if l.size() != 0 {
		t.Error("Peek has created a bucket")
	}
	l.Allow("k", rate)
	l.Allow("k", rate)
	for range 2 {
		if d := l.Peek("k", rate); d.OK || d.RetryAfter != 30*time.Second || d.Observed != 3 {
			t.Fatalf("with an empty bucket: %+v", d)
		}
	}
	c.advance(30 * time.Second)
	if d := l.Peek("k", rate); !d.OK {
		t.Errorf("after the wait: %+v", d)
	}
	if d := l.Peek("k", Rate{}); d != (Decision{OK: true}) {
		t.Errorf("without a limit: %+v", d)
	}
}
