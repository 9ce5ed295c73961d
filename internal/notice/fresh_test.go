package notice

import (
	"testing"
	"time"
)

// TestClockJump checks that a confirmation expires by either clock, and when the
// wall clock was set. While a machine is suspended, only the wall clock advances.
func TestClockJump(t *testing.T) {
	t.Parallel()
	at := reading{wall: 1_700_000_000e9, mono: time.Hour}
	for name, c := range map[string]struct {
		mono, wall time.Duration
		want       bool
	}{
		"at once":                    {0, 0, true},
		"just before the end":        {trustTime - 1, trustTime - 1, true},
		"at the end":                 {trustTime, trustTime, false},
		"the process was stopped":    {time.Minute, time.Minute, false},
		"the machine was suspended":  {time.Millisecond, time.Hour, false},
		"the clock was set back":     {time.Millisecond, -time.Hour, false},
		"the clock is being trimmed": {time.Second, time.Second + 5*time.Millisecond, true},
		"stopped and set back":       {time.Minute, 0, false},
	} {
		now := reading{wall: at.wall + int64(c.wall), mono: at.mono + c.mono}
		if got := at.covers(now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
