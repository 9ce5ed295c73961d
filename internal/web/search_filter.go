package web

import (
	"slices"
	"strconv"

	"svc/internal/search"
)

// searchFilter is the form that narrows a search. It has the controls that are useful
// in a scope, and keeps the values of the others for other scopes.
type searchFilter struct {
	Selects  []searchSelect
	Ticks    []tick
	Branches bool // a branch or tag can be entered
	Kept     []option
}

// searchSelect is a select of the filter.
type searchSelect struct {
	Name, Label, Value string
	Options            []option
}

// tick adds a checkbox if it is useful, or else keeps its value.
func (f *searchFilter) tick(name, label string, useful, on bool) {
	switch {
	case useful:
		f.Ticks = append(f.Ticks, tick{Name: name, Label: label, On: on})
	case on:
		f.Kept = append(f.Kept, option{Value: "true", Label: name})
	}
}

// choose adds a select if it has options, or else keeps its value.
func (f *searchFilter) choose(name, label, value string, options []option) {
	switch {
	case len(options) > 0:
		f.Selects = append(f.Selects, searchSelect{name, label, value, options})
	case value != "":
		f.Kept = append(f.Kept, option{Value: value, Label: name})
	}
}

// searchStates are the states of the objects of a scope.
var searchStates = map[search.Scope][]option{
	search.Issues:        {{Label: "All states"}, {Value: "opened", Label: "Open"}, {Value: "closed", Label: "Closed"}},
	search.MergeRequests: {{Label: "All states"}, {Value: "opened", Label: "Open"}, {Value: "merged", Label: "Merged"}, {Value: "closed", Label: "Closed"}},
}

// offered reports whether a value is one of the options.
func offered(list []option, value string) bool {
	return slices.ContainsFunc(list, func(o option) bool { return o.Value == value })
}

// dated are the scopes whose results are in the order of their creation.
var dated = []search.Scope{search.Projects, search.Issues, search.MergeRequests, search.Milestones, search.Notes, search.SnippetTitles}

// searchQuery returns the search of the parameters. It ignores values that the filter
// does not offer.
func (p *searchPage) searchQuery(v *visit) search.Query {
	on := func(name string) bool { return v.param(name) == "true" }
	q := search.Query{
		Text: p.Search, Ref: p.Ref, Context: 1, Archived: on("include_archived"), NoForks: on("exclude_forks"), Regex: on("regex"), Oldest: v.param("sort") == "asc",
	}
	for _, states := range searchStates {
		if state := v.param("state"); offered(states, state) {
			q.State = state
		}
	}
	if only, err := strconv.ParseBool(v.param("confidential")); err == nil {
		q.Confidential = &only
	}
	return q
}

// showFilter adds the filter of the scope of the page.
func (p *searchPage) showFilter(q search.Query) {
	f := &p.Filter
	inProject, code := q.At != nil && !q.At.Group, p.Scope == search.Blobs
	f.choose("state", "State", q.State, searchStates[p.Scope])
	confidential, order := "", ""
	if q.Confidential != nil {
		confidential = strconv.FormatBool(*q.Confidential)
	}
	var confidentials, orders []option
	if p.Scope == search.Issues {
		confidentials = []option{{Label: "Confidential or not"}, {Value: "true", Label: "Confidential"}, {Value: "false", Label: "Not confidential"}}
	}
	f.choose("confidential", "Confidentiality", confidential, confidentials)
	if slices.Contains(dated, p.Scope) {
		orders = []option{{Label: "Newest first"}, {Value: "asc", Label: "Oldest first"}}
	}
	if q.Oldest {
		order = "asc"
	}
	f.choose("sort", "Order", order, orders)
	f.tick("regex", "Regular expression", code, q.Regex)
	f.tick("exclude_forks", "Without forks", code && !inProject, q.NoForks)
	f.tick("include_archived", "Archived projects, too", !inProject && p.Scope != search.Users && p.Scope != search.SnippetTitles, q.Archived)
	f.Branches = inProject && (code || p.Scope == search.Commits)
	if !f.Branches && p.Ref != "" {
		f.Kept = append(f.Kept, option{Value: p.Ref, Label: "ref"})
	}
}
