package api

import (
	"strconv"
	"strings"

	"svc/internal/errs"
	"svc/internal/hook"
)

func (a *API) integrationRoutes() {
	for _, in := range []struct {
		path, kind, tag string
		at              hookEndpoints
	}{
		{"/projects/{id}/integrations", "project", "Project integrations", hookEndpoints{api: a}},
		{"/projects/{id}/services", "project", "Project integrations", hookEndpoints{api: a}}, // the deprecated name
		{"/groups/{id}/integrations", "group", "Group integrations", hookEndpoints{api: a, group: true}},
	} {
		a.tag(in.tag)
		m, options := in.at, []option{}
		if m.group {
			options = append(options, tier(Premium))
		}
		with := func(text string) []option { return append([]option{summary(text)}, options...) }
		handle(a, "GET "+in.path, readAPI, m.listIntegrations, with("List active "+in.kind+" integrations")...)
		handle(a, "GET "+in.path+"/{slug}", readAPI, m.getIntegration, with("Get the settings of a "+in.kind+" integration")...)
		handle(a, "PUT "+in.path+"/{slug}", writeAPI, m.setIntegration, with("Set up a "+in.kind+" integration")...)
		handle(a, "DELETE "+in.path+"/{slug}", writeAPI, m.deleteIntegration, with("Disable a "+in.kind+" integration")...)
	}
}

type integrationJSON struct {
	ID                       int64  `json:"id"`
	Title                    string `json:"title"`
	Slug                     string `json:"slug"`
	CreatedAt                stamp  `json:"created_at"`
	UpdatedAt                stamp  `json:"updated_at"`
	Active                   bool   `json:"active"`
	CommitEvents             bool   `json:"commit_events"`
	PushEvents               bool   `json:"push_events"`
	IssuesEvents             bool   `json:"issues_events"`
	IncidentEvents           bool   `json:"incident_events"`
	AlertEvents              bool   `json:"alert_events"`
	ConfidentialIssuesEvents bool   `json:"confidential_issues_events"`
	MergeRequestsEvents      bool   `json:"merge_requests_events"`
	TagPushEvents            bool   `json:"tag_push_events"`
	DeploymentEvents         bool   `json:"deployment_events"`
	NoteEvents               bool   `json:"note_events"`
	ConfidentialNoteEvents   bool   `json:"confidential_note_events"`
	PipelineEvents           bool   `json:"pipeline_events"`
	WikiPageEvents           bool   `json:"wiki_page_events"`
	JobEvents                bool   `json:"job_events"`
	CommentOnEventEnabled    bool   `json:"comment_on_event_enabled"`
	Inherited                bool   `json:"inherited"`
	VulnerabilityEvents      bool   `json:"vulnerability_events"`
}

type integrationDetailJSON struct {
	integrationJSON
	Properties integrationPropertiesJSON `json:"properties"`
}

// integrationPropertiesJSON has the properties of an integration, except the webhook
// URL, token and key, which are secret.
type integrationPropertiesJSON struct {
	Username                 *string `json:"username"`
	Channel                  *string `json:"channel"`
	NotifyOnlyBroken         bool    `json:"notify_only_broken_pipelines"`
	NotifyOnlyDefault        bool    `json:"notify_only_default_branch"`
	Branches                 string  `json:"branches_to_be_notified"`
	Labels                   *string `json:"labels_to_be_notified"`
	LabelsBehavior           string  `json:"labels_to_be_notified_behavior"`
	PushChannel              *string `json:"push_channel"`
	TagPushChannel           *string `json:"tag_push_channel"`
	IssueChannel             *string `json:"issue_channel"`
	ConfidentialIssueChannel *string `json:"confidential_issue_channel"`
	MergeRequestChannel      *string `json:"merge_request_channel"`
	NoteChannel              *string `json:"note_channel"`
	ConfidentialNoteChannel  *string `json:"confidential_note_channel"`
	PipelineChannel          *string `json:"pipeline_channel"`
	WikiPageChannel          *string `json:"wiki_page_channel"`
	DeploymentChannel        *string `json:"deployment_channel"`
	Hostname                 *string `json:"hostname,omitempty"`
	Room                     *string `json:"room,omitempty"`
	Thread                   *string `json:"thread,omitempty"`
	Device                   *string `json:"device,omitempty"`
	Priority                 *string `json:"priority,omitempty"`
	Sound                    *string `json:"sound,omitempty"`
	Recipients               *string `json:"recipients,omitempty"`
	ExternalWikiURL          *string `json:"external_wiki_url,omitempty"`
}

