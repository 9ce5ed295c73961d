package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
)

// numbers is the kind of number that alerts have in a project.
const numbers = "alert"

// IntakeRequest is a request to an alert endpoint.
type IntakeRequest struct {
	Project  project.Ref
	Endpoint string // of the integration; empty for the project's own URLs
	Metrics  bool   // the URL accepts only the Prometheus format
	Token    string // empty for none
}

// Endpoint is an integration that a request was authenticated for.
type Endpoint struct {
	in          *project.Project
	integration *Integration
	metrics     bool
	tester      *actor.Actor // the user who tests it; nil for a program
}

// IntegrationID names the integration.
func (d *Endpoint) IntegrationID() int64 { return d.integration.ID }

// Admit authenticates a request by the token of the integration. Unauthorized for
// any other token, even if the project does not exist; Forbidden if the
// integration is inactive, the project is archived, or alerts are disabled in it; NotFound for an unknown
// endpoint, if the token belongs to the project.
func (s *Service) Admit(ctx context.Context, k IntakeRequest) (*Endpoint, error) {
	if k.Token == "" {
		return nil, errs.Unauthorized("")
	}
	in, err := s.Projects.Require(ctx, actor.System(), k.Project, project.NoAccess)
	moved, wasMoved := errors.AsType[*project.Moved](err)
	if wasMoved { // the new path is shown only to callers with a valid token
		in, err = s.Projects.Require(ctx, actor.System(), project.RefTo(moved.ID), project.NoAccess)
	}
	if errs.Is(err, errs.KindNotFound) {
		return nil, errs.Unauthorized("").Because(err)
	}
	if err != nil {
		return nil, err
	}
	i, err := findEndpoint(ctx, s.DB, in.ID, secret.Digest(k.Token))
	if errors.Is(err, db.ErrNoRows) {
		return nil, errs.Unauthorized("")
	}
	if err != nil {
		return nil, fmt.Errorf("find alert integration: %w", err)
	}
	if k.Endpoint != "" && k.Endpoint != i.Endpoint {
		has, err := hasEndpoint(ctx, s.DB, in.ID, k.Endpoint)
		switch {
		case err != nil:
			return nil, fmt.Errorf("find alert integration: %w", err)
		case has: // the token belongs to another integration
			return nil, errs.Unauthorized("")
		}
		return nil, errs.NotFound("Integration")
	}
	if wasMoved {
		return nil, moved
	}
	if !i.Active {
		return nil, errs.Forbidden("The integration is not active.")
	}
	if in.Settings.Monitor == project.Disabled {
		return nil, errs.Forbidden("Alerts are disabled in this project.")
	}
	return &Endpoint{in: in, integration: i, metrics: k.Metrics}, in.Change(actor.System(), project.WholePart, project.NoAccess)
}

// Take creates or updates the alerts of a payload that was sent to an endpoint: all
// of them, or none if it fails. It returns these alerts. TooLarge; Invalid.
func (s *Service) Take(ctx context.Context, d *Endpoint, payload []byte) ([]*Alert, error) {
	if len(payload) > MaxPayload {
		return nil, errs.TooLarge("The payload is larger than %d bytes.", MaxPayload)
	}
	r := reader{name: s.Site.Name, now: s.Now()}
	if s.Site.Premium {
		r.mappings = d.integration.Mappings
	}
	list, err := r.read(payload, d.metrics || d.integration.Type == Prometheus)
	if err != nil {
		return nil, err
	}
	var t *taking
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		t = &taking{Service: s, endpoint: d, seen: map[int64]bool{}}
		if err := t.all(ctx, tx, list); err != nil || d.tester == nil {
			return err
		}
		return s.recordIntegration(ctx, tx, *d.tester, d.in, d.integration, "alert_integration_tested", audit.Details{Add: "alert"})
	})
	if err != nil {
		return nil, fmt.Errorf("take alerts: %w", err)
	}
	return t.touched, nil
}

