package ci

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"svc/internal/actor"
	"svc/internal/ci/artifact"
	"svc/internal/ci/config"
	"svc/internal/errs"
	"svc/internal/project"
)

// dependency is a job whose artifacts another job downloads.
type dependency struct {
	job *Job
	artifact.Input
}

// missingNeed is a need of a job of another pipeline that does not exist, or that the
// user of the job may not see.
type missingNeed config.CrossNeed

// describe returns the need for the job log, as written in the configuration: expanded
// variables may be secret.
func (n missingNeed) describe() string {
	if n.Pipeline != "" {
		return fmt.Sprintf("the pipeline %s has no job %s, or is neither parent, child nor sibling of this pipeline.", n.Pipeline, n.Job)
	}
	return fmt.Sprintf("the latest successful pipeline of %s in the project %s has no job %s, or the user or token of this job has no access to it.", n.Ref, n.Project, n.Job)
}

// dependenciesOf returns the jobs whose artifacts a job downloads: those of its
// pipeline in order, then those of other pipelines; and the needs of other pipelines
// for which there is no job.
func (s *Service) dependenciesOf(ctx context.Context, j *Job, sc *variableContext) ([]dependency, []missingNeed, error) {
	jobs, missing, err := s.dependencyJobs(ctx, j, sc)
	if err != nil || len(jobs) == 0 {
		return nil, missing, err
	}
	var ids []int64
	for _, d := range jobs {
		ids = append(ids, d.ID)
	}
	files, err := s.Artifacts.Inputs(ctx, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("dependencies of job %d: %w", j.ID, err)
	}
	var found []dependency
	for _, d := range jobs {
		found = append(found, dependency{d, files[d.ID]})
	}
	return found, missing, nil
}

func (s *Service) dependencyJobs(ctx context.Context, j *Job, sc *variableContext) (found []*Job, missing []missingNeed, err error) {
	if found, err = s.ownDependencies(ctx, j); err != nil {
		return nil, nil, fmt.Errorf("dependencies of job %d: %w", j.ID, err)
	}
	var texts expansion
	for _, need := range j.Options.CrossNeeds {
		if !need.Artifacts {
			continue
		}
		if texts.Expander == nil {
			if texts, err = s.needTexts(ctx, j, sc); err != nil {
				return nil, nil, fmt.Errorf("dependencies of job %d: %w", j.ID, err)
			}
		}
		other, err := s.crossDependency(ctx, j, sc, texts, need)
		if err != nil {
			return nil, nil, fmt.Errorf("dependencies of job %d: %w", j.ID, err)
		}
		if other == nil {
			missing = append(missing, missingNeed(need))
			continue
		}
		found = append(found, other)
	}
	return found, missing, nil
}

// needTexts expands the needs of a job with its variables, except those of the
// artifacts that it downloads.
func (s *Service) needTexts(ctx context.Context, j *Job, sc *variableContext) (expansion, error) {
	list, err := s.variablesOf(ctx, j, sc, nil)
	if err != nil {
		return expansion{}, err
	}
	known := make([]config.Variable, len(list))
	for i, v := range list {
		known[i] = config.Variable{Key: v.Key, Value: v.Value, Raw: v.Raw, File: v.File}
	}
	return flatExpansion(ctx, config.LookupIn(known)), nil
}

func (s *Service) ownDependencies(ctx context.Context, j *Job) ([]*Job, error) {
	names := map[string]bool{}
	all := false
	switch {
	case j.Options.Dependencies != nil:
		for _, name := range j.Options.Dependencies {
			names[name] = true
		}
	case j.Options.Needs != nil:
		for _, n := range j.Options.Needs {
			if n.Artifacts {
				names[n.Job] = true
			}
		}
	default:
		all = true
	}
	if !all && len(names) == 0 {
		return nil, nil
	}
	// Only the jobs that may match are read: a pipeline can have very many.
	if all {
		return findEarlier(ctx, s.DB, j)
	}
	return findNamed(ctx, s.DB, j, slices.Collect(maps.Keys(names)))
}

// crossDependency finds a job of another pipeline. Nil if there is none that
// the user of this job may see.
func (s *Service) crossDependency(ctx context.Context, j *Job, sc *variableContext, texts expansion, need config.CrossNeed) (*Job, error) {
	name, pipeline, in, ref := texts.All(need.Job), texts.All(need.Pipeline), sc.project.Near(texts.All(need.Project)), texts.All(need.Ref)
	if err := texts.failed(); err != nil {
		return nil, err
	}
	if need.Pipeline != "" {
		id, err := strconv.ParseInt(pipeline, 10, 64)
		if err != nil {
			return nil, nil
		}
		// Only a related pipeline is allowed: the parent, a child or a sibling.
		if other, err := findPipeline(ctx, s.DB, j.ProjectID, id); err != nil || !related(sc.pipeline, other) {
			return nil, errs.IgnoreNotFound(err)
		}
		return latestNamed(ctx, s.DB, id, name)
	}
	if j.UserID == nil {
		return nil, nil
	}
	by, err := s.Users.As(ctx, *j.UserID)
	if err != nil {
		return nil, errs.IgnoreRefusal(err)
	}
	// The job gets only what its own token can download: the runner fetches the
	// archive with the token, but the variables are read here.
	by.Job = &actor.Job{ID: j.ID, ProjectID: j.ProjectID}
	as, other, err := s.JobOpens(ctx, by, in)
	if err != nil {
		return nil, errs.IgnoreRefusal(err)
	}
	found, err := s.latestSuccess(ctx, other.ID, ref, name)
	if found == nil || err != nil {
		return nil, err
	}
	if err := s.jobReads(as, other, found); err != nil {
		return nil, nil
	}
	return found, nil
}

// related reports whether two pipelines of a project are parent and child, or
// children of the same parent.
func related(a, b *Pipeline) bool {
	switch {
	case a.ParentID != nil && *a.ParentID == b.ID, b.ParentID != nil && *b.ParentID == a.ID:
		return true
	}
	return a.ParentID != nil && b.ParentID != nil && *a.ParentID == *b.ParentID
}

// latestSuccess finds the job with a name in the newest successful pipeline of
// a branch, or of a tag if there is no such branch. Nil if there is none.
func (s *Service) latestSuccess(ctx context.Context, projectID int64, ref, name string) (*Job, error) {
	ref, tag, err := s.refName(ctx, projectID, ref)
	if err != nil {
		return nil, err
	}
	return findLatestSuccess(ctx, s.DB, projectID, ref, tag, name)
}

// refName resolves a name to a branch or tag of a project. It works as the
// system, because readers of pipelines need no access to the code to name a
// ref.
func (s *Service) refName(ctx context.Context, projectID int64, name string) (short string, tag bool, err error) {
	src, err := s.Repos.Source(ctx, actor.System(), project.RefTo(projectID))
	if err != nil {
		return "", false, err
	}
	return src.Name(ctx, name)
}
