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

// PipelineForm is what a user is asked who starts a pipeline by hand.
type PipelineForm struct {
	Ref       string // of the branch or tag, in short
	Variables []config.DefaultVariable
	Inputs    []config.FormInput
	MaySet    bool  // variables other than those of the file
	Fault     error // why the file asks for nothing: config.Errors, or that there is none
}

// PipelineForm returns what the CI file of a ref, the default branch when it is
// empty, asks of one who starts a pipeline: the variables that it describes,
// and its inputs. For those who may start one; Invalid when the ref is not
// there.
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
	if err := s.compile(ctx, func() error { return form.fill(ctx, src) }); err != nil {
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
	// What must be given is not known yet; the variables stand beside it.
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

// broken notes what is wrong with the file, and gives back what is not.
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

// RunPipeline is CreatePipeline for one who fills in a form.
func (s *Service) RunPipeline(ctx context.Context, by actor.Actor, in project.Ref, n NewPipeline) (*Pipeline, error) {
	_, p, err := s.createPipeline(ctx, by, in, n, FromWeb)
	return p, err
}
