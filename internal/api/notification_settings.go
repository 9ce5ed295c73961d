package api

import (
	"svc/internal/notify"
)

func (a *API) notificationRoutes() {
	a.tag("Notification settings")
	handle(a, "GET /notification_settings", readAPI, a.getNotifications, summary("Get global notification settings"))
	handle(a, "PUT /notification_settings", writeAPI, a.setNotifications, summary("Update global notification settings"))
	for _, in := range []struct {
		path, kind string
		group      bool
	}{{"/projects/{id}", "project", false}, {"/groups/{id}", "group", true}} {
		m := parentEndpoints{a, in.group}
		handle(a, "GET "+in.path+"/notification_settings", readAPI, m.getNotifications, summary("Get "+in.kind+" notification settings"))
		handle(a, "PUT "+in.path+"/notification_settings", writeAPI, m.setNotifications, summary("Update "+in.kind+" notification settings"))
	}
}

// notificationParams are the level and the events. Events are stored with any level
// but apply only to the level custom.
type notificationParams struct {
	Level                *string `param:"level" doc:"Notification level: disabled, participating, watch, global, mention or custom."`
	NewNote              *bool   `param:"new_note"`
	NewIssue             *bool   `param:"new_issue"`
	ReopenIssue          *bool   `param:"reopen_issue"`
	CloseIssue           *bool   `param:"close_issue"`
	ReassignIssue        *bool   `param:"reassign_issue"`
	IssueDue             *bool   `param:"issue_due"`
	NewMergeRequest      *bool   `param:"new_merge_request"`
	PushToMergeRequest   *bool   `param:"push_to_merge_request"`
	ReopenMergeRequest   *bool   `param:"reopen_merge_request"`
	CloseMergeRequest    *bool   `param:"close_merge_request"`
	ReassignMergeRequest *bool   `param:"reassign_merge_request"`
	ChangeReviewer       *bool   `param:"change_reviewer_merge_request"`
	MergeMergeRequest    *bool   `param:"merge_merge_request"`
	FailedPipeline       *bool   `param:"failed_pipeline"`
	FixedPipeline        *bool   `param:"fixed_pipeline"`
	SuccessPipeline      *bool   `param:"success_pipeline"`
	MovedProject         *bool   `param:"moved_project"`
	MergeWhenSucceeds    *bool   `param:"merge_when_pipeline_succeeds"`
	NewEpic              *bool   `param:"new_epic" doc:"Stored without effect: epics are not supported."`
	NewRelease           *bool   `param:"new_release" doc:"A new release."`
}

func (p *notificationParams) change() notify.Change {
	c := notify.Change{Level: (*notify.Level)(p.Level), Events: map[notify.EventType]bool{}}
	for e, said := range map[notify.EventType]*bool{
		notify.NewNote: p.NewNote, notify.NewIssue: p.NewIssue, notify.ReopenIssue: p.ReopenIssue, notify.CloseIssue: p.CloseIssue,
		notify.ReassignIssue: p.ReassignIssue, notify.IssueDue: p.IssueDue, notify.NewMergeRequest: p.NewMergeRequest,
		notify.PushToMergeRequest: p.PushToMergeRequest, notify.ReopenMergeRequest: p.ReopenMergeRequest, notify.CloseMergeRequest: p.CloseMergeRequest,
		notify.ReassignMergeRequest: p.ReassignMergeRequest, notify.ChangeReviewer: p.ChangeReviewer, notify.MergeMergeRequest: p.MergeMergeRequest,
		notify.FailedPipeline: p.FailedPipeline, notify.FixedPipeline: p.FixedPipeline, notify.SuccessPipeline: p.SuccessPipeline,
		notify.MovedProject: p.MovedProject, notify.MergeWhenSucceeds: p.MergeWhenSucceeds, notify.NewEpic: p.NewEpic, notify.NewRelease: p.NewRelease,
	} {
		if said != nil {
			c.Events[e] = *said
		}
	}
	return c
}

type notificationJSON struct {
	Level  string                  `json:"level"`
	Events *notificationEventsJSON `json:"events,omitempty"` // with the level custom
}

