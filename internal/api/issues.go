package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/plan/listing"
)

func (a *API) issueRoutes() {
	a.tag("Issues")
	const at = "/projects/{id}/issues"
	handle(a, "GET /issues", readAPI.orAnonymous(), a.listIssues, summary("List issues"))
	handle(a, "GET /issues/{issue_id}", readAPI, a.getIssueByID, summary("Get an issue by ID"))
	handle(a, "GET /issues_statistics", readAPI.orAnonymous(), a.countIssues, summary("Get issue statistics"))
	handle(a, "GET /groups/{id}/issues", readAPI.orAnonymous(), parentEndpoints{a, true}.listIssues, summary("List group issues"))
	handle(a, "GET /groups/{id}/issues_statistics", readAPI.orAnonymous(), parentEndpoints{a, true}.countIssues, summary("Get group issue statistics"))
	handle(a, "GET "+at, readAPI.orAnonymous(), parentEndpoints{a, false}.listIssues, summary("List project issues"))
	handle(a, "GET /projects/{id}/issues_statistics", readAPI.orAnonymous(), parentEndpoints{a, false}.countIssues, summary("Get project issue statistics"))
	handle(a, "POST "+at, writeAPI, a.createIssue, summary("Create an issue"))
	handle(a, "GET "+at+"/{issue_iid}", readAPI.orAnonymous(), a.getIssue, summary("Get a project issue"))
	handle(a, "PUT "+at+"/{issue_iid}", writeAPI, a.updateIssue, summary("Update an issue"))
	handle(a, "DELETE "+at+"/{issue_iid}", writeAPI, a.deleteIssue, summary("Delete an issue"))
	handle(a, "PUT "+at+"/{issue_iid}/reorder", writeAPI, a.reorderIssue, summary("Reorder an issue"))
	handle(a, "POST "+at+"/{issue_iid}/move", writeAPI, a.moveIssue, summary("Move an issue"))
	handle(a, "POST "+at+"/{issue_iid}/clone", writeAPI, a.cloneIssue, summary("Clone an issue"))
	handle(a, "POST "+at+"/{issue_iid}/subscribe", writeAPI, a.subscribeIssue, summary("Subscribe to an issue"))
	handle(a, "POST "+at+"/{issue_iid}/unsubscribe", writeAPI, a.unsubscribeIssue, summary("Unsubscribe from an issue"))
	handle(a, "GET "+at+"/{issue_iid}/participants", readAPI.orAnonymous(), a.listIssueParticipants, summary("List participants in an issue"))
}

// issueMatchParams are filters on attributes. Requests can negate them with not,
// as in not[labels].
type issueMatchParams struct {
	IIDs []int64 `param:"iids,csv"`
	matchParams
	MilestoneID string `param:"milestone_id" doc:"Milestone ID, None, Any, Upcoming or Started."`
	Weight      string `param:"weight" doc:"Weight, None or Any."`
}

func (p *issueMatchParams) match() listing.Match {
	m := p.matchParams.match()
	m.IIDs, m.MilestoneID, m.Weight = p.IIDs, p.MilestoneID, p.Weight
	return m
}

func (p *issueMatchParams) ParamRules() []bind.Rule {
	return append([]bind.Rule{bind.Exclusive("milestone", "milestone_id")}, p.matchParams.ParamRules()...)
}

type issueFilterParams struct {
	issueMatchParams
	State        string `param:"state" enum:"opened,closed,all"`
	Scope        string `param:"scope" enum:"created_by_me,created-by-me,assigned_to_me,assigned-to-me,all"`
	Confidential *bool  `param:"confidential"`
	IssueType    string `param:"issue_type" enum:"issue,incident,test_case,task"`
	DueDate      string `param:"due_date" enum:"0,any,today,tomorrow,overdue,week,month,next_month_and_previous_two_weeks"`
	filterParams
	Not issueMatchParams `param:"not" doc:"Return issues that do not match these parameters."`
}

func (p *issueFilterParams) filter(scope string) plan.IssueFilter {
	f := plan.IssueFilter{
		Filter: p.filterParams.filter(p.State, p.Scope, scope), Match: p.match(), Not: p.Not.match(), Confidential: p.Confidential, Due: p.DueDate,
	}
	if p.IssueType != "" {
		f.Types = []string{p.IssueType}
	}
	return f
}

type issueOrderParams struct {
	OrderBy     string `param:"order_by" enum:"created_at,updated_at,priority,due_date,relative_position,label_priority,milestone_due,popularity,weight,title" default:"created_at"`
	Sort        string `param:"sort" enum:"asc,desc" default:"desc"`
	WithDetails bool   `param:"with_labels_details"`
	pageParams
}

func (p *issueOrderParams) order() listing.Sort {
	return listing.Sort{By: p.OrderBy, Desc: p.Sort == "desc"}
}

type listIssuesParams struct {
	issueFilterParams
	issueOrderParams
}

