package config

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// needs reads the jobs that a job waits for.
func (d *decoder) needs(n *node, loc string, def *definition) {
	v := n.get("needs")
	if v == nil {
		return
	}
	def.needs = d.needList(v, loc+":needs", def)
	// A bridge that mirrors a pipeline waits for that pipeline, not for jobs.
	def.hasNeeds = def.MirrorPipeline == "" || len(def.needs) > 0
	if len(def.CrossNeeds) > maxCrossNeeds {
		d.fail(v.pos, entry(loc, "needs"), "must be less than or equal to %d", maxCrossNeeds)
	}
}

func (d *decoder) needList(n *node, loc string, def *definition) []needSpec {
	items := []*node{n}
	switch n.kind {
	case list:
		items = flatten(n, maxNesting)
	case table:
	default:
		d.fail(n.pos, whole(loc), "can only be a Hash or an Array")
		return nil
	}
	out := []needSpec{}
	for _, item := range items {
		if need := d.need(item, loc+":need", def); need != nil {
			out = append(out, *need)
		}
	}
	seen := map[string]bool{}
	for _, need := range out {
		if seen[need.Job] && need.matrix == nil {
			d.fail(need.pos, whole(loc), "has the following needs duplicated: %s", need.Job)
		}
		seen[need.Job] = true
	}
	return out
}

// need reads one need. It returns a job of this pipeline, and adds other needs to def.
func (d *decoder) need(n *node, loc string, def *definition) *needSpec {
	if n.kind == text {
		if n.text == "" {
			d.fail(n.pos, whole(loc), "can't be blank")
		}
		return &needSpec{Need: Need{Job: n.text, Artifacts: true}, pos: n.pos}
	}
	if n.kind != table {
		d.fail(n.pos, whole(loc), "has an unsupported type")
		return nil
	}
	artifacts := true
	if v := d.truth(n.get("artifacts"), attribute(loc, "artifacts")); v != nil {
		artifacts = *v
	}
	job := d.text(n.get("job"), attribute(loc, "job"))
	project, pipeline := n.get("project"), n.get("pipeline")
	switch {
	case project == nil && pipeline == nil && !n.has("ref") && n.has("job"):
		d.known(n, loc, "job", "artifacts", "optional", "parallel")
		need := &needSpec{Need: Need{Job: job, Artifacts: artifacts}, pos: n.pos}
		need.Optional = d.isTrue(n.get("optional"), attribute(loc, "optional"))
		if p := n.get("parallel"); p != nil && d.table(p, loc+":parallel", "matrix") {
			need.matrix = d.matrix(p.get("matrix"), loc+":parallel:matrix", p.pos)
		}
		if job == "" {
			d.fail(n.pos, attribute(loc, "job"), "can't be blank")
		}
		return need
	case pipeline != nil && project == nil && !n.has("job"):
		d.known(n, loc, "pipeline")
		if !def.bridge {
			d.fail(n.pos, whole(strings.TrimSuffix(loc, ":need")), "uses invalid types: bridge")
		}
		if def.MirrorPipeline != "" {
			d.fail(n.pos, whole(loc), "should contain at most one bridge need")
		}
		def.MirrorPipeline = d.text(pipeline, attribute(loc, "pipeline"))
		return nil
	case !n.has("job"):
		d.fail(n.pos, whole(loc), "has an unsupported type")
		return nil
	}
	cross := CrossNeed{Job: job, Artifacts: artifacts}
	if project != nil {
		d.known(n, loc, "project", "ref", "job", "artifacts")
		cross.Project = d.text(project, attribute(loc, "project"))
		cross.Ref = d.text(n.get("ref"), attribute(loc, "ref"))
		if n.get("ref") == nil {
			d.fail(n.pos, attribute(loc, "ref"), "can't be blank")
		}
	} else {
		d.known(n, loc, "pipeline", "job", "artifacts")
		cross.Pipeline = d.text(pipeline, attribute(loc, "pipeline"))
	}
	if def.bridge {
		d.fail(n.pos, whole(strings.TrimSuffix(loc, ":need")), "uses invalid types: cross_dependency")
	}
	def.CrossNeeds = append(def.CrossNeeds, cross)
	return nil
}

// parallel reads a number of jobs, or a matrix.
func (d *decoder) parallel(n *node, loc string, def *definition) {
	switch {
	case n == nil:
	case n.kind == integer || n.kind == float:
		if def.bridge {
			d.fail(n.pos, whole(loc), `cannot use "parallel: <number>".`)
			return
		}
		def.count = d.number(n, whole(loc), 1, maxParallel)
	case n.kind == table:
		d.known(n, loc, "matrix")
		if n.get("matrix") == nil {
			d.fail(n.pos, whole(loc), "missing required keys: matrix")
			return
		}
		def.matrix = d.matrix(n.get("matrix"), loc+":matrix", n.pos)
	default:
		d.fail(n.pos, whole(loc), "should be an integer or a hash")
	}
}

