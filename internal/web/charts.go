package web

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"

	"svc/internal/ci"
	"svc/internal/ci/flow"
	"svc/internal/project"
)

// chartsPage shows the results of pipelines in the last days.
type chartsPage struct {
	ciHead
	Days    int
	Stats   []ci.DayStats
	Counts  template.HTML
	Took    template.HTML
	Total   int
	Success int
	Failed  int
	Rate    int // percentage of successful pipelines among successful and failed ones
	Mean    time.Duration
}

func (chartsPage) view() string    { return "project/charts" }
func (p chartsPage) title() string { return "Pipeline charts · " + p.Project.FullName() }

func (w *Web) charts(v *visit, ref project.Ref) error {
	h, err := w.ciHead(v, ref, "charts")
	if err != nil {
		return err
	}
	p := chartsPage{ciHead: h, Days: 7}
	if v.param("days") == "30" {
		p.Days = 30
	}
	if p.Stats, err = w.CI.PipelineStats(v, v.actor, h.in(), p.Days); err != nil {
		return err
	}
	var took time.Duration
	days := 0
	for _, d := range p.Stats {
		p.Success, p.Failed, p.Total = p.Success+d.Success, p.Failed+d.Failed, p.Total+d.Success+d.Failed+d.Other
		if d.Took > 0 {
			took, days = took+d.Took, days+1
		}
	}
	if n := p.Success + p.Failed; n > 0 {
		p.Rate = (p.Success*100 + n/2) / n
	}
	if days > 0 {
		p.Mean = took / time.Duration(days)
	}
	p.Counts = drawBars(p.Stats, func(d ci.DayStats) []piece {
		return []piece{{"ok", float64(d.Success), "passed"}, {"bad", float64(d.Failed), "failed"}, {"other", float64(d.Other), "other"}}
	}, func(n float64) string { return fmt.Sprint(int(n + .5)) })
	p.Took = drawBars(p.Stats, func(d ci.DayStats) []piece { return []piece{{"time", d.Took.Seconds(), ""}} }, func(n float64) string { return tookText(n) })
	return v.show(p)
}

// piece is a segment of a bar: its class, height and label.
type piece struct {
	class string
	n     float64
	word  string
}

// drawBars draws a bar for each day. Its texts need no escaping: they do not come
// from users.
func drawBars(days []ci.DayStats, of func(ci.DayStats) []piece, say func(float64) string) template.HTML {
	const width, height, left, bottom, top = 700.0, 220.0, 54.0, 24.0, 10.0
	most := 0.0
	for _, d := range days {
		sum := 0.0
		for _, p := range of(d) {
			sum += p.n
		}
		most = max(most, sum)
	}
	if most == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bars" viewBox="0 0 %g %g" role="img" aria-label="Chart by day">`, width, height)
	for _, share := range []float64{0, .5, 1} {
		y := top + (height-bottom-top)*(1-share)
		fmt.Fprintf(&b, `<path class="grid" d="M%g %.1fH%g"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`, left, y, width, left-6, y+4, say(most*share))
	}
	step := (width - left) / float64(len(days))
	for i, d := range days {
		x, y := left+step*float64(i)+step*.15, height-bottom
		var texts []string
		for _, p := range of(d) {
			if p.n > 0 {
				texts = append(texts, strings.TrimSpace(say(p.n)+" "+p.word))
			}
		}
		fmt.Fprintf(&b, `<g><title>%s: %s</title><rect class="hover" x="%.1f" y="%g" width="%.1f" height="%g"/>`, d.Day.Format("2 January"), strings.Join(texts, ", "),
			left+step*float64(i), top, step, height-bottom-top)
		for _, p := range of(d) {
			h := (height - bottom - top) * p.n / most
			if h > 0 {
				y -= h
				fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"/>`, p.class, x, y, step*.7, h)
			}
		}
		if len(days) <= 7 || i%5 == len(days)%5 {
			fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`, x+step*.35, height-6, d.Day.Format("2 Jan"))
		}
		b.WriteString("</g>")
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func badgeColor(s flow.Status) string {
	switch s {
	case flow.Success:
		return "#2f9e5f"
	case flow.Failed:
		return "#d1394f"
	case flow.Running, flow.Pending, flow.Waiting:
		return "#c08a1e"
	}
	return "#7d8296"
}

func coverageColor(percent float64) string {
	switch {
	case percent >= 90:
		return "#2f9e5f"
	case percent >= 75:
		return "#8a9a1e"
	case percent >= 50:
		return "#c08a1e"
	}
	return "#d1394f"
}

// drawBadge draws two texts side by side.
func drawBadge(label, value, color string) string {
	const char, pad = 6.8, 12.0
	a, b := float64(utf8.RuneCountInString(label))*char+pad, float64(utf8.RuneCountInString(value))*char+pad
	label, value = svgText(label), svgText(value)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="20" role="img" aria-label="%s: %s"><title>%s: %s</title>`+
		`<clipPath id="r"><rect width="%.0f" height="20" rx="4"/></clipPath><g clip-path="url(#r)"><rect width="%.0f" height="20" fill="#4b5063"/>`+
		`<rect x="%.0f" width="%.0f" height="20" fill="%s"/></g><g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">`+
		`<text x="%.1f" y="14">%s</text><text x="%.1f" y="14">%s</text></g></svg>`,
		a+b, label, value, label, value, a+b, a, a, b, color, a/2, label, a+b/2, value)
}

// svgText escapes a text for SVG. Characters that XML does not allow are replaced.
func svgText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder does not fail
	return b.String()
}
