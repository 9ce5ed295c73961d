package config

import (
	"slices"
	"strings"
)

// rootKeys are the keywords of the whole file; every other key is a job.
func rootKeys() []string {
	return []string{
		"default", "include", "before_script", "image", "services", "after_script",
		"variables", "stages", "cache", "workflow",
	}
}

// defaultKeys are the keywords that jobs inherit from default.
func defaultKeys() []string {
	return []string{
		"before_script", "after_script", "image", "services", "cache", "interruptible", "timeout",
		"retry", "tags", "artifacts", "hooks", "id_tokens", "identity",
	}
}

// root checks the whole configuration.
func (d *decoder) root(n *node) {
	d.config.Stages = d.stages(n.get("stages"))
	d.config.Variables = d.defaultVariables(n.get("variables"))
	d.config.workflow = d.workflow(n.get("workflow"))
	defaults := d.defaults(n)

	d.config.byName = map[string]*definition{}
	if len(n.fields) > maxInstances {
		d.fail(n.pos, spot{"jobs", "jobs config"}, "has more than %d jobs", maxInstances)
		return
	}
	visible, total := false, 0
	for _, f := range n.fields {
		if slices.Contains(rootKeys(), f.key) || strings.HasPrefix(f.key, ".") {
			continue
		}
		if d.ctx.Err() != nil {
			return
		}
		visible = true
		if def := d.job(f, defaults); def != nil {
			d.config.jobs = append(d.config.jobs, def)
			d.config.byName[f.key] = def
			if total += def.instanceCount(); total > maxInstances {
				d.fail(n.pos, spot{"jobs", "jobs config"}, "has more than %d jobs", maxInstances)
				return
			}
		}
	}
	if !visible {
		d.jobless = true
		d.fail(n.pos, spot{"jobs", "jobs config"}, "should contain at least one visible job")
		return
	}
	if len(d.errs) == 0 {
		d.relations()
	}
}

func (d *decoder) stages(n *node) []string {
	names := []string{"build", "test", "deploy"}
	if n != nil {
		if n.kind == list {
			n = newList(list, flatten(n, maxNesting), n.pos)
		}
		names = d.texts(n, spot{"stages", "stages config"})
		if len(names) == 0 && n.kind == list {
			d.fail(n.pos, spot{"stages", "stages config"}, "can't be blank")
		}
	}
	names = slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == ".pre" || s == ".post" })
	if len(names) > maxStages {
		d.fail(n.pos, spot{"stages", "stages config"}, "has more than %d stages", maxStages)
		names = nil
	}
	d.stageAt = map[string]int{".pre": 0}
	all := []string{".pre"}
	for _, s := range names {
		if _, ok := d.stageAt[s]; !ok {
			d.stageAt[s] = len(all)
			all = append(all, s)
		}
	}
	d.stageAt[".post"] = len(all)
	return append(all, ".post")
}

// defaults reads default, and those of its keywords that are allowed at the root.
func (d *decoder) defaults(root *node) *defaults {
	out := &defaults{}
	out.set = map[string]bool{}
	n := root.get("default")
	if n != nil && d.table(n, "default", defaultKeys()...) {
		d.common(n, "default", &out.Job, out.set)
	}
	old := []string{"before_script", "after_script", "image", "services", "cache"}
	var fields []field
	for _, key := range old {
		v := root.get(key)
		if v == nil {
			continue
		}
		if out.set[key] {
			d.fail(v.pos, attribute("default", key), "is defined in top-level and `default:` entry")
			continue
		}
		fields = append(fields, field{key: key, pos: root.keyPos(key), value: v})
	}
	d.common(newTable(fields, root.pos), "", &out.Job, out.set)
	return out
}

// defaults are the values for keywords that a job does not set.
type defaults struct {
	Job
	set map[string]bool
}

// fill sets the keywords that a job inherits and has not set.
func (f *defaults) fill(j *Job, has map[string]bool, inherits func(key string) bool) {
	for key := range f.set {
		if has[key] || !inherits(key) {
			continue
		}
		switch key {
		case "before_script":
			j.BeforeScript = f.BeforeScript
		case "after_script":
			j.AfterScript = f.AfterScript
		case "image":
			j.Image = f.Image
		case "services":
			j.Services = f.Services
		case "cache":
			j.Cache = f.Cache
		case "interruptible":
			j.Interruptible = f.Interruptible
		case "timeout":
			j.Timeout = f.Timeout
		case "retry":
			j.Retry = f.Retry
		case "tags":
			j.Tags = f.Tags
		case "artifacts":
			j.Artifacts = f.Artifacts
		case "hooks":
			j.Hooks = f.Hooks
		case "id_tokens":
			j.IDTokens = f.IDTokens
		case "identity":
			j.Identity = f.Identity
		}
	}
}

