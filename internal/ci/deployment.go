package ci

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// DeploymentStatus is the state of a deployment.
type DeploymentStatus string

// The states of deployments.
const (
	DeploymentCreated  DeploymentStatus = "created"
	DeploymentRunning  DeploymentStatus = "running"
	DeploymentSuccess  DeploymentStatus = "success"
	DeploymentFailed   DeploymentStatus = "failed"
	DeploymentCanceled DeploymentStatus = "canceled"
	DeploymentSkipped  DeploymentStatus = "skipped"
	DeploymentBlocked  DeploymentStatus = "blocked"
)

// Deployment is one deployment of a commit to an environment.
type Deployment struct {
	ID            int64
	ProjectID     int64
	IID           int64
	EnvironmentID int64
	JobID         *int64 // nil if it was created by the API
	UserID        *int64
	Status        DeploymentStatus
	Ref           string
	Tag           bool
	SHA           string
	CreatedAt     time.Time
	UpdatedAt     time.Time
	FinishedAt    *time.Time

	// Read by Service.Deployment and the like.
	Environment *Environment
	User        *user.User
	Job         *Job
}

// DeploymentFilter selects deployments.
type DeploymentFilter struct {
	Environment    string // its name
	Status         DeploymentStatus
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
	Status      DeploymentStatus
}

// seeDeployments returns a project to those who see what it deploys: Reporters
// and above, and where its pipelines are public everyone who sees it.
func (s *Service) seeDeployments(ctx context.Context, by actor.Actor, in project.Ref) (*project.Project, error) {
	return s.Projects.RequireView(ctx, by, in, project.EnvironmentPart)
}

// Deployments lists the deployments of a project, for those who see its
// pipelines.
func (s *Service) Deployments(ctx context.Context, by actor.Actor, in project.Ref, f DeploymentFilter, p db.Paging) (*project.Project, db.Page[*Deployment], error) {
	proj, err := s.seeDeployments(ctx, by, in)
	if err != nil {
		return nil, db.Page[*Deployment]{}, err
	}
	page, err := listDeployments(ctx, s.DB, by, proj, f, p)
	if err != nil {
		return nil, page, fmt.Errorf("list deployments: %w", err)
	}
	return proj, page, s.fillDeployments(ctx, by, page.Items)
}

// Deployment returns one deployment to those who list them; NotFound.
func (s *Service) Deployment(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*project.Project, *Deployment, error) {
	proj, err := s.seeDeployments(ctx, by, in)
	if err != nil {
		return nil, nil, err
	}
	d, err := findDeployment(ctx, s.DB, proj.ID, id)
	if err == nil && !sees(by, proj, d.Ref) {
		err = errs.NotFound("Deployment")
	}
	if err != nil {
		return nil, nil, err
	}
	return proj, d, s.fillDeployments(ctx, by, []*Deployment{d})
}

// CreateDeployment writes down a deployment that was created by the API, for
// Developers and above. Invalid for a status that is none, or a commit or ref
// that is not there.
func (s *Service) CreateDeployment(ctx context.Context, by actor.Actor, in project.Ref, n NewDeployment) (*project.Project, *Deployment, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return nil, nil, err
	}
	src, err := s.Repos.Source(ctx, by, in)
	if err != nil {
		return nil, nil, err
	}
	if _, err := src.Commit(ctx, n.SHA); errs.Is(err, errs.KindNotFound) {
		return nil, nil, errs.InvalidField("sha", "The commit does not exist")
	} else if err != nil {
		return nil, nil, err
	}
	if _, err := src.Find(ctx, n.Ref); errs.Is(err, errs.KindNotFound) {
		return nil, nil, errs.InvalidField("ref", "The branch or tag does not exist")
	} else if err != nil {
		return nil, nil, err
	}
	at := s.Now()
	env := &Environment{ProjectID: proj.ID, Name: n.Environment, Slug: environmentSlug(n.Environment), Tier: tierOf(n.Environment), CreatedAt: at, UpdatedAt: at}
	if err := env.check(); err != nil {
		return nil, nil, err
	}
	d := &Deployment{ProjectID: proj.ID, UserID: &by.ID, Status: n.Status, Ref: n.Ref, Tag: n.Tag, SHA: n.SHA, CreatedAt: at, UpdatedAt: at}
	if d.Status.over() {
		d.FinishedAt = &at
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := ensureEnvironment(ctx, tx, env); err != nil {
			return err
		}
		d.EnvironmentID = env.ID
		if d.IID, err = project.NextNumber(ctx, tx, proj.ID, "deployment"); err != nil {
			return err
		}
		return insertDeployment(ctx, tx, d)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("create deployment: %w", err)
	}
	return proj, d, s.fillDeployments(ctx, by, []*Deployment{d})
}

// UpdateDeployment sets the state of a deployment that was created by the API,
// for Developers and above. NotFound; Forbidden for one that a job makes.
func (s *Service) UpdateDeployment(ctx context.Context, by actor.Actor, in project.Ref, id int64, status DeploymentStatus) (*project.Project, *Deployment, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Developer)
	if err != nil {
		return nil, nil, err
	}
	var d *Deployment
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "deployments", id); err != nil {
			return err
		}
		if d, err = findDeployment(ctx, tx, proj.ID, id); err != nil {
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
		return db.ExecOne(ctx, tx, `UPDATE deployments SET status = ?, updated_at = ?, finished_at = ? WHERE id = ?`, string(status), at, d.FinishedAt, id)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("update deployment %d: %w", id, err)
	}
	return proj, d, s.fillDeployments(ctx, by, []*Deployment{d})
}

