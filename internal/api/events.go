package api

import (
	"svc/internal/activity"
	"svc/internal/bind"
	"svc/internal/db"
	"svc/internal/user"
	"svc/internal/wiki"
)

func (a *API) eventRoutes() {
	a.tag("Events")
	handle(a, "GET /events", readUser, a.listOwnEvents, summary("List the events of the current user"))
	handle(a, "GET /users/{id}/events", readUser, a.listUserEvents, summary("List user contribution events"))
	handle(a, "GET /projects/{id}/events", readAPI.orAnonymous(), a.listProjectEvents, summary("List visible events of a project"))
}

type eventFilterParams struct {
	Action     string     `param:"action" enum:"approved,closed,commented,created,destroyed,expired,joined,left,merged,pushed,reopened,updated"`
	TargetType string     `param:"target_type" enum:"issue,milestone,merge_request,note,project,snippet,user"`
	Before     *bind.Date `param:"before" doc:"Only events before this date, in UTC."`
	After      *bind.Date `param:"after" doc:"Only events after this date, in UTC."`
	Sort       string     `param:"sort" enum:"asc,desc" default:"desc" doc:"Sort direction by created_at."`
	pageParams
}

// targetTypes are the names of target types in events.
func targetTypes(filter string) []string {
	switch filter {
	case "issue":
		return []string{"Issue"}
	case "milestone":
		return []string{"Milestone"}
	case "merge_request":
		return []string{"MergeRequest"}
	case "note":
		return []string{"Note", "DiscussionNote", "DiffNote"}
	case "project":
		return []string{"Project"}
	case "snippet":
		return []string{"Snippet"}
	case "user":
		return []string{"User"}
	}
	return nil
}

func (p *eventFilterParams) filter() activity.Filter {
	f := activity.Filter{Action: activity.Action(p.Action), TargetTypes: targetTypes(p.TargetType), Oldest: p.Sort == "asc"}
	if p.Before != nil {
		at := p.Before.Time()
		f.Before = &at
	}
	if p.After != nil {
		at := p.After.Time().AddDate(0, 0, 1)
		f.After = &at
	}
	return f
}

type ownEventsParams struct {
	Scope string `param:"scope" enum:"all" doc:"all includes events of all users in the projects of the current user."`
	eventFilterParams
}

// listOwnEvents: https://docs.gitlab.com/api/events/#list-all-events
func (a *API) listOwnEvents(c *call, p ownEventsParams) (page[eventJSON], error) {
	read := a.Activity.Own
	if p.Scope == "all" {
		read = a.Activity.OfMemberships
	}
	list, err := read(c, c.actor, p.filter(), p.paging())
	return a.presentEvents(c, p.eventFilterParams, list, err)
}

type userEventsParams struct {
	User user.Ref `param:"id" doc:"User ID or username."`
	eventFilterParams
}

// listUserEvents: https://docs.gitlab.com/api/events/#get-user-contribution-events
func (a *API) listUserEvents(c *call, p userEventsParams) (page[eventJSON], error) {
	list, err := a.Activity.OfUser(c, c.actor, p.User, p.filter(), p.paging())
	return a.presentEvents(c, p.eventFilterParams, list, err)
}

type projectEventsParams struct {
	projectParams
	eventFilterParams
}

// listProjectEvents: https://docs.gitlab.com/api/events/#list-all-visible-events-for-a-project
func (a *API) listProjectEvents(c *call, p projectEventsParams) (page[eventJSON], error) {
	list, err := a.Activity.OfProject(c, c.actor, p.Project, p.filter(), p.paging())
	return a.presentEvents(c, p.eventFilterParams, list, err)
}

