package api

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestStamp checks that toStamp returns the same as Format.
func TestStamp(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", -5*3600)
	times := []time.Time{
		{}, time.Unix(0, 0), time.Date(2024, 2, 29, 23, 59, 59, 999_999_999, time.UTC), time.Date(2024, 12, 31, 20, 0, 0, 1_000_000, zone),
		time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 50_000_000, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for range 1000 {
		times = append(times, time.UnixMicro(rand.Int64N(4e15)).In(zone))
	}
	for _, at := range times {
		if got, want := string(toStamp(at)), at.UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%v: %s, want %s", at, got, want)
		}
	}
}
