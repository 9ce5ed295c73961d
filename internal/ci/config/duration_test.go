package config

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"42":                  42 * time.Second,
		"42 seconds":          42 * time.Second,
		"3 min 4 sec":         3*time.Minute + 4*time.Second,
		"2 hrs 20 min":        140 * time.Minute,
		"2h20min":             140 * time.Minute,
		"1h30m":               90 * time.Minute,
		"1.5 hours":           90 * time.Minute,
		".5h":                 30 * time.Minute,
		"3 weeks and 2 days":  23 * day,
		"1 day, 2 hours":      26 * time.Hour,
		"6 mos 1 day":         181 * day,
		"47 yrs 6 mos and 4d": 47*year + 184*day,
		"1:30":                90 * time.Second,
		"1:30:00":             90 * time.Minute,
		" 5 Minutes ":         5 * time.Minute,
		"0":                   0,
		"one week":            week,
		"Two days":            2 * day,
		"twenty minutes":      20 * time.Minute,
		"twenty-four hours":   day,
		"forty five minutes":  45 * time.Minute,
		"one day and 2 hours": 26 * time.Hour,
		"three hours ten min": 190 * time.Minute,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "soon", "1 fortnight", "-1", "1h -2m", "1:2:3:4", ":", "1:x", "1000 years", "9999999999999999999 s", "1 day and", "and", "one", "twenty one", "one one days", "a week", "one fortnight"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
}
