package ci

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// LintRequest is a configuration to check with CI Lint.
type LintRequest struct {
	Content *string // instead of the file of the project
	At      string  // commit or ref of the file; default HEAD
	// DryRun simulates the creation of a pipeline on Ref, by default the
	// default branch.
	DryRun bool
	Ref    string
}

// Lint checks a CI/CD configuration. The file of the project is for users who
// can read the code, other content for Developers and above. NotFound if there
// is no such commit; Busy.
func (s *Service) Lint(ctx context.Context, by actor.Actor, in project.Ref, r LintRequest) (*config.LintResult, error) {
	if r.Content != nil || r.DryRun {
		if _, err := s.Projects.Require(ctx, by, in, project.Developer); err != nil {
			return nil, err
		}
	}
	src, err := s.Repos.Source(ctx, by, in)
	if err != nil {
		return nil, err
	}
	if r.Ref == "" {
		r.Ref = src.Project.DefaultBranch
	}
	if r.At == "" {
		r.At = "HEAD"
	}
	m := &pipelineDraft{by: by, src: src}
	m.pipeline = &Pipeline{
		ProjectID: src.Project.ID, Status: flow.Created, Source: FromPush, Ref: r.Ref, SHA: string(git.ZeroOID), BeforeSHA: string(git.ZeroOID), CreatedAt: s.Now(),
	}
	m.commit, err = src.Commit(ctx, r.At)
	switch {
	case errs.Is(err, errs.KindNotFound) && r.Content == nil:
		return nil, errs.NotFound("Commit")
	case err != nil && !errs.Is(err, errs.KindNotFound): // content can be checked in an empty project
		return nil, err
	case err == nil:
		m.pipeline.SHA = string(m.commit.ID)
	}
	if ref, err := src.Find(ctx, r.Ref); err == nil {
		m.pipeline.Ref, m.pipeline.Tag = ref.Name, ref.Tag
	} else if !errs.Is(err, errs.KindNotFound) {
		return nil, err
	} else if r.DryRun {
		return &config.LintResult{Errors: config.Errors{{Message: "Reference not found"}}}, nil
	}
	if err := m.limitSight(ctx); err != nil {
		return nil, err
	}
	if r.Content != nil {
		m.content = []byte(*r.Content)
	}
	from, err := s.configSource(ctx, m)
	if errors.Is(err, errNoConfig) {
		return &config.LintResult{Errors: config.Errors{{Message: "Please provide content of " + defaultConfigPath}}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	if r.Content != nil {
		from.Path = defaultConfigPath // the path in error messages
	}
	if err := s.input(ctx, m, &from); err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	var out *config.LintResult
	err = s.compile(ctx, func(ctx context.Context) error {
		var err error
		out, err = config.Lint(ctx, from, r.DryRun)
		return err
	})
	if faults, ok := errors.AsType[config.Errors](err); ok { // it took too long
		return &config.LintResult{Errors: faults}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	return out, nil
}

// limitSight limits CI Lint to variables that the caller could print in a job:
// those of the project are for Developers, protected ones for users who may run
// pipelines on the ref.
func (m *pipelineDraft) limitSight(ctx context.Context) error {
	m.outsider = !m.by.Admin && m.src.Project.Access.Level() < project.Developer
	protected, err := m.src.Protected(ctx, m.pipeline.Ref, m.pipeline.Tag)
	if err != nil || !protected {
		return err
	}
	m.pipeline.Protected, err = m.src.MayRun(ctx, m.pipeline.Ref, m.pipeline.Tag)
	return err
}