// matrix returns the variables of each job: all combinations of the values of each entry,
// in which the last variable changes first.
func (d *decoder) matrix(n *node, loc string, at Pos) [][]Variable {
	if n == nil || n.kind != list {
		d.fail(at, whole(loc), "should be an array of hashes")
		return nil
	}
	out := [][]Variable{}
	for _, item := range flatten(n, maxNesting) {
		if item.kind != table || len(item.fields) == 0 {
			d.fail(item.pos, whole(loc), "should be an array of hashes")
			return nil
		}
		rows := [][]Variable{nil}
		for _, f := range item.fields {
			values, ok := matrixValues(f.value)
			if !ok {
				d.fail(f.value.pos, whole(loc), "should be a hash of key value pairs, value can be an array")
				return nil
			}
			if len(out)+len(rows)*len(values) > maxParallel {
				d.fail(item.pos, whole(loc), "generates too many jobs (maximum is %d)", maxParallel)
				return nil
			}
			rows = multiply(rows, f.key, values)
			// The name of a job contains the values of its row.
			if slices.ContainsFunc(rows, func(row []Variable) bool { return utf8.RuneCountInString(rowName(row)) > maxName }) {
				d.fail(f.value.pos, whole(loc), "generates the name of a job that is too long (maximum is %d characters)", maxName)
				return nil
			}
		}
		if d.rows += len(rows); d.rows > maxRows {
			d.fail(item.pos, whole(loc), "is one of too many: all matrices together have more than %d combinations", maxRows)
			return nil
		}
		for _, row := range rows {
			if !slices.ContainsFunc(out, func(o []Variable) bool { return slices.Equal(o, row) }) {
				out = append(out, row)
			}
		}
	}
	return out
}

// rowName returns the part of the name of a job that distinguishes it from the others
// of a matrix.
func rowName(row []Variable) string {
	values := make([]string, len(row))
	for i, v := range row {
		values[i] = v.Value
	}
	return strings.Join(values, ", ")
}

func multiply(rows [][]Variable, key string, values []string) [][]Variable {
	var out [][]Variable
	for _, row := range rows {
		for _, v := range values {
			out = append(out, append(slices.Clone(row), Variable{Key: key, Value: v}))
		}
	}
	return out
}

func matrixValues(n *node) ([]string, bool) {
	items := []*node{n}
	if n.kind == list {
		items = flatten(n, maxNesting)
	}
	var out []string
	for _, item := range items {
		if item.kind == null || item.kind == list || item.kind == table {
			return nil, false
		}
		out = append(out, item.text)
	}
	return out, len(out) > 0
}

func (d *decoder) trigger(n *node, loc string, def *definition) *Trigger {
	t := &Trigger{Forward: Forward{YAMLVariables: true}}
	switch n.kind {
	case text:
		t.Project = n.text
		return t
	case table:
	default:
		d.fail(n.pos, whole(loc), "has to be either a string or a hash")
		return nil
	}
	t.Strategy = d.oneOf(n.get("strategy"), attribute(loc, "strategy"), "depend", "mirror")
	if f := n.get("forward"); f != nil && d.table(f, loc+":forward", "yaml_variables", "pipeline_variables") {
		if v := d.truth(f.get("yaml_variables"), attribute(loc+":forward", "yaml_variables")); v != nil {
			t.Forward.YAMLVariables = *v
		}
		t.Forward.PipelineVariables = d.isTrue(f.get("pipeline_variables"), attribute(loc+":forward", "pipeline_variables"))
	}
	if in := n.get("inputs"); in != nil {
		if in.kind != table {
			d.fail(in.pos, attribute(loc, "inputs"), "should be a hash")
		}
		t.Inputs = raw(in)
	}
	if !n.has("include") {
		d.known(n, loc, "project", "branch", "strategy", "forward", "inputs")
		t.Project = d.text(n.get("project"), attribute(loc, "project"))
		t.Branch = d.text(n.get("branch"), attribute(loc, "branch"))
		if n.get("project") == nil {
			d.fail(n.pos, attribute(loc, "project"), "can't be blank")
		}
		return t
	}
	d.known(n, loc, "strategy", "include", "forward")
	if n.get("include") == nil {
		d.fail(n.pos, entry(loc, "include"), "can't be blank")
		return t
	}
	d.triggerInclude(n.get("include"), loc+":include", def)
	t.Include = raw(n.get("include"))
	return t
}

// triggerInclude checks the files of a child pipeline, and records the jobs that generate
// them.
func (d *decoder) triggerInclude(n *node, loc string, def *definition) {
	items := []*node{n}
	if n.kind == list {
		items = n.items
	}
	if len(items) > 3 {
		d.fail(n.pos, whole(loc), "is too long (maximum is 3)")
	}
	for _, item := range items {
		switch item.kind {
		case text:
		case table:
			d.known(item, loc+":include", "local", "file", "project", "ref", "remote", "template", "artifact", "job", "component", "inputs", "rules", "integrity")
			switch job := item.get("job"); {
			case item.get("artifact") == nil:
			case job == nil:
				d.fail(item.pos, whole(loc+":include"), "must specify the job where to fetch the artifact from")
			default:
				def.generators = append(def.generators, d.text(job, attribute(loc+":include", "job")))
			}
			if item.get("project") != nil && item.get("file") == nil {
				d.fail(item.pos, whole(loc+":include"), "must specify the file where to fetch the config from")
			}
		default:
			d.fail(item.pos, whole(loc+":include"), "should be a hash or a string")
		}
	}
}
