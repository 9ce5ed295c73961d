package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/hook"
	"svc/internal/limit"
	"svc/internal/project"
)

func (w *Web) hookPages() {
	for page, do := range map[string]func(*visit, hookPlace) error{
		"GET %s": w.hooks, "POST %s": w.createHook, "GET %s/{id}": w.editHook, "POST %s/{id}": w.updateHook, "POST %s/{id}/delete": w.deleteHook,
		"POST %s/{id}/test": w.testHook, "GET %s/{id}/events/{event}": w.hookEvent, "POST %s/{id}/events/{event}/resend": w.resendHookEvent,
	} {
		w.settingsPage(fill(page, "settings/hooks"), func(v *visit, in project.Place) error {
			s, err := w.setup(v, in, "hooks")
			if err != nil {
				return err
			}
			return do(v, hookPlace{setup: s, at: hook.At{Place: in}, At: settingsOf(in, "hooks")})
		})
		w.page(fill(page, "/admin/hooks"), admins, func(v *visit) error {
			return do(v, hookPlace{at: hook.At{System: true}, At: "/admin/hooks", Admin: true})
		})
	}
}

// hookPlace is the owner of webhooks: a project, a group or the instance.
type hookPlace struct {
	setup
	at    hook.At
	At    string // URL of the list
	Admin bool
}

// Noun returns "webhook" or "system hook".
func (p hookPlace) Noun() string {
	if p.Admin {
		return "system hook"
	}
	return "webhook"
}

// Heading is the title of the list.
func (p hookPlace) Heading() string {
	if p.Admin {
		return "System hooks"
	}
	return "Webhooks"
}

func (p hookPlace) level() hook.Level {
	switch {
	case p.Admin:
		return hook.SystemLevel
	case p.G != nil:
		return hook.GroupLevel
	}
	return hook.ProjectLevel
}

func (p hookPlace) titled(text string) string {
	if p.Admin {
		return text + " · Admin area"
	}
	return text + " · " + p.setup.Name()
}

type hooksPage struct {
	hookPlace
	Form       form
	Hooks      []hookRow
	Triggers   []hook.TriggerInfo
	Strategies []option
	Pager      pager
}

// hookRow is a hook in the list.
type hookRow struct {
	*hook.Hook
	Labels []string // of its triggers
	State  hook.Alert
	Tests  []option
}

// HasToken and HasSigningToken report whether the hook of the form has these tokens.
func (hooksPage) HasToken() bool        { return false }
func (hooksPage) HasSigningToken() bool { return false }

func (hooksPage) view() string    { return "shared/settings_hooks" }
func (p hooksPage) title() string { return p.titled(p.Heading()) }

// strategies are the ways to filter branches.
func strategies() []option {
	return []option{{string(hook.AllBranches), "All branches"}, {string(hook.Wildcard), "Wildcard pattern"}, {string(hook.Regex), "Regular expression"}}
}

func (w *Web) hooks(v *visit, in hookPlace) error {
	first := string(hook.Push)
	if in.Admin {
		first = string(hook.RepositoryUpdate)
	}
	return w.showHooks(v, in, filled(first, "1", "enable_ssl_verification", "1", "branch_filter_strategy", string(hook.AllBranches)))
}

func (w *Web) showHooks(v *visit, in hookPlace, f form) error {
	page, err := w.Hooks.List(v, v.actor, in.at, v.paging())
	if err != nil {
		return err
	}
	p := hooksPage{hookPlace: in, Form: f, Triggers: hook.TriggersOf(in.level()), Strategies: strategies(), Pager: v.pager(page.More)}
	for _, h := range page.Items {
		p.Hooks = append(p.Hooks, w.hookRow(in, h))
	}
	p.Form.only("url", "name", "description", "token", "signing_token", "custom_webhook_template", "push_events_branch_filter", "custom_headers", "url_variables")
	return v.showForm(p, f)
}