type notificationEventsJSON struct {
	NewRelease           bool  `json:"new_release"`
	NewNote              bool  `json:"new_note"`
	NewIssue             bool  `json:"new_issue"`
	ReopenIssue          bool  `json:"reopen_issue"`
	CloseIssue           bool  `json:"close_issue"`
	ReassignIssue        bool  `json:"reassign_issue"`
	IssueDue             bool  `json:"issue_due"`
	NewMergeRequest      bool  `json:"new_merge_request"`
	PushToMergeRequest   bool  `json:"push_to_merge_request"`
	ReopenMergeRequest   bool  `json:"reopen_merge_request"`
	CloseMergeRequest    bool  `json:"close_merge_request"`
	ReassignMergeRequest bool  `json:"reassign_merge_request"`
	ChangeReviewer       bool  `json:"change_reviewer_merge_request"`
	MergeMergeRequest    bool  `json:"merge_merge_request"`
	FailedPipeline       bool  `json:"failed_pipeline"`
	FixedPipeline        bool  `json:"fixed_pipeline"`
	SuccessPipeline      bool  `json:"success_pipeline"`
	MovedProject         bool  `json:"moved_project"`
	MergeWhenSucceeds    bool  `json:"merge_when_pipeline_succeeds"`
	NewEpic              *bool `json:"new_epic,omitempty"` // ultimate
}

func toNotification(site *Site, t notify.Setting) notificationJSON {
	shown := notificationJSON{Level: string(t.Level)}
	if t.Level != notify.Custom {
		return shown
	}
	is := t.Chosen
	shown.Events = &notificationEventsJSON{
		NewRelease: is(notify.NewRelease), NewNote: is(notify.NewNote), NewIssue: is(notify.NewIssue), ReopenIssue: is(notify.ReopenIssue),
		CloseIssue: is(notify.CloseIssue), ReassignIssue: is(notify.ReassignIssue), IssueDue: is(notify.IssueDue),
		NewMergeRequest: is(notify.NewMergeRequest), PushToMergeRequest: is(notify.PushToMergeRequest),
		ReopenMergeRequest: is(notify.ReopenMergeRequest), CloseMergeRequest: is(notify.CloseMergeRequest),
		ReassignMergeRequest: is(notify.ReassignMergeRequest), ChangeReviewer: is(notify.ChangeReviewer),
		MergeMergeRequest: is(notify.MergeMergeRequest), FailedPipeline: is(notify.FailedPipeline), FixedPipeline: is(notify.FixedPipeline),
		SuccessPipeline: is(notify.SuccessPipeline), MovedProject: is(notify.MovedProject), MergeWhenSucceeds: is(notify.MergeWhenSucceeds),
	}
	if site.Tier >= Ultimate {
		epic := is(notify.NewEpic)
		shown.Events.NewEpic = &epic
	}
	return shown
}

type globalNotificationJSON struct {
	notificationJSON
	Email string `json:"notification_email"`
}

// getNotifications: https://docs.gitlab.com/api/notification_settings/#global-notification-settings
func (a *API) getNotifications(c *call, _ struct{}) (globalNotificationJSON, error) {
	t, err := a.Notify.Everywhere(c, c.actor)
	return globalNotificationJSON{toNotification(c.site, t), t.Email}, err
}

type globalNotificationParams struct {
	notificationParams
	Email *string `param:"notification_email" doc:"Confirmed email address of the current user."`
}

// setNotifications: https://docs.gitlab.com/api/notification_settings/#update-global-notification-settings
func (a *API) setNotifications(c *call, p globalNotificationParams) (globalNotificationJSON, error) {
	change := p.change()
	change.Email = p.Email
	t, err := a.Notify.SetEverywhere(c, c.actor, change)
	return globalNotificationJSON{toNotification(c.site, t), t.Email}, err
}

// getNotifications: https://docs.gitlab.com/api/notification_settings/#group--project-level-notification-settings
func (m parentEndpoints) getNotifications(c *call, p placeParams) (notificationJSON, error) {
	t, err := m.api.Notify.At(c, c.actor, m.at(p.Ref))
	return toNotification(c.site, t), err
}

type placeNotificationParams struct {
	placeParams
	notificationParams
}

// setNotifications: https://docs.gitlab.com/api/notification_settings/#update-groupproject-level-notification-settings
func (m parentEndpoints) setNotifications(c *call, p placeNotificationParams) (notificationJSON, error) {
	t, err := m.api.Notify.SetAt(c, c.actor, m.at(p.Ref), p.change())
	return toNotification(c.site, t), err
}
