package web

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"time"

	"svc/internal/errortrack"
	"svc/internal/project"
)

func (w *Web) errorPages() {
	w.projectPage("GET error_tracking", signedIn, w.errors)
	w.projectPage("GET error_tracking/{id}/details", signedIn, w.errorDetails)
	w.projectPage("POST error_tracking/{id}/status", signedIn, w.markError)
	w.projectPage("GET settings/error_tracking", signedIn, ofProject(w.errorSetup))
	w.projectPage("POST settings/error_tracking", signedIn, ofProject(w.saveErrorSetup))
	w.projectPage("POST settings/error_tracking/external", signedIn, ofProject(w.saveErrorService))
	w.projectPage("POST settings/error_tracking/keys", signedIn, ofProject(w.createErrorKey))
	w.projectPage("POST settings/error_tracking/keys/{id}/turn", signedIn, ofProject(w.turnErrorKey))
	w.projectPage("POST settings/error_tracking/keys/{id}/delete", signedIn, ofProject(w.deleteErrorKey))
	w.projectPage("GET settings/operations", signedIn, ofProject(func(v *visit, in project.Place) error {
		return v.redirect(settingsOf(in, "error_tracking"))
	}))
}

// errorsPage is the list of the errors of a project.
type errorsPage struct {
	head
	Query  errorQuery
	Rows   []errorRow
	About  *errortrack.Overview
	Pager  pager
	MayAct bool
}

func (errorsPage) view() string    { return "project/errors" }
func (p errorsPage) title() string { return "Error tracking · " + p.Project.FullName() }

// Total returns the number of errors.
func (p errorsPage) Total() int {
	n := 0
	for _, count := range p.About.Counts {
		n += count
	}
	return n
}

// Names are the statuses.
func (errorsPage) Names() []string {
	var list []string
	for _, s := range errortrack.Statuses() {
		list = append(list, string(s))
	}
	return list
}

// Count returns the number of errors with a status.
func (p errorsPage) Count(status string) int { return p.About.Counts[errortrack.Status(status)] }

// errorRow is an error in a list.
type errorRow struct {
	*errortrack.Error
	Spark template.HTML // the last day
}

// errorQuery is the query of the URL of the list.
type errorQuery struct {
	Status, Environment, Search, Sort string
	values                            url.Values
}

func (v *visit) errorQuery() errorQuery {
	q := errorQuery{
		Status: v.param("status"), Environment: v.param("environment"), Search: v.param("search"), Sort: v.param("sort"), values: v.r.URL.Query(),
	}
	if q.Status != "all" && !slices.Contains(errortrack.Statuses(), errortrack.Status(q.Status)) {
		q.Status = string(errortrack.Unresolved)
	}
	if !slices.ContainsFunc(q.Sorts(), func(o option) bool { return o.Value == q.Sort }) {
		q.Sort = string(errortrack.ByLastSeen)
	}
	return q
}

// Sorts are the orders of the list.
func (errorQuery) Sorts() []option {
	return []option{
		{string(errortrack.ByLastSeen), "Last seen"}, {string(errortrack.ByFirstSeen), "First seen"}, {string(errortrack.ByFrequency), "Most events"},
	}
}

// Narrow reports whether the list is filtered.
func (q errorQuery) Narrow() bool { return q.Environment+q.Search != "" }

// With returns the URL of the same list with another value.
func (q errorQuery) With(name, value string) string { return withValue(q.values, name, value) }

func (q errorQuery) filter() errortrack.Filter {
	f := errortrack.Filter{Environment: q.Environment, Search: q.Search, Sort: errortrack.Sort(q.Sort)}
	if q.Status != "all" {
		f.Status = errortrack.Status(q.Status)
	}
	return f
}

func (w *Web) errors(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "monitor")
	if err != nil {
		return err
	}
	p := errorsPage{head: h, Query: v.errorQuery(), MayAct: w.Errors.MayChange(v.actor, h.Project)}
	page, err := w.Errors.Errors(v, v.actor, h.in(), p.Query.filter(), v.paging())
	if err != nil {
		return err
	}
	if p.About, err = w.Errors.Overview(v, v.actor, h.in()); err != nil {
		return err
	}
	for _, e := range page.Items {
		sum := int64(0)
		for _, n := range e.Hours {
			sum += n
		}
		p.Rows = append(p.Rows, errorRow{e, drawColumns(e.Hours, len(e.Hours), "spark", plural(int(sum), "event")+" in the last 24 hours", nil)})
	}
	p.Pager = v.pager(page.More)
	return v.show(p)
}

