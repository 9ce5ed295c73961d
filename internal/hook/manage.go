package hook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/outbound"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/re2"
)

// Bounds of hooks.
const (
	maxProjectHooks = 100
	maxGroupHooks   = 50
	maxSystemHooks  = 100
	maxURL          = 2048
	maxText         = 2048 // name, description, token, values
	maxPairs        = 20
	maxTemplate     = 4096
	maxFilter       = 5000
)

// At names the project or group of hooks, or the instance.
type At struct {
	System bool
	Place  project.Place
}

// owner is the project or group of a hook; neither for the instance.
type owner struct {
	project *project.Project
	group   *project.Namespace
}

func (o owner) ids() (projectID, groupID *int64) {
	switch {
	case o.project != nil:
		return &o.project.ID, nil
	case o.group != nil:
		return nil, &o.group.ID
	}
	return nil, nil
}

func (o owner) entity() audit.Entity {
	switch {
	case o.project != nil:
		return o.project.Entity()
	case o.group != nil:
		return o.group.Entity()
	}
	return audit.Instance()
}

func (o owner) level() Level {
	switch {
	case o.project != nil:
		return ProjectLevel
	case o.group != nil:
		return GroupLevel
	}
	return SystemLevel
}

// at returns the owner of the hooks of a place to an actor who may manage them:
// Maintainers of a project, Owners of a group, administrators for the instance.
func (s *Service) at(ctx context.Context, by actor.Actor, at At, change bool) (owner, error) {
	switch {
	case at.System:
		return owner{}, by.RequireAdmin()
	case at.Place.Group:
		g, err := s.Projects.RequireGroup(ctx, by, at.Place.Ref, project.Owner)
		return owner{group: g}, err
	case change:
		p, err := s.Projects.RequireChange(ctx, by, at.Place.Ref, project.WholePart, project.Maintainer)
		return owner{project: p}, err
	}
	p, err := s.Projects.Require(ctx, by, at.Place.Ref, project.Maintainer)
	return owner{project: p}, err
}

// List lists the webhooks of a place, for those who manage them. NotFound;
// Forbidden.
func (s *Service) List(ctx context.Context, by actor.Actor, at At, p db.Paging) (db.Page[*Hook], error) {
	in, err := s.at(ctx, by, at, false)
	if err != nil {
		return db.Page[*Hook]{}, err
	}
	page, err := listHooks(ctx, s.DB, in, p)
	if err != nil {
		return page, fmt.Errorf("list hooks: %w", err)
	}
	for _, h := range page.Items {
		if err := s.open(h); err != nil {
			return page, err
		}
	}
	return page, nil
}

// Get returns a webhook to those who manage it. NotFound; Forbidden.
func (s *Service) Get(ctx context.Context, by actor.Actor, at At, id int64) (*Hook, error) {
	in, err := s.at(ctx, by, at, false)
	if err != nil {
		return nil, err
	}
	return s.get(ctx, s.DB, in, id)
}

func (s *Service) get(ctx context.Context, q db.Q, in owner, id int64) (*Hook, error) {
	h, err := findHook(ctx, q, in, id)
	if err != nil {
		return nil, db.NotFound(err, "Hook")
	}
	return h, s.open(h)
}

// Fields are changes to a hook; nil leaves the default or the current value.
type Fields struct {
	URL          *string
	Name         *string
	Description  *string
	Triggers     map[Trigger]bool
	Strategy     *string
	Filter       *string
	Template     *string
	VerifyTLS    *bool
	Token        *string
	SigningToken *string
	Headers      *[]Pair // replaces all; an empty value keeps the current one
	Variables    *[]Pair
}

