package ci

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// Environment is a target of deployments, such as production.
type Environment struct {
	ID          int64
	ProjectID   int64
	Name        string
	Slug        string
	ExternalURL string
	Description string
	Tier        string
	State       EnvironmentState
	OnStop      string // the name of the job that stops it
	AutoStopAt  *time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time

	// Last is the last deployment that succeeded, read by Service.Environment.
	Last *Deployment
}

// EnvironmentState is the state of an environment.
type EnvironmentState string

// The states of environments. One is stopping while the job runs that stops
// it.
const (
	Available EnvironmentState = "available"
	Stopping  EnvironmentState = "stopping"
	Stopped   EnvironmentState = "stopped"
)

// EnvironmentFilter selects environments.
type EnvironmentFilter struct {
	Name   string
	Search string // in the name, at least 3 characters
	States []EnvironmentState
}

// EnvironmentChange lists changes to an environment; nil leaves a field as it
// is.
type EnvironmentChange struct {
	ExternalURL *string
	Description *string
	Tier        *string
}

// Environments lists the environments of a project, the newest first, for
// those who see its pipelines and are Reporters or above.
func (s *Service) Environments(ctx context.Context, by actor.Actor, in project.Ref, f EnvironmentFilter, p db.Paging) (db.Page[*Environment], error) {
	proj, err := s.seeDeployments(ctx, by, in)
	if err != nil {
		return db.Page[*Environment]{}, err
	}
	if f.Search != "" && len([]rune(f.Search)) < 3 {
		return db.Page[*Environment]{}, errs.Refused("Search term must have at least 3 characters")
	}
	page, err := listEnvironments(ctx, s.DB, proj.ID, f, p)
	if err != nil {
		return page, fmt.Errorf("list environments: %w", err)
	}
	return page, nil
}

// Environment returns one with its last deployment, to those who list them;
// NotFound.
func (s *Service) Environment(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*project.Project, *Environment, error) {
	proj, err := s.seeDeployments(ctx, by, in)
	if err != nil {
		return nil, nil, err
	}
	e, err := findEnvironment(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, nil, err
	}
	last, err := lastDeployment(ctx, s.DB, e.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("last deployment: %w", err)
	}
	if last != nil && sees(by, proj, last.Ref) {
		last.Environment = e
		if err := s.fillDeployments(ctx, by, []*Deployment{last}); err != nil {
			return nil, nil, err
		}
		e.Last = last
	}
	return proj, e, nil
}

// CreateEnvironment makes an environment, for Developers and above. Invalid
// when the name is taken or none.
func (s *Service) CreateEnvironment(ctx context.Context, by actor.Actor, in project.Ref, name string, c EnvironmentChange) (*Environment, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return nil, err
	}
	at := s.Now()
	e := &Environment{ProjectID: proj.ID, Name: name, Slug: environmentSlug(name), Tier: tierOf(name), State: Available, CreatedAt: at, UpdatedAt: at}
	c.apply(e)
	if err := e.check(); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertEnvironment(ctx, tx, e); err != nil {
			return err
		}
		return s.recordEnvironment(ctx, tx, by, proj, e, "environment_created", audit.Details{Add: "environment"})
	})
	if err != nil {
		return nil, fmt.Errorf("create environment: %w", err)
	}
	return e, nil
}

// UpdateEnvironment changes an environment, for Developers and above.
// NotFound; Invalid.
func (s *Service) UpdateEnvironment(ctx context.Context, by actor.Actor, in project.Ref, id int64, c EnvironmentChange) (*Environment, error) {
	return s.changeEnvironment(ctx, by, in, id, "environment_updated", audit.Details{Change: "environment"}, func(tx *db.Tx, e *Environment) error {
		c.apply(e)
		return e.check()
	})
}

// DeleteEnvironment removes an environment that was stopped, with its
// deployments; for Developers and above. NotFound; Forbidden while it is
// available.
func (s *Service) DeleteEnvironment(ctx context.Context, by actor.Actor, in project.Ref, id int64) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		e, err := findEnvironment(ctx, tx, proj.ID, id)
		if err != nil {
			return err
		}
		if e.State != Stopped {
			return errs.Forbidden("")
		}
		if err := db.ExecOne(ctx, tx, `DELETE FROM environments WHERE id = ? AND state = 'stopped'`, id); err != nil {
			return notFound(err, "Environment")
		}
		return s.recordEnvironment(ctx, tx, by, proj, e, "environment_deleted", audit.Details{Remove: "environment"})
	})
	if err != nil {
		return fmt.Errorf("delete environment: %w", err)
	}
	return nil
}

// StopEnvironment stops an environment, for Developers and above: starts the
// job that stops it if the last deployment names one, unless force says that
// none is to be run. Forbidden to those who may not run jobs on the ref of that
// job; NotFound.
func (s *Service) StopEnvironment(ctx context.Context, by actor.Actor, in project.Ref, id int64, force bool) (*Environment, error) {
	if !force {
		if err := s.mayStop(ctx, by, in, id); err != nil {
			return nil, err
		}
	}
	return s.changeEnvironment(ctx, by, in, id, "environment_stopped", audit.Details{Change: "state", To: string(Stopped)}, func(tx *db.Tx, e *Environment) error {
		return s.stopEnvironment(ctx, tx, e, &by.ID, force)
	})
}

// mayStop refuses one who may not start the job that stops an environment.
func (s *Service) mayStop(ctx context.Context, by actor.Actor, in project.Ref, id int64) error {
	c, err := s.control(ctx, by, in)
	if err != nil {
		return err
	}
	e, err := findEnvironment(ctx, s.DB, c.project.ID, id)
	if err != nil {
		return err
	}
	stop, err := findStopJob(ctx, s.DB, e)
	if err != nil || stop == nil {
		return err
	}
	return c.ref(ctx, stop.Ref, stop.Tag)
}

