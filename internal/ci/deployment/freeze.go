package deployment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
)

// FreezePeriod is a recurring period in which jobs should not deploy: they get the
// variable CI_DEPLOY_FREEZE.
type FreezePeriod struct {
	ID        int64
	ProjectID int64
	Start     string // a cron rule
	End       string // a cron rule
	Timezone  string
	CreatedAt time.Time
	UpdatedAt time.Time
}

const (
	maxFreezes = 100 // of a project
	maxCron    = 255
)

// FreezeChange are changes to a freeze period; nil leaves the current value.
type FreezeChange struct{ Start, End, Timezone *string }

func (f *FreezePeriod) apply(c FreezeChange) error {
	patch.Set(&f.Start, c.Start)
	patch.Set(&f.End, c.End)
	patch.Set(&f.Timezone, c.Timezone)
	wrong := errs.Fields{}
	if parseFreeze(f.Start) == nil {
		wrong.Set("freeze_start", "is invalid syntax")
	}
	if parseFreeze(f.End) == nil {
		wrong.Set("freeze_end", "is invalid syntax")
	}
	if zone(f.Timezone) == nil {
		wrong.Set("cron_timezone", "is invalid syntax")
	}
	return wrong.Err()
}

// anyTime is the time from which cron rules are checked.
var anyTime = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// parseFreeze returns nil for a text that is not a cron rule of five fields.
func parseFreeze(text string) *cronexpr.Expression {
	if len(strings.Fields(text)) != 5 || len(text) > maxCron {
		return nil
	}
	e, err := cronexpr.Parse(text)
	if err != nil || e.Next(anyTime).IsZero() {
		return nil
	}
	return e
}

func zone(name string) *time.Location {
	if name == "" || name == "Local" || len(name) > maxCron {
		return nil
	}
	at, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return at
}

// Active reports whether the period has begun and not ended, which is the case if its
// next event is an end.
func (f *FreezePeriod) Active(now time.Time) bool {
	start, end, at := parseFreeze(f.Start), parseFreeze(f.End), zone(f.Timezone)
	if start == nil || end == nil || at == nil {
		return false
	}
	now = now.In(at)
	ends := end.Next(now)
	return !ends.IsZero() && ends.Before(start.Next(now))
}

// FreezePeriods lists the freeze periods of a project. Reporters and above.
// NotFound, Forbidden.
func (s *Service) FreezePeriods(ctx context.Context, by actor.Actor, in project.Ref, p db.Paging) (db.Page[*FreezePeriod], error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Reporter)
	if err != nil {
		return db.Page[*FreezePeriod]{}, err
	}
	page, err := listFreezes(ctx, s.DB, proj.ID, p)
	if err != nil {
		return page, fmt.Errorf("list freeze periods: %w", err)
	}
	return page, nil
}

// FreezePeriod returns a freeze period. Reporters and above. NotFound, Forbidden.
func (s *Service) FreezePeriod(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*FreezePeriod, error) {
	proj, err := s.Projects.Require(ctx, by, in, project.Reporter)
	if err != nil {
		return nil, err
	}
	f, err := findFreeze(ctx, s.DB, proj.ID, id)
	return f, db.NotFound(err, "Freeze Period")
}

// CreateFreezePeriod adds a freeze period. Maintainers and above. NotFound,
// Forbidden, Invalid.
func (s *Service) CreateFreezePeriod(ctx context.Context, by actor.Actor, in project.Ref, c FreezeChange) (*FreezePeriod, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.SettingsPart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	f := &FreezePeriod{ProjectID: proj.ID, Timezone: "UTC", CreatedAt: s.Now(), UpdatedAt: s.Now()}
	if err := f.apply(c); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", proj.ID); err != nil {
			return err
		}
		n, err := countFreezes(ctx, tx, proj.ID)
		if err != nil {
			return err
		}
		if n >= maxFreezes {
			return errs.Invalid("A project has at most %d freeze periods: delete one first", maxFreezes)
		}
		if err := insertFreeze(ctx, tx, f); err != nil {
			return err
		}
		return s.recordFreeze(ctx, tx, by, proj, f, "deploy_freeze_created", audit.Details{Add: "freeze_period"})
	})
	if err != nil {
		return nil, fmt.Errorf("create freeze period: %w", err)
	}
	return f, nil
}

// UpdateFreezePeriod changes a freeze period. Maintainers and above. NotFound,
// Forbidden, Invalid.
func (s *Service) UpdateFreezePeriod(ctx context.Context, by actor.Actor, in project.Ref, id int64, c FreezeChange) (*FreezePeriod, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.SettingsPart, project.Maintainer)
	if err != nil {
		return nil, err
	}
	var f *FreezePeriod
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if f, err = findFreeze(ctx, tx, proj.ID, id); err != nil {
			return db.NotFound(err, "Freeze Period")
		}
		was := f.text()
		if err := f.apply(c); err != nil {
			return err
		}
		f.UpdatedAt = s.Now()
		if err := updateFreeze(ctx, tx, f); err != nil {
			return err
		}
		return s.recordFreeze(ctx, tx, by, proj, f, "deploy_freeze_updated", audit.Details{Change: "freeze_period", From: was, To: f.text()})
	})
	if err != nil {
		return nil, fmt.Errorf("update freeze period: %w", err)
	}
	return f, nil
}

// DeleteFreezePeriod removes a freeze period. Maintainers and above. NotFound,
// Forbidden.
func (s *Service) DeleteFreezePeriod(ctx context.Context, by actor.Actor, in project.Ref, id int64) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.SettingsPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		f, err := findFreeze(ctx, tx, proj.ID, id)
		if err != nil {
			return db.NotFound(err, "Freeze Period")
		}
		if err := deleteFreeze(ctx, tx, id); err != nil {
			return err
		}
		return s.recordFreeze(ctx, tx, by, proj, f, "deploy_freeze_deleted", audit.Details{Remove: "freeze_period"})
	})
	if err != nil {
		return fmt.Errorf("delete freeze period: %w", err)
	}
	return nil
}

// Frozen reports whether a freeze period of a project is active.
func (s *Service) Frozen(ctx context.Context, projectID int64) (bool, error) {
	list, err := allFreezes(ctx, s.DB, projectID)
	if err != nil {
		return false, fmt.Errorf("freeze periods of project %d: %w", projectID, err)
	}
	for _, f := range list {
		if f.Active(s.Now()) {
			return true, nil
		}
	}
	return false, nil
}

func (f *FreezePeriod) text() string { return f.Start + " – " + f.End + " " + f.Timezone }

func (s *Service) recordFreeze(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, f *FreezePeriod, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath},
		Target: audit.Target{Type: "Ci::FreezePeriod", ID: f.ID, Details: f.text()}, Details: d,
	})
}
