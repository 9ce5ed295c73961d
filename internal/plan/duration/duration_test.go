package duration

import "testing"

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1h": 3600, "1h 30m": 5400, "1h30m": 5400, "-30m": -1800, "1w 2d": 7 * 8 * 3600, "1mo": 20 * 8 * 3600, "2": 7200, "1.5 hours": 5400, "90s": 90, "1 day, 1 hour": 9 * 3600,
	} {
		got, ok := Parse(text)
		if !ok || got != want {
			t.Errorf("%q: got %d, %t; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "h", "1x", "soon", "--1h", "1h -30m", "999999999999mo"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q: got %d; want an error", text, got)
		}
	}
	for seconds, want := range map[int64]string{0: "", 5400: "1h 30m", -1800: "-30m", 7 * 8 * 3600: "1w 2d", 20 * 8 * 3600: "1mo", 61: "1m 1s"} {
		if got := Format(seconds); got != want {
			t.Errorf("%d: got %q, want %q", seconds, got, want)
		}
	}
}
