package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// Status is the status of a deployment.
type Status string

// The statuses of deployments.
const (
	Created  Status = "created"
	Running  Status = "running"
	Success  Status = "success"
	Failed   Status = "failed"
	Canceled Status = "canceled"
	Skipped  Status = "skipped"
	Blocked  Status = "blocked"
)

// Deployment is one deployment of a commit to an environment.
type Deployment struct {
	ID            int64
	ProjectID     int64
	IID           int64
	EnvironmentID int64
	JobID         *int64 // nil if it was created by the API
	JobName       string // empty if there is no job or it was deleted
	UserID        *int64
	Status        Status
	Ref           string
	Tag           bool
	SHA           string
	CreatedAt     time.Time
	UpdatedAt     time.Time
	FinishedAt    *time.Time

	// Read by Service.Get and the lists.
	Environment *Environment
	User        *user.User
}

// Filter selects deployments.
type Filter struct {
	Environment    string // name
	Status         Status
	UpdatedAfter   *time.Time
	UpdatedBefore  *time.Time
	FinishedAfter  *time.Time
	FinishedBefore *time.Time
	OrderBy        string // id, created_at, updated_at or finished_at
	Desc           bool
}

// NewDeployment is a deployment that is created by the API, without a job.
type NewDeployment struct {
	Environment string
	SHA         string
	Ref         string
	Tag         bool
	Status      Status
}

// visible returns a project to actors who can see its environments: Reporters and
// above, and everyone who sees the project if its pipelines are public.
func (s *Service) visible(ctx context.Context, by actor.Actor, in project.Ref) (*project.Project, error) {
	return s.Projects.RequireView(ctx, by, in, project.EnvironmentPart)
}

// List lists the deployments of a project, for actors who can see them.
func (s *Service) List(ctx context.Context, by actor.Actor, in project.Ref, f Filter, p db.Paging) (db.Page[*Deployment], error) {
	proj, err := s.visible(ctx, by, in)
	if err != nil {
		return db.Page[*Deployment]{}, err
	}
	page, err := list(ctx, s.DB, by, proj, f, p)
	if err != nil {
		return page, fmt.Errorf("list deployments: %w", err)
	}
	return page, s.fill(ctx, page.Items)
}

// Get returns a deployment to actors who can list them; NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Deployment, error) {
	proj, err := s.visible(ctx, by, in)
	if err != nil {
		return nil, err
	}
	d, err := find(ctx, s.DB, proj.ID, id)
	if err == nil && !repo.RefVisible(by, proj, d.Ref) {
		err = errs.NotFound("Deployment")
	}
	if err != nil {
		return nil, err
	}
	return d, s.fill(ctx, []*Deployment{d})
}

// Create records a deployment without a job, for Developers and above who may deploy to
// the environment. Invalid if the status is invalid, or the commit or the ref does not exist.
func (s *Service) Create(ctx context.Context, by actor.Actor, in project.Ref, n NewDeployment) (*Deployment, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return nil, err
	}
	src, err := s.Repos.SourceOf(by, proj)
	if err != nil {
		return nil, err
	}
	if _, err := src.Commit(ctx, n.SHA); errs.Is(err, errs.KindNotFound) {
		return nil, errs.InvalidField("sha", "The commit does not exist")
	} else if err != nil {
		return nil, err
	}
	if _, err := src.Find(ctx, n.Ref); errs.Is(err, errs.KindNotFound) {
		return nil, errs.InvalidField("ref", "The branch or tag does not exist")
	} else if err != nil {
		return nil, err
	}
	at := s.Now()
	env := &Environment{ProjectID: proj.ID, Name: n.Environment, Slug: Slug(n.Environment), Tier: DefaultTier(n.Environment), CreatedAt: at, UpdatedAt: at}
	if err := env.Check(); err != nil {
		return nil, err
	}
	tier := env.Tier
	if old, err := findEnvironmentByName(ctx, s.DB, proj.ID, env.Name); err == nil {
		tier = old.Tier
	} else if !errors.Is(err, db.ErrNoRows) {
		return nil, err
	}
	if err := s.RequireDeploy(ctx, by, proj, env.Name, tier); err != nil {
		return nil, err
	}
	d := &Deployment{ProjectID: proj.ID, UserID: &by.ID, Status: n.Status, Ref: n.Ref, Tag: n.Tag, SHA: n.SHA, CreatedAt: at, UpdatedAt: at}
	if d.Status.over() {
		d.FinishedAt = &at
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := EnsureEnvironment(ctx, tx, env); err != nil {
			return err
		}
		d.EnvironmentID = env.ID
		if d.IID, err = project.NextNumber(ctx, tx, proj.ID, "deployment"); err != nil {
			return err
		}
		if err := insert(ctx, tx, d); err != nil {
			return err
		}
		return s.Events.StatusChanged.Publish(ctx, tx, StatusChange{ProjectID: proj.ID, ID: d.ID})
	})
	if err != nil {
		return nil, fmt.Errorf("create deployment: %w", err)
	}
	return d, s.fill(ctx, []*Deployment{d})
}

