package ci

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/actor"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/ci/jobqueue"
	"svc/internal/ci/runners"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// seePipelines returns a project to users who can see its pipelines: Reporters
// and above, and if the pipelines are public, everyone who can see the project.
func (s *Service) seePipelines(ctx context.Context, by actor.Actor, in project.Ref) (*project.Project, error) {
	return s.Projects.RequireView(ctx, by, in, project.BuildsPart)
}

// Jobs lists the jobs of a project with one of the statuses, or all jobs,
// newest first, for users who can see its pipelines.
func (s *Service) Jobs(ctx context.Context, by actor.Actor, in project.Ref, scope []flow.Status, p db.Paging) (db.Page[*Job], error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return db.Page[*Job]{}, err
	}
	page, err := listProjectJobs(ctx, s.DB, by, proj, scope, p)
	if err != nil {
		return page, fmt.Errorf("list jobs: %w", err)
	}
	return page, s.fillJobs(ctx, by, page.Items, proj)
}

// JobFilter selects jobs of a pipeline.
type JobFilter struct {
	Scope   []flow.Status
	Bridges bool // list trigger jobs instead of other jobs
	Retried bool // include retried jobs
}

// PipelineJobs lists the jobs of a pipeline, newest first, for users who can
// see it. NotFound.
func (s *Service) PipelineJobs(ctx context.Context, by actor.Actor, in project.Ref, pipelineID int64, f JobFilter, p db.Paging) (db.Page[*Job], error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return db.Page[*Job]{}, err
	}
	if _, err := s.visiblePipeline(ctx, by, proj, pipelineID); err != nil {
		return db.Page[*Job]{}, err
	}
	page, err := listPipelineJobs(ctx, s.DB, pipelineID, f, p)
	if err != nil {
		return page, fmt.Errorf("list jobs of pipeline %d: %w", pipelineID, err)
	}
	return page, s.fillJobs(ctx, by, page.Items, proj)
}

// Job returns a job to users who can see its pipeline. NotFound.
func (s *Service) Job(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Job, error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return nil, err
	}
	j, err := s.visibleJob(ctx, by, proj, id)
	if err != nil {
		return nil, err
	}
	if j.Status == flow.Pending {
		if j.Refusal, err = jobqueue.Refusal(ctx, s.DB, j.ID); err != nil {
			return nil, err
		}
	}
	return j, s.fillJobs(ctx, by, []*Job{j}, proj)
}

// fillJobs reads the related data of jobs. A downstream pipeline is left out if
// the actor cannot see it. known are projects of the jobs that were already
// read.
func (s *Service) fillJobs(ctx context.Context, by actor.Actor, list []*Job, known ...*project.Project) error {
	if len(list) == 0 {
		return nil
	}
	pipelines, users, projects := map[int64]*Pipeline{}, map[int64]*user.User{}, map[int64][]*Job{}
	var ids, bridges []int64
	for _, j := range list {
		if _, ok := pipelines[j.PipelineID]; !ok {
			pipelines[j.PipelineID] = nil
			ids = append(ids, j.PipelineID)
		}
		if j.UserID != nil && users[*j.UserID] == nil {
			u, err := s.person(ctx, *j.UserID)
			if err != nil {
				return fmt.Errorf("users of jobs: %w", err)
			}
			users[*j.UserID] = u
		}
		if j.Bridge {
			bridges = append(bridges, j.ID)
		}
		projects[j.ProjectID] = append(projects[j.ProjectID], j)
	}
	found, err := findPipelines(ctx, s.DB, ids)
	if err != nil {
		return fmt.Errorf("pipelines of jobs: %w", err)
	}
	for _, p := range found {
		pipelines[p.ID] = p
	}
	made, err := findDownstream(ctx, s.DB, bridges)
	if err != nil {
		return fmt.Errorf("downstream pipelines: %w", err)
	}
	for _, j := range list {
		j.Pipeline = pipelines[j.PipelineID]
		if below := made[j.ID]; below != nil {
			if j.Downstream, j.DownstreamPath, err = s.seenElsewhere(ctx, by, below); err != nil {
				return fmt.Errorf("downstream pipeline: %w", err)
			}
		}
		if j.UserID != nil {
			j.User = users[*j.UserID]
		}
	}
	for id, jobs := range projects {
		var p *project.Project
		if i := slices.IndexFunc(known, func(p *project.Project) bool { return p.ID == id }); i >= 0 {
			p = known[i]
		}
		if err := s.fillCommits(ctx, id, p, jobs); err != nil {
			return fmt.Errorf("commits of jobs: %w", err)
		}
	}
	if err := s.fillBlocked(ctx, list); err != nil {
		return err
	}
	return s.fillRuns(ctx, list)
}