// StopStale stops all environments of a project to which nothing was deployed,
// and that no one changed, since then. Maintainers and above may.
func (s *Service) StopStale(ctx context.Context, by actor.Actor, in project.Ref, before time.Time) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Maintainer)
	if err != nil {
		return err
	}
	now := s.Now()
	if before.After(now.AddDate(0, 0, -7)) || before.Before(now.AddDate(-10, 0, 0)) {
		return errs.Invalid("Invalid Date")
	}
	ids, err := db.All(ctx, s.DB, db.Value[int64], `
		SELECT e.id FROM environments e WHERE e.project_id = ? AND e.state = 'available' AND e.updated_at < ?
			AND NOT EXISTS (SELECT 1 FROM deployments d WHERE d.environment_id = e.id AND d.updated_at >= ?) ORDER BY e.id`, proj.ID, before, before)
	if err != nil {
		return fmt.Errorf("find stale environments of project %d: %w", proj.ID, err)
	}
	for _, id := range ids {
		if _, err := s.StopEnvironment(ctx, by, in, id, false); err != nil {
			return err
		}
	}
	return nil
}

// stopEnvironment sets the state and starts the job that does the work.
func (s *Service) stopEnvironment(ctx context.Context, tx *db.Tx, e *Environment, userID *int64, force bool) error {
	if e.State == Stopped {
		return nil
	}
	e.State, e.AutoStopAt = Stopped, nil
	if force {
		return nil
	}
	stop, err := findStopJob(ctx, tx, e)
	if err != nil || stop == nil {
		return err
	}
	e.State = Stopping
	return s.Queue.Add(ctx, tx, playWork{JobID: stop.ID, UserID: userID})
}

// changeEnvironment reads an environment under a lock, has it changed, and
// saves and records it.
func (s *Service) changeEnvironment(ctx context.Context, by actor.Actor, in project.Ref, id int64, kind string, d audit.Details,
	change func(*db.Tx, *Environment) error) (*Environment, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return nil, err
	}
	var e *Environment
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "environments", id); err != nil {
			return err
		}
		if e, err = findEnvironment(ctx, tx, proj.ID, id); err != nil {
			return err
		}
		if err := change(tx, e); err != nil {
			return err
		}
		e.UpdatedAt = s.Now()
		if err := saveEnvironment(ctx, tx, e); err != nil {
			return err
		}
		return s.recordEnvironment(ctx, tx, by, proj, e, kind, d)
	})
	if err != nil {
		return nil, fmt.Errorf("change environment %d: %w", id, err)
	}
	return e, nil
}

func (s *Service) recordEnvironment(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, e *Environment, kind string, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: p.Entity(), Target: audit.Target{Type: "Environment", ID: e.ID, Details: e.Name}, Details: d,
	})
}

func (c EnvironmentChange) apply(e *Environment) {
	set(&e.ExternalURL, c.ExternalURL)
	set(&e.Description, c.Description)
	set(&e.Tier, c.Tier)
}

var (
	environmentName = regexp.MustCompile(`^[a-zA-Z0-9_\\/${}. -]+$`)
	webAddress      = regexp.MustCompile(`^https?://[^\s/]+`)
)

func (e *Environment) check() error {
	wrong := map[string][]string{}
	switch {
	case e.Name == "":
		wrong["name"] = []string{"can't be blank"}
	case len(e.Name) > 255:
		wrong["name"] = []string{"is too long (maximum is 255 characters)"}
	case !environmentName.MatchString(e.Name) || strings.HasPrefix(e.Name, "/") || strings.HasSuffix(e.Name, "/"):
		wrong["name"] = []string{"can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', and spaces, but it cannot start or end with '/'"}
	}
	if e.ExternalURL != "" && (len(e.ExternalURL) > 255 || !webAddress.MatchString(e.ExternalURL)) {
		wrong["external_url"] = []string{"must be a valid URL"}
	}
	switch e.Tier {
	case "production", "staging", "testing", "development", "other":
	default:
		wrong["tier"] = []string{"is not included in the list"}
	}
	if len(wrong) > 0 {
		return &errs.Error{Kind: errs.KindInvalid, Fields: wrong}
	}
	return nil
}

// environmentSlug is a name for hosts, short and unlike that of a similar
// environment.
func environmentSlug(name string) string {
	short := regexp.MustCompile(`-+`).ReplaceAllString(notSlug.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if short == "" || short[0] < 'a' || short[0] > 'z' {
		short = "env-" + short
	}
	if short == name && len(short) <= 24 {
		return strings.TrimSuffix(short, "-")
	}
	sum := sha256.Sum256([]byte(name))
	mark := new(big.Int).SetBytes(sum[:]).Text(36)
	return strings.TrimSuffix(short[:min(17, len(short))], "-") + "-" + mark[len(mark)-6:]
}

var tiers = []struct {
	tier    string
	pattern *regexp.Regexp
}{
	{"development", regexp.MustCompile(`(?i)(dev|review|trunk)`)},
	{"testing", regexp.MustCompile(`(?i)(test|tst|int|ac(ce|)pt|qa|qc|control|quality)`)},
	{"staging", regexp.MustCompile(`(?i)(st(a|)g|mod(e|)l|pre|demo|non)`)},
	{"production", regexp.MustCompile(`(?i)(pr(o|)d|live)`)},
}

// tierOf guesses what an environment is for by its name.
func tierOf(name string) string {
	for _, t := range tiers {
		if t.pattern.MatchString(name) {
			return t.tier
		}
	}
	return "other"
}