// errorPage is an error with one of its events.
type errorPage struct {
	head
	*errortrack.Story
	DayPlot, HourPlot template.HTML
	MayAct            bool
}

func (errorPage) view() string    { return "project/error" }
func (p errorPage) title() string { return p.Name() + " · Error tracking · " + p.Project.FullName() }

// Name returns the type of the error, or its message.
func (p errorPage) Name() string {
	if p.Type != "" {
		return p.Type
	}
	return p.Error.Title
}

// UserCount is the number of affected users.
func (p errorPage) UserCount() string {
	if p.Users >= errortrack.CountedUsers {
		return "10,000+"
	}
	return strconv.FormatInt(p.Users, 10)
}

// Trimmed reports whether older events were deleted.
func (p errorPage) Trimmed() bool { return p.Events > int64(p.Kept) }

func (w *Web) errorDetails(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	h, err := w.head(v, ref, "monitor")
	if err != nil {
		return err
	}
	p := errorPage{head: h, MayAct: w.Errors.MayChange(v.actor, h.Project)}
	if p.Story, err = w.Errors.Error(v, v.actor, h.in(), id, v.param("event")); err != nil {
		return err
	}
	now := w.Now().UTC()
	days, hours := p.Frequency.Days, p.Frequency.Hours
	p.DayPlot = drawColumns(days, len(days), "plot", "Events of the last 30 days", func(i int) string {
		return plural(int(days[i]), "event") + " on " + now.AddDate(0, 0, i+1-len(days)).Format("2 January")
	})
	p.HourPlot = drawColumns(hours, len(hours), "plot", "Events of the last 24 hours", func(i int) string {
		return plural(int(hours[i]), "event") + " from " + now.Add(time.Duration(i+1-len(hours))*time.Hour).Format("15:00 UTC")
	})
	return v.show(p)
}

// stackView is an exception of an event, as it is shown.
type stackView struct {
	errortrack.Exception
	Calls []callView
	More  int // calls that are not shown
}

// Fatal reports whether the exception was not caught.
func (s stackView) Fatal() bool { return s.Caught != nil && !*s.Caught }

// callView is a call of a stack; the source of the first calls of the program
// itself is shown at once.
type callView struct {
	errortrack.Frame
	Open  bool
	Lines []sourceLine
}

// sourceLine is a line of source around a call.
type sourceLine struct {
	Number int // 0 when it is not known
	Text   string
	Here   bool // the call itself
}

const (
	openCalls  = 2  // of each exception
	otherCalls = 12 // of each exception that caused the first one
)

// Stacks are the exceptions with their calls.
func (p errorPage) Stacks() []stackView {
	var list []stackView
	for i, x := range p.Event.Exceptions {
		s, open := stackView{Exception: x}, 0
		ours := slices.ContainsFunc(x.Frames, func(f errortrack.Frame) bool { return f.InApp })
		for k, f := range x.Frames {
			if i > 0 && k >= otherCalls {
				s.More = len(x.Frames) - k
				break
			}
			c := callView{Frame: f, Lines: sourceOf(f)}
			if open < openCalls && len(c.Lines) > 0 && (f.InApp || !ours) {
				c.Open = true
				open++
			}
			s.Calls = append(s.Calls, c)
		}
		list = append(list, s)
	}
	return list
}

func sourceOf(f errortrack.Frame) []sourceLine {
	if f.Source == "" {
		return nil
	}
	var list []sourceLine
	all := append(append(slices.Clone(f.Before), f.Source), f.After...)
	for i, text := range all {
		line := sourceLine{Text: text, Here: i == len(f.Before)}
		if first := f.Line - len(f.Before); first > 0 {
			line.Number = first + i
		}
		list = append(list, line)
	}
	return list
}

func (w *Web) markError(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	to := errortrack.Status(v.text("status"))
	done := map[errortrack.Status]string{
		errortrack.Resolved: "The error was resolved. It is reopened if it occurs again.", errortrack.Ignored: "The error was ignored.",
		errortrack.Unresolved: "The error was reopened.",
	}
	back := pathTo(string(ref)) + fmt.Sprintf("/-/error_tracking/%d/details", id)
	return v.redirectWithFlash(w.Errors.Mark(v, v.actor, ref, id, to), done[to], back)
}
