package config

import (
	"context"
	"errors"
	"slices"
)

// LintResult is the result of CI Lint.
type LintResult struct {
	// Errors is empty if the configuration is valid. A NoPipeline is one of them.
	Errors   Errors
	Warnings Errors
	// MergedYAML is empty if the files could not be merged.
	MergedYAML string
	Included   []Included
	// Jobs are those of the file or, if a pipeline was simulated, those of the plan.
	Jobs []LintJob
}

// Valid reports whether a pipeline would be created.
func (r *LintResult) Valid() bool { return len(r.Errors) == 0 }

// LintJob is a job in the result of CI Lint.
type LintJob struct {
	Name         string
	Stage        string
	BeforeScript []string
	Script       []string
	AfterScript  []string
	Tags         []string
	Environment  string
	When         When
	AllowFailure bool
	Only         *LintPolicy
	Except       *LintPolicy
	Needs        []Need
}

// LintPolicy is only or except of a job.
type LintPolicy struct {
	Refs      []string
	Variables []string
	Changes   []string
}

// Lint checks a configuration and returns all errors and warnings. With plan it
// also evaluates the rules, as for a real pipeline of Source.Input. The error
// comes from the callbacks.
func Lint(ctx context.Context, src Source, plan bool) (*LintResult, error) {
	l, err := load(ctx, src)
	if err != nil {
		return nil, err
	}
	out := &LintResult{Errors: l.errs, Warnings: l.config.Warnings, Included: l.config.Included}
	if l.config.merged != nil {
		if out.MergedYAML, err = l.config.MergedYAML(); err != nil {
			return nil, err
		}
	}
	if l.empty {
		out.Errors = Errors{&Error{Message: (&NoPipeline{}).Error()}}
	}
	if len(l.errs) > 0 {
		return out, nil
	}
	if !plan {
		out.list(l.config)
		return out, nil
	}
	made, err := l.config.Plan(ctx, src.Input)
	var faults Errors
	var none *NoPipeline
	switch {
	case errors.As(err, &faults):
		out.Errors = faults
	case errors.As(err, &none):
		out.Errors = Errors{&Error{Message: none.Error()}}
	case err != nil:
		return nil, err
	default:
		for _, j := range made.Jobs {
			out.Jobs = append(out.Jobs, j.lint())
		}
	}
	return out, nil
}

// list adds the jobs of a configuration without a plan. Each repeats what it inherits, so
// that they may be much bigger than the files; then none is listed.
func (r *LintResult) list(c *Config) {
	size := 0
	for _, def := range c.jobs {
		one := def.lint()
		for _, j := range one {
			for _, texts := range [][]string{{j.Name, j.Stage, j.Environment}, j.BeforeScript, j.Script, j.AfterScript, j.Tags, j.Only.texts(), j.Except.texts()} {
				for _, text := range texts {
					size += nodeWeight + len(text)
				}
			}
			for _, need := range j.Needs {
				size += nodeWeight + len(need.Job)
			}
		}
		if size > c.limits.Planned {
			r.Jobs = nil
			r.Warnings = append(r.Warnings, failAt(Pos{}, "jobs", "The jobs are not listed, because they are too big"))
			return
		}
		r.Jobs = append(r.Jobs, one...)
	}
}

func (p *LintPolicy) texts() []string {
	if p == nil {
		return nil
	}
	return slices.Concat(p.Refs, p.Variables, p.Changes)
}

func (j *Job) lint() LintJob {
	out := LintJob{
		Name:         j.Name,
		Stage:        j.Stage,
		BeforeScript: j.BeforeScript,
		Script:       j.Script,
		AfterScript:  j.AfterScript,
		Tags:         j.Tags,
		When:         j.When,
		AllowFailure: j.AllowFailure,
		Needs:        j.Needs,
	}
	if j.Environment != nil {
		out.Environment = j.Environment.Name
	}
	return out
}

// lint returns the jobs of a definition without evaluating its rules.
func (def *definition) lint() []LintJob {
	one := def.Job.lint()
	if one.When = def.when; one.When == "" {
		one.When = OnSuccess
	}
	one.Only, one.Except = def.only.lint(), def.except.lint()
	for _, need := range def.needs {
		one.Needs = append(one.Needs, need.Need)
	}
	var out []LintJob
	for _, i := range def.instances() {
		one.Name = i.name
		out = append(out, one)
	}
	return out
}

func (p *policy) lint() *LintPolicy {
	if p == nil {
		return nil
	}
	return &LintPolicy{Refs: p.Refs, Variables: p.Variables, Changes: p.Changes}
}
