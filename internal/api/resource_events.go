package api

import (
	"svc/internal/plan"
)

func (a *API) resourceEventRoutes() {
	const issue, request = "/projects/{id}/issues/{issue_iid}", "/projects/{id}/merge_requests/{merge_request_iid}"
	eventRoutesOf[issueParams](a, issue, "an issue")
	eventRoutesOf[mergeParams](a, request, "a merge request")
	a.tag("Resource weight events")
	t := eventEndpoints[issueParams]{a, plan.WeightEvent}
	handle(a, "GET "+issue+"/resource_weight_events", readAPI.orAnonymous(), listEvents(t, toWeightEvent), summary("List weight events of an issue"))
	handle(a, "GET "+issue+"/resource_weight_events/{resource_event_id}", readAPI.orAnonymous(), getEvent(t, toWeightEvent), summary("Get a weight event of an issue"))
}

// eventEndpoints serves one kind of resource events of one type of objects.
type eventEndpoints[T noteTarget] struct {
	api  *API
	kind plan.EventKind
}

func eventRoutesOf[T noteTarget](a *API, at, what string) {
	const one = "/{resource_event_id}"
	a.tag("Resource label events")
	labels := eventEndpoints[T]{a, plan.LabelEvent}
	handle(a, "GET "+at+"/resource_label_events", readAPI.orAnonymous(), listEvents(labels, toLabelEvent), summary("List label events of "+what))
	handle(a, "GET "+at+"/resource_label_events"+one, readAPI.orAnonymous(), getEvent(labels, toLabelEvent), summary("Get a label event of "+what))
	a.tag("Resource state events")
	states := eventEndpoints[T]{a, plan.StateEvent}
	handle(a, "GET "+at+"/resource_state_events", readAPI.orAnonymous(), listEvents(states, toStateEvent), summary("List state events of "+what))
	handle(a, "GET "+at+"/resource_state_events"+one, readAPI.orAnonymous(), getEvent(states, toStateEvent), summary("Get a state event of "+what))
	a.tag("Resource milestone events")
	milestones := eventEndpoints[T]{a, plan.MilestoneEvent}
	handle(a, "GET "+at+"/resource_milestone_events", readAPI.orAnonymous(), listEvents(milestones, toMilestoneEvent), summary("List milestone events of "+what))
	handle(a, "GET "+at+"/resource_milestone_events"+one, readAPI.orAnonymous(), getEvent(milestones, toMilestoneEvent), summary("Get a milestone event of "+what))
}

type listEventsParams[T noteTarget] struct {
	On T `param:"*"`
	pageParams
}

// listEvents: https://docs.gitlab.com/api/resource_label_events/#list-project-issue-label-events
func listEvents[T noteTarget, E any](t eventEndpoints[T], to func(*API, *call, *plan.ResourceEvent) E) func(*call, listEventsParams[T]) (page[E], error) {
	return func(c *call, p listEventsParams[T]) (page[E], error) {
		on, err := p.On.on(t.api, c)
		if err != nil {
			return page[E]{}, err
		}
		list, err := t.api.Plan.ResourceEvents(c, on, t.kind, p.paging())
		if err != nil {
			return page[E]{}, err
		}
		return offsetPage(p.pageParams, list, func(e *plan.ResourceEvent) E { return to(t.api, c, e) }), nil
	}
}

type eventParams[T noteTarget] struct {
	On    T     `param:"*"`
	Event int64 `param:"resource_event_id" doc:"ID of the event."`
}

// getEvent: https://docs.gitlab.com/api/resource_label_events/#get-single-issue-label-event
func getEvent[T noteTarget, E any](t eventEndpoints[T], to func(*API, *call, *plan.ResourceEvent) E) func(*call, eventParams[T]) (E, error) {
	return func(c *call, p eventParams[T]) (out E, err error) {
		on, err := p.On.on(t.api, c)
		if err != nil {
			return out, err
		}
		e, err := t.api.Plan.ResourceEvent(c, on, t.kind, p.Event)
		if err != nil {
			return out, err
		}
		return to(t.api, c, e), nil
	}
}

// resourceEventJSON has the fields that all resource events share.
type resourceEventJSON struct {
	ID           int64           `json:"id"`
	User         *userPublicJSON `json:"user"`
	CreatedAt    stamp           `json:"created_at"`
	ResourceType string          `json:"resource_type"`
	ResourceID   int64           `json:"resource_id"`
}

func toResourceEvent(a *API, c *call, e *plan.ResourceEvent) resourceEventJSON {
	return resourceEventJSON{e.ID, toUserOrNull(c.site, e.User, a.Now()), toStamp(e.CreatedAt), string(e.On.Kind), e.On.ID}
}

type labelEventJSON struct {
	resourceEventJSON
	Label  *eventLabelJSON `json:"label"` // null if it was deleted
	Action string          `json:"action"`
}

type eventLabelJSON struct {
	ID          int64   `json:"id"`
	Name        string  `json:"name"`
	Color       string  `json:"color"`
	TextColor   string  `json:"text_color"`
	Description *string `json:"description"`
}

func toLabelEvent(a *API, c *call, e *plan.ResourceEvent) labelEventJSON {
	out := labelEventJSON{resourceEventJSON: toResourceEvent(a, c, e), Action: e.Action}
	if l := e.Label; l != nil {
		out.Label = &eventLabelJSON{l.ID, l.Name, l.Color, l.TextColor(), textOrNull(l.Description)}
	}
	return out
}

type stateEventJSON struct {
	resourceEventJSON
	State string `json:"state"`
}

func toStateEvent(a *API, c *call, e *plan.ResourceEvent) stateEventJSON {
	return stateEventJSON{resourceEventJSON: toResourceEvent(a, c, e), State: e.Action}
}

type milestoneEventJSON struct {
	resourceEventJSON
	Milestone *milestoneJSON `json:"milestone"`
	Action    string         `json:"action"`
}

func toMilestoneEvent(a *API, c *call, e *plan.ResourceEvent) milestoneEventJSON {
	out := milestoneEventJSON{resourceEventJSON: toResourceEvent(a, c, e), Action: e.Action}
	if e.Milestone != nil {
		m := toMilestone(c.site, e.Milestone, a.Now())
		out.Milestone = &m
	}
	return out
}

type weightEventJSON struct {
	ID        int64           `json:"id"`
	User      *userPublicJSON `json:"user"`
	CreatedAt stamp           `json:"created_at"`
	IssueID   int64           `json:"issue_id"`
	Weight    *int64          `json:"weight"`
}

func toWeightEvent(a *API, c *call, e *plan.ResourceEvent) weightEventJSON {
	return weightEventJSON{e.ID, toUserOrNull(c.site, e.User, a.Now()), toStamp(e.CreatedAt), e.On.ID, e.Weight}
}