func (w *Web) hookRow(in hookPlace, h *hook.Hook) hookRow {
	row := hookRow{Hook: h, State: h.AlertStatus(w.Now())}
	for _, t := range hook.TriggersOf(in.level()) {
		if h.Listens(t.Trigger) {
			row.Labels = append(row.Labels, t.Label)
		}
	}
	if in.Admin {
		return row
	}
	for _, t := range hook.TriggerNames(in.level()) {
		row.Tests = append(row.Tests, option{string(t.Trigger), t.Label})
	}
	return row
}

// sentHook reads the fields of a hook.
func sentHook(v *visit, in hookPlace, edit bool) hook.Fields {
	url, name, text, filter, template := v.text("url"), v.text("name"), v.text("description"), v.text("push_events_branch_filter"), v.text("custom_webhook_template")
	strategy, verify := v.text("branch_filter_strategy"), v.ticked("enable_ssl_verification")
	headers, variables := sentPairs(v.text("custom_headers")), sentPairs(v.text("url_variables"))
	f := hook.Fields{
		URL: &url, Name: &name, Description: &text, Filter: &filter, Template: &template, Strategy: &strategy, VerifyTLS: &verify, Headers: &headers,
		Variables: &variables, Triggers: map[hook.Trigger]bool{},
	}
	if token := v.text("token"); token != "" || !edit || v.ticked("remove_token") {
		f.Token = &token
	}
	if token := v.text("signing_token"); token != "" || !edit || v.ticked("remove_signing_token") {
		f.SigningToken = &token
	}
	for _, t := range hook.TriggersOf(in.level()) {
		f.Triggers[t.Trigger] = v.ticked(string(t.Trigger))
	}
	return f
}

// sentPairs reads lines of "key: value". A key without a value keeps the value that
// it has.
func sentPairs(text string) []hook.Pair {
	list := []hook.Pair{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); key != "" {
			list = append(list, hook.Pair{Key: key, Value: strings.TrimSpace(value)})
		}
	}
	return list
}

// keysOf returns the keys as lines, without values.
func keysOf(list []hook.Pair) string {
	var lines []string
	for _, p := range list {
		lines = append(lines, p.Key+":")
	}
	return strings.Join(lines, "\n")
}

func (w *Web) createHook(v *visit, in hookPlace) error {
	if _, err := w.Hooks.Create(v, v.actor, in.at, sentHook(v, in, false)); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showHooks(v, in, f)
	}
	return v.done("The "+in.Noun()+" was created.", in.At)
}

// hookPage is one hook with its delivery log.
type hookPage struct {
	hookPlace
	Hook       hookRow
	Form       form
	Triggers   []hook.TriggerInfo
	Strategies []option
	Events     []*hook.Delivery
	Pager      pager
}

// HasToken and HasSigningToken report whether the hook has these tokens.
func (p hookPage) HasToken() bool        { return p.Hook.Secrets.Token != "" }
func (p hookPage) HasSigningToken() bool { return p.Hook.Secrets.SigningToken != "" }

func (hookPage) view() string    { return "shared/settings_hook" }
func (p hookPage) title() string { return p.titled(p.Hook.URL) }

func (w *Web) editHook(v *visit, in hookPlace) error { return w.showHook(v, in, form{}) }

func (w *Web) showHook(v *visit, in hookPlace, f form) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	h, log, err := w.Hooks.Deliveries(v, v.actor, in.at, id, hook.LogFilter{}, v.paging())
	if err != nil {
		return err
	}
	if f.Values == nil {
		f = filled("url", h.URL, "name", h.Name, "description", h.Description, "push_events_branch_filter", h.Filter, "branch_filter_strategy", string(h.Strategy),
			"custom_webhook_template", h.Template, "enable_ssl_verification", on(h.VerifyTLS), "custom_headers", keysOf(h.Secrets.Headers),
			"url_variables", keysOf(h.Secrets.Variables))
		for _, t := range h.Triggers {
			f.Values.Set(string(t), "1")
		}
	}
	p := hookPage{
		hookPlace: in, Hook: w.hookRow(in, h), Form: f, Triggers: hook.TriggersOf(in.level()), Strategies: strategies(), Events: log.Items, Pager: v.pager(log.More),
	}
	p.Form.only("url", "name", "description", "token", "signing_token", "custom_webhook_template", "push_events_branch_filter", "custom_headers", "url_variables")
	return v.showForm(p, f)
}

