package api

import (
	"strconv"
	"time"

	"svc/internal/bind"
	"svc/internal/db"
	"svc/internal/plan"
)

func (a *API) milestoneRoutes() {
	a.tag("Milestones")
	for _, in := range []struct {
		path, kind string
		group      bool
	}{{"/projects/{id}", "project", false}, {"/groups/{id}", "group", true}} {
		m := parentEndpoints{a, in.group}
		handle(a, "GET "+in.path+"/milestones", readAPI.orAnonymous(), m.listMilestones, summary("List "+in.kind+" milestones"))
		handle(a, "POST "+in.path+"/milestones", writeAPI, m.createMilestone, summary("Create a "+in.kind+" milestone"))
		handle(a, "GET "+in.path+"/milestones/{milestone_id}", readAPI.orAnonymous(), m.getMilestone, summary("Get a "+in.kind+" milestone"))
		handle(a, "PUT "+in.path+"/milestones/{milestone_id}", writeAPI, m.updateMilestone, summary("Update a "+in.kind+" milestone"))
		handle(a, "DELETE "+in.path+"/milestones/{milestone_id}", writeAPI, m.deleteMilestone, summary("Delete a "+in.kind+" milestone"))
		handle(a, "GET "+in.path+"/milestones/{milestone_id}/issues", readAPI.orAnonymous(), m.listMilestoneIssues, summary("List issues assigned to a "+in.kind+" milestone"))
		handle(a, "GET "+in.path+"/milestones/{milestone_id}/merge_requests", readAPI.orAnonymous(), m.listMilestoneRequests, summary("List merge requests assigned to a "+in.kind+" milestone"))
	}
	handle(a, "POST /projects/{id}/milestones/{milestone_id}/promote", writeAPI, a.promoteMilestone, status(200), summary("Promote a project milestone to a group milestone"))
}

type milestoneJSON struct {
	ID          int64  `json:"id"`
	IID         int64  `json:"iid"`
	ProjectID   *int64 `json:"project_id,omitempty"`
	GroupID     *int64 `json:"group_id,omitempty"`
	Title       string `json:"title"`
	Description string `json:"description"`
	State       string `json:"state"`
	CreatedAt   stamp  `json:"created_at"`
	UpdatedAt   stamp  `json:"updated_at"`
	DueDate     *day   `json:"due_date"`
	StartDate   *day   `json:"start_date"`
	Expired     bool   `json:"expired"`
	WebURL      string `json:"web_url"`
}

func toMilestone(site *Site, m *plan.Milestone, now time.Time) milestoneJSON {
	at := site.URL + "/" + m.Path
	if m.GroupID != nil {
		at = site.URL + "/groups/" + m.Path
	}
	return milestoneJSON{
		ID: m.ID, IID: m.IID, ProjectID: m.ProjectID, GroupID: m.GroupID, Title: m.Title, Description: m.Description, State: string(m.State),
		CreatedAt: toStamp(m.CreatedAt), UpdatedAt: toStamp(m.UpdatedAt), DueDate: toDayOrNull(m.DueDate), StartDate: toDayOrNull(m.StartDate),
		Expired: m.Expired(now), WebURL: at + "/-/milestones/" + strconv.FormatInt(m.IID, 10),
	}
}

func (a *API) presentMilestone(c *call, m *plan.Milestone, err error) (milestoneJSON, error) {
	if err != nil {
		return milestoneJSON{}, err
	}
	return toMilestone(c.site, m, a.Now()), nil
}

type listMilestonesParams struct {
	placeParams
	IIDs          []int64    `param:"iids,csv"`
	State         string     `param:"state" enum:"active,closed,all"`
	Title         string     `param:"title"`
	Search        string     `param:"search" max:"1024"`
	SearchTitle   string     `param:"search_title" doc:"Text in the title."`
	Containing    *bind.Date `param:"containing_date" doc:"Only milestones whose start and due dates include this date."`
	Ancestors     bool       `param:"include_ancestors" aliases:"include_parent_milestones"`
	Descendants   bool       `param:"include_descendants" aliases:"include_descendents" doc:"For groups: include milestones of descendant groups and projects."`
	UpdatedBefore *time.Time `param:"updated_before"`
	UpdatedAfter  *time.Time `param:"updated_after"`
	pageParams
}

// listMilestones: https://docs.gitlab.com/api/milestones/#list-project-milestones
func (m parentEndpoints) listMilestones(c *call, p listMilestonesParams) (page[milestoneJSON], error) {
	f := plan.MilestoneFilter{
		IIDs: p.IIDs, Title: p.Title, Search: p.Search, SearchTitle: p.SearchTitle, Containing: dateText(p.Containing), Ancestors: p.Ancestors, Descendants: p.Descendants, UpdatedAt: [2]*time.Time{p.UpdatedAfter, p.UpdatedBefore},
	}
	if p.State != "all" {
		f.State = plan.MilestoneState(p.State)
	}
	list, err := m.api.Plan.Milestones(c, c.actor, m.at(p.Ref), f, p.paging())
	if err != nil {
		return page[milestoneJSON]{}, err
	}
	now := m.api.Now()
	return offsetPage(p.pageParams, list, func(one *plan.Milestone) milestoneJSON { return toMilestone(c.site, one, now) }), nil
}