type eventJSON struct {
	ID             int64              `json:"id"`
	Title          *string            `json:"title"`
	ProjectID      *int64             `json:"project_id"`
	ActionName     string             `json:"action_name"`
	TargetID       *int64             `json:"target_id"`
	TargetIID      *int64             `json:"target_iid"`
	TargetType     *string            `json:"target_type"`
	AuthorID       int64              `json:"author_id"`
	TargetTitle    *string            `json:"target_title"`
	CreatedAt      stamp              `json:"created_at"`
	Author         *userPublicJSON    `json:"author"`
	AuthorUsername *string            `json:"author_username"`
	Data           *string            `json:"data"` // deprecated: always null
	PushData       *pushDataJSON      `json:"push_data,omitempty"`
	Note           *noteJSON          `json:"note,omitempty"`
	WikiPage       *wikiPageBasicJSON `json:"wiki_page,omitempty"`
}

type pushDataJSON struct {
	CommitCount int     `json:"commit_count"`
	Action      string  `json:"action"`
	RefType     string  `json:"ref_type"`
	CommitFrom  *string `json:"commit_from"`
	CommitTo    *string `json:"commit_to"`
	Ref         *string `json:"ref"`
	CommitTitle *string `json:"commit_title"`
	RefCount    *int    `json:"ref_count"`
}

func (a *API) presentEvents(c *call, p eventFilterParams, list db.Page[*activity.Event], err error) (page[eventJSON], error) {
	if err != nil {
		return page[eventJSON]{}, err
	}
	var ids []int64
	for _, e := range list.Items {
		if e.Action == activity.Commented && e.TargetID != nil {
			ids = append(ids, *e.TargetID)
		}
	}
	notes, err := a.Plan.NotesOf(c, ids)
	if err != nil {
		return page[eventJSON]{}, err
	}
	pages, err := a.wikiPagesOf(c, list.Items)
	if err != nil {
		return page[eventJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(e *activity.Event) eventJSON {
		out := a.toEvent(c, e)
		if e.Action == activity.Commented && notes[*e.TargetID] != nil {
			note := a.toNote(c, notes[*e.TargetID])
			out.Note = &note
		}
		if e.TargetType == wiki.TargetType && e.TargetID != nil {
			out.WikiPage = pages[*e.TargetID]
		}
		return out
	}), nil
}

// wikiPagesOf returns the wiki pages that are targets of events.
func (a *API) wikiPagesOf(c *call, list []*activity.Event) (map[int64]*wikiPageBasicJSON, error) {
	var ids []int64
	for _, e := range list {
		if e.TargetType == wiki.TargetType && e.TargetID != nil {
			ids = append(ids, *e.TargetID)
		}
	}
	found, err := a.Wikis.PagesOf(c, ids)
	results := make(map[int64]*wikiPageBasicJSON, len(found))
	for id, p := range found {
		out := toWikiPageBasic(&p)
		results[id] = &out
	}
	return results, err
}

func (a *API) toEvent(c *call, e *activity.Event) eventJSON {
	out := eventJSON{
		ID: e.ID, ProjectID: e.ProjectID, ActionName: actionName(e), TargetID: e.TargetID, TargetIID: e.TargetIID, TargetType: textOrNull(e.TargetType),
		AuthorID: e.AuthorID, TargetTitle: textOrNull(e.TargetTitle), CreatedAt: toStamp(e.CreatedAt),
	}
	if e.Author != nil {
		author := toUserPublic(c.site, e.Author, a.Now())
		out.Author, out.AuthorUsername = &author, &author.Username
	}
	if p := e.Push; p != nil {
		out.PushData = &pushDataJSON{
			CommitCount: p.CommitCount, Action: string(p.Action), RefType: p.RefType, CommitFrom: textOrNull(p.From), CommitTo: textOrNull(p.To),
			Ref: textOrNull(p.Ref), CommitTitle: textOrNull(p.CommitTitle),
		}
		if p.RefCount > 0 {
			out.PushData.RefCount = &p.RefCount
		}
	}
	return out
}

// actionName returns the action name of the public API.
func actionName(e *activity.Event) string {
	switch e.Action {
	case activity.Created:
		if e.TargetType != "Project" && e.TargetType != wiki.TargetType {
			return "opened"
		}
	case activity.Commented:
		return "commented on"
	case activity.Merged:
		return "accepted"
	case activity.Expired:
		return "removed due to membership expiration from"
	}
	return string(e.Action)
}