// fillBlocked finds the manual jobs whose deployments wait for approvals.
func (s *Service) fillBlocked(ctx context.Context, list []*Job) error {
	var manual []int64
	for _, j := range list {
		if j.Status == flow.Manual {
			manual = append(manual, j.ID)
		}
	}
	blocked, err := deployment.BlockedJobs(ctx, s.DB, manual)
	if err != nil {
		return fmt.Errorf("deployments of jobs: %w", err)
	}
	for _, j := range list {
		j.Blocked = blocked[j.ID]
	}
	return nil
}

// fillRuns reads the artifacts, runners and runner managers of jobs.
func (s *Service) fillRuns(ctx context.Context, list []*Job) error {
	var ids, runnerIDs, managerIDs []int64
	for _, j := range list {
		ids = append(ids, j.ID)
		if j.RunnerID != nil {
			runnerIDs = append(runnerIDs, *j.RunnerID)
		}
		if j.ManagerID != nil {
			managerIDs = append(managerIDs, *j.ManagerID)
		}
	}
	artifacts, err := s.Artifacts.ByJob(ctx, ids)
	if err != nil {
		return fmt.Errorf("artifacts of jobs: %w", err)
	}
	ran, err := runners.ByID(ctx, s.DB, runnerIDs)
	if err != nil {
		return fmt.Errorf("runners of jobs: %w", err)
	}
	machines, err := runners.ManagersByID(ctx, s.DB, managerIDs)
	if err != nil {
		return fmt.Errorf("runner managers of jobs: %w", err)
	}
	for _, j := range list {
		j.Artifacts = artifacts[j.ID]
		if j.RunnerID != nil {
			j.Runner = ran[*j.RunnerID]
		}
		if j.ManagerID != nil {
			j.Manager = machines[*j.ManagerID]
		}
	}
	return nil
}

// fillCommits reads the commits of jobs of one project; p may be nil.
func (s *Service) fillCommits(ctx context.Context, projectID int64, p *project.Project, list []*Job) error {
	src, err := s.source(ctx, projectID, p)
	if err != nil {
		return err
	}
	var ids []string
	for _, j := range list {
		if j.Pipeline == nil { // it was deleted with the job, after the job was read
			return errs.Unavailable("Pipeline %d is being deleted. Try again.", j.PipelineID)
		}
		if !slices.Contains(ids, j.Pipeline.SHA) {
			ids = append(ids, j.Pipeline.SHA)
		}
	}
	commits, err := src.Commits(ctx, ids)
	if err != nil {
		return err
	}
	for _, j := range list {
		j.Commit, j.Project = commits[j.Pipeline.SHA], src.Project
	}
	return nil
}

// source opens the repository of a project as the system. p is the project if
// it was already read.
func (s *Service) source(ctx context.Context, projectID int64, p *project.Project) (*repo.Source, error) {
	if p != nil {
		return s.Repos.SourceOf(actor.System(), p)
	}
	return s.Repos.Source(ctx, actor.System(), project.RefTo(projectID))
}
