package api

import (
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/plan/duration"
)

func (a *API) timeTrackingRoutes() {
	timeRoutesOf[issueParams](a, "/projects/{id}/issues/{issue_iid}", "Issues", "an issue")
	timeRoutesOf[mergeParams](a, "/projects/{id}/merge_requests/{merge_request_iid}", "Merge requests", "a merge request")
}

// timed identifies an object with time tracking by path parameters.
type timed interface {
	// planned returns the object. NotFound.
	planned(a *API, c *call) (*plan.Issuable, error)
	// track changes its time tracking. NotFound; Forbidden; Invalid.
	track(a *API, c *call, change plan.TimeChange) (*plan.Issuable, error)
}

func (p issueParams) planned(a *API, c *call) (*plan.Issuable, error) {
	i, err := a.Plan.Issue(c, c.actor, p.Project, p.Issue)
	if err != nil {
		return nil, err
	}
	return &i.Issuable, nil
}

func (p issueParams) track(a *API, c *call, change plan.TimeChange) (*plan.Issuable, error) {
	i, err := a.Plan.TrackTime(c, c.actor, p.Project, p.Issue, change)
	if err != nil {
		return nil, err
	}
	return &i.Issuable, nil
}

func (p mergeParams) planned(a *API, c *call) (*plan.Issuable, error) {
	m, err := a.Merges.Get(c, c.actor, p.Project, p.Request)
	if err != nil {
		return nil, err
	}
	return &m.Issuable, nil
}

func (p mergeParams) track(a *API, c *call, change plan.TimeChange) (*plan.Issuable, error) {
	m, err := a.Merges.TrackTime(c, c.actor, p.Project, p.Request, change)
	if err != nil {
		return nil, err
	}
	return &m.Issuable, nil
}

// timeEndpoints serves the time tracking of one type of objects.
type timeEndpoints[T timed] struct{ api *API }

func timeRoutesOf[T timed](a *API, at, tag, what string) {
	a.tag(tag)
	t := timeEndpoints[T]{a}
	handle(a, "POST "+at+"/time_estimate", writeAPI, t.estimate, status(200), summary("Set a time estimate for "+what))
	handle(a, "POST "+at+"/reset_time_estimate", writeAPI, t.resetEstimate, status(200), summary("Reset the time estimate for "+what))
	handle(a, "POST "+at+"/add_spent_time", writeAPI, t.spend, summary("Add spent time for "+what))
	handle(a, "POST "+at+"/reset_spent_time", writeAPI, t.resetSpent, status(200), summary("Reset spent time for "+what))
	handle(a, "GET "+at+"/time_stats", readAPI.orAnonymous(), t.stats, summary("Get time tracking stats of "+what))
}

func toTimeStats(i *plan.Issuable) timeStatsJSON {
	return timeStatsJSON{
		TimeEstimate: i.TimeEstimate, TotalTimeSpent: i.TimeSpent,
		HumanTimeEstimate: textOrNull(duration.Format(i.TimeEstimate)), HumanTotalTimeSpent: textOrNull(duration.Format(i.TimeSpent)),
	}
}

type timeParams[T timed] struct {
	On T `param:"*"`
}

type durationParams[T timed] struct {
	timeParams[T]
	Duration string `param:"duration,required,nonblank" doc:"Duration in human format, such as 3h30m."`
}

// seconds returns the duration in seconds. Invalid if it cannot be parsed.
func (p *durationParams[T]) seconds() (int64, error) {
	seconds, ok := duration.Parse(p.Duration)
	if !ok {
		return 0, errs.InvalidField("duration", "is invalid")
	}
	return seconds, nil
}

// estimate: https://docs.gitlab.com/api/issues/#set-a-time-estimate-for-an-issue
func (t timeEndpoints[T]) estimate(c *call, p durationParams[T]) (timeStatsJSON, error) {
	seconds, err := p.seconds()
	if err != nil {
		return timeStatsJSON{}, err
	}
	return presentAs(toTimeStats)(p.On.track(t.api, c, plan.TimeChange{Estimate: &seconds}))
}

// resetEstimate: https://docs.gitlab.com/api/issues/#reset-the-time-estimate-for-an-issue
func (t timeEndpoints[T]) resetEstimate(c *call, p timeParams[T]) (timeStatsJSON, error) {
	var zero int64
	return presentAs(toTimeStats)(p.On.track(t.api, c, plan.TimeChange{Estimate: &zero}))
}

type spendParams[T timed] struct {
	durationParams[T]
	Summary string `param:"summary" doc:"Summary of how the time was spent."`
}

// spend: https://docs.gitlab.com/api/issues/#add-spent-time-for-an-issue
func (t timeEndpoints[T]) spend(c *call, p spendParams[T]) (timeStatsJSON, error) {
	seconds, err := p.seconds()
	if err != nil {
		return timeStatsJSON{}, err
	}
	return presentAs(toTimeStats)(p.On.track(t.api, c, plan.TimeChange{Spend: []plan.Spend{{Seconds: seconds, Summary: p.Summary}}}))
}

// resetSpent: https://docs.gitlab.com/api/issues/#reset-spent-time-for-an-issue
func (t timeEndpoints[T]) resetSpent(c *call, p timeParams[T]) (timeStatsJSON, error) {
	return presentAs(toTimeStats)(p.On.track(t.api, c, plan.TimeChange{Reset: true}))
}

// stats: https://docs.gitlab.com/api/issues/#get-time-tracking-stats
func (t timeEndpoints[T]) stats(c *call, p timeParams[T]) (timeStatsJSON, error) {
	return presentAs(toTimeStats)(p.On.planned(t.api, c))
}