// Create adds a webhook to a place, for those who manage them. NotFound;
// Forbidden; Invalid; Unprocessable for a URL that requests may not be sent to.
func (s *Service) Create(ctx context.Context, by actor.Actor, at At, f Fields) (*Hook, error) {
	in, err := s.at(ctx, by, at, true)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	h := &Hook{Kind: Webhook, Strategy: Wildcard, VerifyTLS: true, CreatedAt: now, UpdatedAt: now}
	h.ProjectID, h.GroupID = in.ids()
	h.Triggers = []Trigger{Push}
	if in.level() == SystemLevel {
		h.Triggers = []Trigger{RepositoryUpdate}
	}
	if err := s.apply(ctx, in, h, f); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := lockOwner(ctx, tx, in); err != nil {
			return err
		}
		most := map[Level]int64{ProjectLevel: maxProjectHooks, GroupLevel: maxGroupHooks, SystemLevel: maxSystemHooks}[in.level()]
		n, err := countHooks(ctx, tx, in)
		if err != nil {
			return err
		}
		if n >= most {
			return errs.Invalid("Maximum number of webhooks (%d) exceeded", most)
		}
		if err := s.insert(ctx, tx, h); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, h, "created", audit.Details{Add: "webhook", To: maskedURL(h.URL)})
	})
	if err != nil {
		return nil, fmt.Errorf("create hook: %w", err)
	}
	return h, nil
}

// insert adds the row of a hook and that of its state. The place of its secrets has
// its ID.
func (s *Service) insert(ctx context.Context, tx *db.Tx, h *Hook) error {
	if err := insertHook(ctx, tx, h); err != nil {
		return err
	}
	return s.save(ctx, tx, h)
}

func (s *Service) save(ctx context.Context, tx *db.Tx, h *Hook) error {
	text, err := json.Marshal(h.Secrets)
	if err != nil {
		return err
	}
	h.sealed = s.Keys.Seal(text, secretPlace(h.ID))
	return saveHook(ctx, tx, h)
}

func secretPlace(id int64) string { return fmt.Sprintf("hooks/secrets/%d", id) }

// open decrypts the secrets of a hook.
func (s *Service) open(h *Hook) error {
	text, err := s.Keys.Open(h.sealed, secretPlace(h.ID))
	if err != nil {
		return fmt.Errorf("secrets of hook %d: %w", h.ID, err)
	}
	return json.Unmarshal(text, &h.Secrets)
}

// Update changes a webhook, for those who manage it. Another URL or token enables a
// disabled hook again. NotFound; Forbidden; Invalid; Unprocessable.
func (s *Service) Update(ctx context.Context, by actor.Actor, at At, id int64, f Fields) (*Hook, error) {
	return s.change(ctx, by, at, id, func(*Hook) (Fields, error) { return f, nil })
}

func sameHost(a, b string) bool {
	one, err1 := url.Parse(a)
	other, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && one.Scheme == other.Scheme && one.Host == other.Host
}

// change applies changes to a hook and saves it. The changes may depend on its current
// state.
func (s *Service) change(ctx context.Context, by actor.Actor, at At, id int64, to func(h *Hook) (Fields, error)) (*Hook, error) {
	in, err := s.at(ctx, by, at, true)
	if err != nil {
		return nil, err
	}
	var h *Hook
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "hooks", id); err != nil {
			return err
		}
		if h, err = s.get(ctx, tx, in, id); err != nil {
			return err
		}
		was := h.URL
		f, err := to(h)
		if err != nil {
			return err
		}
		if err := s.apply(ctx, in, h, f); err != nil {
			return err
		}
		h.UpdatedAt = s.Now()
		h.Disabled, h.Failures, h.DisabledUntil = false, 0, nil
		if err := resetState(ctx, tx, h.ID); err != nil {
			return err
		}
		if err := s.save(ctx, tx, h); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, h, "updated", audit.Details{Change: "webhook", From: maskedURL(was), To: maskedURL(h.URL)})
	})
	if err != nil {
		return nil, fmt.Errorf("update hook %d: %w", id, err)
	}
	return h, nil
}

