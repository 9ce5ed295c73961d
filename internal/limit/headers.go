package limit

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Headers sets the headers of the decision that clients read: RateLimit-* always,
// Retry-After if the request is refused. It sets none if there is no limit.
//
// RateLimit-Limit is converted to requests per minute, whatever the period is,
// because clients use it to throttle themselves.
func (d Decision) Headers(h http.Header) {
	if d.Limit == 0 {
		return
	}
	// Whole seconds are rounded up, so that a client that waits until then is not
	// early.
	reset := time.Unix(seconds(d.Reset.Sub(time.Unix(0, 0))), 0)
	perMinute := math.Ceil(float64(d.Limit) * float64(time.Minute) / float64(d.rate.Period))

	h.Set("RateLimit-Name", d.rate.Name)
	h.Set("RateLimit-Limit", strconv.FormatInt(int64(perMinute), 10))
	h.Set("RateLimit-Observed", strconv.Itoa(d.Observed))
	h.Set("RateLimit-Remaining", strconv.Itoa(d.Remaining))
	h.Set("RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
	h.Set("RateLimit-ResetTime", reset.UTC().Format(http.TimeFormat))
	if !d.OK {
		h.Set("Retry-After", strconv.FormatInt(max(1, seconds(d.RetryAfter)), 10))
	}
}

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