func (w *Web) updateHook(v *visit, in hookPlace) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if _, err := w.Hooks.Update(v, v.actor, in.at, id, sentHook(v, in, true)); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showHook(v, in, f)
	}
	return v.done("The "+in.Noun()+" was updated.", fmt.Sprintf("%s/%d", in.At, id))
}

func (w *Web) deleteHook(v *visit, in hookPlace) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Hooks.Delete(v, v.actor, in.at, id), "The "+in.Noun()+" was deleted.", in.At)
}

func (w *Web) testHook(v *visit, in hookPlace) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	var d *hook.Delivery
	if in.Admin {
		d, err = w.Hooks.TestSystem(v, v.actor, id)
	} else {
		d, err = w.Hooks.Test(v, v.actor, in.at, id, hook.Trigger(v.text("trigger")))
	}
	done := ""
	if err == nil {
		done = fmt.Sprintf("The test request was sent: HTTP %d.", d.Status)
	}
	return v.redirectWithFlash(tooOften(err), done, fmt.Sprintf("%s/%d", in.At, id))
}

// tooOften makes the error of the rate limit of test requests one that the page of the
// hook shows.
func tooOften(err error) error {
	if _, ok := errors.AsType[limit.Refused](err); ok {
		return errs.Unprocessable("Too many test requests were sent. Wait a minute, then try again.").Because(err)
	}
	return err
}

// hookEventPage is one delivery.
type hookEventPage struct {
	hookPlace
	Hook     *hook.Hook
	Event    *hook.Delivery
	Sent     []headerLine
	Got      []headerLine
	Body     string
	Duration time.Duration
}

// headerLine is a header of a request or response.
type headerLine struct{ Name, Value string }

func (hookEventPage) view() string    { return "shared/settings_hook_event" }
func (p hookEventPage) title() string { return p.titled("Webhook event") }

func (w *Web) hookEvent(v *visit, in hookPlace) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	event, err := v.number("event")
	if err != nil {
		return err
	}
	h, d, err := w.Hooks.Delivery(v, v.actor, in.at, id, event)
	if err != nil {
		return err
	}
	p := hookEventPage{hookPlace: in, Hook: h, Event: d, Sent: headerLines(d.RequestHeaders()), Got: headerLines(d.ResponseHeaders()), Body: indented(d.Body()), Duration: d.Duration}
	return v.show(p)
}

func headerLines(h map[string]string) []headerLine {
	var list []headerLine
	for _, name := range slices.Sorted(maps.Keys(h)) {
		list = append(list, headerLine{name, h[name]})
	}
	return list
}

// maxShownBody is the maximum size of a body that is shown.
const maxShownBody = 256 << 10

// indented returns indented JSON, up to the size that a page shows.
func indented(text string) string {
	var v any
	if len(text) <= maxShownBody && json.Unmarshal([]byte(text), &v) == nil {
		if out, err := json.MarshalIndent(v, "", "  "); err == nil {
			return string(out)
		}
	}
	return strings.ToValidUTF8(text[:min(len(text), maxShownBody)], "")
}