func (d *decoder) defaultVariables(n *node) []DefaultVariable {
	if n == nil {
		return nil
	}
	if n.kind != table {
		d.fail(n.pos, spot{"variables", "variables config"}, "should be a hash")
		return nil
	}
	if !d.fewVariables(n, "variables") {
		return nil
	}
	var out []DefaultVariable
	for _, f := range n.fields {
		v, ok := d.variable(f, "variables", "value", "description", "expand", "options")
		if !ok {
			continue
		}
		full := DefaultVariable{Variable: v}
		loc := "variables:" + f.key
		full.Description = d.text(f.value.get("description"), attribute(loc, "config_description"))
		full.Options = d.texts(f.value.get("options"), attribute(loc, "config_options"))
		if len(full.Options) > 0 && !slices.Contains(full.Options, v.Value) {
			d.fail(f.value.pos, whole(loc), "value must be present in options")
		}
		out = append(out, full)
	}
	return out
}

// variables reads variables of a job, a rule or a service.
func (d *decoder) variables(n *node, loc string, keys ...string) []Variable {
	if n == nil {
		return nil
	}
	if n.kind != table {
		d.fail(n.pos, whole(loc), "should be a hash of key value pairs")
		return nil
	}
	if !d.fewVariables(n, loc) {
		return nil
	}
	var out []Variable
	for _, f := range n.fields {
		if v, ok := d.variable(f, loc, keys...); ok {
			out = append(out, v)
		}
	}
	return out
}

func (d *decoder) fewVariables(n *node, loc string) bool {
	if len(n.fields) > maxVariables {
		d.fail(n.pos, whole(loc), "has more than %d variables", maxVariables)
		return false
	}
	return true
}

// variable reads one variable: a scalar, or a table with the given keys.
func (d *decoder) variable(f field, loc string, keys ...string) (Variable, bool) {
	v := Variable{Key: f.key}
	loc += ":" + f.key
	switch f.value.kind {
	case boolean, integer, float, text:
		v.Value = f.value.text
		return v, true
	case table:
	default:
		d.fail(f.value.pos, spot{loc, "variable definition"}, "must be either a string or a hash")
		return v, false
	}
	if len(keys) == 0 {
		d.fail(f.value.pos, whole(loc), "must be a string")
		return v, false
	}
	if key, pos := unknownKey(f.value, keys...); key != "" {
		d.fail(pos, whole(loc), "uses invalid data keys: %s", key)
		return v, false
	}
	if value := f.value.get("value"); value != nil {
		if value.kind == list || value.kind == table {
			d.fail(value.pos, attribute(loc, "config_value"), "must be a scalar")
			return v, false
		}
		v.Value = value.text
	}
	if expand := d.truth(f.value.get("expand"), attribute(loc, "config_expand")); expand != nil {
		v.Raw = !*expand
	}
	return v, true
}

func (d *decoder) workflow(n *node) workflow {
	var w workflow
	if n == nil || !d.table(n, "workflow", "rules", "name", "auto_cancel") {
		return w
	}
	w.name = strings.TrimSpace(d.text(n.get("name"), attribute("workflow", "name")))
	if len(w.name) > maxName {
		d.fail(n.get("name").pos, attribute("workflow", "name"), "is too long (maximum is %d characters)", maxName)
	}
	if a := d.autoCancel(n.get("auto_cancel"), "workflow:auto_cancel"); a != nil {
		w.autoCancel = *a
	}
	if rules := n.get("rules"); rules != nil {
		w.hasRules = true
		w.rules = d.rules(rules, "workflow", ruleKinds{
			keys:  []string{"if", "changes", "exists", "when", "variables", "auto_cancel"},
			whens: []When{Always, Never},
			// Rules may be shared with jobs.
			ignored: []string{"allow_failure", "needs", "start_in"},
		})
	}
	return w
}

func (d *decoder) autoCancel(n *node, loc string) *AutoCancel {
	if n == nil || !d.table(n, loc, "on_new_commit", "on_job_failure") {
		return nil
	}
	return &AutoCancel{
		OnNewCommit:  d.oneOf(n.get("on_new_commit"), attribute(loc, "on_new_commit"), "conservative", "interruptible", "none"),
		OnJobFailure: d.oneOf(n.get("on_job_failure"), attribute(loc, "on_job_failure"), "none", "all"),
	}
}
