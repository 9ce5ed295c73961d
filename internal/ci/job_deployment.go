package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// deploys reports whether a job deploys to its environment.
func (j *Job) deploys() bool {
	e := j.Options.Environment
	return j.EnvironmentID != nil && e != nil && (e.Action == "" || e.Action == "start")
}

// addDeployment creates the deployment of a job that deploys.
func (s *Service) addDeployment(ctx context.Context, tx *db.Tx, j *Job) error {
	if !j.deploys() {
		return nil
	}
	iid, err := project.NextNumber(ctx, tx, j.ProjectID, "deployment")
	if err != nil {
		return err
	}
	return deployment.InsertOfJob(ctx, tx, j.ID, iid, s.Now())
}

// followDeployment updates the deployment of a job and its environment after a
// change of the job's status.
func (s *Service) followDeployment(ctx context.Context, tx *db.Tx, j *Job) error {
	if j.EnvironmentID == nil || j.Options.Environment == nil {
		return nil
	}
	if j.deploys() {
		var status deployment.Status
		switch j.Status {
		case flow.Running:
			status = deployment.Running
		case flow.Success:
			status = deployment.Success
		case flow.Failed:
			status = deployment.Failed
		case flow.Canceled:
			status = deployment.Canceled
		default:
			return nil
		}
		if err := deployment.SetStatusOfJob(ctx, tx, j.ID, status, s.Now()); err != nil {
			return err
		}
		if err := s.Deployments.Events.StatusChanged.Publish(ctx, tx, deployment.StatusChange{ProjectID: j.ProjectID, JobID: j.ID}); err != nil {
			return err
		}
	}
	if j.Status == flow.Success && j.deploys() {
		if err := s.overtake(ctx, tx, j); err != nil {
			return err
		}
	}
	if j.Status == flow.Success { // the URL may contain variables that only the job sets
		return s.Queue.Add(ctx, tx, environmentWork{JobID: j.ID})
	}
	return nil
}

// DeploymentJobs returns the jobs of deployments that the actor can see, by job
// ID, without deleted jobs.
func (s *Service) DeploymentJobs(ctx context.Context, by actor.Actor, list ...*deployment.Deployment) (map[int64]*Job, error) {
	found := map[int64]*Job{}
	var jobs []*Job
	for _, d := range list {
		if d.JobID == nil || found[*d.JobID] != nil {
			continue
		}
		j, err := findAnyJob(ctx, s.DB, *d.JobID)
		if errs.Is(err, errs.KindNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("jobs of deployments: %w", err)
		}
		found[j.ID], jobs = j, append(jobs, j)
	}
	return found, s.fillJobs(ctx, by, jobs)
}

// AllowedAgents are the agents that a job may use.
type AllowedAgents struct {
	Job     *Job
	Project *project.Project
	Groups  []int64 // groups above the project, the nearest first
	Agents  []*deployment.Agent
}

// AllowedAgents lists the agents that the job of a job token may use: those
// of its project, and those whose configuration names the project or a group
// above it. NotFound for other credentials.
func (s *Service) AllowedAgents(ctx context.Context, by actor.Actor) (*AllowedAgents, error) {
	j, err := s.CurrentJob(ctx, by)
	if err != nil {
		return nil, err
	}
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(j.ProjectID), project.NoAccess)
	if err != nil {
		return nil, err
	}
	agents, groups, err := s.Deployments.AgentsFor(ctx, p, j.environmentName())
	if err != nil {
		return nil, fmt.Errorf("allowed agents: %w", err)
	}
	return &AllowedAgents{Job: j, Project: p, Groups: groups, Agents: agents}, nil
}
