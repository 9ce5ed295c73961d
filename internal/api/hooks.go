package api

import (
	"encoding/json"
	"strconv"

	"svc/internal/errs"
	"svc/internal/hook"
	"svc/internal/project"
)

func (a *API) hookRoutes() {
	for _, in := range []struct {
		path, kind, tag string
		at              hookEndpoints
		level           hook.Level
		options         []option
	}{
		{"/projects/{id}", "project", "Project webhooks", hookEndpoints{api: a}, hook.ProjectLevel, nil},
		{"/groups/{id}", "group", "Group webhooks", hookEndpoints{api: a, group: true}, hook.GroupLevel, []option{tier(Premium)}},
	} {
		a.tag(in.tag)
		m, with := in.at, func(text string, more ...option) []option {
			return append(append([]option{summary(text)}, in.options...), more...)
		}
		one := in.path + "/hooks/{hook_id}"
		handle(a, "GET "+in.path+"/hooks", readAPI, m.listHooks, with("List "+in.kind+" webhooks")...)
		handle(a, "POST "+in.path+"/hooks", writeAPI, m.createHook, with("Add a webhook to a "+in.kind)...)
		handle(a, "GET "+one, readAPI, m.getHook, with("Get a "+in.kind+" webhook")...)
		handle(a, "PUT "+one, writeAPI, m.updateHook, with("Update a "+in.kind+" webhook")...)
		handle(a, "DELETE "+one, writeAPI, m.deleteHook, with("Delete a "+in.kind+" webhook")...)
		handle(a, "POST "+one+"/test/{trigger}", writeAPI, m.testHook, with("Trigger a test "+in.kind+" webhook")...)
		handle(a, "GET "+one+"/events", readAPI, m.listHookEvents, with("List "+in.kind+" webhook events")...)
		handle(a, "POST "+one+"/events/{hook_log_id}/resend", writeAPI, m.resendHookEvent, with("Resend a "+in.kind+" webhook event")...)
		handle(a, "PUT "+one+"/custom_headers/{key}", writeAPI, m.setHookHeader, with("Set a custom header of a "+in.kind+" webhook")...)
		handle(a, "DELETE "+one+"/custom_headers/{key}", writeAPI, m.deleteHookHeader, with("Delete a custom header of a "+in.kind+" webhook")...)
		handle(a, "PUT "+one+"/url_variables/{key}", writeAPI, m.setHookVariable, with("Set a URL variable of a "+in.kind+" webhook")...)
		handle(a, "DELETE "+one+"/url_variables/{key}", writeAPI, m.deleteHookVariable, with("Delete a URL variable of a "+in.kind+" webhook")...)
	}
	a.tag("System hooks")
	handle(a, "GET /hooks", readAPI, a.listSystemHooks, summary("List system hooks"))
	handle(a, "POST /hooks", writeAPI, a.createSystemHook, summary("Add a system hook"))
	handle(a, "GET /hooks/{hook_id}", readAPI, a.getSystemHook, summary("Get a system hook"))
	handle(a, "POST /hooks/{hook_id}", writeAPI, a.testSystemHook, summary("Test a system hook"))
	handle(a, "PUT /hooks/{hook_id}", writeAPI, a.updateSystemHook, summary("Update a system hook"))
	handle(a, "DELETE /hooks/{hook_id}", writeAPI, a.deleteSystemHook, summary("Delete a system hook"))
	handle(a, "PUT /hooks/{hook_id}/url_variables/{key}", writeAPI, a.setSystemHookVariable, summary("Set a URL variable of a system hook"))
	handle(a, "DELETE /hooks/{hook_id}/url_variables/{key}", writeAPI, a.deleteSystemHookVariable, summary("Delete a URL variable of a system hook"))
}

// eventUUIDHeader is the header that identifies the event of a webhook request. A
// receiver copies it to the API requests that it makes because of the event, so that
// a webhook cannot trigger itself in an endless loop.
const eventUUIDHeader = "X-Gitlab-Event-Uuid"

func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range []byte(text) {
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}

// hookEndpoints are the endpoints of the webhooks of projects or groups.
type hookEndpoints struct {
	api   *API
	group bool
}

func (m hookEndpoints) at(ref project.Ref) hook.At {
	return hook.At{Place: project.Place{Ref: ref, Group: m.group}}
}

type hookKeyJSON struct {
	Key string `json:"key"`
}