func toIntegration(h *hook.Hook) integrationJSON {
	info, _ := hook.Info(h.Kind)
	return integrationJSON{
		ID: h.ID, Title: info.Title, Slug: string(h.Kind), CreatedAt: toStamp(h.CreatedAt), UpdatedAt: toStamp(h.UpdatedAt), Active: !h.Disabled,
		CommitEvents: true, PushEvents: h.Listens(hook.Push), IssuesEvents: h.Listens(hook.Issues), ConfidentialIssuesEvents: h.Listens(hook.ConfidentialIssue),
		MergeRequestsEvents: h.Listens(hook.MergeRequests), TagPushEvents: h.Listens(hook.TagPush), DeploymentEvents: h.Listens(hook.Deployments),
		NoteEvents: h.Listens(hook.Notes), ConfidentialNoteEvents: h.Listens(hook.ConfidentialNote), PipelineEvents: h.Listens(hook.Pipelines),
		WikiPageEvents: h.Listens(hook.WikiPages), CommentOnEventEnabled: true,
	}
}

func toIntegrationDetail(h *hook.Hook) integrationDetailJSON {
	o, behavior := h.Options, "match_any"
	if o.LabelsAll {
		behavior = "match_all"
	}
	channel := func(t hook.Trigger) *string { return textOrNull(o.Channels[string(t)]) }
	return integrationDetailJSON{toIntegration(h), integrationPropertiesJSON{
		Username: textOrNull(o.Username), Channel: textOrNull(o.Channel), NotifyOnlyBroken: o.OnlyBroken, NotifyOnlyDefault: o.OnlyDefault, Branches: o.Branches,
		Labels: textOrNull(o.Labels), LabelsBehavior: behavior, PushChannel: channel(hook.Push), TagPushChannel: channel(hook.TagPush), IssueChannel: channel(hook.Issues),
		ConfidentialIssueChannel: channel(hook.ConfidentialIssue), MergeRequestChannel: channel(hook.MergeRequests), NoteChannel: channel(hook.Notes),
		ConfidentialNoteChannel: channel(hook.ConfidentialNote), PipelineChannel: channel(hook.Pipelines), WikiPageChannel: channel(hook.WikiPages),
		DeploymentChannel: channel(hook.Deployments), Hostname: textOrNull(h.Property("hostname")), Room: textOrNull(h.Property("room")),
		Thread: textOrNull(h.Property("thread")), Device: textOrNull(h.Property("device")), Priority: textOrNull(h.Property("priority")), Sound: textOrNull(h.Property("sound")),
		Recipients: textOrNull(h.Property("recipients")), ExternalWikiURL: textOrNull(h.Property("external_wiki_url")),
	}}
}

// listIntegrations: https://docs.gitlab.com/api/project_integrations/#list-all-active-integrations
func (m hookEndpoints) listIntegrations(c *call, p placeParams) ([]integrationJSON, error) {
	list, err := m.api.Hooks.ActiveIntegrations(c, c.actor, m.at(p.Ref))
	if err != nil {
		return nil, err
	}
	return mapped(list, toIntegration), nil
}

type integrationParams struct {
	placeParams
	Slug string `param:"slug" doc:"discord, external-wiki, hangouts-chat, matrix, mattermost, microsoft-teams, pipelines-email, pumble, pushover, slack, telegram or webex-teams."`
}