// listIssues: https://docs.gitlab.com/api/issues/#list-issues
func (a *API) listIssues(c *call, p listIssuesParams) (page[issueJSON], error) {
	f := p.filter(a.ownScope(c, &p.issueFilterParams))
	list, err := a.Plan.Issues(c, c.actor, f, p.order(), p.paging())
	return a.presentIssues(c, p.pageParams, list, p.WithDetails, err)
}

// ownScope returns the default scope of a list of all issues: the issues that the
// current user created, or all issues if the caller is anonymous or filters by user.
func (a *API) ownScope(c *call, p *issueFilterParams) string {
	if p.hasUser() || c.actor.Anonymous() {
		return ""
	}
	return "created_by_me"
}

type placeIssuesParams struct {
	placeParams
	listIssuesParams
}

// listIssues: https://docs.gitlab.com/api/issues/#list-project-issues
func (m parentEndpoints) listIssues(c *call, p placeIssuesParams) (page[issueJSON], error) {
	f := p.filter("")
	f.Live = m.group && p.live()
	list, err := m.api.Plan.PlaceIssues(c, c.actor, m.at(p.Ref), f, p.order(), p.paging())
	return m.api.presentIssues(c, p.pageParams, list, p.WithDetails, err)
}

type issueCountsJSON struct {
	Statistics struct {
		Counts struct {
			All    int64 `json:"all"`
			Closed int64 `json:"closed"`
			Opened int64 `json:"opened"`
		} `json:"counts"`
	} `json:"statistics"`
}

func toIssueCounts(n plan.Counts, err error) (issueCountsJSON, error) {
	var out issueCountsJSON
	counts := &out.Statistics.Counts
	counts.All, counts.Closed, counts.Opened = n.All, n.Closed, n.Opened
	return out, err
}

// countIssues: https://docs.gitlab.com/api/issues_statistics/#get-issues-statistics
func (a *API) countIssues(c *call, p issueFilterParams) (issueCountsJSON, error) {
	return toIssueCounts(a.Plan.CountIssues(c, c.actor, nil, p.filter(a.ownScope(c, &p))))
}

type placeIssueCountsParams struct {
	placeParams
	issueFilterParams
}

// countIssues: https://docs.gitlab.com/api/issues_statistics/#get-project-issues-statistics
func (m parentEndpoints) countIssues(c *call, p placeIssueCountsParams) (issueCountsJSON, error) {
	at := m.at(p.Ref)
	return toIssueCounts(m.api.Plan.CountIssues(c, c.actor, &at, p.filter("")))
}

type issueIDParams struct {
	ID int64 `param:"issue_id"`
}

// getIssueByID: https://docs.gitlab.com/api/issues/#single-issue
func (a *API) getIssueByID(c *call, p issueIDParams) (issueDetailJSON, error) {
	i, err := a.Plan.IssueByID(c, c.actor, p.ID)
	return a.presentIssue(c, i, err)
}

type issueParams struct {
	projectParams
	Issue int64 `param:"issue_iid" doc:"IID of the issue: its number in the project."`
}

// getIssue: https://docs.gitlab.com/api/issues/#single-project-issue
func (a *API) getIssue(c *call, p issueParams) (issueDetailJSON, error) {
	i, err := a.Plan.Issue(c, c.actor, p.Project, p.Issue)
	return a.presentIssue(c, i, err)
}

// issueFieldParams are the attributes for create and update.
type issueFieldParams struct {
	fieldParams
	DueDate      bind.Opt[bind.Date] `param:"due_date" doc:"Date in the format YYYY-MM-DD; empty to remove."`
	Confidential *bool               `param:"confidential"`
	Locked       *bool               `param:"discussion_locked"`
	Weight       bind.Opt[int64]     `param:"weight"`
	IssueType    *string             `param:"issue_type" enum:"issue,incident,test_case,task"`
}

func (p *issueFieldParams) fields(title *string) plan.IssueFields {
	f := plan.IssueFields{
		Fields: p.fieldParams.fields(title), Confidential: p.Confidential, Type: p.IssueType, DueDate: dayChange(p.DueDate), SetWeight: p.Weight.Set,
	}
	f.Locked = p.Locked
	if p.Weight.Set && !p.Weight.Null {
		f.Weight = &p.Weight.Value
	}
	return f
}

type createIssueParams struct {
	projectParams
	Title     string     `param:"title,required"`
	IID       *int64     `param:"iid" doc:"Requires administrator access or the Owner role."`
	CreatedAt *time.Time `param:"created_at" doc:"Requires administrator access or the Owner role."`
	Request   *int64     `param:"merge_request_to_resolve_discussions_of" doc:"IID of a merge request whose open threads are resolved. The default description lists them."`
	Thread    string     `param:"discussion_to_resolve" doc:"ID of the only thread to resolve, with merge_request_to_resolve_discussions_of."`
	issueFieldParams
}

// check rejects the ID of a thread without the IID of its merge request.
func (p *createIssueParams) check() error {
	if p.Thread != "" && p.Request == nil {
		return errs.Refused("merge_request_to_resolve_discussions_of is missing")
	}
	return nil
}

