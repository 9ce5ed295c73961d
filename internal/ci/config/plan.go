package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Plan is a pipeline that is to be created.
type Plan struct {
	// Name is workflow:name with its variables expanded; empty without one.
	Name       string     `json:"name,omitempty"`
	AutoCancel AutoCancel `json:"auto_cancel,omitzero"`
	// Variables are the default variables of the YAML, with those of the workflow rule
	// that matched.
	Variables []Variable `json:"variables,omitempty"`
	// Stages are the stages that have jobs, in order.
	Stages []string `json:"stages"`
	// Jobs are ordered by stage and, within a stage, as in the file.
	Jobs []Job `json:"jobs"`
}

// Plan evaluates the rules of a configuration for a pipeline. It returns NoPipeline if no
// job is left or workflow:rules exclude the pipeline, and Errors if the jobs that are left
// do not fit together; other errors come from the callbacks.
func (c *Config) Plan(ctx context.Context, in Input) (*Plan, error) {
	p := &planner{
		config: c,
		scope:  newScope(ctx, &in),
		high:   LookupIn(in.Variables),
		low:    LookupIn(in.Predefined),
		scoped: map[string]Lookup{},
		groups: map[string][]int{},
		names:  map[string]int{},
	}
	if err := p.workflow(); err != nil {
		return nil, p.explain(err)
	}
	for _, def := range c.jobs {
		if err := p.definition(def); err != nil {
			return nil, p.explain(err)
		}
		if len(p.jobs) > c.limits.Jobs && len(p.errs) == 0 {
			return nil, Errors{failAt(Pos{}, "jobs", "The number of jobs has exceeded the limit of %d. Try splitting the configuration with parent-child-pipelines", c.limits.Jobs)}
		}
	}
	p.resolve()
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return p.finish()
}

// planner creates one plan.
type planner struct {
	config    *Config
	scope     *scope
	high, low Lookup
	scoped    map[string]Lookup // the same as high, by environment
	plan      Plan
	defaults  []Variable // of the pipeline, with those of the workflow's rule
	jobs      []planned
	groups    map[string][]int // jobs of a definition
	names     map[string]int
	size      int // of the jobs
	errs      Errors
}

// planned is a job that the rules include.
type planned struct {
	Job
	def   *definition
	needs []needSpec
	dag   bool
}

// explain separates errors of the author from errors of the callbacks.
func (p *planner) explain(err error) error {
	var fault *Error
	var none *NoPipeline
	switch {
	case errors.As(err, &fault):
		return Errors{fault}
	case errors.As(err, &none):
		return none
	}
	return fmt.Errorf("plan the pipeline: %w", err)
}

func (p *planner) workflow() error {
	for _, v := range p.config.Variables {
		p.defaults = append(p.defaults, v.Variable)
	}
	w := p.config.workflow
	p.plan.AutoCancel = w.autoCancel
	if w.hasRules {
		variables := layered(p.high, LookupIn(p.defaults), p.low)
		matched, err := p.scope.match(w.rules, p.scope.in.At, variables)
		if err != nil {
			return err
		}
		if matched == nil || matched.when == Never {
			return &NoPipeline{Filtered: true}
		}
		p.defaults = overlay(p.defaults, matched.variables)
		if a := matched.autoCancel; a != nil {
			p.plan.AutoCancel = overrideCancel(w.autoCancel, *a)
		}
	}
	p.plan.Variables = p.defaults
	variables := layered(p.high, LookupIn(p.defaults), p.low)
	// The name is visible to all users who can see the pipeline, so masked values are
	// removed.
	name := mask(Nested(p.scope.expands, variables).All(w.name), p.scope.in.Predefined, p.scope.in.Variables)
	p.plan.Name = cut(name, 0, maxName)
	return p.scope.expanded(Pos{})
}