// Update sets the status of a deployment without a job, for Developers and above who
// may deploy to its environment.
// NotFound; Forbidden if the deployment has a job.
func (s *Service) Update(ctx context.Context, by actor.Actor, in project.Ref, id int64, status Status) (*Deployment, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return nil, err
	}
	d, err := find(ctx, s.DB, proj.ID, id)
	if err != nil {
		return nil, err
	}
	if err := s.RequireDeployTo(ctx, by, proj, d.EnvironmentID); err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "deployments", id); err != nil {
			return err
		}
		if d, err = find(ctx, tx, proj.ID, id); err != nil {
			return err
		}
		switch {
		case d.JobID != nil:
			return errs.Forbidden("")
		case d.Status.over() && status != d.Status:
			return errs.InvalidField("status", "Status cannot transition via %q from :%s", status, d.Status)
		}
		at := s.Now()
		d.Status, d.UpdatedAt, d.FinishedAt = status, at, nil
		if status.over() {
			d.FinishedAt = &at
		}
		if err := save(ctx, tx, d); err != nil {
			return err
		}
		return s.Events.StatusChanged.Publish(ctx, tx, StatusChange{ProjectID: proj.ID, ID: d.ID})
	})
	if err != nil {
		return nil, fmt.Errorf("update deployment %d: %w", id, err)
	}
	return d, s.fill(ctx, []*Deployment{d})
}

// Delete deletes a deployment that has ended and is not the last one of its
// environment, for Maintainers and above. NotFound; Invalid.
func (s *Service) Delete(ctx context.Context, by actor.Actor, in project.Ref, id int64) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		d, err := find(ctx, tx, proj.ID, id)
		if err != nil {
			return err
		}
		last, err := LastSuccessful(ctx, tx, d.EnvironmentID)
		if err != nil {
			return err
		}
		switch {
		case !d.Status.over():
			return errs.Invalid("Cannot destroy running deployment")
		case last != nil && last.ID == d.ID:
			return errs.Invalid("Deployment currently deployed to environment")
		}
		if err := deleteRow(ctx, tx, id); err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: "deployment_deleted", Entity: proj.Entity(), Target: audit.Target{Type: "Deployment", ID: id, Details: d.Ref},
			Details: audit.Details{Remove: "deployment"},
		})
	})
	if err != nil {
		return fmt.Errorf("delete deployment %d: %w", id, err)
	}
	return nil
}

// over reports whether a deployment has ended.
func (d Status) over() bool {
	return d != Created && d != Running && d != Blocked
}

// fill reads the users and environments of deployments.
func (s *Service) fill(ctx context.Context, list []*Deployment) error {
	var userIDs []int64
	for _, d := range list {
		if d.UserID != nil {
			userIDs = append(userIDs, *d.UserID)
		}
	}
	users, err := s.Users.FindAll(ctx, userIDs)
	if err != nil {
		return err
	}
	for _, d := range list {
		if d.Environment == nil {
			if d.Environment, err = FindEnvironment(ctx, s.DB, d.ProjectID, d.EnvironmentID); err != nil {
				return err
			}
		}
		if d.UserID != nil {
			d.User = users[*d.UserID]
		}
	}
	return nil
}