// createIssue: https://docs.gitlab.com/api/issues/#new-issue
func (a *API) createIssue(c *call, p createIssueParams) (issueDetailJSON, error) {
	n := plan.NewIssue{IssueFields: p.fields(&p.Title), IID: p.IID, CreatedAt: p.CreatedAt}
	if p.Request != nil {
		i, err := a.Merges.CreateIssue(c, c.actor, p.Project, n, merge.FollowUp{Request: *p.Request, Discussion: p.Thread})
		return a.presentIssue(c, i, err)
	}
	i, err := a.Plan.CreateIssue(c, c.actor, p.Project, n)
	return a.presentIssue(c, i, err)
}

type updateIssueParams struct {
	issueParams
	Title        *string    `param:"title"`
	StateEvent   string     `param:"state_event" enum:"close,reopen"`
	AddLabels    []string   `param:"add_labels,csv"`
	RemoveLabels []string   `param:"remove_labels,csv"`
	UpdatedAt    *time.Time `param:"updated_at" doc:"Requires administrator access or the Owner role."`
	issueFieldParams
}

func (updateIssueParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("assignee_id", "assignee_ids", "confidential", "updated_at", "description", "discussion_locked", "due_date", "labels",
		"add_labels", "remove_labels", "milestone_id", "state_event", "title", "issue_type", "weight")}
}

// updateIssue: https://docs.gitlab.com/api/issues/#edit-an-issue
func (a *API) updateIssue(c *call, p updateIssueParams) (issueDetailJSON, error) {
	f := p.fields(p.Title)
	f.Event, f.Labels.Add, f.Labels.Remove, f.UpdatedAt = p.StateEvent, p.AddLabels, p.RemoveLabels, p.UpdatedAt
	i, err := a.Plan.UpdateIssue(c, c.actor, p.Project, p.Issue, f)
	return a.presentIssue(c, i, err)
}

// deleteIssue: https://docs.gitlab.com/api/issues/#delete-an-issue
func (a *API) deleteIssue(c *call, p issueParams) (none, error) {
	return none{}, a.Plan.DeleteIssue(c, c.actor, p.Project, p.Issue, c.unmodifiedSince())
}

type reorderIssueParams struct {
	issueParams
	After  *int64 `param:"move_after_id" doc:"ID of the issue to place this issue after."`
	Before *int64 `param:"move_before_id" doc:"ID of the issue to place this issue before."`
}

// reorderIssue: https://docs.gitlab.com/api/issues/#reorder-an-issue
func (a *API) reorderIssue(c *call, p reorderIssueParams) (issueDetailJSON, error) {
	i, err := a.Plan.ReorderIssue(c, c.actor, p.Project, p.Issue, p.After, p.Before)
	return a.presentIssue(c, i, err)
}

type moveIssueParams struct {
	issueParams
	To int64 `param:"to_project_id,required"`
}

// moveIssue: https://docs.gitlab.com/api/issues/#move-an-issue
func (a *API) moveIssue(c *call, p moveIssueParams) (issueDetailJSON, error) {
	i, err := a.Plan.MoveIssue(c, c.actor, p.Project, p.Issue, p.To)
	return a.presentIssue(c, i, err)
}

type cloneIssueParams struct {
	issueParams
	To        int64 `param:"to_project_id,required"`
	WithNotes bool  `param:"with_notes"`
}

// cloneIssue: https://docs.gitlab.com/api/issues/#clone-an-issue
func (a *API) cloneIssue(c *call, p cloneIssueParams) (issueDetailJSON, error) {
	i, err := a.Plan.CloneIssue(c, c.actor, p.Project, p.Issue, p.To, p.WithNotes)
	return a.presentIssue(c, i, err)
}

// subscribeIssue: https://docs.gitlab.com/api/issues/#subscribe-to-an-issue
func (a *API) subscribeIssue(c *call, p issueParams) (unchanged[issueDetailJSON], error) {
	return a.setIssueSubscription(c, p, true)
}

// unsubscribeIssue: https://docs.gitlab.com/api/issues/#unsubscribe-from-an-issue
func (a *API) unsubscribeIssue(c *call, p issueParams) (unchanged[issueDetailJSON], error) {
	return a.setIssueSubscription(c, p, false)
}

func (a *API) setIssueSubscription(c *call, p issueParams, want bool) (unchanged[issueDetailJSON], error) {
	i, changed, err := a.Plan.SubscribeIssue(c, c.actor, p.Project, p.Issue, want)
	out, err := a.presentIssue(c, i, err)
	return unchanged[issueDetailJSON]{out, !changed}, err
}

// listIssueParticipants: https://docs.gitlab.com/api/issues/#list-participants-in-an-issue
func (a *API) listIssueParticipants(c *call, p issueParams) ([]userPublicJSON, error) {
	list, err := a.Plan.IssueParticipants(c, c.actor, p.Project, p.Issue)
	return a.presentUsers(c, list, err)
}