// Delete removes a webhook with its log, for those who manage it. NotFound;
// Forbidden.
func (s *Service) Delete(ctx context.Context, by actor.Actor, at At, id int64) error {
	in, err := s.at(ctx, by, at, true)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		h, err := findHook(ctx, tx, in, id)
		if err != nil {
			return db.NotFound(err, "Hook")
		}
		if err := deleteHook(ctx, tx, id); err != nil {
			return err
		}
		return s.record(ctx, tx, by, in, h, "destroyed", audit.Details{Remove: "webhook", From: maskedURL(h.URL)})
	})
	if err != nil {
		return fmt.Errorf("delete hook %d: %w", id, err)
	}
	return nil
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, in owner, h *Hook, done string, d audit.Details) error {
	kind := "webhook_" + done
	if h.Kind != Webhook {
		kind = "integration_" + done
	}
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: in.entity(), Target: audit.Target{Type: "WebHook", ID: h.ID, Details: maskedURL(h.URL)}, Details: d,
	})
}

// maskedURL is a URL without its user, query and fragment, which may be secret.
func maskedURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// SetHeader adds or changes a custom header of a webhook, for those who manage it.
// NotFound; Forbidden; Invalid.
func (s *Service) SetHeader(ctx context.Context, by actor.Actor, at At, id int64, p Pair) error {
	_, err := s.change(ctx, by, at, id, func(h *Hook) (Fields, error) {
		list := setPair(h.Secrets.Headers, p)
		return Fields{Headers: &list}, nil
	})
	return err
}

// DeleteHeader removes a custom header. NotFound; Forbidden.
func (s *Service) DeleteHeader(ctx context.Context, by actor.Actor, at At, id int64, key string) error {
	_, err := s.change(ctx, by, at, id, func(h *Hook) (Fields, error) {
		list, err := dropPair(h.Secrets.Headers, key, "Custom header")
		return Fields{Headers: &list}, err
	})
	return err
}

// SetVariable adds or changes a URL variable of a webhook, for those who manage it.
// NotFound; Forbidden; Invalid.
func (s *Service) SetVariable(ctx context.Context, by actor.Actor, at At, id int64, p Pair) error {
	_, err := s.change(ctx, by, at, id, func(h *Hook) (Fields, error) {
		// The others have no value here, so that another receiver does not get them.
		list := setPair(withoutValues(h.Secrets.Variables), p)
		return Fields{Variables: &list}, nil
	})
	return err
}

// DeleteVariable removes a URL variable. NotFound; Forbidden; Invalid if the URL still
// contains it.
func (s *Service) DeleteVariable(ctx context.Context, by actor.Actor, at At, id int64, key string) error {
	_, err := s.change(ctx, by, at, id, func(h *Hook) (Fields, error) {
		list, err := dropPair(h.Secrets.Variables, key, "URL variable")
		return Fields{Variables: &list}, err
	})
	return err
}

func setPair(list []Pair, p Pair) []Pair {
	list = slices.Clone(list)
	at := slices.IndexFunc(list, func(have Pair) bool { return have.Key == p.Key })
	if at < 0 {
		return append(list, p)
	}
	list[at] = p
	return list
}

func dropPair(list []Pair, key, what string) ([]Pair, error) {
	n := len(list)
	list = slices.DeleteFunc(slices.Clone(list), func(p Pair) bool { return p.Key == key })
	if len(list) == n {
		return nil, errs.NotFound(what)
	}
	return list, nil
}

// keepValues returns the wanted pairs. A pair without a value keeps its current value.
func keepValues(have, want []Pair) []Pair {
	list := []Pair{}
	for _, p := range want {
		if p.Value == "" {
			if at := slices.IndexFunc(have, func(h Pair) bool { return h.Key == p.Key }); at >= 0 {
				p.Value = have[at].Value
			}
		}
		list = append(list, p)
	}
	return list
}

