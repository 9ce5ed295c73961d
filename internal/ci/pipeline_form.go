package ci

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/ci/config"
	"svc/internal/ci/variable"
	"svc/internal/project"
)

// PipelineForm is the form for running a pipeline manually.
type PipelineForm struct {
	Ref       string // short name of the branch or tag
	Variables []config.DefaultVariable
	Inputs    []config.FormInput
	MaySet    bool  // the user may set other variables
	Fault     error // why there are no fields: config.Errors, or there is no configuration
}

// PipelineForm returns the inputs of the CI/CD configuration of a ref, and its
// variables that have a description. An empty ref is the default branch. It is
// for users who may run pipelines on the ref; Invalid if the ref does not
// exist.
func (s *Service) PipelineForm(ctx context.Context, by actor.Actor, in project.Ref, ref string) (*PipelineForm, error) {
	proj, err := s.Projects.RequireChange(ctx, by, in, project.BuildsPart, project.Developer)
	if err != nil {
		return nil, err
	}
	if ref == "" {
		ref = proj.DefaultBranch
	}
	m, err := s.propose(ctx, by, proj, NewPipeline{Ref: ref}, FromWeb)
	if err != nil {
		return nil, err
	}
	form := &PipelineForm{Ref: m.pipeline.Ref, MaySet: variable.MayGive(by, proj)}
	src, err := s.configSource(ctx, m)
	if errors.Is(err, errNoConfig) {
		form.Fault = err
		return form, nil
	}
	if err != nil {
		return nil, fmt.Errorf("form of a pipeline: %w", err)
	}
	if err := s.input(ctx, m, &src); err != nil {
		return nil, fmt.Errorf("form of a pipeline: %w", err)
	}
	if err := s.compile(ctx, func(ctx context.Context) error { return form.fill(ctx, src) }); err != nil {
		return form, form.broken(err)
	}
	return form, nil
}

// fill reads the inputs and variables of a configuration.
func (f *PipelineForm) fill(ctx context.Context, src config.Source) error {
	var err error
	if f.Inputs, err = config.Inputs(ctx, src); err != nil {
		return err
	}
	// Without values for the required inputs, the configuration cannot be
	// loaded.
	src.Inputs = map[string]any{}
	for _, i := range f.Inputs {
		if i.Needed {
			return nil
		}
	}
	c, err := config.Load(ctx, src)
	if err != nil {
		return err
	}
	for _, v := range c.Variables {
		if v.Description != "" {
			f.Variables = append(f.Variables, v)
		}
	}
	return nil
}

// broken sets Fault to an error in the configuration. It returns any other
// error.
func (f *PipelineForm) broken(err error) error {
	var faults config.Errors
	var fault *config.Error
	var none *config.NoPipeline
	if errors.As(err, &faults) || errors.As(err, &fault) || errors.As(err, &none) {
		f.Fault = err
		return nil
	}
	return fmt.Errorf("form of a pipeline: %w", err)
}

// RunPipeline is CreatePipeline for the web form.
func (s *Service) RunPipeline(ctx context.Context, by actor.Actor, in project.Ref, n NewPipeline) (*Pipeline, error) {
	_, p, err := s.createPipeline(ctx, by, in, n, FromWeb)
	return p, err
}