func (w *Web) resendHookEvent(v *visit, in hookPlace) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	event, err := v.number("event")
	if err != nil {
		return err
	}
	d, err := w.Hooks.Resend(v, v.actor, in.at, id, event)
	done := ""
	switch {
	case err != nil:
	case d.OK():
		done = fmt.Sprintf("The request was sent again: HTTP %d.", d.Status)
	case d.Status != 0:
		err = errs.Unprocessable("The request was sent again, and failed: HTTP %d.", d.Status)
	default:
		err = errs.Unprocessable("The request was sent again, and failed: %s.", d.Error)
	}
	return v.redirectWithFlash(tooOften(err), done, fmt.Sprintf("%s/%d", in.At, id))
}

func (w *Web) integrationPages() {
	w.settingsPage("GET settings/integrations", w.integrations)
	w.settingsPage("GET settings/integrations/{kind}", w.editIntegration)
	w.settingsPage("POST settings/integrations/{kind}", w.saveIntegration)
	w.settingsPage("POST settings/integrations/{kind}/test", w.testIntegration)
	w.settingsPage("POST settings/integrations/{kind}/delete", w.deleteIntegration)
}

type integrationsPage struct {
	setup
	Rows []integrationRow
}

// integrationRow is an integration in the list.
type integrationRow struct {
	hook.IntegrationInfo
	Active bool
}

func (integrationsPage) view() string    { return "shared/settings_integrations" }
func (p integrationsPage) title() string { return "Integrations · " + p.Name() }

func (w *Web) integrations(v *visit, in project.Place) error {
	s, err := w.setup(v, in, "integrations")
	if err != nil {
		return err
	}
	active, err := w.Hooks.ActiveIntegrations(v, v.actor, hook.At{Place: in})
	if err != nil {
		return err
	}
	p := integrationsPage{setup: s}
	for _, i := range hook.Integrations() {
		row := integrationRow{IntegrationInfo: i}
		for _, h := range active {
			row.Active = row.Active || h.Kind == i.Kind
		}
		p.Rows = append(p.Rows, row)
	}
	return v.show(p)
}

type integrationPage struct {
	setup
	Info     hook.IntegrationInfo
	State    hook.Alert
	At       string
	Exists   bool
	Address  string // of the chat service, masked
	Form     form
	Triggers []triggerRow
	Branches []option
	Labels   []option
}

// Pipelines reports whether the integration sends messages about pipelines.
func (p integrationPage) Pipelines() bool { return slices.Contains(p.Info.Triggers, hook.Pipelines) }

func (integrationPage) view() string    { return "shared/settings_integration" }
func (p integrationPage) title() string { return p.Info.Title + " · " + p.Name() }

func (w *Web) editIntegration(v *visit, in project.Place) error {
	return w.showIntegration(v, in, form{})
}

func (w *Web) showIntegration(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "integrations")
	if err != nil {
		return err
	}
	kind := hook.Kind(chi.URLParam(v.r, "kind"))
	info, err := hook.Info(kind)
	if err != nil {
		return err
	}
	p := integrationPage{
		setup: s, Info: info, At: settingsOf(in, "integrations/"+string(kind)), Form: f, Triggers: integrationTriggers(info),
		Branches: []option{{"all", "All branches"}, {"default", "Default branch"}, {"protected", "Protected branches"}, {"default_and_protected", "Default branch and protected branches"}},
		Labels:   []option{{"match_any", "Match any of the labels"}, {"match_all", "Match all of the labels"}},
	}
	h, err := w.integration(v, in, kind)
	if err != nil {
		return err
	}
	if h != nil {
		p.Exists, p.Address, p.State = true, h.URL, h.AlertStatus(w.Now())
	}
	if f.Values == nil {
		p.Form = integrationForm(info, h)
	}
	names := []string{"labels_to_be_notified"}
	for _, property := range info.Properties {
		names = append(names, property.Name)
	}
	p.Form.only(names...)
	return v.showForm(p, f)
}

// integration returns an integration; nil if it was never set up.
func (w *Web) integration(v *visit, in project.Place, kind hook.Kind) (*hook.Hook, error) {
	h, err := w.Hooks.Integration(v, v.actor, hook.At{Place: in}, kind)
	if errs.Is(err, errs.KindNotFound) {
		return nil, nil
	}
	return h, err
}