func overrideCancel(base, over AutoCancel) AutoCancel {
	if over.OnNewCommit != "" {
		base.OnNewCommit = over.OnNewCommit
	}
	if over.OnJobFailure != "" {
		base.OnJobFailure = over.OnJobFailure
	}
	return base
}

// definition evaluates the rules for each job of a definition.
func (p *planner) definition(def *definition) error {
	inherited := p.inherited(def)
	for _, i := range def.instances() {
		if err := p.scope.ctx.Err(); err != nil {
			return err
		}
		j := planned{Job: def.Job, def: def, needs: def.needs, dag: def.hasNeeds}
		j.Name, j.Parallel = i.name, i.parallel
		j.When = def.when
		if j.When == "" {
			j.When = OnSuccess
		}
		j.Variables = overlay(inherited, def.Variables)
		if i.parallel != nil {
			j.Variables = overlay(j.Variables, i.parallel.Matrix)
		}
		variables, err := p.variables(&j)
		if err != nil {
			return err
		}
		pass, err := p.decide(&j, variables)
		if err != nil {
			return err
		}
		if !pass {
			continue
		}
		if err := p.expand(&j); err != nil {
			return err
		}
		if err := p.spend(&j); err != nil {
			return err
		}
		p.groups[def.Name] = append(p.groups[def.Name], len(p.jobs))
		p.names[j.Name] = len(p.jobs)
		p.jobs = append(p.jobs, j)
	}
	return nil
}

// spend adds the size of a job, with everything that it inherits, to that of the plan.
func (p *planner) spend(j *planned) error {
	stored, err := json.Marshal(&j.Job)
	if err != nil {
		return err
	}
	if p.size += len(stored); p.size > p.config.limits.Planned {
		return failAt(j.def.pos, "jobs", "The jobs of the pipeline are too big: together, with what they inherit, they have more than %d KiB. "+
			"Try splitting the configuration with parent-child-pipelines", p.config.limits.Planned>>10)
	}
	return nil
}

// inherited returns the default variables that a job inherits.
func (p *planner) inherited(def *definition) []Variable {
	switch {
	case def.noVariables:
		return nil
	case def.someVariables == nil:
		return p.defaults
	}
	var some []Variable
	for _, v := range p.defaults {
		if def.someVariables[v.Key] {
			some = append(some, v)
		}
	}
	return some
}

// variables returns the variables that the rules of a job can use.
func (p *planner) variables(j *planned) (Lookup, error) {
	own := []Variable{
		{Key: "CI_JOB_NAME", Value: j.Name},
		{Key: "CI_JOB_STAGE", Value: j.Stage},
		{Key: "CI_NODE_TOTAL", Value: "1"},
	}
	if j.Parallel != nil {
		own[2].Value = strconv.Itoa(j.Parallel.Total)
		own = append(own, Variable{Key: "CI_NODE_INDEX", Value: strconv.Itoa(j.Parallel.Index)})
	}
	if j.Environment == nil {
		return layered(p.high, LookupIn(own, j.Variables), p.low), nil
	}
	name := p.environmentName(j, own)
	own = append(own, Variable{Key: "CI_ENVIRONMENT_NAME", Value: name, Raw: true}, Variable{Key: "CI_ENVIRONMENT_ACTION", Value: j.Environment.Action})
	high, err := p.highFor(name)
	return layered(high, LookupIn(own, j.Variables), p.low), err
}

// environmentName expands the name of the environment of a job. Variables for certain
// environments cannot be used in it.
func (p *planner) environmentName(j *planned, own []Variable) string {
	return Nested(p.scope.expands, layered(p.high, LookupIn(own, j.Variables), p.low)).All(j.def.Environment.Name)
}

