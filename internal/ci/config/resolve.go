package config

import (
	"slices"
	"strings"
)

// resolve resolves the needs and dependencies of jobs among the jobs that the rules
// include.
func (p *planner) resolve() {
	for i := range p.jobs {
		j := &p.jobs[i]
		if j.dag {
			p.resolveNeeds(j)
		}
		if j.Dependencies != nil {
			p.resolveDependencies(j)
		}
	}
	if len(p.errs) == 0 {
		p.circles()
	}
}

func (p *planner) resolveNeeds(j *planned) {
	j.Needs = []Need{}
	seen := map[string]bool{}
	for _, spec := range j.needs {
		names := p.targets(spec)
		if len(names) == 0 && !spec.Optional {
			p.fail(j, "needs", "'%s' job needs '%s' job, but '%s' does not exist in the pipeline. "+
				"This might be because of the only, except, or rules keywords. "+
				"To need a job that sometimes does not exist in the pipeline, use needs:optional.", j.Name, spec.Job, spec.Job)
		}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			need := spec.Need
			need.Job = name
			j.Needs = append(j.Needs, need)
		}
	}
	if limit := p.config.limits.Needs; len(j.Needs) > limit {
		p.fail(j, "needs", "%s: one job can only need %d others, but you have listed %d. "+
			"See needs keyword documentation for more details", j.Name, limit, len(j.Needs))
	}
}

// targets returns the jobs of a need: one, or those of a group.
func (p *planner) targets(spec needSpec) []string {
	if i, ok := p.names[spec.Job]; ok && spec.matrix == nil {
		return []string{p.jobs[i].Name}
	}
	var names []string
	for _, i := range p.groups[spec.Job] {
		if spec.matrix == nil || p.jobs[i].Parallel.matches(spec.matrix) {
			names = append(names, p.jobs[i].Name)
		}
	}
	return names
}

// resolveDependencies removes dependencies that are not in the pipeline. Unlike needs,
// jobs do not wait for them.
func (p *planner) resolveDependencies(j *planned) {
	names := []string{}
	for _, name := range j.Dependencies {
		for _, target := range p.targets(needSpec{Need: Need{Job: name}}) {
			if !slices.Contains(names, target) {
				names = append(names, target)
			}
		}
	}
	j.Dependencies = names
}

// circles finds jobs that wait for each other. A job cannot need jobs of later stages,
// but rules:needs can create a cycle within a stage.
func (p *planner) circles() {
	waiting := make([]int, len(p.jobs))
	needed := make([][]int, len(p.jobs)) // the jobs that need each job
	for i, j := range p.jobs {
		for _, n := range j.Needs {
			waiting[i]++
			needed[p.names[n.Job]] = append(needed[p.names[n.Job]], i)
		}
	}
	var ready []int
	for i, n := range waiting {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	done := 0
	for ; len(ready) > 0; done++ {
		i := ready[0]
		ready = ready[1:]
		for _, k := range needed[i] {
			if waiting[k]--; waiting[k] == 0 {
				ready = append(ready, k)
			}
		}
	}
	if done == len(p.jobs) {
		return
	}
	var stuck []string
	var first *planned
	for i, n := range waiting {
		if n > 0 {
			if first == nil {
				first = &p.jobs[i]
			}
			stuck = append(stuck, p.jobs[i].Name)
		}
	}
	p.fail(first, "needs", "The pipeline has circular dependencies: %s", strings.Join(stuck, ", "))
}
