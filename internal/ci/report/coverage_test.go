package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func TestLastCoverage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("no number here\n", 20_000)
	tests := []struct {
		name, log, pattern string
		want               float64 // below zero for none
	}{
		{"none", "nothing\n", `coverage: \d+`, -1},
		{"the last one counts", "coverage: 10%\ncoverage: 20.5%\n", `coverage: \d+(\.\d+)?%`, 20.5},
		{"a group", "total 7 of 80.25%\n", `total \d+ of (\d+\.\d+)%`, 80.25},
		{"colors", "cov\x1b[32mer\x1b[0mage: 33%", `coverage: \d+`, 33},
		{"far from the end", "coverage: 44%\n" + long, `coverage: \d+`, 44},
		{"across a block", strings.Repeat("x", coverageBlock-5) + "\ncoverage: 55%\n" + strings.Repeat("y", coverageBlock-8), `coverage: \d+`, 55},
	}
	for _, tt := range tests {
		got, err := lastCoverage(bytes.NewReader([]byte(tt.log)), int64(len(tt.log)), regexp.MustCompile(tt.pattern))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case tt.want < 0 && got != nil:
			t.Errorf("%s: %v, want none", tt.name, *got)
		case tt.want >= 0 && (got == nil || *got != tt.want):
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