// highFor returns the variables that override those of the YAML for the jobs of an
// environment.
func (p *planner) highFor(environment string) (Lookup, error) {
	if p.scope.in.Scoped == nil {
		return p.high, nil
	}
	if known, ok := p.scoped[environment]; ok {
		return known, nil
	}
	list, err := p.scope.in.Scoped(environment)
	if err != nil {
		return nil, fmt.Errorf("variables of an environment: %w", err)
	}
	p.scope.scoped = append(p.scope.scoped, list)
	p.scoped[environment] = LookupIn(list)
	return p.scoped[environment], nil
}

// decide reports whether a job is part of the pipeline, and applies the attributes of
// its rule.
func (p *planner) decide(j *planned, variables Lookup) (bool, error) {
	def := j.def
	if !def.hasRules {
		pass, err := p.scope.allows(def.only, variables)
		if err != nil || !pass {
			return false, err
		}
		banned, err := p.scope.forbids(def.except, variables)
		return !banned, err
	}
	r, err := p.scope.match(def.rules, p.scope.in.At, variables)
	var fault *Error
	if errors.As(err, &fault) {
		return false, failAt(fault.Pos, "jobs:"+def.Name+":rules", "Failed to parse rule for %s: %s", j.Name, fault.Message)
	}
	if err != nil || r == nil {
		return false, err
	}
	if r.when != "" {
		j.When, j.StartIn = r.when, r.startIn
	}
	if j.When == Never {
		return false, nil
	}
	if r.allowFailure != nil {
		j.AllowFailure, j.AllowFailureExitCodes = *r.allowFailure, nil
	}
	if r.interruptible != nil {
		j.Interruptible = r.interruptible
	}
	if r.hasNeeds {
		j.needs, j.dag = r.needs, true
	}
	j.Variables = overlay(j.Variables, r.variables)
	return true, nil
}

// expand expands variables in the fields that the server itself uses.
func (p *planner) expand(j *planned) error {
	variables, err := p.variables(j)
	if err != nil {
		return err
	}
	full, flat := Nested(p.scope.expands, variables), Flat(p.scope.expands, variables)
	for _, v := range j.Variables {
		if _, err := full.Value(v.Key); err != nil {
			if p.scope.expands.Err() == nil {
				p.fail(j, "variables", "%s: %s", j.Name, err)
			}
			return p.scope.expanded(j.def.pos)
		}
	}
	if j.Tags != nil {
		j.Tags = flat.Each(j.Tags)
	}
	j.ResourceGroup = full.All(j.ResourceGroup)
	if j.Environment != nil {
		e := *j.Environment // the original is shared with the definition
		known, _ := variables("CI_ENVIRONMENT_NAME")
		e.Name = known.Value
		// An invalid tier is that of the name.
		if e.Tier = full.All(e.Tier); !slices.Contains(tiers(), e.Tier) {
			e.Tier = ""
		}
		j.Environment = &e
	}
	if j.Pages != nil {
		s := *j.Pages
		s.Publish, s.PathPrefix, s.ExpireIn = full.All(s.Publish), full.All(s.PathPrefix), full.All(s.ExpireIn)
		j.Pages = &s
	}
	return p.scope.expanded(j.def.pos)
}

func (p *planner) fail(j *planned, key, format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, failAt(j.def.pos, "jobs:"+j.def.Name+":"+key, format, args...))
	}
}

// finish sorts the jobs by stage.
func (p *planner) finish() (*Plan, error) {
	real := false
	p.plan.Stages = []string{}
	slices.SortStableFunc(p.jobs, func(a, b planned) int { return a.StageIndex - b.StageIndex })
	for _, j := range p.jobs {
		p.plan.Jobs = append(p.plan.Jobs, j.Job)
		if n := len(p.plan.Stages); n == 0 || p.plan.Stages[n-1] != j.Stage {
			p.plan.Stages = append(p.plan.Stages, j.Stage)
		}
		real = real || j.Stage != ".pre" && j.Stage != ".post"
	}
	// A pipeline needs at least one job outside .pre and .post.
	if !real {
		return nil, &NoPipeline{}
	}
	return &p.plan, nil
}
