package quickaction

import (
	"strings"
	"testing"
	"time"
)

func TestNames(t *testing.T) {
	t.Parallel()
	got := strings.Join(Names(`~bug ~"to do", plain,~"open`, '~'), "|")
	if want := "bug|to do|plain|open"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseDate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC) // a Monday
	for text, want := range map[string]string{
		"2026-12-31": "2026-12-31", "tomorrow": "2026-11-17", "in 2 days": "2026-11-18", "this Friday": "2026-11-20", "December 31st": "2026-12-31", "Jan 2nd": "2027-01-02",
		"next month": "2026-12-16", "in 2 weeks": "2026-11-30", "31 December 2026": "2026-12-31", "friday": "2026-11-20",
	} {
		if got, ok := ParseDate(text, now); !ok || got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "soon", "2026-13-01", "in -1 days"} {
		if got, ok := ParseDate(text, now); ok {
			t.Errorf("%q: got %q; want an error", text, got)
		}
	}
}