// getIntegration: https://docs.gitlab.com/api/project_integrations/#get-slack-notifications-settings
func (m hookEndpoints) getIntegration(c *call, p integrationParams) (integrationDetailJSON, error) {
	return presentAs(toIntegrationDetail)(m.api.Hooks.Integration(c, c.actor, m.at(p.Ref), hook.Kind(p.Slug)))
}

type setIntegrationParams struct {
	integrationParams
	Webhook                  *string `param:"webhook" secret:"true" doc:"URL of the incoming webhook of the chat service."`
	Username                 *string `param:"username" doc:"Of Slack and Mattermost."`
	Channel                  *string `param:"channel" doc:"Default channel of Slack and Mattermost."`
	Hostname                 *string `param:"hostname" doc:"URL of the server of Matrix or Telegram."`
	Token                    *string `param:"token" secret:"true" doc:"Token of Matrix or Telegram."`
	Room                     *string `param:"room" doc:"Room of Matrix, chat of Telegram."`
	Thread                   *int64  `param:"thread" doc:"Message thread of Telegram."`
	APIKey                   *string `param:"api_key" secret:"true" doc:"Application key of Pushover."`
	UserKey                  *string `param:"user_key" secret:"true" doc:"User key of Pushover."`
	Device                   *string `param:"device" doc:"Of Pushover."`
	Priority                 *string `param:"priority" doc:"Of Pushover: -2, -1, 0 or 1."`
	Sound                    *string `param:"sound" doc:"Of Pushover."`
	Recipients               *string `param:"recipients" doc:"Email addresses of pipelines-email, separated by commas; at most 30."`
	ExternalWikiURL          *string `param:"external_wiki_url" doc:"Of external-wiki."`
	NotifyOnlyBroken         *bool   `param:"notify_only_broken_pipelines"`
	NotifyOnlyDefault        *bool   `param:"notify_only_default_branch"`
	Branches                 *string `param:"branches_to_be_notified" doc:"all, default, protected or default_and_protected."`
	Labels                   *string `param:"labels_to_be_notified"`
	LabelsBehavior           *string `param:"labels_to_be_notified_behavior" enum:"match_any,match_all"`
	PushEvents               *bool   `param:"push_events"`
	PushChannel              *string `param:"push_channel"`
	TagPushEvents            *bool   `param:"tag_push_events"`
	TagPushChannel           *string `param:"tag_push_channel"`
	IssuesEvents             *bool   `param:"issues_events"`
	IssueChannel             *string `param:"issue_channel"`
	ConfidentialIssuesEvents *bool   `param:"confidential_issues_events"`
	ConfidentialIssueChannel *string `param:"confidential_issue_channel"`
	MergeRequestsEvents      *bool   `param:"merge_requests_events"`
	MergeRequestChannel      *string `param:"merge_request_channel"`
	NoteEvents               *bool   `param:"note_events"`
	NoteChannel              *string `param:"note_channel"`
	ConfidentialNoteEvents   *bool   `param:"confidential_note_events"`
	ConfidentialNoteChannel  *string `param:"confidential_note_channel"`
	PipelineEvents           *bool   `param:"pipeline_events"`
	PipelineChannel          *string `param:"pipeline_channel"`
	WikiPageEvents           *bool   `param:"wiki_page_events"`
	WikiPageChannel          *string `param:"wiki_page_channel"`
	DeploymentEvents         *bool   `param:"deployment_events"`
	DeploymentChannel        *string `param:"deployment_channel"`
	AlertEvents              *bool   `param:"alert_events" doc:"Not supported: true is refused."`
	AlertChannel             *string `param:"alert_channel"`
	IncidentsEvents          *bool   `param:"incidents_events" doc:"Not supported: true is refused."`
	IncidentChannel          *string `param:"incident_channel"`
	VulnerabilityEvents      *bool   `param:"vulnerability_events" doc:"Not supported: true is refused."`
	VulnerabilityChannel     *string `param:"vulnerability_channel"`
	CommitEvents             *bool   `param:"commit_events" doc:"Without effect."`
	JobEvents                *bool   `param:"job_events" doc:"Not supported: true is refused."`
	Inherited                *bool   `param:"use_inherited_settings" doc:"Not supported: true is refused."`
	Active                   *bool   `param:"active"`
}

