// Package alert receives alerts from monitoring programs. Programs send payloads
// in one of two formats to an integration; payloads become alerts of a project,
// and alerts can open and close incidents.
package alert

import (
	"context"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/event"
	"svc/internal/notify"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/setting"
	"svc/internal/user"
)

// Status is the status of an alert.
type Status string

// The statuses. All but Resolved are open.
const (
	Triggered    Status = "triggered"
	Acknowledged Status = "acknowledged"
	Resolved     Status = "resolved"
	Ignored      Status = "ignored"
)

// Statuses returns all statuses.
func Statuses() []Status { return []Status{Triggered, Acknowledged, Resolved, Ignored} }

// Severity is the severity of an alert; lower values are more severe.
type Severity int64

// The severities.
const (
	Critical Severity = iota
	High
	Medium
	Low
	Info
	Unknown
)

// severityNames are their names, in the same order.
var severityNames = []string{"critical", "high", "medium", "low", "info", "unknown"}

// String returns the name of the severity in the API.
func (s Severity) String() string {
	if s < 0 || int(s) >= len(severityNames) {
		return "unknown"
	}
	return severityNames[s]
}

// ParseSeverity parses the name of a severity, in upper or lower case.
func ParseSeverity(word string) (Severity, bool) {
	for i, name := range severityNames {
		if strings.EqualFold(name, word) {
			return Severity(i), true
		}
	}
	return Critical, false
}

// Severities returns all severities, the most severe first.
func Severities() []Severity { return []Severity{Critical, High, Medium, Low, Info, Unknown} }

// Format is the format of a payload.
type Format string

// The formats: any JSON object, and the webhook of Prometheus Alertmanager, which
// can contain several alerts.
const (
	Generic Format = "generic"
	Metrics Format = "metrics"
)

// Alert is an alert of a project.
type Alert struct {
	ID            int64
	IID           int64 // its number in the project
	ProjectID     int64
	Status        Status
	Severity      Severity
	StartedAt     time.Time
	EndedAt       *time.Time
	CreatedAt     time.Time
	UpdatedAt     time.Time
	Events        int64 // number of times that it was received
	AssigneeID    *int64
	IssueID       *int64 // the incident
	IntegrationID *int64
	Fingerprint   string // alerts with the same fingerprint are the same
	Format        Format
	Title         string
	Description   string
	Service       string
	Tool          string // monitoring tool
	Environment   string
	Hosts         []string

	Payload string // JSON, as first received; not read by lists

	// Read with the row.
	ProjectPath string
	IssueIID    int64 // 0 without an incident
	Integration string
	Assignee    *user.User
}

// Open reports whether the alert still needs attention.
func (a *Alert) Open() bool { return a.Status != Resolved }

// Site is the data about the instance that the feature needs.
type Site struct {
	URL  string // the external address, without a slash at its end
	Name string // the service's own name
	// Premium allows several integrations of a type and mappings in a project,
	// and groups and counts repeated alerts.
	Premium bool
}

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Keys     *secret.Keyring
	Blobs    blob.Store
	Settings *setting.Service
	Users    *user.Service
	Projects *project.Service
	Plan     *plan.Service
	Notify   *notify.Service
	Site     Site
	Now      func() time.Time
}

// Service manages the alerts of the instance.
type Service struct {
	Deps
	Events Events
}

// Events are the events of alerts.
type Events struct {
	// Updated is published when a user changes the status or the assignee of an
	// alert.
	Updated event.Event[Updated]
}

// Updated is a change of an alert.
type Updated struct {
	Alert  *Alert // after the change
	Before *int64 // the assignee before it
	By     int64  // 0: no user
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d}
	queue.Handle(d.Queue, s.openIncidents)
	queue.Handle(d.Queue, s.closeIncidents)
	queue.Handle(d.Queue, s.dropUnusedImage)
	d.Queue.Every("alert_retention", time.Hour, s.Sweep)
	return s
}

// watcher returns a project to users who can see its alerts: Developers and above.
func (s *Service) watcher(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireView(ctx, by, ref, project.AlertPart)
}

// Sees reports whether an actor with access to the project can see its alerts: see
// watcher.
func (s *Service) Sees(by actor.Actor, p *project.Project) bool {
	return p.MayRead(by, project.AlertPart)
}

// CanChange reports whether an actor with access to the project may change its
// alerts: see Update.
func (s *Service) CanChange(by actor.Actor, p *project.Project) bool {
	return p.MayChange(by, project.AlertPart, project.Developer)
}

// maintainer returns a project to Maintainers and above.
func (s *Service) maintainer(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireView(ctx, by, ref, project.SettingsPart)
}

// record writes an audit event about a project.
func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, kind string, target audit.Target, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Entity{Type: audit.ProjectEntity, ID: in.ID, Path: in.FullPath}, Target: target, Details: d,
	})
}

// address returns the path of the page of an alert.
func address(in *project.Project, iid int64) string {
	return fmt.Sprintf("/%s/-/alert_management/%d/details", in.FullPath, iid)
}
