package api

import (
	"strings"
	"time"

	"svc/internal/bind"
	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/user"
)

// This file has the parameters and results that the endpoints of issues and of
// merge requests share.

// matchParams are filters on attributes. Requests can negate them with not,
// as in not[labels].
type matchParams struct {
	Labels            []string `param:"labels,csv" doc:"Labels that must all be set; None or Any."`
	Milestone         string   `param:"milestone" doc:"Milestone title, None, Any, Upcoming or Started."`
	AuthorID          int64    `param:"author_id"`
	AuthorUsername    string   `param:"author_username"`
	AssigneeID        string   `param:"assignee_id" doc:"User ID, None or Any."`
	AssigneeUsernames []string `param:"assignee_username,csv"`
	Reaction          string   `param:"my_reaction_emoji" doc:"Emoji name of a reaction of the current user, None or Any."`
}

func (p *matchParams) match() listing.Match {
	return listing.Match{
		Labels: p.Labels, Milestone: p.Milestone, AuthorID: p.AuthorID, AuthorUsername: p.AuthorUsername,
		AssigneeID: p.AssigneeID, AssigneeUsernames: p.AssigneeUsernames, Reaction: p.Reaction,
	}
}

func (p *matchParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.Exclusive("author_id", "author_username"), bind.Exclusive("assignee_id", "assignee_username")}
}

// hasUser reports whether the list is limited to an author or an assignee.
func (p *matchParams) hasUser() bool {
	return p.AuthorID != 0 || p.AuthorUsername != "" || p.AssigneeID != "" || len(p.AssigneeUsernames) > 0
}

// filterParams are the filters that cannot be negated.
type filterParams struct {
	Search        string     `param:"search" max:"1024"`
	In            []string   `param:"in,csv" enum:"title,description" doc:"Scope of the search parameter."`
	CreatedAfter  *time.Time `param:"created_after"`
	CreatedBefore *time.Time `param:"created_before"`
	UpdatedAfter  *time.Time `param:"updated_after"`
	UpdatedBefore *time.Time `param:"updated_before"`
	NonArchived   *bool      `param:"non_archived" doc:"For groups: only items of projects that are not archived. Default is true."`
}

// filter returns the filter with a state and a scope, or with the default scope if
// scope is empty.
func (p *filterParams) filter(state, scope, defaultScope string) listing.Filter {
	f := listing.Filter{
		State: plan.State(state), Scope: defaultScope, Search: p.Search,
		CreatedAt: [2]*time.Time{p.CreatedAfter, p.CreatedBefore}, UpdatedAt: [2]*time.Time{p.UpdatedAfter, p.UpdatedBefore},
	}
	if state == "all" {
		f.State = ""
	}
	switch scope {
	case "":
	case "all":
		f.Scope = ""
	default:
		f.Scope = strings.ReplaceAll(scope, "-", "_")
	}
	for _, in := range p.In {
		f.InTitle, f.InText = f.InTitle || in == "title", f.InText || in == "description"
	}
	return f
}

// live reports whether a list of a group excludes archived projects.
func (p *filterParams) live() bool { return p.NonArchived == nil || *p.NonArchived }

// fieldParams are the attributes for create and update.
type fieldParams struct {
	Description *string            `param:"description"`
	AssigneeIDs bind.Opt[[]int64]  `param:"assignee_ids,csv" doc:"User IDs; empty or 0 to unassign all."`
	AssigneeID  bind.Opt[int64]    `param:"assignee_id" doc:"ID of a single assignee."`
	Labels      bind.Opt[[]string] `param:"labels,csv" doc:"Label names. Labels that do not exist are created."`
	MilestoneID bind.Opt[int64]    `param:"milestone_id" doc:"ID of the milestone; 0 or empty to unassign."`
}

func (p *fieldParams) fields(title *string) plan.Fields {
	f := plan.Fields{
		Title: title, Description: p.Description, Milestone: sent(&p.MilestoneID), Labels: plan.Labelling{Names: sent(&p.Labels)},
	}
	switch {
	case p.AssigneeIDs.Set:
		f.Assignees = &p.AssigneeIDs.Value
	case p.AssigneeID.Set && p.AssigneeID.Null:
		f.Assignees = &[]int64{}
	case p.AssigneeID.Set:
		f.Assignees = &[]int64{p.AssigneeID.Value}
	}
	return f
}

// plannedJSON has the planning fields of an issue or merge request.
type plannedJSON struct {
	labels    any // names, or details
	assignees []userPublicJSON
	assignee  *userPublicJSON // the first one
	milestone *milestoneJSON
}

func toPlanned(site *Site, i *plan.Issuable, details bool, now time.Time) plannedJSON {
	out := plannedJSON{labels: toLabels(i.Labels, details), assignees: toUsers(site, i.Assignees, now)}
	if len(out.assignees) > 0 {
		out.assignee = &out.assignees[0]
	}
	if i.Milestone != nil {
		m := toMilestone(site, i.Milestone, now)
		out.milestone = &m
	}
	return out
}

func toUsers(site *Site, list []*user.User, now time.Time) []userPublicJSON {
	return mapped(list, func(u *user.User) userPublicJSON { return toUserPublic(site, u, now) })
}

func (a *API) presentUsers(c *call, list []*user.User, err error) ([]userPublicJSON, error) {
	if err != nil {
		return nil, err
	}
	return toUsers(c.site, list, a.Now()), nil
}
