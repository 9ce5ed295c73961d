package web

import (
	"strings"
	"testing"
)

func TestPlots(t *testing.T) {
	t.Parallel()
	list := []Sample{{Requests: 4, Latency: .0025, Memory: 1 << 20, Queue: 2, Database: 3 << 20}, {Requests: 2, Memory: 2 << 20, Database: 3 << 20}}
	want := []string{"Requests per second: now 2.0, max 4.0", "Response time (p95): now –, max 2.5 ms", "Memory: now 2.0 MiB, max 2.0 MiB",
		"Background jobs: now 0, max 2", "Database: now 3.0 MiB, max 3.0 MiB"}
	for i, p := range plots(list) {
		if p.Text != want[i] {
			t.Errorf("%q, want %q", p.Text, want[i])
		}
		if !strings.Contains(string(p.Draw), `aria-label="`+p.Name) {
			t.Errorf("%s has no name: %s", p.Name, p.Draw)
		}
	}
	if draw := string(drawCurve([]float64{4, 2, 0}, 4, `a"<b`)); !strings.Contains(draw, `points="0.0,3.0 120.0,31.0 240.0,59.0"`) || strings.Contains(draw, `"<b`) {
		t.Error(draw)
	}
	// A single sample is not a line, and constant values are a flat one.
	if draw := string(drawCurve([]float64{1}, 1, "")); strings.Contains(draw, "polyline") {
		t.Error(draw)
	}
	if draw := string(drawCurve([]float64{0, 0}, 0, "")); !strings.Contains(draw, `points="0.0,59.0 240.0,59.0"`) {
		t.Error(draw)
	}
}