// apply sets and checks the fields of a hook.
func (s *Service) apply(ctx context.Context, in owner, h *Hook, f Fields) error {
	was, target := h.URL, h.target()
	patch.Set(&h.URL, f.URL)
	h.URL = strings.TrimSpace(h.URL)
	variables := h.Secrets.Variables
	if f.Variables != nil {
		variables = keepValues(variables, *f.Variables)
	}
	h.Secrets.Variables = variables
	// Secrets are not sent to another receiver than the one they were set for: a new URL
	// drops those that are not given again. A variable may be the host.
	switch {
	case h.ID == 0:
	case h.URL != was:
		h.Secrets = Secrets{Variables: keepValues(nil, pairs(f.Variables))}
	case !sameHost(h.target(), target):
		h.Secrets = Secrets{Variables: withValues(pairs(f.Variables))}
	}
	patch.Set(&h.Name, f.Name)
	patch.Set(&h.Description, f.Description)
	patch.Set((*string)(&h.Strategy), f.Strategy)
	patch.Set(&h.Filter, f.Filter)
	patch.Set(&h.Template, f.Template)
	patch.Set(&h.VerifyTLS, f.VerifyTLS)
	patch.Set(&h.Secrets.Token, f.Token)
	patch.Set(&h.Secrets.SigningToken, f.SigningToken)
	if f.Headers != nil {
		h.Secrets.Headers = keepValues(h.Secrets.Headers, *f.Headers)
	}
	for _, t := range TriggersOf(in.level()) {
		want, ok := f.Triggers[t.Trigger]
		if !ok {
			continue
		}
		h.Triggers = slices.DeleteFunc(h.Triggers, func(have Trigger) bool { return have == t.Trigger })
		if want {
			h.Triggers = append(h.Triggers, t.Trigger)
		}
	}
	if err := h.check(); err != nil {
		return err
	}
	return s.checkURL(ctx, h)
}

// withValues returns the pairs that have a value.
func withValues(list []Pair) []Pair {
	return slices.DeleteFunc(slices.Clone(list), func(p Pair) bool { return p.Value == "" })
}

// withoutValues returns the pairs with empty values.
func withoutValues(list []Pair) []Pair {
	keys := make([]Pair, len(list))
	for i, p := range list {
		keys[i].Key = p.Key
	}
	return keys
}

func pairs(list *[]Pair) []Pair {
	if list == nil {
		return nil
	}
	return *list
}

// placeholder matches a variable in a URL.
var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// check returns what is wrong with the fields of a hook: Invalid.
func (h *Hook) check() error {
	wrong := errs.Fields{}
	for name, text := range map[string]string{"name": h.Name, "description": h.Description, "token": h.Secrets.Token} {
		if utf8.RuneCountInString(text) > maxText {
			wrong.Set(name, fmt.Sprintf("is too long (maximum is %d characters)", maxText))
		}
	}
	if !oneLine(h.Secrets.Token) {
		wrong.Set("token", "must not contain newlines or control characters")
	}
	if t := h.Secrets.SigningToken; t != "" {
		if _, ok := signingKey(t); !ok {
			wrong.Set("signing_token", "must be `whsec_` followed by the Base64 encoding of 24 to 64 bytes")
		}
	}
	if len(h.Template) > maxTemplate {
		wrong.Set("custom_webhook_template", fmt.Sprintf("is too long (maximum is %d characters)", maxTemplate))
	}
	if h.Template != "" {
		if _, err := renderTemplate(h.Template, []byte(`{}`)); err != nil {
			wrong.Set("custom_webhook_template", "must be a valid JSON template")
		}
	}
	switch h.Strategy {
	case Wildcard:
	case Regex:
		if _, err := re2.Compile(h.Filter); err != nil {
			wrong.Set("push_events_branch_filter", "must be a valid RE2 regular expression")
		}
	case AllBranches:
		h.Filter = ""
	default:
		wrong.Set("branch_filter_strategy", "is not included in the list")
	}
	if len(h.Filter) > maxFilter {
		wrong.Set("push_events_branch_filter", fmt.Sprintf("is too long (maximum is %d characters)", maxFilter))
	}
	checkHeaders(wrong, h.Secrets.Headers)
	checkVariables(wrong, h.Secrets.Variables)
	for _, m := range placeholder.FindAllStringSubmatch(h.URL, -1) {
		if !slices.ContainsFunc(h.Secrets.Variables, func(p Pair) bool { return p.Key == m[1] }) {
			wrong.Set("url", "contains the variable {"+m[1]+"} which has no value")
		}
	}
	return wrong.Err()
}

