// Package hook delivers events to URLs outside: webhooks of projects and groups,
// system hooks, messages to chat services, and pipeline status emails.
//
// An event is captured in the transaction in which it happens: the payload and a
// row for each hook that listens. A background job delivers the rows of one hook
// in their order, one at a time, and keeps them as the delivery log.
package hook

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/limit"
	"svc/internal/mail"
	"svc/internal/notice"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/wiki"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Keys     *secret.Keyring
	Notices  *notice.Bus
	Settings *setting.Service
	Projects *project.Service
	Repos    *repo.Service
	Wikis    *wiki.Service
	Mail     *mail.Sender
	Log      *slog.Logger
	Now      func() time.Time
	Site     Site
}

// Site describes the instance in payloads and headers.
type Site struct {
	URL     string // without a trailing slash
	Name    string
	Host    string
	SSHPort string // empty: no port in SSH URLs
	Version string // of the public API
}

// Service manages hooks and delivers events to them.
type Service struct {
	Deps
	listeners *notice.Cache[int64, []listener] // by project
	limits    *limit.Limiter
	shares    *shares
}

// topic is the notice that hooks have changed.
const topic = "hooks"

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	o := notice.CacheOptions[[]listener]{Bus: d.Notices, Max: 20_000}
	s := &Service{Deps: d, listeners: notice.NewCache[int64](o), limits: limit.New(limit.Deps{Now: d.Now}), shares: newShares()}
	// Groups above a project change with the tree and with the move of a project.
	d.Notices.Subscribe(topic, func(string) { s.listeners.Drop() })
	d.Notices.SendOnWrite(topic, "hooks", "namespace_tree")
	d.Queue.Lane(lane, laneSize)
	d.Queue.Lane(slowLane, laneSize)
	queue.Handle(d.Queue, s.deliver)
	d.Queue.Every("hooks_due", sweepPause, s.Sweep)
	d.Queue.Every("hooks_retention", time.Hour, s.Expire)
	d.Queue.Every("hooks_sizes", sizeTime, func(ctx context.Context) error { return s.TrimSizes(ctx, maxSize) })
	d.Queue.Every("hooks_token_expiry", 24*time.Hour, s.AnnounceExpiry)
	return s
}

// Kind is the kind of a hook: a webhook, or one of the integrations.
type Kind string

// The kinds of hooks.
const (
	Webhook    Kind = "webhook"
	Slack      Kind = "slack"
	Mattermost Kind = "mattermost"
)

// Hook is a URL that gets events, with what is sent to it.
type Hook struct {
	ID          int64
	Kind        Kind
	ProjectID   *int64 // at most one of these is set; a system hook has neither
	GroupID     *int64
	Name        string
	Description string
	URL         string // with {variable} for masked parts
	Triggers    []Trigger
	Strategy    Strategy
	Filter      string // of branches
	Template    string // of the body; empty: the payload itself
	VerifyTLS   bool
	Disabled    bool // permanently; of an integration: inactive
	Secrets     Secrets
	Options     Options // of an integration
	CreatedAt   time.Time
	UpdatedAt   time.Time

	Failures      int64 // consecutive
	DisabledUntil *time.Time

	sealed string
}

// Secrets are the parts of a hook that are stored encrypted and never shown.
type Secrets struct {
	Token        string `json:"token,omitempty"`
	SigningToken string `json:"signing_token,omitempty"`
	Headers      []Pair `json:"headers,omitempty"`
	Variables    []Pair `json:"variables,omitempty"` // of the URL
	Webhook      string `json:"webhook,omitempty"`   // the URL of a chat service
	// Values are other secret properties of an integration.
	Values map[string]string `json:"values,omitempty"`
}

// all returns all secret texts.
func (s *Secrets) all() []string {
	list := []string{s.Token, s.SigningToken, s.Webhook}
	for _, p := range slices.Concat(s.Headers, s.Variables) {
		list = append(list, p.Value)
	}
	return slices.AppendSeq(list, maps.Values(s.Values))
}

// hide masks secrets in a text that a receiver returned, also as parts of JSON and URLs.
// Short secrets are not masked, because they could be any word. Clip the text afterwards:
// the beginning of a secret at its end is not masked.
func (s *Secrets) hide(text string) string {
	for _, secret := range s.all() {
		if len(secret) < 8 {
			continue
		}
		for _, form := range written(secret) {
			text = strings.ReplaceAll(text, form, "[REDACTED]")
		}
	}
	return text
}

// written returns the forms of a text in JSON and in URLs.
func written(text string) []string {
	var plain strings.Builder
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string
	quoted := strings.TrimSuffix(plain.String(), "\n")
	escaped, _ := json.Marshal(text)
	return []string{
		text, quoted[1 : len(quoted)-1], string(escaped[1 : len(escaped)-1]), url.QueryEscape(text), url.PathEscape(text),
	}
}

