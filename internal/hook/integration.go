package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
)

// Options are the settings of a chat integration.
type Options struct {
	Username      string            `json:"username,omitempty"`
	Channel       string            `json:"channel,omitempty"`
	Channels      map[string]string `json:"channels,omitempty"` // by trigger
	OnlyBroken    bool              `json:"only_broken_pipelines,omitempty"`
	OnlyDefault   bool              `json:"only_default_branch,omitempty"`
	Branches      string            `json:"branches,omitempty"` // all, default, protected or default_and_protected
	Labels        string            `json:"labels,omitempty"`   // separated by commas
	LabelsAll     bool              `json:"labels_all,omitempty"`
	InheritedFrom int64             `json:"inherited_from,omitempty"`
}

// chatFacts is what the options of an integration decide by.
type chatFacts struct {
	ref         string
	isDefault   bool
	isProtected bool
	tag         bool
	status      string // of a pipeline
	labels      []string
}

// notifies reports whether an integration sends a message about an event.
func (o Options) notifies(e occurrence) bool {
	f := e.chat
	if e.trigger == Pipelines {
		switch f.status {
		case "failed":
		case "success":
			if o.OnlyBroken {
				return false
			}
		default:
			return false // only the end of a pipeline
		}
	}
	if (e.trigger == Push || e.trigger == Pipelines || e.trigger == Deployments) && !f.tag && !o.notifiesBranch(f) {
		return false
	}
	if wanted := splitList(o.Labels); len(wanted) > 0 && slices.Contains([]Trigger{Issues, ConfidentialIssue, MergeRequests, Notes, ConfidentialNote}, e.trigger) {
		has := func(name string) bool { return slices.Contains(f.labels, name) }
		if o.LabelsAll {
			return !slices.ContainsFunc(wanted, func(name string) bool { return !has(name) })
		}
		return slices.ContainsFunc(wanted, has)
	}
	return true
}

func (o Options) notifiesBranch(f chatFacts) bool {
	switch o.Branches {
	case "default", "":
		return f.isDefault || o.Branches == "" && !o.OnlyDefault
	case "protected":
		return f.isProtected
	case "default_and_protected":
		return f.isDefault || f.isProtected
	}
	return true
}

func splitList(text string) []string {
	var list []string
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "~"); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// IntegrationInfo describes an integration.
type IntegrationInfo struct {
	Kind        Kind
	Title       string
	Description string
}

// Integrations are the integrations that there are.
func Integrations() []IntegrationInfo {
	return []IntegrationInfo{
		{Mattermost, "Mattermost notifications", "Send notifications about project events to Mattermost channels."},
		{Slack, "Slack notifications", "Send notifications about project events to Slack."},
	}
}

// Info returns the description of an integration. NotFound for an unknown one.
func Info(kind Kind) (IntegrationInfo, error) {
	all := Integrations()
	at := slices.IndexFunc(all, func(i IntegrationInfo) bool { return i.Kind == kind })
	if at < 0 {
		return IntegrationInfo{}, errs.NotFound("Integration")
	}
	return all[at], nil
}

// ChatTriggers are the triggers that integrations can have, in the order of pages.
func ChatTriggers() []TriggerInfo {
	return slices.DeleteFunc(slices.Clone(triggers), func(t TriggerInfo) bool {
		return !slices.Contains([]Trigger{
			Push, TagPush, Notes, ConfidentialNote, Issues, ConfidentialIssue, MergeRequests, Pipelines, WikiPages, Deployments,
		}, t.Trigger)
	})
}

// ActiveIntegrations lists the active integrations of a place, for those who manage
// it. NotFound; Forbidden.
func (s *Service) ActiveIntegrations(ctx context.Context, by actor.Actor, at At) ([]*Hook, error) {
	in, err := s.at(ctx, by, at, false)
	if err != nil {
		return nil, err
	}
	list := []*Hook{}
	for _, i := range Integrations() {
		h, err := s.integration(ctx, s.DB, in, i.Kind)
		switch {
		case errs.Is(err, errs.KindNotFound):
		case err != nil:
			return nil, err
		case !h.Disabled:
			list = append(list, h)
		}
	}
	return list, nil
}

// Integration returns an integration of a place, for those who manage it. NotFound
// if it was never set up; Forbidden.
func (s *Service) Integration(ctx context.Context, by actor.Actor, at At, kind Kind) (*Hook, error) {
	if _, err := Info(kind); err != nil {
		return nil, err
	}
	in, err := s.at(ctx, by, at, false)
	if err != nil {
		return nil, err
	}
	return s.integration(ctx, s.DB, in, kind)
}

func (s *Service) integration(ctx context.Context, q db.Q, in owner, kind Kind) (*Hook, error) {
	h, err := findIntegration(ctx, q, in, kind)
	if err != nil {
		return nil, db.NotFound(err, "Integration")
	}
	return h, s.open(h)
}

// IntegrationFields are changes to an integration; nil leaves the default or the
// current value.
type IntegrationFields struct {
	Webhook     *string
	Username    *string
	Channel     *string
	Channels    map[Trigger]*string
	Triggers    map[Trigger]bool
	OnlyBroken  *bool
	OnlyDefault *bool
	Branches    *string
	Labels      *string
	LabelsAll   *bool
	Active      *bool
}

