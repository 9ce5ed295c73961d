package config

import (
	"strings"
)

// resolve resolves the needs and dependencies of jobs among the jobs that the rules
// include.
func (p *planner) resolve() {
	lists := resolved{needs: map[*needSpec]*resolvedNeeds{}, dependencies: map[*string][]string{}}
	for i := range p.jobs {
		if p.scope.ctx.Err() != nil {
			return
		}
		j := &p.jobs[i]
		if j.dag {
			p.resolveNeeds(j, &lists)
		}
		if len(j.Dependencies) > 0 {
			p.resolveDependencies(j, &lists)
		}
	}
	if len(p.errs) == 0 {
		p.circles()
	}
}

// resolved are the lists that were resolved so far, by their first element: the jobs of
// a definition share them, and they may be long.
type resolved struct {
	needs        map[*needSpec]*resolvedNeeds
	dependencies map[*string][]string
}

type resolvedNeeds struct {
	needs   []Need
	missing []string
}

func (p *planner) resolveNeeds(j *planned, lists *resolved) {
	j.Needs = []Need{}
	if len(j.needs) == 0 {
		return
	}
	out := lists.needs[&j.needs[0]]
	if out == nil {
		out = p.needsOf(j.needs)
		lists.needs[&j.needs[0]] = out
	}
	j.Needs = out.needs
	for _, job := range out.missing {
		if len(p.errs) == maxErrors {
			return
		}
		p.fail(j, "needs", "'%s' job needs '%s' job, but '%s' does not exist in the pipeline. "+
			"This might be because of the only, except, or rules keywords. "+
			"To need a job that sometimes does not exist in the pipeline, use needs:optional.", j.Name, job, job)
	}
	if limit := p.config.limits.Needs; len(j.Needs) > limit {
		p.fail(j, "needs", "%s: one job can only need %d others, but you have listed %d. "+
			"See needs keyword documentation for more details", j.Name, limit, len(j.Needs))
	}
}

func (p *planner) needsOf(specs []needSpec) *resolvedNeeds {
	out := &resolvedNeeds{needs: []Need{}}
	seen := map[string]bool{}
	for _, spec := range specs {
		names := p.targets(spec)
		if len(names) == 0 && !spec.Optional {
			out.missing = append(out.missing, spec.Job)
		}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			need := spec.Need
			need.Job = name
			out.needs = append(out.needs, need)
		}
	}
	return out
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
func (p *planner) resolveDependencies(j *planned, lists *resolved) {
	first := &j.Dependencies[0]
	names, ok := lists.dependencies[first]
	if !ok {
		names = []string{}
		asked, seen := map[string]bool{}, map[string]bool{}
		for _, name := range j.Dependencies {
			if asked[name] {
				continue
			}
			asked[name] = true
			for _, target := range p.targets(needSpec{Need: Need{Job: name}}) {
				if !seen[target] {
					seen[target] = true
					names = append(names, target)
				}
			}
		}
		lists.dependencies[first] = names
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