type hookBasicJSON struct {
	ID                    int64         `json:"id"`
	URL                   string        `json:"url"`
	Name                  *string       `json:"name"`
	Description           *string       `json:"description"`
	CreatedAt             stamp         `json:"created_at"`
	PushEvents            bool          `json:"push_events"`
	TagPushEvents         bool          `json:"tag_push_events"`
	MergeRequestsEvents   bool          `json:"merge_requests_events"`
	RepositoryUpdate      bool          `json:"repository_update_events"`
	EnableSSLVerification bool          `json:"enable_ssl_verification"`
	AlertStatus           string        `json:"alert_status"`
	DisabledUntil         *stamp        `json:"disabled_until"`
	URLVariables          []hookKeyJSON `json:"url_variables"`
	BranchFilter          string        `json:"push_events_branch_filter"`
	BranchFilterStrategy  string        `json:"branch_filter_strategy"`
	Template              *string       `json:"custom_webhook_template"`
	CustomHeaders         []hookKeyJSON `json:"custom_headers"`
	TokenPresent          bool          `json:"token_present"`
	SigningTokenPresent   bool          `json:"signing_token_present"`
}

type hookJSON struct {
	hookBasicJSON
	ProjectID                *int64 `json:"project_id,omitempty"`
	GroupID                  *int64 `json:"group_id,omitempty"`
	IssuesEvents             bool   `json:"issues_events"`
	ConfidentialIssuesEvents bool   `json:"confidential_issues_events"`
	NoteEvents               bool   `json:"note_events"`
	ConfidentialNoteEvents   bool   `json:"confidential_note_events"`
	PipelineEvents           bool   `json:"pipeline_events"`
	WikiPageEvents           bool   `json:"wiki_page_events"`
	DeploymentEvents         bool   `json:"deployment_events"`
	FeatureFlagEvents        bool   `json:"feature_flag_events"`
	JobEvents                bool   `json:"job_events"`
	ReleasesEvents           bool   `json:"releases_events"`
	MilestoneEvents          bool   `json:"milestone_events"`
	EmojiEvents              bool   `json:"emoji_events"`
	AccessTokenEvents        bool   `json:"resource_access_token_events"`
	VulnerabilityEvents      bool   `json:"vulnerability_events"`
	SubgroupEvents           *bool  `json:"subgroup_events,omitempty"`
	MemberEvents             *bool  `json:"member_events,omitempty"`
	ProjectEvents            *bool  `json:"project_events,omitempty"`
}

func (a *API) toHookBasic(h *hook.Hook) hookBasicJSON {
	keys := func(list []hook.Pair) []hookKeyJSON {
		return mapped(list, func(p hook.Pair) hookKeyJSON { return hookKeyJSON{p.Key} })
	}
	return hookBasicJSON{
		ID: h.ID, URL: h.URL, Name: textOrNull(h.Name), Description: textOrNull(h.Description), CreatedAt: toStamp(h.CreatedAt), PushEvents: h.Listens(hook.Push),
		TagPushEvents: h.Listens(hook.TagPush), MergeRequestsEvents: h.Listens(hook.MergeRequests), RepositoryUpdate: h.Listens(hook.RepositoryUpdate),
		EnableSSLVerification: h.VerifyTLS, AlertStatus: string(h.AlertStatus(a.Now())), DisabledUntil: toStampOrNull(h.DisabledUntil),
		URLVariables: keys(h.Secrets.Variables), BranchFilter: h.Filter, BranchFilterStrategy: string(h.Strategy), Template: textOrNull(h.Template),
		CustomHeaders: keys(h.Secrets.Headers), TokenPresent: h.Secrets.Token != "", SigningTokenPresent: h.Secrets.SigningToken != "",
	}
}

func (a *API) toHook(h *hook.Hook) hookJSON {
	out := hookJSON{
		hookBasicJSON: a.toHookBasic(h), ProjectID: h.ProjectID, GroupID: h.GroupID,
		IssuesEvents: h.Listens(hook.Issues), ConfidentialIssuesEvents: h.Listens(hook.ConfidentialIssue), NoteEvents: h.Listens(hook.Notes),
		ConfidentialNoteEvents: h.Listens(hook.ConfidentialNote), PipelineEvents: h.Listens(hook.Pipelines), WikiPageEvents: h.Listens(hook.WikiPages),
		DeploymentEvents: h.Listens(hook.Deployments), FeatureFlagEvents: h.Listens(hook.FeatureFlags), JobEvents: h.Listens(hook.Jobs),
		ReleasesEvents: h.Listens(hook.Releases), MilestoneEvents: h.Listens(hook.Milestones), EmojiEvents: h.Listens(hook.Emoji),
		AccessTokenEvents: h.Listens(hook.AccessTokens),
	}
	if h.GroupID != nil {
		listens := func(t hook.Trigger) *bool { is := h.Listens(t); return &is }
		out.SubgroupEvents, out.MemberEvents, out.ProjectEvents = listens(hook.Subgroups), listens(hook.Members), listens(hook.ProjectEvents)
	}
	return out
}

