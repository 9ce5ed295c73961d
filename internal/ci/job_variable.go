package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/config"
	"svc/internal/ci/deployment"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

// JobVariable is a variable as a runner gets it.
type JobVariable struct {
	Key, Value string
	Public     bool // may be shown
	File       bool
	Masked     bool
	Raw        bool
}

// jobVariables returns the variables of a job except for those with its token. Of
// several with one key it has the one with the highest precedence.
func (s *Service) jobVariables(ctx context.Context, j *Job, sc *variableContext, deps []dependency) ([]JobVariable, error) {
	list, err := s.variablesOf(ctx, j, sc, deps)
	if err != nil {
		return nil, fmt.Errorf("variables of job %d: %w", j.ID, err)
	}
	at, out := make(map[string]int, len(list)), list[:0]
	for _, v := range list {
		if i, ok := at[v.Key]; ok {
			out[i] = v
			continue
		}
		at[v.Key] = len(out)
		out = append(out, v)
	}
	return out, nil
}

// readVariables is jobVariables without a variableContext and dependencies, which it
// reads itself.
func (s *Service) readVariables(ctx context.Context, j *Job) ([]JobVariable, error) {
	sc, err := s.variableContextOf(ctx, j.PipelineID)
	if err != nil {
		return nil, err
	}
	deps, _, err := s.dependenciesOf(ctx, j, sc)
	if err != nil {
		return nil, err
	}
	return s.jobVariables(ctx, j, sc, deps)
}

// variablesOf returns all variables of a job, in ascending precedence.
func (s *Service) variablesOf(ctx context.Context, j *Job, sc *variableContext, deps []dependency) ([]JobVariable, error) {
	var env *deployment.Environment
	if j.EnvironmentID != nil {
		var err error
		if env, err = deployment.FindEnvironment(ctx, s.DB, j.ProjectID, *j.EnvironmentID); err != nil && !errs.Is(err, errs.KindNotFound) {
			return nil, err
		}
	}
	sc, err := s.forUser(ctx, sc, j)
	if err != nil {
		return nil, err
	}
	out := make([]JobVariable, 0, 128) // enough for nearly all jobs
	open := func(list []config.Variable) {
		for _, v := range list {
			out = append(out, JobVariable{Key: v.Key, Value: v.Value, Public: true, File: v.File, Masked: v.Masked, Raw: v.Raw})
		}
	}
	secret := func(list []config.Variable) {
		for _, v := range list {
			out = append(out, JobVariable{Key: v.Key, Value: v.Value, File: v.File, Masked: v.Masked, Raw: v.Raw})
		}
	}
	open(sc.predefined())
	open(sc.job(j, env))
	open(j.Options.Variables)
	for _, d := range deps {
		reported, err := s.Artifacts.Dotenv(ctx, d.Dotenv)
		if err != nil {
			return nil, err
		}
		secret(reported)
	}
	kept, err := s.Variables.ForJobs(ctx, sc.project, sc.pipeline.Protected, j.environmentName())
	if err != nil {
		return nil, err
	}
	secret(kept)
	given, err := s.pipelineVariables(sc.pipeline)
	if err != nil {
		return nil, err
	}
	secret(variable.Config(given))
	byHand, err := s.startVariables(ctx, j)
	if err != nil {
		return nil, err
	}
	secret(variable.Config(byHand))
	return out, nil
}

// forUser returns the variableContext with the user of a job: the one who played or
// retried the job, or the user of the pipeline.
func (s *Service) forUser(ctx context.Context, sc *variableContext, j *Job) (*variableContext, error) {
	if j.UserID == nil || sc.user != nil && sc.user.ID == *j.UserID {
		return sc, nil
	}
	u, err := s.person(ctx, *j.UserID)
	if err != nil {
		return nil, err
	}
	own := *sc
	own.user = u
	return &own, nil
}

// variableContextOf reads the data that the variables of a pipeline depend on.
func (s *Service) variableContextOf(ctx context.Context, pipelineID int64) (*variableContext, error) {
	p, err := findAnyPipeline(ctx, s.DB, pipelineID)
	if err != nil {
		return nil, err
	}
	src, err := s.Repos.Source(ctx, actor.System(), project.RefTo(p.ProjectID))
	if err != nil {
		return nil, err
	}
	commit, err := src.CommitAt(ctx, p.SHA)
	if err != nil && !errs.Is(err, errs.KindNotFound) {
		return nil, err
	}
	sc, err := s.newVariableContext(ctx, src.Project, p, commit)
	if err != nil {
		return nil, err
	}
	if p.UserID != nil {
		if sc.user, err = s.person(ctx, *p.UserID); err != nil {
			return nil, err
		}
	}
	return sc, nil
}

func pipelinePlace(id int64) string { return fmt.Sprintf("pipelines/variables/%d", id) }
func jobPlace(id int64) string      { return fmt.Sprintf("jobs/variables/%d", id) }

// pipelineVariables returns the variables that were given to a pipeline.
func (s *Service) pipelineVariables(p *Pipeline) ([]variable.Given, error) {
	return s.Variables.Open(p.variables, pipelinePlace(p.ID))
}

// startVariables returns the variables that were given to a manual job.
func (s *Service) startVariables(ctx context.Context, j *Job) ([]variable.Given, error) {
	sealed, err := jobSealed(ctx, s.DB, j.ID)
	if err != nil {
		return nil, err
	}
	return s.Variables.Open(sealed, jobPlace(j.ID))
}

// copyJobVariables copies the variables that were given to a job to its retry.
func (s *Service) copyJobVariables(ctx context.Context, tx *db.Tx, from, to *Job) error {
	sealed, err := jobSealed(ctx, tx, from.ID)
	if err != nil || sealed == "" {
		return err
	}
	list, err := s.Variables.Open(sealed, jobPlace(from.ID))
	if err != nil {
		return err
	}
	return s.saveJobVariables(ctx, tx, to.ID, list)
}

func (s *Service) saveJobVariables(ctx context.Context, tx *db.Tx, jobID int64, list []variable.Given) error {
	sealed, err := s.Variables.Seal(list, jobPlace(jobID))
	if err != nil {
		return err
	}
	return setJobSealed(ctx, tx, jobID, sealed)
}
