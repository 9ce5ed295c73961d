package web

import (
	"time"

	"svc/internal/errortrack"
	"svc/internal/project"
)

// errorContents are the pages of error tracking, with data and empty.
func errorContents() []content {
	now := time.Unix(1e9, 0)
	no := false
	in := &project.Project{ID: 1, Path: "p", FullPath: "g/p", Name: "P", DefaultBranch: "main", Namespace: project.Namespace{Name: "G", FullPath: "g"}}
	h := head{Project: in, Tab: "monitor", SignedIn: true, SeesErrors: true, SeesAlerts: true, MaySet: true}
	e := &errortrack.Error{ID: 1, Type: "E", Title: "t", Culprit: "f in m", Level: "fatal", Status: errortrack.Resolved, Events: 99, Users: 10_000, FirstSeenAt: now, LastSeenAt: now, LastRelease: "1", FirstRelease: "1", Platform: "go"}
	message := &errortrack.Error{ID: 2, Title: "m", Level: "warning", Status: errortrack.Unresolved, Events: 1, Users: 1}
	frame := errortrack.Frame{Function: "f", Module: "m", File: "f.go", Line: 3, Column: 1, InApp: true, Before: []string{"a"}, Source: "b", After: []string{"c"}}
	event := &errortrack.Event{ID: "0123456789", At: now, Environment: "production", Release: "1", Title: "t", Tags: []errortrack.Tag{{Name: "os", Value: "x"}}, Details: errortrack.Details{
		Transaction: "t", Request: "GET /", User: "ada", Server: "s", Logger: "l", SDK: "go 1", Crumbs: []errortrack.Crumb{{At: now, Category: "http", Message: "m"}, {}},
		Contexts:   []errortrack.Context{{Name: "os", Values: []errortrack.Tag{{Name: "n", Value: "v"}}}},
		Exceptions: []errortrack.Exception{{Type: "E", Value: "v", Module: "m", Caught: &no, Frames: []errortrack.Frame{frame, {Path: "/x"}}, Omitted: 3}, {Frames: make([]errortrack.Frame, 20)}},
	}}
	whole := &errortrack.Story{Error: e, Event: event, Newer: "1", Older: "2", Environments: []errortrack.Tally{{Value: "production", Events: 3}}, Kept: 1, Recent: []*errortrack.Event{event},
		Tags: []errortrack.TagTally{{Name: "os", Values: []errortrack.Tally{{Value: "x", Events: 1}}}}}
	busy := &errortrack.Overview{Counts: map[errortrack.Status]int{errortrack.Unresolved: 2}, Environments: []string{"production"}, Active: true}
	rows := []errorRow{{e, drawColumns([]int64{1, 0}, 2, "spark", "x", nil)}, {message, ""}}
	key := &errortrack.Key{ID: 1, ProjectID: 1, Active: true, Public: "k", CreatedAt: now}
	s := setup{P: &h, Base: "/g/p/-/settings/", Part: "error_tracking"}
	return []content{
		errorsPage{head: h, Query: errorQuery{Status: "unresolved"}, Rows: rows, About: busy}, errorsPage{head: h, Query: errorQuery{Status: "all", Search: "x"}, About: busy},
		errorsPage{head: h, Query: errorQuery{Status: "unresolved"}, About: busy}, errorsPage{head: h, Query: errorQuery{Status: "all"}, About: busy},
		errorsPage{head: h, About: &errortrack.Overview{Active: true}}, errorsPage{head: h, About: &errortrack.Overview{}},
		errorPage{head: h, Story: whole, DayPlot: drawColumns([]int64{3}, 1, "plot", "x", func(int) string { return "y" }), MayAct: true},
		errorPage{head: h, Story: &errortrack.Story{Error: message, Event: &errortrack.Event{}}, MayAct: true},
		errorSetupPage{setup: s, Form: form{Errors: map[string][]string{"api_url": {"is wrong"}}, Error: "no"}, Active: true, Integrated: true, HasToken: true, Keys: []errorKey{{key, "https://k@h/1"}, {&errortrack.Key{}, ""}}},
		errorSetupPage{setup: s, Form: filled()}, errorSetupPage{setup: s, Form: filled(), Active: true},
	}
}
