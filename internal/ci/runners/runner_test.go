package runners

import (
	"testing"
	"time"
)

func TestRunnerStatus(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 10, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	tests := []struct {
		contacted *time.Time
		created   time.Duration
		want      Status
	}{
		{nil, time.Hour, NeverContacted},
		{nil, 7 * 24 * time.Hour, Stale},
		{ago(time.Minute), 30 * 24 * time.Hour, Online},
		{ago(2 * time.Hour), 30 * 24 * time.Hour, Offline},
		{ago(7 * 24 * time.Hour), 30 * 24 * time.Hour, Stale},
	}
	for _, tt := range tests {
		if got := statusOf(tt.contacted, now.Add(-tt.created), now); got != tt.want {
			t.Errorf("contacted %v, created %v ago: %s, want %s", tt.contacted, tt.created, got, tt.want)
		}
	}
}
