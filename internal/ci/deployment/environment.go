package deployment

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
	"svc/internal/repo"
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
	State       State
	OnStop      string // the name of the job that stops it
	AutoStopAt  *time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time

	// Last is the last successful deployment, read by Service.Environment.
	Last *Deployment
}

// State is the state of an environment.
type State string

// The states of environments. An environment is stopping while the job that stops
// it runs.
const (
	Available State = "available"
	Stopping  State = "stopping"
	Stopped   State = "stopped"
)

// EnvironmentFilter selects environments.
type EnvironmentFilter struct {
	Name   string
	Search string // in the name, at least 3 characters
	States []State
}

// EnvironmentChange lists changes to an environment; nil leaves a field as it
// is.
type EnvironmentChange struct {
	ExternalURL *string
	Description *string
	Tier        *string
}

// Environments lists the environments of a project, the newest first, for actors
// who can see them.
func (s *Service) Environments(ctx context.Context, by actor.Actor, in project.Ref, f EnvironmentFilter, p db.Paging) (db.Page[*Environment], error) {
	_, page, err := s.environments(ctx, by, in, f, p)
	return page, err
}

func (s *Service) environments(ctx context.Context, by actor.Actor, in project.Ref, f EnvironmentFilter, p db.Paging) (*project.Project, db.Page[*Environment], error) {
	proj, err := s.visible(ctx, by, in)
	if err != nil {
		return nil, db.Page[*Environment]{}, err
	}
	if f.Search != "" && len([]rune(f.Search)) < 3 {
		return nil, db.Page[*Environment]{}, errs.Refused("Search term must have at least 3 characters")
	}
	page, err := listEnvironments(ctx, s.DB, proj.ID, f, p)
	if err != nil {
		return nil, page, fmt.Errorf("list environments: %w", err)
	}
	return proj, page, nil
}

// EnvironmentsWithLast is Environments with the last deployment of each.
func (s *Service) EnvironmentsWithLast(ctx context.Context, by actor.Actor, in project.Ref, f EnvironmentFilter, pg db.Paging) (db.Page[*Environment], error) {
	proj, page, err := s.environments(ctx, by, in, f, pg)
	if err != nil {
		return page, err
	}
	last, err := lastSuccessful(ctx, s.DB, page.Items)
	if err != nil {
		return page, fmt.Errorf("last deployments: %w", err)
	}
	last = slices.DeleteFunc(last, func(d *Deployment) bool { return !repo.RefVisible(by, proj, d.Ref) })
	for _, d := range last {
		d.Environment.Last = d
	}
	return page, s.fill(ctx, last)
}

