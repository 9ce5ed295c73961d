// Package config compiles the public CI YAML into a plan of jobs.
//
// Load reads the main file and what it includes, merges them and checks every
// keyword; Plan evaluates the rules of the jobs for one pipeline; Lint does both
// and returns all errors. The functions are pure: files, changes and variables
// come from the caller, and there is no clock, database or git in here. For any
// input the work ends and takes bounded memory; the caller's context limits the
// time of a plan.
package config

import (
	"context"
	"errors"
	"fmt"
)

// Config is a configuration that was found good. It does not change, and may
// be planned from several goroutines.
type Config struct {
	// Stages are all stages in order, .pre and .post among them.
	Stages []string
	// Variables are the default variables, with what a form shows of them.
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

// Load reads and checks a configuration. It returns Errors, with all faults
// of the author of the files, or NoPipeline when there are no jobs because the
// rules of includes left them out; other errors come from the callbacks.
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

// MergedYAML writes the whole configuration as one file, includes, extends and
// references resolved.
func (c *Config) MergedYAML() (string, error) { return render(c.merged) }

// loaded is the outcome of load. The config may be in part there when there
// are errors: the linter shows what it can.
type loaded struct {
	config *Config
	errs   Errors
	empty  bool // there is nothing wrong but that includes were left out
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
