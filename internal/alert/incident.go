package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/plan"
	"svc/internal/project"
)

// Settings are the alert settings of a project.
type Settings struct {
	CreateIssue bool // an incident for each new alert
	AutoClose   bool // which is closed when the alert is resolved by its sender
	SendEmail   bool // to Maintainers and Owners, of new alerts
}

func defaults() Settings { return Settings{AutoClose: true, SendEmail: true} }

// SettingFields lists changes to the settings; nil keeps the current value.
type SettingFields struct{ CreateIssue, AutoClose, SendEmail *bool }

// Settings returns the alert settings of a project, for Maintainers and above.
func (s *Service) Settings(ctx context.Context, by actor.Actor, ref project.Ref) (Settings, error) {
	in, err := s.maintainer(ctx, by, ref)
	if err != nil {
		return Settings{}, err
	}
	t, err := findSettings(ctx, s.DB, in.ID)
	if err != nil {
		return t, fmt.Errorf("alert settings: %w", err)
	}
	return t, nil
}

// UpdateSettings changes the alert settings of a project, for Maintainers and above.
func (s *Service) UpdateSettings(ctx context.Context, by actor.Actor, ref project.Ref, f SettingFields) (Settings, error) {
	in, err := s.changer(ctx, by, ref)
	if err != nil {
		return Settings{}, err
	}
	var t Settings
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := project.HoldNumbers(ctx, tx, in.ID, numbers); err != nil {
			return err
		}
		if t, err = findSettings(ctx, tx, in.ID); err != nil {
			return err
		}
		was := t
		patch.Set(&t.CreateIssue, f.CreateIssue)
		patch.Set(&t.AutoClose, f.AutoClose)
		patch.Set(&t.SendEmail, f.SendEmail)
		if t == was {
			return nil
		}
		if err := saveSettings(ctx, tx, in.ID, t); err != nil {
			return err
		}
		for _, c := range []struct {
			name     string
			from, to bool
		}{{"create_issue", was.CreateIssue, t.CreateIssue}, {"auto_close_incident", was.AutoClose, t.AutoClose}, {"send_email", was.SendEmail, t.SendEmail}} {
			if c.from == c.to {
				continue
			}
			d := audit.Details{Change: c.name, From: fmt.Sprint(c.from), To: fmt.Sprint(c.to)}
			if err := s.record(ctx, tx, by, in, "alert_settings_updated", audit.Target{}, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return t, fmt.Errorf("update alert settings: %w", err)
	}
	return t, nil
}

// incidentWork opens incidents for new alerts.
type incidentWork struct {
	AlertIDs []int64 `json:"alert_ids"`
}

// Kind implements queue.Work.
func (incidentWork) Kind() string { return "alert.open_incidents" }

// recoveryWork closes the incidents of resolved alerts.
type recoveryWork struct {
	AlertIDs []int64 `json:"alert_ids"`
}

// Kind implements queue.Work.
func (recoveryWork) Kind() string { return "alert.close_incidents" }

// bot returns the actor that opens and closes incidents automatically.
func (s *Service) bot(ctx context.Context) (actor.Actor, error) {
	u, err := s.Users.AlertBot(ctx)
	if err != nil {
		return actor.Actor{}, err
	}
	// The bot is not a member. The settings of the project decide what it does.
	return actor.Actor{ID: u.ID, Username: u.Username, Name: u.Name, Email: u.Email, Admin: true}, nil
}

// openIncidents opens an incident for each of the alerts that is still firing and
// has none, so that it can be repeated.
func (s *Service) openIncidents(ctx context.Context, w incidentWork) error {
	by, err := s.bot(ctx)
	if err != nil {
		return err
	}
	for _, id := range w.AlertIDs { // in a transaction each, so that others can write in between
		found, err := findAlerts(ctx, s.DB, []int64{id})
		if err != nil {
			return fmt.Errorf("find alert %d: %w", id, err)
		}
		if len(found) == 0 {
			continue
		}
		in, err := s.Projects.RequireChange(ctx, by, project.RefTo(found[0].ProjectID), project.IssuePart, project.NoAccess)
		if errs.IsRefusal(err) {
			continue // the project is gone, archived, or has no issues
		}
		if err == nil {
			_, err = s.incident(ctx, by, in, found[0].IID, true)
		}
		if err != nil && !errs.Is(err, errs.KindInvalid) && !errs.Is(err, errs.KindNotFound) { // retrying is pointless; continue with the others
			return fmt.Errorf("open incident for alert %d: %w", id, err)
		}
	}
	return nil
}

// CreateIncident opens an incident for an alert, for Developers and above who can
// read issues. NotFound; Forbidden; Conflict if it has one.
func (s *Service) CreateIncident(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*Alert, error) {
	in, err := s.Projects.RequireChange(ctx, by, ref, project.AlertPart, project.Developer)
	if err != nil {
		return nil, err
	}
	if !in.MayRead(by, project.IssuePart) {
		return nil, errs.Forbidden("Issues are disabled in this project.")
	}
	made, err := s.incident(ctx, by, in, iid, false)
	if err == nil && !made {
		err = errs.Conflict("The alert already has an incident.")
	}
	if err != nil {
		return nil, fmt.Errorf("create incident for alert %d: %w", iid, err)
	}
	return s.alert(ctx, in, iid)
}

// incident opens an issue for an alert and links it to the alert, in one
// transaction. made is false if the alert has one, or with firing if it is resolved.
func (s *Service) incident(ctx context.Context, by actor.Actor, in *project.Project, iid int64, firing bool) (made bool, err error) {
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		made = false
		if err := project.HoldNumbers(ctx, tx, in.ID, numbers); err != nil {
			return err
		}
		a, err := findAlert(ctx, tx, in.ID, iid)
		if err != nil {
			return err
		}
		if a.IssueID != nil || firing && !a.Open() {
			return nil
		}
		kind, text := "incident", s.describe(in, a)
		f := plan.IssueFields{
			Fields: plan.Fields{Title: &a.Title, Description: &text, Labels: plan.Labelling{Add: []string{"incident"}}}, Type: &kind,
		}
		if a.AssigneeID != nil {
			f.Assignees = &[]int64{*a.AssigneeID}
		}
		i, err := s.Plan.AddIssue(ctx, tx, by, in, f)
		if err != nil {
			return err
		}
		made, a.IssueID, a.UpdatedAt = true, &i.ID, s.Now()
		if err := saveAlert(ctx, tx, a); err != nil {
			return err
		}
		if !firing { // otherwise the bot does it
			if err := s.recordAlert(ctx, tx, by, in, a, "alert_incident_created", audit.Details{Add: "incident"}); err != nil {
				return err
			}
		}
		return s.Plan.AddSystemNote(ctx, tx, by, a.target(), a.IID, a.ProjectID, fmt.Sprintf("created incident #%d for this alert", i.IID))
	})
	return made, err
}