func (a *API) presentHook(h *hook.Hook, err error) (hookJSON, error) {
	if err != nil {
		return hookJSON{}, err
	}
	return a.toHook(h), nil
}

type listHooksParams struct {
	placeParams
	pageParams
}

// listHooks: https://docs.gitlab.com/api/project_webhooks/#list-webhooks-for-a-project
func (m hookEndpoints) listHooks(c *call, p listHooksParams) (page[hookJSON], error) {
	return offsetList(p.pageParams, m.api.toHook)(m.api.Hooks.List(c, c.actor, m.at(p.Ref), p.paging()))
}

type hookParams struct {
	placeParams
	Hook int64 `param:"hook_id"`
}

// getHook: https://docs.gitlab.com/api/project_webhooks/#get-a-project-webhook
func (m hookEndpoints) getHook(c *call, p hookParams) (hookJSON, error) {
	return m.api.presentHook(m.api.Hooks.Get(c, c.actor, m.at(p.Ref), p.Hook))
}

type hookPairParams struct {
	Key   string `param:"key,required"`
	Value string `param:"value" secret:"true"`
}

// hookFieldParams are the fields of hooks of all levels.
type hookFieldParams struct {
	Name                *string           `param:"name"`
	Description         *string           `param:"description"`
	Token               *string           `param:"token" secret:"true" doc:"Secret token. Receivers get it in the header X-Gitlab-Token."`
	SigningToken        *string           `param:"signing_token" secret:"true" doc:"Key that signs requests: whsec_ and the Base64 encoding of 24 to 64 bytes."`
	PushEvents          *bool             `param:"push_events"`
	TagPushEvents       *bool             `param:"tag_push_events"`
	MergeRequestsEvents *bool             `param:"merge_requests_events"`
	SSLVerification     *bool             `param:"enable_ssl_verification"`
	BranchFilter        *string           `param:"push_events_branch_filter"`
	Strategy            *string           `param:"branch_filter_strategy" enum:"wildcard,regex,all_branches"`
	Template            *string           `param:"custom_webhook_template"`
	CustomHeaders       *[]hookPairParams `param:"custom_headers"`
	URLVariables        *[]hookPairParams `param:"url_variables"`
}

func (p *hookFieldParams) fields() hook.Fields {
	f := hook.Fields{
		Name: p.Name, Description: p.Description, Token: p.Token, SigningToken: p.SigningToken, VerifyTLS: p.SSLVerification, Filter: p.BranchFilter,
		Strategy: p.Strategy, Template: p.Template, Headers: toPairs(p.CustomHeaders), Variables: toPairs(p.URLVariables), Triggers: map[hook.Trigger]bool{},
	}
	setTriggers(f.Triggers, map[hook.Trigger]*bool{hook.Push: p.PushEvents, hook.TagPush: p.TagPushEvents, hook.MergeRequests: p.MergeRequestsEvents})
	return f
}

func setTriggers(into map[hook.Trigger]bool, given map[hook.Trigger]*bool) {
	for t, want := range given {
		if want != nil {
			into[t] = *want
		}
	}
}

func toPairs(given *[]hookPairParams) *[]hook.Pair {
	if given == nil {
		return nil
	}
	list := mapped(*given, func(p hookPairParams) hook.Pair { return hook.Pair{Key: p.Key, Value: p.Value} })
	return &list
}

