package web

import (
	"fmt"
	"html/template"
	"time"

	"svc/internal/ci"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/project"
)

// ciStatus is the state of a pipeline or a job, for the part "cistatus".
type ciStatus struct {
	Status  string
	URL     string // URL; empty for no link
	Warning bool   // a job failed that is allowed to fail
}

// newState returns the state of a job, a stage, a pipeline or a status, for
// templates.
func newState(of any, url string) ciStatus {
	switch of := of.(type) {
	case *ci.Job:
		return ciStatus{string(of.Status), url, of.FailedAllowed()}
	case ci.Stage:
		return ciStatus{string(of.Status), url, of.Warnings}
	case *ci.Pipeline:
		return ciStatus{string(of.Status), url, of.Warnings}
	}
	return ciStatus{Status: fmt.Sprint(of), URL: url}
}

// Class is the end of the name of its CSS class.
func (s ciStatus) Class() string {
	if s.Warning {
		return "warning"
	}
	return s.Status
}

// Word is the text of the state.
func (s ciStatus) Word() string {
	switch flow.Status(s.Status) {
	case flow.Failed:
		if s.Warning {
			return "Failed (allowed to fail)"
		}
	case flow.Success:
		if s.Warning {
			return "Passed with warnings"
		}
		return "Passed"
	case flow.Waiting:
		return "Waiting"
	case flow.Scheduled:
		return "Delayed"
	}
	return words(s.Status)
}

// Icon returns the name of its icon.
func (s ciStatus) Icon() string {
	if s.Warning {
		return "alert"
	}
	switch flow.Status(s.Status) {
	case flow.Success, flow.Failed, flow.Running, flow.Canceled, flow.Skipped, flow.Manual:
		return "s-" + s.Status
	case flow.Scheduled:
		return "clock"
	}
	return "s-pending"
}

// stateOf returns the state of a pipeline with a link to it, or nil for nil.
func stateOf(in *project.Project, p *ci.Pipeline) *ciStatus {
	if p == nil {
		return nil
	}
	s := newState(p, fmt.Sprintf("/%s/-/pipelines/%d", in.FullPath, p.ID))
	return &s
}

// text identifies the states for the script; it is not empty.
func (s *ciStatus) text() string {
	if s == nil {
		return ""
	}
	return s.Class() + s.URL
}

// tookText formats a duration in two units.
func tookText(d any) string {
	var t time.Duration
	switch d := d.(type) {
	case time.Duration:
		t = d
	case *time.Duration:
		if d == nil {
			return ""
		}
		t = *d
	case float64: // seconds
		t = time.Duration(d * float64(time.Second))
	}
	switch t = max(t, 0); {
	case t < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", t.Milliseconds())
	case t < 10*time.Second:
		return fmt.Sprintf("%.1f s", t.Seconds())
	case t < time.Minute:
		return fmt.Sprintf("%d s", int(t.Seconds()))
	case t < time.Hour:
		return fmt.Sprintf("%d min %d s", int(t.Minutes()), int(t.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(t.Hours()), int(t.Minutes())%60)
}

// percent formats a percentage.
func percent(n *float64) string { return fmt.Sprintf("%.1f %%", *n) }

// until formats the time until an event.
func (w *Web) until(t time.Time) string {
	d := t.Sub(w.Now())
	switch {
	case d <= 0:
		return "now"
	case d < time.Minute:
		return "in less than a minute"
	case d < time.Hour:
		return "in " + plural(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return "in " + plural(int(d/time.Hour), "hour")
	}
	return "in " + plural(int(d/(24*time.Hour)), "day")
}

// ciHead has the common data of the pages of pipelines.
type ciHead struct {
	head
	Part string // current tab
	Base string // "/group/project/-"
	May  bool   // the user may run pipelines on some ref
	at   time.Time
	runs map[ci.RunRef]bool
}

func (w *Web) ciHead(v *visit, ref project.Ref, part string) (ciHead, error) {
	h, err := w.head(v, ref, "pipelines")
	if err != nil {
		return ciHead{}, err
	}
	return ciHead{head: h, Part: part, Base: "/" + h.Project.FullPath + "/-", May: ci.CanRun(v.actor, h.Project), at: w.Now()}, nil
}

// MayOn reports whether the user may act on the jobs of a ref.
func (h ciHead) MayOn(ref string, tag bool) bool { return h.runs[ci.RunRef{Name: ref, Tag: tag}] }

// ask reads the refs whose jobs the user may act on.
func (h *ciHead) ask(v *visit, refs ...ci.RunRef) (err error) {
	if h.May {
		h.runs, err = v.web.CI.MayRun(v, v.actor, h.Project, refs...)
	}
	return err
}

// pairs reads the variables of a form: the names and values in two lists of
// fields. Rows without a name are left out.
func (v *visit) pairs() []variable.Given {
	var list []variable.Given
	values, kinds := v.r.PostForm["variable_value"], v.r.PostForm["variable_type"]
	for i, key := range v.r.PostForm["variable_key"] {
		if key == "" || i >= len(values) {
			continue
		}
		one := variable.Given{Key: key, Value: values[i], Type: variable.EnvVar}
		if i < len(kinds) && kinds[i] == string(variable.File) {
			one.Type = variable.File
		}
		list = append(list, one)
	}
	return list
}

// Lasted returns how long a job ran, or has been running.
func (h ciHead) Lasted(j *ci.Job) template.HTML {
	return runningTime(j.Duration(h.at), j.Status == flow.Running)
}

// Elapsed returns how long a pipeline ran, or has been running.
func (h ciHead) Elapsed(p *ci.Pipeline) template.HTML {
	return runningTime(p.Elapsed(h.at), p.Status == flow.Running)
}

// runningTime formats a duration. The script keeps counting one that has not
// ended, from the milliseconds in it, because the clock of the browser can
// differ. Only numbers and units are written.
func runningTime(d *time.Duration, goesOn bool) template.HTML {
	text := tookText(d)
	if d != nil && goesOn {
		text = fmt.Sprintf(`<span data-elapsed="%d">%s</span>`, max(d.Milliseconds(), 0), text)
	}
	return template.HTML(text)
}

// pair passes two values to a part of a template.
type pair struct{ A, B any }

func newPair(a, b any) pair { return pair{a, b} }
