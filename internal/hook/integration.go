package hook

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
)

// Options are the settings of an integration.
type Options struct {
	Username    string            `json:"username,omitempty"`
	Channel     string            `json:"channel,omitempty"`
	Channels    map[string]string `json:"channels,omitempty"` // by trigger
	OnlyBroken  bool              `json:"only_broken_pipelines,omitempty"`
	OnlyDefault bool              `json:"only_default_branch,omitempty"`
	Branches    string            `json:"branches,omitempty"` // all, default, protected or default_and_protected
	Labels      string            `json:"labels,omitempty"`   // separated by commas
	LabelsAll   bool              `json:"labels_all,omitempty"`
	Values      map[string]string `json:"values,omitempty"` // of other properties
}

// chatFacts are the properties of an event by which integrations filter.
type chatFacts struct {
	branch      string
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

// ActiveIntegrations lists the active integrations of a place, for those who manage
// it. NotFound; Forbidden.
func (s *Service) ActiveIntegrations(ctx context.Context, by actor.Actor, at At) ([]*Hook, error) {
	in, err := s.at(ctx, by, at, false)
	if err != nil {
		return nil, err
	}
	list, err := listIntegrations(ctx, s.DB, in)
	if err != nil {
		return nil, fmt.Errorf("list integrations: %w", err)
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
	Properties  map[string]*string
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
	info, err := Info(kind)
	if err != nil {
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
			done, h = "created", newIntegration(in, info)
			h.CreatedAt, h.UpdatedAt = s.Now(), s.Now()
		case err != nil:
			return err
		default:
			if err := s.open(h); err != nil {
				return err
			}
		}
		if err := s.applyIntegration(ctx, info, h, f); err != nil {
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

// newIntegration is an integration with its defaults.
func newIntegration(in owner, info IntegrationInfo) *Hook {
	h := &Hook{Kind: info.Kind, Strategy: AllBranches, VerifyTLS: true, Triggers: info.Defaults(), Options: Options{Branches: "default", OnlyBroken: true}}
	h.ProjectID, h.GroupID = in.ids()
	return h
}

// applyIntegration sets and checks the fields of an integration. A field that the
// integration lacks is refused by its name.
func (s *Service) applyIntegration(ctx context.Context, info IntegrationInfo, h *Hook, f IntegrationFields) error {
	wrong := errs.Fields{}
	const lacks = "is not a setting of this integration"
	for name, text := range f.Properties {
		if text != nil && *text != "" && info.property(name) == nil {
			wrong.Set(name, lacks)
		}
	}
	h.applyProperties(wrong, info, f.Properties)
	o := &h.Options
	patch.Set(&o.OnlyBroken, f.OnlyBroken)
	patch.Set(&o.OnlyDefault, f.OnlyDefault)
	patch.Set(&o.Branches, f.Branches)
	if f.Labels != nil && *f.Labels != "" && !info.Labels {
		wrong.Set("labels_to_be_notified", lacks)
	}
	patch.Set(&o.Labels, f.Labels)
	patch.Set(&o.LabelsAll, f.LabelsAll)
	h.Disabled = f.Active != nil && !*f.Active
	for t, name := range f.Channels {
		switch {
		case name == nil:
		case *name != "" && (!info.Channels || !slices.Contains(info.Triggers, t)):
			wrong.Set(ChannelName(t), lacks)
		case len(*name) > maxProperty:
			wrong.Set(ChannelName(t), "is too long")
		default:
			o.Channels = with(o.Channels, string(t), *name)
		}
	}
	for t, want := range f.Triggers {
		if want && !slices.Contains(info.Triggers, t) {
			wrong.Set(string(t), lacks)
		}
		h.Triggers = slices.DeleteFunc(h.Triggers, func(have Trigger) bool { return have == t })
		if want {
			h.Triggers = append(h.Triggers, t)
		}
	}
	slices.Sort(h.Triggers)
	if len(o.Labels) > maxProperty {
		wrong.Set("labels_to_be_notified", "is too long")
	}
	if !slices.Contains([]string{"", "all", "default", "protected", "default_and_protected"}, o.Branches) {
		wrong.Set("branches_to_be_notified", "is not included in the list")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	if info.message == nil {
		return nil
	}
	// Pages and the API show the host of the URL only.
	h.URL = maskedHost(h.target())
	return s.checkURL(ctx, h)
}

// maxProperty is the length of a property of an integration, in bytes.
const maxProperty = 2048

// applyProperties sets and checks the properties of an integration.
func (h *Hook) applyProperties(wrong errs.Fields, info IntegrationInfo, given map[string]*string) {
	was := h.target()
	set := func(secret bool) {
		for _, p := range info.Properties {
			if text := given[p.Name]; text != nil && p.Secret == secret {
				h.setValue(p, strings.TrimSpace(*text))
			}
		}
	}
	set(false)
	// A token is not sent to another server than the one that it was set for.
	if h.ID != 0 && !sameHost(h.target(), was) {
		h.Secrets = Secrets{}
	}
	set(true)
	for _, p := range info.Properties {
		text := *h.value(p)
		switch {
		case text == "" && p.Required:
			wrong.Set(p.Name, "can't be blank")
		case len(text) > maxProperty:
			wrong.Set(p.Name, "is too long")
		case !oneLine(text) || text != "" && p.valid != nil && !p.valid.MatchString(text):
			wrong.Set(p.Name, "is invalid")
		case p.problem != nil && p.problem(text) != "":
			wrong.Set(p.Name, p.problem(text))
		}
	}
}

// ChannelName is the name of the channel of a trigger in the API.
func ChannelName(t Trigger) string {
	return strings.TrimSuffix(strings.TrimSuffix(string(t), "_events"), "s") + "_channel"
}

// maskedHost is a URL without its path, which is a secret of the chat service.
func maskedHost(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/[REDACTED]"
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

// lockOwner serializes changes to the integrations of a place.
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
