// Package bench measures the performance limits that the server guarantees.
//
// Machines differ and are noisy, so a figure is a ratio if possible, for example to
// a minimal server, or to the same list with few rows. Both are measured alternately
// in the same run. A run prints a table of all figures and fails if one exceeds its
// limit.
//
// "make bench" measures everything on SQLite, and also the lists on PostgreSQL if
// TEST_POSTGRES is the URL of a server. "make bench-lists" measures each list of the API
// with each documented filter. "make bench-large" measures memory with a repository and
// an artifact of 1 GiB. Repositories and runners are measured on a
// complete server: in the process of the benchmark, where caches can be cleared
// before first requests, and as the built program where memory and CPU time are
// measured. Use -bench to select a part, such as 'Git$/warm' or CI/drain.
package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// BenchmarkFigures measures every figure and prints them. Use -bench to select a
// part, such as Figures/pages.
func BenchmarkFigures(b *testing.B) {
	t := &table{}
	b.Run("requests", func(b *testing.B) { requests(b, t) })
	b.Run("pages", func(b *testing.B) { pages(b, t) })
	b.Run("process", func(b *testing.B) { process(b, t) })
	t.finish(b)
}

// figure is a measured value with its limit.
type figure struct {
	name          string
	measured      float64
	limit         float64
	atLeast       bool // the limit is the minimum; otherwise the maximum
	informational bool // there is no limit; printed for comparison
	unit          string
	note          string // absolute values, for readers
}

func (f figure) ok() bool {
	if f.informational {
		return true
	}
	if f.atLeast {
		return f.measured >= f.limit
	}
	return f.measured <= f.limit // false for NaN
}

// table has the figures of a run.
type table struct{ figures []figure }

// add adds a figure and reports it as the result of the benchmark.
func (t *table) add(b *testing.B, f figure) {
	b.Helper()
	t.figures = append(t.figures, f)
	b.ReportMetric(0, "ns/op") // an operation is a complete measurement
	b.ReportMetric(f.measured, strings.ReplaceAll(f.unit, " ", "-"))
}

// write prints the table, unless it is empty.
func (t *table) write(to io.Writer) error {
	if len(t.figures) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nfigure\tmeasured\tlimit\t\t")
	for _, f := range t.figures {
		sign, verdict := "≤", "ok"
		if f.atLeast {
			sign = "≥"
		}
		limit := fmt.Sprintf("%s %g", sign, f.limit)
		switch {
		case f.informational:
			limit, verdict = "", ""
		case !f.ok():
			verdict = "OVER"
		}
		fmt.Fprintf(w, "%s\t%.3g %s\t%s\t%s\t%s\n", f.name, f.measured, f.unit, limit, verdict, f.note)
	}
	return w.Flush()
}

// median returns the median, which is not affected by outliers.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func TestTable(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	list := &table{figures: []figure{
		{name: "fast", measured: 0.5, limit: 0.4, atLeast: true, unit: "of it", note: "why"},
		{name: "slow", measured: 0.3, limit: 0.4, atLeast: true, unit: "of it"},
		{name: "small", measured: 60, limit: 60, unit: "MiB"},
		{name: "large", measured: 61, limit: 60, unit: "MiB"},
		{name: "aside", measured: 0.1, atLeast: true, informational: true, unit: "of it", note: "so"},
	}}
	if err := list.write(&text); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"fast    0.5 of it  ≥ 0.4  ok    why",
		"slow    0.3 of it  ≥ 0.4  OVER",
		"small   60 MiB     ≤ 60   ok",
		"large   61 MiB     ≤ 60   OVER",
		"aside   0.1 of it               so",
	}
	for _, line := range want {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no line %q in\n%s", line, text.String())
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	values := []float64{9, 1, 2, 100, 3}
	if got := median(values); got != 3 {
		t.Errorf("got %v, want 3", got)
	}
	if values[0] != 9 {
		t.Error("the order of the values was changed")
	}
}