// triggerRow is a trigger of an integration with the name of the field of its channel.
type triggerRow struct {
	hook.TriggerInfo
	Channel string
}

func integrationTriggers(info hook.IntegrationInfo) []triggerRow {
	var list []triggerRow
	for _, t := range info.TriggerInfos() {
		row := triggerRow{TriggerInfo: t}
		if info.Channels {
			row.Channel = hook.ChannelName(t.Trigger)
		}
		list = append(list, row)
	}
	return list
}

func integrationForm(info hook.IntegrationInfo, h *hook.Hook) form {
	if h == nil {
		f := filled("active", "1", "branches_to_be_notified", "default", "labels_to_be_notified_behavior", "match_any", "notify_only_broken_pipelines", "1")
		for _, t := range info.Defaults() {
			f.Values.Set(string(t), "1")
		}
		return f
	}
	o, match := h.Options, "match_any"
	if o.LabelsAll {
		match = "match_all"
	}
	f := filled("active", on(!h.Disabled), "notify_only_broken_pipelines", on(o.OnlyBroken),
		"branches_to_be_notified", o.Branches, "labels_to_be_notified", o.Labels, "labels_to_be_notified_behavior", match)
	for _, t := range h.Triggers {
		f.Values.Set(string(t), "1")
	}
	for t, channel := range o.Channels {
		f.Values.Set(hook.ChannelName(hook.Trigger(t)), channel)
	}
	for _, p := range info.Properties {
		if !p.Secret {
			f.Values.Set(p.Name, h.Property(p.Name))
		}
	}
	return f
}

func (w *Web) saveIntegration(v *visit, in project.Place) error {
	kind := hook.Kind(chi.URLParam(v.r, "kind"))
	info, err := hook.Info(kind)
	if err != nil {
		return err
	}
	branches, labels := v.text("branches_to_be_notified"), v.text("labels_to_be_notified")
	broken, active, all := v.ticked("notify_only_broken_pipelines"), v.ticked("active"), v.text("labels_to_be_notified_behavior") == "match_all"
	f := hook.IntegrationFields{
		Properties: map[string]*string{}, Branches: &branches, Labels: &labels, LabelsAll: &all, OnlyBroken: &broken, Active: &active,
		Triggers: map[hook.Trigger]bool{}, Channels: map[hook.Trigger]*string{},
	}
	for _, p := range info.Properties {
		// An empty secret keeps the current one: the page does not show it.
		if text := v.text(p.Name); text != "" || !p.Secret {
			f.Properties[p.Name] = &text
		}
	}
	for _, t := range info.Triggers {
		f.Triggers[t] = v.ticked(string(t))
		if info.Channels {
			name := v.text(hook.ChannelName(t))
			f.Channels[t] = &name
		}
	}
	if _, err := w.Hooks.SetIntegration(v, v.actor, hook.At{Place: in}, kind, f); err != nil {
		sent := v.sent()
		if err := sent.refused(err); err != nil {
			return err
		}
		return w.showIntegration(v, in, sent)
	}
	return v.done("The integration was saved.", settingsOf(in, "integrations/"+string(kind)))
}

func (w *Web) testIntegration(v *visit, in project.Place) error {
	kind := hook.Kind(chi.URLParam(v.r, "kind"))
	_, err := w.Hooks.TestIntegration(v, v.actor, hook.At{Place: in}, kind)
	return v.redirectWithFlash(err, "The test message was sent.", settingsOf(in, "integrations/"+string(kind)))
}

func (w *Web) deleteIntegration(v *visit, in project.Place) error {
	err := w.Hooks.DeleteIntegration(v, v.actor, hook.At{Place: in}, hook.Kind(chi.URLParam(v.r, "kind")))
	return v.redirectWithFlash(err, "The integration was removed.", settingsOf(in, "integrations"))
}