// maxForm is the maximum length of a form of a secret: of a character in 4 bytes, each of
// which is escaped with 3.
const maxForm = 12 * max(maxText, maxURL)

// Pair is a header or a URL variable.
type Pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// System reports whether the hook is one of the instance.
func (h *Hook) System() bool { return h.ProjectID == nil && h.GroupID == nil }

// Listens reports whether the hook gets events of a trigger.
func (h *Hook) Listens(t Trigger) bool { return slices.Contains(h.Triggers, t) }

// Alert is the state of a hook by its failures.
type Alert string

// The states of hooks.
const (
	Executable          Alert = "executable"
	TemporarilyDisabled Alert = "temporarily_disabled"
	PermanentlyDisabled Alert = "disabled"
)

// AlertStatus returns the state of the hook at a time.
func (h *Hook) AlertStatus(now time.Time) Alert {
	switch {
	case h.Disabled:
		return PermanentlyDisabled
	case h.DisabledUntil != nil && h.DisabledUntil.After(now):
		return TemporarilyDisabled
	}
	return Executable
}

// Strategy is how the branch filter of a hook is interpreted.
type Strategy string

// The strategies.
const (
	Wildcard    Strategy = "wildcard"
	Regex       Strategy = "regex"
	AllBranches Strategy = "all_branches"
)

// Trigger is a kind of events that a hook can listen to, by its name in the API.
type Trigger string

// The triggers.
const (
	Push              Trigger = "push_events"
	TagPush           Trigger = "tag_push_events"
	Issues            Trigger = "issues_events"
	ConfidentialIssue Trigger = "confidential_issues_events"
	Notes             Trigger = "note_events"
	ConfidentialNote  Trigger = "confidential_note_events"
	MergeRequests     Trigger = "merge_requests_events"
	Jobs              Trigger = "job_events"
	Pipelines         Trigger = "pipeline_events"
	WikiPages         Trigger = "wiki_page_events"
	Deployments       Trigger = "deployment_events"
	FeatureFlags      Trigger = "feature_flag_events"
	Releases          Trigger = "releases_events"
	Milestones        Trigger = "milestone_events"
	Emoji             Trigger = "emoji_events"
	AccessTokens      Trigger = "resource_access_token_events"
	Vulnerabilities   Trigger = "vulnerability_events"
	Members           Trigger = "member_events"
	Subgroups         Trigger = "subgroup_events"
	ProjectEvents     Trigger = "project_events"
	RepositoryUpdate  Trigger = "repository_update_events"
	// system is the trigger of events that only system hooks get, and always get.
	system Trigger = "system"
)

// TriggerInfo describes a trigger for pages.
type TriggerInfo struct {
	Trigger Trigger
	Label   string
	Hint    string
	Header  string // X-Gitlab-Event
	Log     string // the name in the delivery log
}

// triggers are all triggers, in the order of pages.
var triggers = []TriggerInfo{
	{Push, "Push events", "A branch is pushed to.", "Push Hook", "push_hooks"},
	{TagPush, "Tag push events", "A tag is created or deleted.", "Tag Push Hook", "tag_push_hooks"},
	{Notes, "Comments", "A comment is added to an issue, merge request, commit or snippet.", "Note Hook", "note_hooks"},
	{ConfidentialNote, "Confidential comments", "An internal note, or a comment on a confidential issue, is added.", "Confidential Note Hook", "confidential_note_hooks"},
	{Issues, "Issue events", "An issue is created, updated, closed or reopened.", "Issue Hook", "issue_hooks"},
	{ConfidentialIssue, "Confidential issue events", "A confidential issue is created, updated, closed or reopened.", "Confidential Issue Hook", "confidential_issue_hooks"},
	{MergeRequests, "Merge request events", "A merge request is created, updated, approved or merged.", "Merge Request Hook", "merge_request_hooks"},
	{Jobs, "Job events", "The status of a job changes.", "Job Hook", "job_hooks"},
	{Pipelines, "Pipeline events", "The status of a pipeline changes.", "Pipeline Hook", "pipeline_hooks"},
	{WikiPages, "Wiki page events", "A wiki page is created, updated or deleted.", "Wiki Page Hook", "wiki_page_hooks"},
	{Deployments, "Deployment events", "A deployment starts, finishes, fails or is canceled.", "Deployment Hook", "deployment_hooks"},
	{FeatureFlags, "Feature flag events", "A feature flag is turned on or off.", "Feature Flag Hook", "feature_flag_hooks"},
	{Releases, "Releases events", "A release is created, updated or deleted.", "Release Hook", "release_hooks"},
	{Milestones, "Milestone events", "A milestone is created, closed, reopened or deleted.", "Milestone Hook", "milestone_hooks"},
	{Emoji, "Emoji events", "An emoji reaction is added or removed.", "Emoji Hook", "emoji_hooks"},
	{AccessTokens, "Project or group access token events", "An access token expires in seven days or tomorrow.", "Resource Access Token Hook", "resource_access_token_hooks"},
	{Vulnerabilities, "Vulnerability events", "A vulnerability is created or updated.", "Vulnerability Hook", "vulnerability_hooks"},
	{Members, "Member events", "A group member is added, updated or removed.", "Member Hook", "member_hooks"},
	{Subgroups, "Subgroup events", "A subgroup is created or removed.", "Subgroup Hook", "subgroup_hooks"},
	{ProjectEvents, "Project events", "A project is created or deleted in the group.", "Project Hook", "project_hooks"},
	{RepositoryUpdate, "Repository update events", "A push updates one or more refs.", "System Hook", "repository_update_hooks"},
	{system, "System events", "", "System Hook", "system_hooks"},
}