// headerName and variableName match the names of headers and URL variables.
var (
	headerName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,254}$`)
	variableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,254}$`)
)

// reserved are headers that svc sets itself.
func reserved(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "x-gitlab-") || strings.HasPrefix(name, "webhook-") ||
		slices.Contains([]string{"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "idempotency-key"}, name)
}

func checkHeaders(wrong errs.Fields, list []Pair) {
	seen := map[string]bool{}
	if len(list) > maxPairs {
		wrong.Set("custom_headers", fmt.Sprintf("exceeds maximum count of %d", maxPairs))
	}
	for _, p := range list {
		switch {
		case !headerName.MatchString(p.Key) || reserved(p.Key):
			wrong.Set("custom_headers", "must have valid names")
		case p.Value == "" || len(p.Value) > maxText || !oneLine(p.Value):
			wrong.Set("custom_headers", "must have values of one line, also when the URL changes")
		case seen[strings.ToLower(p.Key)]:
			wrong.Set("custom_headers", "must have different names")
		}
		seen[strings.ToLower(p.Key)] = true
	}
}

// oneLine reports whether a text can be the value of a header.
func oneLine(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func checkVariables(wrong errs.Fields, list []Pair) {
	if len(list) > maxPairs {
		wrong.Set("url_variables", fmt.Sprintf("exceeds maximum count of %d", maxPairs))
	}
	for _, p := range list {
		switch {
		case !variableName.MatchString(p.Key):
			wrong.Set("url_variables", "must have valid names")
		case p.Value == "" || len(p.Value) > maxText || !oneLine(p.Value):
			wrong.Set("url_variables", "must have values of one line, also when the URL changes")
		}
	}
}

// signingKey returns the key of a signing token: whsec_ and Base64.
func signingKey(token string) ([]byte, bool) {
	text, ok := strings.CutPrefix(token, "whsec_")
	if !ok {
		return nil, false
	}
	key, err := base64.StdEncoding.DecodeString(text)
	return key, err == nil && len(key) >= 24 && len(key) <= 64
}

// target is the URL that requests go to, with its variables.
func (h *Hook) target() string {
	if h.Kind != Webhook {
		info, err := Info(h.Kind)
		if err != nil || info.message == nil {
			return ""
		}
		return info.message(h, &Delivery{}, message{}).url
	}
	return placeholder.ReplaceAllStringFunc(h.URL, func(m string) string {
		for _, p := range h.Secrets.Variables {
			if p.Key == m[1:len(m)-1] {
				return p.Value
			}
		}
		return m
	})
}

// checkURL refuses a URL that no request can be sent to. Names are resolved, and
// their addresses checked, at each delivery.
func (s *Service) checkURL(ctx context.Context, h *Hook) error {
	target := h.target()
	u, err := url.Parse(target)
	if err != nil || len(target) > maxURL || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return errs.Unprocessable("Invalid url given")
	}
	policy, err := s.policy(ctx, h)
	if err != nil {
		return err
	}
	if !policy.MayReach(u) {
		return errs.Unprocessable("Invalid url given: requests to the local network are not allowed")
	}
	return nil
}

// policy returns the addresses that requests of a hook may reach.
func (s *Service) policy(ctx context.Context, h *Hook) (outbound.Policy, error) {
	settings, err := s.Settings.Current(ctx)
	if err != nil {
		return outbound.Policy{}, err
	}
	policy := settings.Outbound()
	if h.System() {
		policy.Local = settings.AllowLocalSystemHooks
	}
	return policy, nil
}
