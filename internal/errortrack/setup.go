package errortrack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Setup is the error tracking configuration of a project.
type Setup struct {
	ID         int64
	ProjectID  int64
	Active     bool
	Integrated bool // integrated error tracking; otherwise an external service
	External   External
	UpdatedAt  time.Time

	token string // sealed
}

// HasToken reports whether a token for the external service is stored. The token is
// never shown again.
func (s *Setup) HasToken() bool { return s.token != "" }

// External is an external error tracking service. Its settings are only stored and
// returned; no requests are sent to it.
type External struct {
	ProjectName string
	URL         string // for users
	APIURL      string // for programs
}

// Setup returns the error tracking settings of a project. Requires Maintainer.
// NotFound if there are none.
func (s *Service) Setup(ctx context.Context, by actor.Actor, ref project.Ref) (*Setup, error) {
	p, err := s.maintainer(ctx, by, ref, false)
	if err != nil {
		return nil, err
	}
	found, err := findSetup(ctx, s.DB, p.ID)
	if errors.Is(err, db.ErrNoRows) {
		return nil, errNoSetup()
	}
	if err != nil {
		return nil, fmt.Errorf("error tracking settings of project %d: %w", p.ID, err)
	}
	return found, nil
}

func errNoSetup() error { return errs.NotFound("Error Tracking Setting") }

// SetupChange are changes to the settings. A nil field keeps the current value.
type SetupChange struct {
	Active        *bool
	Integrated    *bool
	External      *External
	ExternalToken *string // empty removes the current one
}

// Configure creates or changes the error tracking settings of a project. Requires
// Maintainer. Invalid.
func (s *Service) Configure(ctx context.Context, by actor.Actor, ref project.Ref, c SetupChange) (*Setup, error) {
	return s.configure(ctx, by, ref, c, true)
}

// Reconfigure changes existing settings. Requires Maintainer. NotFound if there
// are none; Invalid.
func (s *Service) Reconfigure(ctx context.Context, by actor.Actor, ref project.Ref, c SetupChange) (*Setup, error) {
	return s.configure(ctx, by, ref, c, false)
}

func (s *Service) configure(ctx context.Context, by actor.Actor, ref project.Ref, c SetupChange, create bool) (*Setup, error) {
	p, err := s.maintainer(ctx, by, ref, true)
	if err != nil {
		return nil, err
	}
	if c.External != nil {
		if err := c.External.check(); err != nil {
			return nil, err
		}
	}
	var now *Setup
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		was, err := findSetup(ctx, tx, p.ID)
		if errors.Is(err, db.ErrNoRows) && create {
			was, err = &Setup{ProjectID: p.ID}, nil
		}
		if errors.Is(err, db.ErrNoRows) {
			return errNoSetup()
		}
		if err != nil {
			return err
		}
		now = s.changed(*was, c)
		if err := saveSetup(ctx, tx, now); err != nil {
			return err
		}
		for _, d := range differences(was, now) {
			target := audit.Target{Type: "ErrorTracking::ProjectErrorTrackingSetting", ID: now.ID, Details: p.FullPath}
			if err := s.record(ctx, tx, by, p, "error_tracking_settings_updated", target, d); err != nil {
				return err
			}
		}
		return s.firstKey(ctx, tx, by, p, now)
	})
	if err != nil {
		return nil, fmt.Errorf("set up error tracking of project %d: %w", p.ID, err)
	}
	return now, nil
}

// changed returns the settings with a change applied.
func (s *Service) changed(was Setup, c SetupChange) *Setup {
	now := was
	now.UpdatedAt = s.Now()
	if c.Active != nil {
		now.Active = *c.Active
	}
	if c.Integrated != nil {
		now.Integrated = *c.Integrated
	}
	if c.External != nil {
		now.External = *c.External
	}
	if c.ExternalToken != nil {
		now.token = ""
		if *c.ExternalToken != "" {
			now.token = s.Keys.Seal([]byte(*c.ExternalToken), "error_settings:"+strconv.FormatInt(was.ProjectID, 10))
		}
	}
	return &now
}

// differences returns the audit details of a change, one for each field. Tokens
// are left out.
func differences(was, now *Setup) []audit.Details {
	var list []audit.Details
	for _, f := range []struct{ name, from, to string }{
		{"active", strconv.FormatBool(was.Active), strconv.FormatBool(now.Active)},
		{"integrated", strconv.FormatBool(was.Integrated), strconv.FormatBool(now.Integrated)},
		{"project_name", was.External.ProjectName, now.External.ProjectName},
		{"external_url", was.External.URL, now.External.URL},
		{"api_url", was.External.APIURL, now.External.APIURL},
	} {
		if f.from != f.to {
			list = append(list, audit.Details{Change: f.name, From: f.from, To: f.to})
		}
	}
	if was.token != now.token {
		list = append(list, audit.Details{Change: "token"})
	}
	return list
}

// maxField is the maximum length of a field of an external service.
const maxField = 255

func (e External) check() error {
	wrong := errs.Fields{}
	for name, text := range map[string]string{"external_url": e.URL, "api_url": e.APIURL} {
		u, err := url.Parse(text)
		switch {
		case len(text) > maxField:
			wrong.Set(name, "is too long (maximum is %d characters)", maxField)
		case text == "":
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
			wrong.Set(name, "must be a valid URL")
		}
	}
	if e.APIURL == "" {
		wrong.Set("api_url", "is a required field")
	}
	switch {
	case e.ProjectName == "":
		wrong.Set("project_name", "is a required field")
	case len(e.ProjectName) > maxField:
		wrong.Set("project_name", "is too long (maximum is %d characters)", maxField)
	}
	return wrong.Err()
}