// hookTriggerParams are the triggers of hooks of projects and groups.
type hookTriggerParams struct {
	hookFieldParams
	IssuesEvents             *bool `param:"issues_events"`
	ConfidentialIssuesEvents *bool `param:"confidential_issues_events"`
	NoteEvents               *bool `param:"note_events"`
	ConfidentialNoteEvents   *bool `param:"confidential_note_events"`
	JobEvents                *bool `param:"job_events"`
	PipelineEvents           *bool `param:"pipeline_events"`
	WikiPageEvents           *bool `param:"wiki_page_events"`
	DeploymentEvents         *bool `param:"deployment_events"`
	FeatureFlagEvents        *bool `param:"feature_flag_events"`
	ReleasesEvents           *bool `param:"releases_events"`
	MilestoneEvents          *bool `param:"milestone_events"`
	EmojiEvents              *bool `param:"emoji_events"`
	AccessTokenEvents        *bool `param:"resource_access_token_events"`
	VulnerabilityEvents      *bool `param:"vulnerability_events" doc:"Not supported: true is refused."`
	SubgroupEvents           *bool `param:"subgroup_events" doc:"Of group webhooks."`
	MemberEvents             *bool `param:"member_events" doc:"Of group webhooks."`
	ProjectEvents            *bool `param:"project_events" doc:"Of group webhooks."`
}

func (p *hookTriggerParams) fields(group bool) (hook.Fields, error) {
	f := p.hookFieldParams.fields()
	if p.VulnerabilityEvents != nil && *p.VulnerabilityEvents {
		return f, errs.InvalidField("vulnerability_events", "are not supported")
	}
	ofGroup := map[hook.Trigger]*bool{hook.Subgroups: p.SubgroupEvents, hook.Members: p.MemberEvents, hook.ProjectEvents: p.ProjectEvents}
	if !group {
		for t, want := range ofGroup {
			if want != nil && *want {
				return f, errs.InvalidField(string(t), "are events of group webhooks")
			}
		}
	}
	setTriggers(f.Triggers, ofGroup)
	setTriggers(f.Triggers, map[hook.Trigger]*bool{
		hook.Issues: p.IssuesEvents, hook.ConfidentialIssue: p.ConfidentialIssuesEvents, hook.Notes: p.NoteEvents, hook.ConfidentialNote: p.ConfidentialNoteEvents,
		hook.Jobs: p.JobEvents, hook.Pipelines: p.PipelineEvents, hook.WikiPages: p.WikiPageEvents, hook.Deployments: p.DeploymentEvents,
		hook.Releases: p.ReleasesEvents, hook.Milestones: p.MilestoneEvents, hook.Emoji: p.EmojiEvents,
		hook.AccessTokens: p.AccessTokenEvents, hook.FeatureFlags: p.FeatureFlagEvents,
	})
	return f, nil
}

type createHookParams struct {
	placeParams
	URL string `param:"url,required"`
	hookTriggerParams
}

// createHook: https://docs.gitlab.com/api/project_webhooks/#add-a-webhook-to-a-project
func (m hookEndpoints) createHook(c *call, p createHookParams) (hookJSON, error) {
	f, err := p.fields(m.group)
	if err != nil {
		return hookJSON{}, err
	}
	f.URL = &p.URL
	return m.api.presentHook(m.api.Hooks.Create(c, c.actor, m.at(p.Ref), f))
}

type updateHookParams struct {
	hookParams
	URL *string `param:"url"`
	hookTriggerParams
}

// updateHook: https://docs.gitlab.com/api/project_webhooks/#edit-a-project-webhook
func (m hookEndpoints) updateHook(c *call, p updateHookParams) (hookJSON, error) {
	f, err := p.fields(m.group)
	if err != nil {
		return hookJSON{}, err
	}
	f.URL = p.URL
	return m.api.presentHook(m.api.Hooks.Update(c, c.actor, m.at(p.Ref), p.Hook, f))
}

// deleteHook: https://docs.gitlab.com/api/project_webhooks/#delete-a-project-webhook
func (m hookEndpoints) deleteHook(c *call, p hookParams) (none, error) {
	return none{}, m.api.Hooks.Delete(c, c.actor, m.at(p.Ref), p.Hook)
}

type testHookParams struct {
	hookParams
	Trigger string `param:"trigger"`
}

// testHook: https://docs.gitlab.com/api/project_webhooks/#trigger-a-test-project-webhook
func (m hookEndpoints) testHook(c *call, p testHookParams) (hookTestedJSON, error) {
	_, err := m.api.Hooks.Test(c, c.actor, m.at(p.Ref), p.Hook, hook.Trigger(p.Trigger))
	return hookTestedJSON{"201 Created"}, err
}

type hookTestedJSON struct {
	Message string `json:"message"`
}

type listHookEventsParams struct {
	hookParams
	Status string `param:"status" doc:"A status code, or successful, client_failure or server_failure."`
	pageParams
}