// SetIntegration sets up an integration or changes it, for those who manage the
// place. NotFound; Forbidden; Invalid; Unprocessable.
func (s *Service) SetIntegration(ctx context.Context, by actor.Actor, at At, kind Kind, f IntegrationFields) (*Hook, error) {
	if _, err := Info(kind); err != nil {
		return nil, err
	}
	in, err := s.at(ctx, by, at, true)
	if err != nil {
		return nil, err
	}
	var h *Hook
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := lockOwner(ctx, tx, in); err != nil {
			return err
		}
		h, err = findIntegration(ctx, tx, in, kind)
		done := "updated"
		switch {
		case errors.Is(err, db.ErrNoRows):
			done, h = "created", newIntegration(in, kind)
			h.CreatedAt, h.UpdatedAt = s.Now(), s.Now()
		case err != nil:
			return err
		default:
			if err := s.open(h); err != nil {
				return err
			}
		}
		if err := s.applyIntegration(ctx, h, f); err != nil {
			return err
		}
		h.UpdatedAt = s.Now()
		if h.ID == 0 {
			err = s.insert(ctx, tx, h)
		} else if err = resetState(ctx, tx, h.ID); err == nil {
			err = s.save(ctx, tx, h)
		}
		if err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, h, done, audit.Details{Change: string(kind) + " integration", To: h.URL})
	})
	if err != nil {
		return nil, fmt.Errorf("set integration %s: %w", kind, err)
	}
	return h, nil
}

// newIntegration is an integration with its defaults: it notifies of all that is not
// confidential.
func newIntegration(in owner, kind Kind) *Hook {
	h := &Hook{Kind: kind, Strategy: AllBranches, VerifyTLS: true, Options: Options{Branches: "default"}}
	h.ProjectID, h.GroupID = in.ids()
	for _, t := range ChatTriggers() {
		h.Triggers = append(h.Triggers, t.Trigger)
	}
	return h
}

func (s *Service) applyIntegration(ctx context.Context, h *Hook, f IntegrationFields) error {
	o := &h.Options
	patch.Set(&h.Secrets.Webhook, f.Webhook)
	patch.Set(&o.Username, f.Username)
	patch.Set(&o.Channel, f.Channel)
	patch.Set(&o.OnlyBroken, f.OnlyBroken)
	patch.Set(&o.OnlyDefault, f.OnlyDefault)
	patch.Set(&o.Branches, f.Branches)
	patch.Set(&o.Labels, f.Labels)
	patch.Set(&o.LabelsAll, f.LabelsAll)
	h.Disabled = false
	if f.Active != nil {
		h.Disabled = !*f.Active
	}
	wrong := errs.Fields{}
	for t, name := range f.Channels {
		if name == nil {
			continue
		}
		if o.Channels == nil {
			o.Channels = map[string]string{}
		}
		o.Channels[string(t)] = *name
	}
	for _, t := range ChatTriggers() {
		want, ok := f.Triggers[t.Trigger]
		if !ok {
			continue
		}
		h.Triggers = slices.DeleteFunc(h.Triggers, func(have Trigger) bool { return have == t.Trigger })
		if want {
			h.Triggers = append(h.Triggers, t.Trigger)
		}
	}
	texts := []string{o.Username, o.Channel, o.Labels}
	for _, name := range o.Channels {
		texts = append(texts, name)
	}
	for _, text := range texts {
		if len(text) > 1000 {
			wrong.Set("properties", "are too long")
		}
	}
	if !slices.Contains([]string{"", "all", "default", "protected", "default_and_protected"}, o.Branches) {
		wrong.Set("branches_to_be_notified", "is not included in the list")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	// What a page and the API show of the address: its host.
	h.URL = maskedHost(h.Secrets.Webhook)
	return s.checkURL(ctx, h)
}

// maskedHost is a URL without its path, which is a secret of the chat service.
func maskedHost(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = host[at+1:]
	}
	return scheme + "://" + host + "/[REDACTED]"
}

// DeleteIntegration removes an integration, for those who manage the place.
// NotFound; Forbidden.
func (s *Service) DeleteIntegration(ctx context.Context, by actor.Actor, at At, kind Kind) error {
	if _, err := Info(kind); err != nil {
		return err
	}
	in, err := s.at(ctx, by, at, true)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		h, err := findIntegration(ctx, tx, in, kind)
		if err != nil {
			return db.NotFound(err, "Integration")
		}
		if err := deleteHook(ctx, tx, h.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, h, "destroyed", audit.Details{Remove: string(kind) + " integration"})
	})
	if err != nil {
		return fmt.Errorf("delete integration %s: %w", kind, err)
	}
	return nil
}

// lockOwner lets one writer at a time set up the integrations of a place.
func lockOwner(ctx context.Context, tx *db.Tx, in owner) error {
	projectID, groupID := in.ids()
	switch {
	case projectID != nil:
		return tx.Lock(ctx, "projects", *projectID)
	case groupID != nil:
		return tx.Lock(ctx, "namespaces", *groupID)
	}
	return nil
}
