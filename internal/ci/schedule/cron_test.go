package schedule

import (
	"testing"
	"time"
)

func TestCron(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		rule  string
		after string
		want  string
	}{
		{"0 1 * * *", "2026-03-01T01:00:00", "2026-03-02T01:00:00"},
		{"0 1 * * *", "2026-03-01T00:59:59", "2026-03-01T01:00:00"},
		{"*/15 9-17 * * mon-fri", "2026-03-06T17:45:00", "2026-03-09T09:00:00"},
		{"5,10 0 1 1,7 *", "2026-01-01T00:05:30", "2026-01-01T00:10:00"},
		{"0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"},
		{"0 0 13 * 5", "2026-03-01T00:00:00", "2026-03-06T00:00:00"}, // either day matches
		{"0 0 * * 7", "2026-03-02T00:00:00", "2026-03-08T00:00:00"},
		{"@weekly", "2026-03-02T00:00:00", "2026-03-08T00:00:00"},
		{"30 2 * * *", "2026-03-28T12:00:00", "2026-03-30T02:30:00"}, // the hour is skipped by daylight saving time
		{"10/20 * * * *", "2026-03-01T00:00:00", "2026-03-01T00:10:00"},
	} {
		c, err := parseCron(tt.rule)
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		after, err := time.ParseInLocation("2006-01-02T15:04:05", tt.after, berlin)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if next, ok := c.next(after); ok {
			got = next.Format("2006-01-02T15:04:05")
		}
		if got != tt.want {
			t.Errorf("%s after %s is %s, want %s", tt.rule, tt.after, got, tt.want)
		}
	}
	for _, rule := range []string{"", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *", "5-1 * * * *", "0 0 * * fri-mon", "0 0 31 4 *", "0 0 0 * * *", "0 0 1 1 * 2030", "a * * * *", "+1 * * * *", "1-2-3 * * * *", "@reboot"} {
		if _, err := parseCron(rule); err == nil {
			t.Errorf("%q is no rule", rule)
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, rule := range []string{"0 1 * * *", "*/5 1-3,7 * jan,dec sun", "@daily", "1/2 * 31 2 *"} {
		f.Add(rule)
	}
	after := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, rule string) {
		c, err := parseCron(rule)
		if err != nil {
			return
		}
		if next, ok := c.next(after); ok && !next.After(after) {
			t.Errorf("%q: %v is not after %v", rule, next, after)
		}
	})
}
