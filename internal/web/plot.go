package web

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sample is a measurement of a node.
type Sample struct {
	At       time.Time
	Requests float64 // per second, since the previous sample
	Latency  float64 // 95th percentile of response times, in seconds
	Memory   float64 // bytes
	Queue    float64 // pending and running background jobs
	Database float64 // bytes
}

// history is a value over time.
type history struct {
	Name string
	Now  string // the latest value
	Most string // the largest
	Text string // both, for screen readers
	Draw template.HTML
}

// plots draws the samples of this node.
func plots(list []Sample) []history {
	size := func(n float64) string { return byteSize(int64(n)) }
	var all []history
	for _, p := range []struct {
		name  string
		value func(Sample) float64
		text  func(float64) string
	}{
		{"Requests per second", func(s Sample) float64 { return s.Requests }, func(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }},
		{"Response time (p95)", func(s Sample) float64 { return s.Latency }, milliseconds},
		{"Memory", func(s Sample) float64 { return s.Memory }, size},
		{"Background jobs", func(s Sample) float64 { return s.Queue }, func(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }},
		{"Database", func(s Sample) float64 { return s.Database }, size},
	} {
		var values []float64
		most := 0.0
		for _, s := range list {
			values = append(values, p.value(s))
			most = max(most, p.value(s))
		}
		one := history{Name: p.name, Now: "–", Most: p.text(most)}
		if len(values) > 0 {
			one.Now = p.text(values[len(values)-1])
		}
		one.Text = fmt.Sprintf("%s: now %s, max %s", one.Name, one.Now, one.Most)
		one.Draw = drawCurve(values, most, one.Text)
		all = append(all, one)
	}
	return all
}

func milliseconds(seconds float64) string {
	if seconds == 0 {
		return "–"
	}
	if seconds >= 1 {
		return strconv.FormatFloat(seconds, 'f', -1, 64) + " s"
	}
	return strconv.FormatFloat(seconds*1000, 'f', -1, 64) + " ms"
}

// The size of a plot, in its own units.
const (
	plotWidth  = 240.0
	plotHeight = 60.0
)

// drawCurve draws values as a line over an area, from 0 to the largest.
func drawCurve(values []float64, most float64, text string) template.HTML {
	var line strings.Builder
	for i, n := range values {
		x, y := plotWidth, plotHeight-1
		if len(values) > 1 {
			x = plotWidth * float64(i) / float64(len(values)-1)
		}
		if most > 0 {
			y = plotHeight - 1 - (plotHeight-4)*n/most
		}
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
	}
	points := strings.TrimSpace(line.String())
	drawn := ""
	if len(values) > 1 {
		drawn = fmt.Sprintf(`<polygon points="0,%.0f %s %.0f,%.0f"/><polyline points="%s"/>`, plotHeight, points, plotWidth, plotHeight, points)
	}
	return template.HTML(fmt.Sprintf(`<svg class="plot" viewBox="0 0 %.0f %.0f" preserveAspectRatio="none" role="img" aria-label="%s">%s</svg>`,
		plotWidth, plotHeight, template.HTMLEscapeString(text), drawn))
}

// drawColumns draws counts as columns, each with the text that say returns for
// it, in a picture that is columns wide.
func drawColumns(counts []int64, width int, class, label string, say func(i int) string) template.HTML {
	most := slices.Max(append([]int64{1}, counts...))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="%s" viewBox="0 0 %d 60" preserveAspectRatio="none" role="img" aria-label="%s">`, class, width*10, template.HTMLEscapeString(label))
	for i, n := range counts {
		if n == 0 {
			continue
		}
		height := max(1.5, 58*float64(n)/float64(most))
		fmt.Fprintf(&b, `<rect x="%d" y="%.1f" width="8" height="%.1f" rx="1">`, i*10+1, 60-height, height)
		if say != nil {
			fmt.Fprintf(&b, `<title>%s</title>`, template.HTMLEscapeString(say(i)))
		}
		b.WriteString("</rect>")
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