func (p *setIntegrationParams) fields() (hook.IntegrationFields, error) {
	for name, given := range map[string]*bool{
		"alert_events": p.AlertEvents, "incidents_events": p.IncidentsEvents, "vulnerability_events": p.VulnerabilityEvents, "job_events": p.JobEvents,
		"use_inherited_settings": p.Inherited,
	} {
		if given != nil && *given {
			return hook.IntegrationFields{}, errs.InvalidField(name, "is not supported")
		}
	}
	f := hook.IntegrationFields{
		Properties: map[string]*string{
			"webhook": p.Webhook, "username": p.Username, "channel": p.Channel, "hostname": p.Hostname, "token": p.Token, "room": p.Room, "api_key": p.APIKey,
			"user_key": p.UserKey, "device": p.Device, "priority": p.Priority, "sound": p.Sound, "recipients": p.Recipients,
			"external_wiki_url": p.ExternalWikiURL,
		},
		OnlyBroken: p.NotifyOnlyBroken, OnlyDefault: p.NotifyOnlyDefault, Branches: p.Branches, Labels: p.Labels, Active: p.Active, Triggers: map[hook.Trigger]bool{},
		Channels: map[hook.Trigger]*string{
			hook.Push: p.PushChannel, hook.TagPush: p.TagPushChannel, hook.Issues: p.IssueChannel, hook.ConfidentialIssue: p.ConfidentialIssueChannel,
			hook.MergeRequests: p.MergeRequestChannel, hook.Notes: p.NoteChannel, hook.ConfidentialNote: p.ConfidentialNoteChannel,
			hook.Pipelines: p.PipelineChannel, hook.WikiPages: p.WikiPageChannel, hook.Deployments: p.DeploymentChannel,
		},
	}
	setTriggers(f.Triggers, map[hook.Trigger]*bool{
		hook.Push: p.PushEvents, hook.TagPush: p.TagPushEvents, hook.Issues: p.IssuesEvents, hook.ConfidentialIssue: p.ConfidentialIssuesEvents,
		hook.MergeRequests: p.MergeRequestsEvents, hook.Notes: p.NoteEvents, hook.ConfidentialNote: p.ConfidentialNoteEvents, hook.Pipelines: p.PipelineEvents,
		hook.WikiPages: p.WikiPageEvents, hook.Deployments: p.DeploymentEvents,
	})
	if p.Thread != nil {
		text := strconv.FormatInt(*p.Thread, 10)
		f.Properties["thread"] = &text
	}
	if p.LabelsBehavior != nil {
		all := strings.EqualFold(*p.LabelsBehavior, "match_all")
		f.LabelsAll = &all
	}
	return f, nil
}

// setIntegration: https://docs.gitlab.com/api/project_integrations/#set-up-slack-notifications
func (m hookEndpoints) setIntegration(c *call, p setIntegrationParams) (integrationDetailJSON, error) {
	f, err := p.fields()
	if err != nil {
		return integrationDetailJSON{}, err
	}
	return presentAs(toIntegrationDetail)(m.api.Hooks.SetIntegration(c, c.actor, m.at(p.Ref), hook.Kind(p.Slug), f))
}

// deleteIntegration: https://docs.gitlab.com/api/project_integrations/#disable-slack-notifications
func (m hookEndpoints) deleteIntegration(c *call, p integrationParams) (none, error) {
	return none{}, m.api.Hooks.DeleteIntegration(c, c.actor, m.at(p.Ref), hook.Kind(p.Slug))
}