// Environment returns an environment with its last deployment, to actors who can
// list them; NotFound.
func (s *Service) Environment(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Environment, error) {
	proj, err := s.visible(ctx, by, in)
	if err != nil {
		return nil, err
	}
	e, err := FindEnvironment(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	last, err := LastSuccessful(ctx, s.DB, e.ID)
	if err != nil {
		return nil, fmt.Errorf("last deployment: %w", err)
	}
	if last != nil && repo.RefVisible(by, proj, last.Ref) {
		last.Environment = e
		if err := s.fill(ctx, []*Deployment{last}); err != nil {
			return nil, err
		}
		e.Last = last
	}
	return e, nil
}

// CreateEnvironment creates an environment, for Developers and above. Invalid if the
// name is invalid or taken.
func (s *Service) CreateEnvironment(ctx context.Context, by actor.Actor, in project.Ref, name string, c EnvironmentChange) (*Environment, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return nil, err
	}
	at := s.Now()
	e := &Environment{ProjectID: proj.ID, Name: name, Slug: Slug(name), Tier: DefaultTier(name), State: Available, CreatedAt: at, UpdatedAt: at}
	c.apply(e)
	if err := e.Check(); err != nil {
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

// UpdateEnvironment changes an environment, for Developers and above who may deploy to
// it, before and after the change: the tier decides which protections of groups apply.
// NotFound; Invalid.
func (s *Service) UpdateEnvironment(ctx context.Context, by actor.Actor, in project.Ref, id int64, c EnvironmentChange) (*Environment, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return nil, err
	}
	e, err := FindEnvironment(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	tiers := []string{e.Tier}
	if c.Tier != nil {
		tiers = append(tiers, *c.Tier)
	}
	for _, tier := range tiers {
		if err := s.RequireDeploy(ctx, by, proj, e.Name, tier); err != nil {
			return nil, err
		}
	}
	return s.ChangeEnvironment(ctx, by, proj, id, "environment_updated", audit.Details{Change: "environment"}, func(_ *db.Tx, e *Environment) error {
		c.apply(e)
		return e.Check()
	})
}

// DeleteEnvironment deletes a stopped environment with its deployments, for
// Developers and above. NotFound; Forbidden if it is not stopped.
func (s *Service) DeleteEnvironment(ctx context.Context, by actor.Actor, in project.Ref, id int64) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return err
	}
	if err := s.RequireDeployTo(ctx, by, proj, id); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		e, err := FindEnvironment(ctx, tx, proj.ID, id)
		if err != nil {
			return err
		}
		if e.State != Stopped {
			return errs.Forbidden("")
		}
		if err := deleteStopped(ctx, tx, id); err != nil {
			return err
		}
		return s.recordEnvironment(ctx, tx, by, proj, e, "environment_deleted", audit.Details{Remove: "environment"})
	})
	if err != nil {
		return fmt.Errorf("delete environment: %w", err)
	}
	return nil
}

// ChangeEnvironment locks an environment, changes and saves it, and records an audit
// event. The caller has checked the permissions of the actor.
func (s *Service) ChangeEnvironment(ctx context.Context, by actor.Actor, proj *project.Project, id int64, kind string, d audit.Details,
	change func(*db.Tx, *Environment) error) (*Environment, error) {
	var e *Environment
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "environments", id); err != nil {
			return err
		}
		var err error
		if e, err = FindEnvironment(ctx, tx, proj.ID, id); err != nil {
			return err
		}
		if err := change(tx, e); err != nil {
			return err
		}
		e.UpdatedAt = s.Now()
		if err := SaveEnvironment(ctx, tx, e); err != nil {
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
	patch.Set(&e.ExternalURL, c.ExternalURL)
	patch.Set(&e.Description, c.Description)
	patch.Set(&e.Tier, c.Tier)
}

var (
	environmentName = regexp.MustCompile(`^[a-zA-Z0-9_\\/${}. -]+$`)
	webAddress      = regexp.MustCompile(`^https?://[^\s/]+`)
	notSlugRun      = regexp.MustCompile(`[^a-z0-9]+`)
)

// ValidURL reports whether an address can be the external URL of an environment.
func ValidURL(address string) bool { return len(address) <= 255 && webAddress.MatchString(address) }

func (e *Environment) Check() error {
	wrong := errs.Fields{}
	switch {
	case e.Name == "":
		wrong.Set("name", "can't be blank")
	case len(e.Name) > 255:
		wrong.Set("name", "is too long (maximum is 255 characters)")
	case !environmentName.MatchString(e.Name) || strings.HasPrefix(e.Name, "/") || strings.HasSuffix(e.Name, "/"):
		wrong.Set("name", "can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', and spaces, but it cannot start or end with '/'")
	}
	if e.ExternalURL != "" && !ValidURL(e.ExternalURL) {
		wrong.Set("external_url", "must be a valid URL")
	}
	switch e.Tier {
	case "production", "staging", "testing", "development", "other":
	default:
		wrong.Set("tier", "is not included in the list")
	}
	return wrong.Err()
}

// Slug returns the name of an environment for host names: short, and different
// for similar names.
func Slug(name string) string {
	short := notSlugRun.ReplaceAllString(strings.ToLower(name), "-")
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

// DefaultTier returns the tier of an environment by its name.
func DefaultTier(name string) string {
	for _, t := range tiers {
		if t.pattern.MatchString(name) {
			return t.tier
		}
	}
	return "other"
}