// DeleteDeployment removes a deployment that is over and not the last one of
// its environment, for Maintainers and above. NotFound; Invalid.
func (s *Service) DeleteDeployment(ctx context.Context, by actor.Actor, in project.Ref, id int64) error {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.EnvironmentPart, project.Maintainer)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		d, err := findDeployment(ctx, tx, proj.ID, id)
		if err != nil {
			return err
		}
		last, err := lastDeployment(ctx, tx, d.EnvironmentID)
		if err != nil {
			return err
		}
		switch {
		case !d.Status.over():
			return errs.Invalid("Cannot destroy running deployment")
		case last != nil && last.ID == d.ID:
			return errs.Invalid("Deployment currently deployed to environment")
		}
		if err := db.ExecOne(ctx, tx, `DELETE FROM deployments WHERE id = ?`, id); err != nil {
			return notFound(err, "Deployment")
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
func (d DeploymentStatus) over() bool {
	return d != DeploymentCreated && d != DeploymentRunning && d != DeploymentBlocked
}

// fillDeployments reads what deployments show of others.
func (s *Service) fillDeployments(ctx context.Context, by actor.Actor, list []*Deployment) error {
	var userIDs, jobs []int64
	for _, d := range list {
		if d.UserID != nil {
			userIDs = append(userIDs, *d.UserID)
		}
		if d.JobID != nil {
			jobs = append(jobs, *d.JobID)
		}
	}
	users, err := s.Users.FindAll(ctx, userIDs)
	if err != nil {
		return err
	}
	byID := map[int64]*Job{}
	for _, id := range jobs {
		j, err := findAnyJob(ctx, s.DB, id)
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		byID[id] = j
	}
	if err := s.fillJobs(ctx, by, mapValues(byID)); err != nil {
		return err
	}
	for _, d := range list {
		if d.Environment == nil {
			if d.Environment, err = findEnvironment(ctx, s.DB, d.ProjectID, d.EnvironmentID); err != nil {
				return err
			}
		}
		if d.UserID != nil {
			d.User = users[*d.UserID]
		}
		if d.JobID != nil {
			d.Job = byID[*d.JobID]
		}
	}
	return nil
}

func mapValues[K comparable, V any](m map[K]V) []V {
	return slices.Collect(maps.Values(m))
}

func insertDeployment(ctx context.Context, tx *db.Tx, d *Deployment) error {
	return tx.QueryRowContext(ctx, `
		INSERT INTO deployments (project_id, iid, environment_id, user_id, status, ref, tag, sha, created_at, updated_at, finished_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		d.ProjectID, d.IID, d.EnvironmentID, d.UserID, string(d.Status), d.Ref, d.Tag, d.SHA, d.CreatedAt, d.UpdatedAt, d.FinishedAt).Scan(&d.ID)
}

// deploys reports whether a job brings something to its environment.
func (j *Job) deploys() bool {
	e := j.Options.Environment
	return j.EnvironmentID != nil && e != nil && (e.Action == "" || e.Action == "start")
}

// addDeployment makes the deployment of a job that will deploy.
func (s *Service) addDeployment(ctx context.Context, tx *db.Tx, j *Job) error {
	if !j.deploys() {
		return nil
	}
	iid, err := project.NextNumber(ctx, tx, j.ProjectID, "deployment")
	if err != nil {
		return err
	}
	at := s.Now()
	_, err = tx.ExecContext(ctx, `
		INSERT INTO deployments (project_id, iid, environment_id, job_id, user_id, status, ref, tag, sha, created_at, updated_at)
		SELECT j.project_id, CAST(? AS BIGINT), j.environment_id, j.id, j.user_id, 'created', j.ref, j.tag, p.sha, CAST(? AS BIGINT), CAST(? AS BIGINT)
		FROM jobs j JOIN pipelines p ON p.id = j.pipeline_id WHERE j.id = ?`, iid, at, at, j.ID)
	return err
}

// followDeployment brings the deployment of a job, and what it did to its
// environment, up to the state of the job.
func (s *Service) followDeployment(ctx context.Context, tx *db.Tx, j *Job) error {
	if j.EnvironmentID == nil || j.Options.Environment == nil {
		return nil
	}
	if j.deploys() {
		var status DeploymentStatus
		switch j.Status {
		case flow.Running:
			status = DeploymentRunning
		case flow.Success:
			status = DeploymentSuccess
		case flow.Failed:
			status = DeploymentFailed
		case flow.Canceled:
			status = DeploymentCanceled
		default:
			return nil
		}
		if err := setDeployment(ctx, tx, j.ID, status, s.Now()); err != nil {
			return err
		}
	}
	if j.Status == flow.Success && j.deploys() {
		if err := s.overtake(ctx, tx, j); err != nil {
			return err
		}
	}
	if j.Status == flow.Success { // its address may hold variables that only the job knew
		return s.Queue.Add(ctx, tx, environmentWork{JobID: j.ID})
	}
	return nil
}

// setDeployment writes the state of the deployment of a job, if it has one.
func setDeployment(ctx context.Context, tx *db.Tx, jobID int64, status DeploymentStatus, at time.Time) error {
	var finished *time.Time
	if status != DeploymentCreated && status != DeploymentRunning {
		finished = &at
	}
	err := db.ExecOne(ctx, tx, `UPDATE deployments SET status = ?, updated_at = ?, finished_at = ? WHERE job_id = ?`, string(status), at, finished, jobID)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	return err
}