// Limits of the description of an incident. The alert has the whole payload.
const (
	maxShown    = 100     // annotations
	maxMarkdown = 100_000 // characters
)

// describe returns the description of an incident. Fields of the payload are shown
// verbatim, so that they cannot mention users or contain links.
func (s *Service) describe(in *project.Project, a *Alert) string {
	var out strings.Builder
	row := func(name, text string) {
		if text != "" {
			out.WriteString("- **" + name + ":** " + verbatim(text) + "\n")
		}
	}
	out.WriteString(fmt.Sprintf("Opened for [alert #%d](%s).\n\n", a.IID, s.Site.URL+address(in, a.IID)))
	d := a.Details(s.Site.Name)
	row("Start time", a.StartedAt.UTC().Format(time.RFC3339))
	row("Severity", a.Severity.String())
	row("Query", clip(d.Query, maxDescription))
	row("Service", a.Service)
	row("Monitoring tool", a.Tool)
	row("Hosts", strings.Join(a.Hosts, ", "))
	row("Environment", a.Environment)
	row("Runbook", clip(d.Runbook, maxDescription))
	row("Description", a.Description)
	if len(d.Annotations) > 0 {
		out.WriteString("\n#### Alert details\n\n")
		for _, leaf := range d.Annotations[:min(maxShown, len(d.Annotations))] {
			out.WriteString("- " + verbatim(clip(leaf.Name(), 255)) + ": " + verbatim(clip(leaf.Value, maxDescription)) + "\n")
		}
	}
	if d.Markdown != "" {
		out.WriteString("\n---\n\n" + clip(d.Markdown, maxMarkdown) + "\n")
	}
	return out.String()
}

// verbatim returns Markdown that shows a text as code, in one line.
func verbatim(text string) string {
	text = line(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// closeIncidents closes the incidents of resolved alerts. The incident of an alert
// that fires again stays open.
func (s *Service) closeIncidents(ctx context.Context, w recoveryWork) error {
	by, err := s.bot(ctx)
	if err != nil {
		return err
	}
	for _, id := range w.AlertIDs {
		found, err := findAlerts(ctx, s.DB, []int64{id})
		if err != nil {
			return fmt.Errorf("find alert %d: %w", id, err)
		}
		if len(found) == 0 || found[0].IssueIID == 0 || found[0].Open() {
			continue
		}
		a := found[0]
		_, err = s.Plan.UpdateIssue(ctx, by, project.RefTo(a.ProjectID), a.IssueIID, plan.IssueFields{Fields: plan.Fields{Event: "close"}, Via: fmt.Sprintf("alert %d", a.IID)})
		if err != nil && !errs.IsRefusal(err) { // else the project is gone, archived, or has no issues
			return fmt.Errorf("close incident of alert %d: %w", a.ID, err)
		}
	}
	return nil
}

// sample returns a payload to test an integration without an example payload.
func (i *Integration) sample(now time.Time) []byte {
	at := now.UTC().Format(time.RFC3339)
	var doc any = map[string]any{
		"title": "Test alert", "description": "This alert tests the integration " + i.Name + ".", "severity": "info", "service": "test", "start_time": at,
	}
	if i.Type == Prometheus {
		doc = map[string]any{
			"version": "4", "groupKey": "test", "status": "firing", "receiver": "test", "groupLabels": map[string]any{}, "commonLabels": map[string]any{},
			"commonAnnotations": map[string]any{}, "externalURL": "", "alerts": []any{map[string]any{
				"status": "firing", "startsAt": at, "labels": map[string]any{"alertname": "Test alert", "severity": "info"},
				"annotations": map[string]any{"description": "This alert tests the integration " + i.Name + "."},
			}},
		}
	}
	text, _ := json.Marshal(doc) // never fails: it contains only strings
	return text
}