type milestoneParams struct {
	placeParams
	Milestone int64 `param:"milestone_id"`
}

// getMilestone: https://docs.gitlab.com/api/milestones/#get-single-milestone
func (m parentEndpoints) getMilestone(c *call, p milestoneParams) (milestoneJSON, error) {
	found, err := m.api.Plan.Milestone(c, c.actor, m.at(p.Ref), p.Milestone)
	return m.api.presentMilestone(c, found, err)
}

type milestoneFieldParams struct {
	Description *string             `param:"description"`
	DueDate     bind.Opt[bind.Date] `param:"due_date" doc:"Date in the format YYYY-MM-DD; empty to remove."`
	StartDate   bind.Opt[bind.Date] `param:"start_date" doc:"Date in the format YYYY-MM-DD; empty to remove."`
}

func (p *milestoneFieldParams) fields(title *string) plan.MilestoneFields {
	return plan.MilestoneFields{Title: title, Description: p.Description, DueDate: dayChange(p.DueDate), StartDate: dayChange(p.StartDate)}
}

// dayChange converts a date parameter to a change: nil keeps the current date, an
// empty string removes it.
func dayChange(o bind.Opt[bind.Date]) *string {
	if !o.Set {
		return nil
	}
	text := ""
	if !o.Null {
		text = o.Value.String()
	}
	return &text
}

type createMilestoneParams struct {
	placeParams
	Title string `param:"title,required"`
	milestoneFieldParams
}

// createMilestone: https://docs.gitlab.com/api/milestones/#create-new-milestone
func (m parentEndpoints) createMilestone(c *call, p createMilestoneParams) (milestoneJSON, error) {
	made, err := m.api.Plan.CreateMilestone(c, c.actor, m.at(p.Ref), p.fields(&p.Title))
	return m.api.presentMilestone(c, made, err)
}

type updateMilestoneParams struct {
	milestoneParams
	Title *string `param:"title"`
	Event string  `param:"state_event" enum:"close,activate"`
	milestoneFieldParams
}

// updateMilestone: https://docs.gitlab.com/api/milestones/#edit-milestone
func (m parentEndpoints) updateMilestone(c *call, p updateMilestoneParams) (milestoneJSON, error) {
	f := p.fields(p.Title)
	f.Event = p.Event
	found, err := m.api.Plan.UpdateMilestone(c, c.actor, m.at(p.Ref), p.Milestone, f)
	return m.api.presentMilestone(c, found, err)
}

// deleteMilestone: https://docs.gitlab.com/api/milestones/#delete-project-milestone
func (m parentEndpoints) deleteMilestone(c *call, p milestoneParams) (none, error) {
	return none{}, m.api.Plan.DeleteMilestone(c, c.actor, m.at(p.Ref), p.Milestone, c.unmodifiedSince())
}

// promoteMilestone: https://docs.gitlab.com/api/milestones/#promote-project-milestone-to-a-group-milestone
func (a *API) promoteMilestone(c *call, p milestoneParams) (milestoneJSON, error) {
	m, err := a.Plan.PromoteMilestone(c, c.actor, p.Ref, p.Milestone)
	return a.presentMilestone(c, m, err)
}

type milestoneIssuesParams struct {
	milestoneParams
	pageParams
}

// listMilestoneIssues: https://docs.gitlab.com/api/milestones/#get-all-issues-assigned-to-a-single-milestone
func (m parentEndpoints) listMilestoneIssues(c *call, p milestoneIssuesParams) (page[issueJSON], error) {
	list, err := m.api.Plan.MilestoneIssues(c, c.actor, m.at(p.Ref), p.Milestone, p.paging())
	return m.api.presentIssues(c, p.pageParams, list, false, err)
}

// listMilestoneRequests: https://docs.gitlab.com/api/milestones/#get-all-merge-requests-assigned-to-a-single-milestone
func (m parentEndpoints) listMilestoneRequests(c *call, p milestoneIssuesParams) (page[mergeRequestJSON], error) {
	list, err := m.api.Merges.OfMilestone(c, c.actor, m.at(p.Ref), p.Milestone, p.paging())
	if err != nil {
		return page[mergeRequestJSON]{}, err
	}
	return m.api.mergePage(c, p.pageParams, list, false)
}

// presentIssues returns a page of issues.
func (a *API) presentIssues(c *call, p pageParams, list db.Page[*plan.Issue], details bool, err error) (page[issueJSON], error) {
	if err != nil {
		return page[issueJSON]{}, err
	}
	requests, err := a.Merges.CountOfIssues(c, c.actor, mapped(list.Items, func(i *plan.Issue) int64 { return i.ID }))
	if err != nil {
		return page[issueJSON]{}, err
	}
	now := a.Now()
	return offsetPageWhile(c, p, list, func(i *plan.Issue) issueJSON {
		out := toIssue(c.site, i, details, now)
		out.MergeRequestsCount = requests[i.ID]
		return out
	})
}