// info returns the description of a trigger.
func (t Trigger) info() TriggerInfo {
	at := slices.IndexFunc(triggers, func(i TriggerInfo) bool { return i.Trigger == t })
	return triggers[at]
}

// LogName is the name of the trigger in the delivery log.
func (t Trigger) LogName() string { return t.info().Log }

// Level is the place of a hook: a project, a group or the instance.
type Level int

// The levels.
const (
	ProjectLevel Level = iota
	GroupLevel
	SystemLevel
)

// TriggersOf returns the triggers that hooks of a level can have.
func TriggersOf(l Level) []TriggerInfo {
	var list []TriggerInfo
	for _, t := range triggers {
		only := slices.Contains([]Trigger{Members, Subgroups, ProjectEvents}, t.Trigger)
		of := slices.Contains([]Trigger{Push, TagPush, MergeRequests, RepositoryUpdate}, t.Trigger)
		switch {
		case t.Trigger == system || t.Trigger == Vulnerabilities: // nothing publishes vulnerabilities
		case l == SystemLevel && of, l == GroupLevel && t.Trigger != RepositoryUpdate, l == ProjectLevel && !only && t.Trigger != RepositoryUpdate:
			list = append(list, t)
		}
	}
	return list
}

// listener is the part of a hook that decides whether it gets an event.
type listener struct {
	id       int64
	kind     Kind
	triggers []Trigger
	branches branchFilter
	options  Options
	disabled bool // an integration that is not active
	distance int  // 0: of the project; then the groups above it, the nearest first
}

// systemDistance is the distance of system hooks.
const systemDistance = 1_000_000

// wants reports whether a hook gets an event of a trigger on a branch.
func (l listener) wants(t Trigger, branch string) bool {
	if !slices.Contains(l.triggers, t) {
		return false
	}
	return t != Push || branch == "" || l.branches(branch)
}

// branchFilter reports whether a hook gets pushes to a branch.
type branchFilter func(branch string) bool

// newBranchFilter prepares a branch filter: expressions are compiled once, not for
// each push.
func newBranchFilter(strategy Strategy, filter string) branchFilter {
	switch {
	case filter == "" || strategy == AllBranches:
		return func(string) bool { return true }
	case strategy == Regex:
		re, err := regexp.Compile(filter)
		return func(branch string) bool { return err == nil && re.MatchString(branch) }
	}
	return func(branch string) bool { return wildcard(filter, branch) }
}

// wildcard matches a name with a pattern in which * stands for any text.
func wildcard(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// settled is the age from which the transaction that created a project is certainly
// committed. The hooks of younger projects are not cached, because their creation may be
// rolled back.
const settled = 10 * time.Minute

// listening returns the hooks of a project, of the groups above it and of the
// instance. It is read from a cache; without hooks it costs no query.
func (s *Service) listening(ctx context.Context, q db.Q, projectID int64) ([]listener, error) {
	return s.listeners.Get(projectID, func() ([]listener, bool, error) {
		created, namespaceID, err := findPlace(ctx, q, projectID)
		if err != nil {
			return nil, false, err
		}
		list, err := findListeners(ctx, q, projectID, namespaceID)
		return list, s.Now().Sub(created) > settled, err
	})
}

// ProjectChanged drops the cached hooks of a project that was moved to another group.
func (s *Service) ProjectChanged(ctx context.Context, tx *db.Tx, e project.Event) error {
	if e.Kind != project.ProjectMoved {
		return nil
	}
	return s.Notices.Send(ctx, tx, topic, "moved")
}