// Test sends a payload to an integration, for Developers and above. Without a
// payload it sends the example of the integration. NotFound; Forbidden if the
// integration is inactive; TooLarge; Invalid.
func (s *Service) Test(ctx context.Context, by actor.Actor, ref project.Ref, id int64, payload []byte) ([]*Alert, error) {
	in, err := s.Projects.RequireChange(ctx, by, ref, project.AlertPart, project.Developer)
	if err != nil {
		return nil, err
	}
	i, err := findIntegration(ctx, s.DB, in.ID, id)
	if err != nil {
		return nil, db.NotFound(err, "Integration")
	}
	if !i.Active {
		return nil, errs.Forbidden("The integration is not active.")
	}
	if len(payload) == 0 {
		payload = []byte(i.Example)
	}
	if len(payload) == 0 {
		payload = i.sample(s.Now())
	}
	return s.Take(ctx, &Endpoint{in: in, integration: i, tester: &by}, payload)
}

// taking is the processing of one payload.
type taking struct {
	*Service
	endpoint *Endpoint
	open     map[string][]*Alert // by fingerprint, the oldest first
	touched  []*Alert
	seen     map[int64]bool // IDs of touched
	made     []int64        // IDs of new alerts that are firing
	ended    []int64        // IDs of resolved alerts with an incident
}

// all stores the alerts of a payload. Payloads of a project are processed one after
// another, so that concurrent requests with the same alert create it once.
func (t *taking) all(ctx context.Context, tx *db.Tx, list []incoming) error {
	if err := project.HoldNumbers(ctx, tx, t.endpoint.in.ID, numbers); err != nil {
		return err
	}
	prints := make([]string, len(list))
	for i := range list {
		prints[i] = list[i].Fingerprint
	}
	slices.Sort(prints)
	var err error
	if t.open, err = findOpen(ctx, tx, t.endpoint.in.ID, slices.Compact(prints)); err != nil {
		return err
	}
	for i := range list {
		if err := t.one(ctx, tx, &list[i]); err != nil {
			return err
		}
	}
	settings, err := findSettings(ctx, tx, t.endpoint.in.ID)
	if err != nil {
		return err
	}
	return t.follow(ctx, tx, settings)
}

// one stores an alert: it creates a new one, or updates an open one.
func (t *taking) one(ctx context.Context, tx *db.Tx, in *incoming) error {
	same := t.open[in.Fingerprint]
	switch {
	case in.resolved && len(same) > 0:
		for _, a := range same {
			if err := t.end(ctx, tx, a, in); err != nil {
				return err
			}
		}
		delete(t.open, in.Fingerprint)
		return nil
	case !in.resolved && len(same) > 0 && (in.explicit || t.Site.Premium):
		a := same[0]
		if a.UpdatedAt = t.Now(); t.Site.Premium {
			a.Events++
		}
		t.touch(a)
		return saveAlert(ctx, tx, a)
	}
	a := &in.Alert
	a.ProjectID, a.IntegrationID = t.endpoint.in.ID, &t.endpoint.integration.ID
	a.CreatedAt, a.UpdatedAt = t.Now(), t.Now()
	var err error
	if a.IID, err = project.NextNumber(ctx, tx, a.ProjectID, numbers); err != nil {
		return err
	}
	if err := insertAlert(ctx, tx, a); err != nil {
		return err
	}
	t.touch(a)
	if !in.resolved {
		t.open[a.Fingerprint] = append(t.open[a.Fingerprint], a)
		t.made = append(t.made, a.ID)
	}
	return nil
}

// end resolves an open alert.
func (t *taking) end(ctx context.Context, tx *db.Tx, a *Alert, in *incoming) error {
	a.Status, a.EndedAt, a.UpdatedAt = Resolved, in.EndedAt, t.Now()
	t.touch(a)
	if a.IssueID != nil {
		t.ended = append(t.ended, a.ID)
	}
	return saveAlert(ctx, tx, a)
}

func (t *taking) touch(a *Alert) {
	if !t.seen[a.ID] {
		t.touched, t.seen[a.ID] = append(t.touched, a), true
	}
}

// follow adds the background jobs and emails that the settings of the project
// require.
func (t *taking) follow(ctx context.Context, tx *db.Tx, settings Settings) error {
	if settings.CreateIssue && len(t.made) > 0 {
		if err := t.Queue.Add(ctx, tx, incidentWork{t.made}); err != nil {
			return err
		}
	}
	if settings.AutoClose && len(t.ended) > 0 {
		if err := t.Queue.Add(ctx, tx, recoveryWork{t.ended}); err != nil {
			return err
		}
	}
	if settings.SendEmail && len(t.made) > 0 {
		return t.notify(ctx, tx, t.endpoint.in.ID, t.made)
	}
	return nil
}