// filter returns the range of statuses.
func (p *listHookEventsParams) filter() (hook.LogFilter, error) {
	switch p.Status {
	case "":
		return hook.LogFilter{}, nil
	case "successful":
		return hook.LogFilter{Status: 200, Upper: 300}, nil
	case "client_failure":
		return hook.LogFilter{Status: 400, Upper: 500}, nil
	case "server_failure":
		return hook.LogFilter{Status: 500, Upper: 600}, nil
	}
	n, err := strconv.Atoi(p.Status)
	if err != nil || n < 100 || n > 599 {
		return hook.LogFilter{}, errs.Invalid("status does not have a valid value")
	}
	return hook.LogFilter{Status: n}, nil
}

type hookEventJSON struct {
	ID              int64             `json:"id"`
	URL             string            `json:"url"`
	Trigger         string            `json:"trigger"`
	RequestHeaders  map[string]string `json:"request_headers"`
	RequestData     json.RawMessage   `json:"request_data"`
	ResponseHeaders map[string]string `json:"response_headers"`
	ResponseBody    string            `json:"response_body"`
	Duration        float64           `json:"execution_duration"`
	ResponseStatus  string            `json:"response_status"`
	Error           *string           `json:"internal_error_message"`
	CreatedAt       stamp             `json:"created_at"`
}

func toHookEvent(d *hook.Delivery) hookEventJSON {
	status := "internal error"
	if d.Status != 0 {
		status = strconv.Itoa(d.Status)
	}
	return hookEventJSON{
		ID: d.ID, URL: d.URL, Trigger: d.Trigger.LogName(), RequestHeaders: d.RequestHeaders(), RequestData: json.RawMessage(d.Body()),
		ResponseHeaders: d.ResponseHeaders(), ResponseBody: d.ResponseBody, Duration: d.Duration.Seconds(), ResponseStatus: status, Error: textOrNull(d.Error),
		CreatedAt: toStamp(d.CreatedAt),
	}
}

// listHookEvents: https://docs.gitlab.com/api/project_webhooks/#list-events-for-a-project-webhook
func (m hookEndpoints) listHookEvents(c *call, p listHookEventsParams) (page[hookEventJSON], error) {
	f, err := p.filter()
	if err != nil {
		return page[hookEventJSON]{}, err
	}
	_, list, err := m.api.Hooks.Deliveries(c, c.actor, m.at(p.Ref), p.Hook, f, p.paging())
	if err != nil {
		return page[hookEventJSON]{}, err
	}
	return offsetPage(p.pageParams, list, toHookEvent), nil
}

type resendHookParams struct {
	hookParams
	Event int64 `param:"hook_log_id"`
}

type resentJSON struct {
	ResponseStatus int `json:"response_status"`
}

// resendHookEvent: https://docs.gitlab.com/api/project_webhooks/#resend-a-project-webhook-event
func (m hookEndpoints) resendHookEvent(c *call, p resendHookParams) (resentJSON, error) {
	d, err := m.api.Hooks.Resend(c, c.actor, m.at(p.Ref), p.Hook, p.Event)
	if err != nil {
		return resentJSON{}, err
	}
	if d.Status == 0 {
		return resentJSON{}, errs.Unprocessable("%s", d.Error)
	}
	return resentJSON{d.Status}, nil
}

type hookKeyParams struct {
	hookParams
	Key string `param:"key"`
}

type hookValueParams struct {
	hookKeyParams
	Value string `param:"value,required" secret:"true"`
}

// setHookHeader: https://docs.gitlab.com/api/project_webhooks/#set-a-custom-header
func (m hookEndpoints) setHookHeader(c *call, p hookValueParams) (none, error) {
	return none{}, m.api.Hooks.SetHeader(c, c.actor, m.at(p.Ref), p.Hook, hook.Pair{Key: p.Key, Value: p.Value})
}

// deleteHookHeader: https://docs.gitlab.com/api/project_webhooks/#delete-a-custom-header
func (m hookEndpoints) deleteHookHeader(c *call, p hookKeyParams) (none, error) {
	return none{}, m.api.Hooks.DeleteHeader(c, c.actor, m.at(p.Ref), p.Hook, p.Key)
}

// setHookVariable: https://docs.gitlab.com/api/project_webhooks/#set-a-url-variable
func (m hookEndpoints) setHookVariable(c *call, p hookValueParams) (none, error) {
	return none{}, m.api.Hooks.SetVariable(c, c.actor, m.at(p.Ref), p.Hook, hook.Pair{Key: p.Key, Value: p.Value})
}

