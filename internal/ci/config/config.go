// Package config compiles the public CI YAML into a plan of jobs.
//
// Load reads the main file and its includes, merges them and checks every keyword; Plan
// evaluates the rules of the jobs for one pipeline; Lint does both and returns all errors.
// The functions are pure: the caller provides files, changes and variables, and the
// package uses no clock, database or git. For any input they end and use bounded memory;
// the context of the caller limits the time of a plan.
package config

import (
	"context"
	"errors"
	"fmt"
)

// Config is a valid configuration. It is immutable, and may be planned from several
// goroutines.
type Config struct {
	// Stages are all stages in order, .pre and .post among them.
	Stages []string
	// Variables are the default variables, with the data for the pipeline form.
	Variables []DefaultVariable
	// Included are the files that were included.
	Included []Included
	Warnings Errors

	merged   *node
	workflow workflow
	jobs     []*definition // visible ones, in the order of the file
	byName   map[string]*definition
	limits   Limits
}

// DefaultVariable is a variable of the whole pipeline.
type DefaultVariable struct {
	Variable
	// Description and Options are for a form that starts a pipeline.
	Description string
	Options     []string
}

// Load reads and checks a configuration. It returns Errors with all errors of the author
// of the files, or NoPipeline if there are no jobs because the rules of includes excluded
// them; other errors come from the callbacks.
func Load(ctx context.Context, src Source) (*Config, error) {
	l, err := load(ctx, src)
	if err != nil {
		return nil, err
	}
	switch {
	case l.empty:
		return nil, &NoPipeline{}
	case len(l.errs) > 0:
		return nil, l.errs
	}
	return l.config, nil
}

// MergedYAML writes the whole configuration as one file, with includes, extends and
// references resolved.
func (c *Config) MergedYAML() (string, error) { return render(c.merged) }

// loaded is the result of load. If there are errors the config may be incomplete: CI Lint
// shows what is there.
type loaded struct {
	config *Config
	errs   Errors
	empty  bool // the only error is that includes were excluded by their rules
}

func load(ctx context.Context, src Source) (*loaded, error) {
	limits := src.Limits.withDefaults()
	out := &loaded{config: &Config{limits: limits}}
	r := newReader(ctx, src, limits)
	merged, err := r.main()
	out.config.Included = r.included
	out.config.Warnings = r.warnings
	if err == nil {
		merged, err = expandAll(merged, limits, r.budget)
	}
	if err != nil {
		var fault *Error
		if !errors.As(err, &fault) {
			return nil, fmt.Errorf("read the CI configuration: %w", err)
		}
		out.errs = Errors{fault}
		return out, nil
	}
	out.config.merged = merged
	d := &decoder{ctx: ctx, config: out.config}
	d.root(merged)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("check the CI configuration: %w", ctx.Err())
	}
	out.errs = d.errs
	out.empty = r.filtered && d.jobless && len(d.errs) == 1
	out.config.Warnings = append(out.config.Warnings, d.warnings...)
	return out, nil
}

// expandAll resolves extends and references.
func expandAll(merged *node, limits Limits, b *budget) (*node, error) {
	merged, err := extend(merged, b)
	if err != nil {
		return nil, err
	}
	if merged, err = resolveReferences(merged, b); err != nil {
		return nil, err
	}
	return merged, limits.check(merged)
}