// deleteHookVariable: https://docs.gitlab.com/api/project_webhooks/#delete-a-url-variable
func (m hookEndpoints) deleteHookVariable(c *call, p hookKeyParams) (none, error) {
	return none{}, m.api.Hooks.DeleteVariable(c, c.actor, m.at(p.Ref), p.Hook, p.Key)
}

var systemHooks = hook.At{System: true}

func (a *API) presentSystemHook(h *hook.Hook, err error) (hookBasicJSON, error) {
	if err != nil {
		return hookBasicJSON{}, err
	}
	return a.toHookBasic(h), nil
}

type listSystemHooksParams struct{ pageParams }

// listSystemHooks: https://docs.gitlab.com/api/system_hooks/#list-system-hooks
func (a *API) listSystemHooks(c *call, p listSystemHooksParams) (page[hookBasicJSON], error) {
	return offsetList(p.pageParams, a.toHookBasic)(a.Hooks.List(c, c.actor, systemHooks, p.paging()))
}

type systemHookParams struct {
	Hook int64 `param:"hook_id"`
}

// getSystemHook: https://docs.gitlab.com/api/system_hooks/#get-system-hook
func (a *API) getSystemHook(c *call, p systemHookParams) (hookBasicJSON, error) {
	return a.presentSystemHook(a.Hooks.Get(c, c.actor, systemHooks, p.Hook))
}

type systemHookFieldParams struct {
	hookFieldParams
	RepositoryUpdate *bool `param:"repository_update_events"`
}

func (p *systemHookFieldParams) fields() hook.Fields {
	f := p.hookFieldParams.fields()
	setTriggers(f.Triggers, map[hook.Trigger]*bool{hook.RepositoryUpdate: p.RepositoryUpdate})
	return f
}

type createSystemHookParams struct {
	URL string `param:"url,required"`
	systemHookFieldParams
}

// createSystemHook: https://docs.gitlab.com/api/system_hooks/#add-new-system-hook
func (a *API) createSystemHook(c *call, p createSystemHookParams) (hookBasicJSON, error) {
	f := p.fields()
	f.URL = &p.URL
	return a.presentSystemHook(a.Hooks.Create(c, c.actor, systemHooks, f))
}

type updateSystemHookParams struct {
	systemHookParams
	URL *string `param:"url"`
	systemHookFieldParams
}

// updateSystemHook: https://docs.gitlab.com/api/system_hooks/#update-system-hook
func (a *API) updateSystemHook(c *call, p updateSystemHookParams) (hookBasicJSON, error) {
	f := p.fields()
	f.URL = p.URL
	return a.presentSystemHook(a.Hooks.Update(c, c.actor, systemHooks, p.Hook, f))
}

type systemHookTestJSON struct {
	EventName  string `json:"event_name"`
	Name       string `json:"name"`
	Path       string `json:"path"`
	ProjectID  int64  `json:"project_id"`
	OwnerName  string `json:"owner_name"`
	OwnerEmail string `json:"owner_email"`
}

// testSystemHook: https://docs.gitlab.com/api/system_hooks/#test-system-hook
func (a *API) testSystemHook(c *call, p systemHookParams) (systemHookTestJSON, error) {
	var out systemHookTestJSON
	d, err := a.Hooks.TestSystem(c, c.actor, p.Hook)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal([]byte(d.Body()), &out)
}

// deleteSystemHook: https://docs.gitlab.com/api/system_hooks/#delete-system-hook
func (a *API) deleteSystemHook(c *call, p systemHookParams) (none, error) {
	return none{}, a.Hooks.Delete(c, c.actor, systemHooks, p.Hook)
}

type systemHookVariableParams struct {
	systemHookParams
	Key   string `param:"key"`
	Value string `param:"value,required" secret:"true"`
}

// setSystemHookVariable: https://docs.gitlab.com/api/system_hooks/#set-a-url-variable
func (a *API) setSystemHookVariable(c *call, p systemHookVariableParams) (none, error) {
	return none{}, a.Hooks.SetVariable(c, c.actor, systemHooks, p.Hook, hook.Pair{Key: p.Key, Value: p.Value})
}

type systemHookKeyParams struct {
	systemHookParams
	Key string `param:"key"`
}

// deleteSystemHookVariable: https://docs.gitlab.com/api/system_hooks/#delete-a-url-variable
func (a *API) deleteSystemHookVariable(c *call, p systemHookKeyParams) (none, error) {
	return none{}, a.Hooks.DeleteVariable(c, c.actor, systemHooks, p.Hook, p.Key)
}
