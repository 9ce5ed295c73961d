package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// relations checks what jobs refer to: stages and other jobs.
func (d *decoder) relations() {
	instances := map[string]*definition{}
	for _, def := range d.config.jobs {
		if def.matrix == nil && def.count == 0 {
			continue
		}
		for _, i := range def.instances() {
			if d.find(i.name, instances) != nil {
				d.complain(def, def.pos, "parallel", "there is another job named %s", i.name)
			}
			if utf8.RuneCountInString(i.name) > maxName {
				d.complain(def, def.pos, "parallel", "the name %s is too long (maximum is %d characters)", i.name, maxName)
			}
			instances[i.name] = def
		}
	}
	for _, def := range d.config.jobs {
		if d.ctx.Err() != nil {
			return
		}
		d.relate(def, instances)
	}
	if len(d.errs) == 0 {
		d.circles(instances)
	}
}

func (d *decoder) complain(def *definition, pos Pos, key, format string, args ...any) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, newError(pos, "jobs:"+def.Name+":"+key, def.Name+" job: "+fmt.Sprintf(format, args...)))
	}
}

func (d *decoder) relate(def *definition, instances map[string]*definition) {
	at, ok := d.stageAt[def.Stage]
	if !ok {
		d.complain(def, def.at, "stage", "chosen stage %s does not exist; available stages are %s", def.Stage, strings.Join(d.config.Stages, ", "))
		return
	}
	def.StageIndex = at
	for _, name := range def.Dependencies {
		d.earlier(def, def.pos, name, "dependency", false, instances)
	}
	for _, need := range def.needs {
		d.earlier(def, need.pos, need.Job, "need", need.Optional, instances)
	}
	for _, r := range def.rules {
		for _, need := range r.needs {
			d.earlier(def, need.pos, need.Job, "need", need.Optional, instances)
		}
	}
	for _, name := range def.generators {
		d.earlier(def, def.pos, name, "dependency", false, instances)
	}
	d.stopJob(def)
}

// find returns the definition of a job, of a parallel group, or of a job of such a group.
func (d *decoder) find(name string, instances map[string]*definition) *definition {
	if def := d.config.byName[name]; def != nil {
		return def
	}
	return instances[name]
}

func (d *decoder) earlier(def *definition, pos Pos, name, what string, optional bool, instances map[string]*definition) {
	key := "needs"
	if what == "dependency" {
		key = "dependencies"
	}
	other := d.find(name, instances)
	if other == nil {
		if !optional {
			d.complain(def, pos, key, "undefined %s: %s", what, name)
		}
		return
	}
	// The other job may come later in the file: its stage is not known yet.
	if at, ok := d.stageAt[other.Stage]; ok && at > def.StageIndex {
		d.complain(def, pos, key, "%s %s is not defined in current or prior stages", what, name)
	}
}

func (d *decoder) stopJob(def *definition) {
	if def.Environment == nil || def.Environment.OnStop == "" {
		return
	}
	name := def.Environment.OnStop
	fail := func(format string) { d.complain(def, def.pos, "environment:on_stop", format, name) }
	stop := d.config.byName[name]
	switch {
	case stop == nil:
		fail("on_stop job %s is not defined")
	case stop.Environment == nil:
		fail("on_stop job %s does not have environment defined")
	case stop.Environment.Name != def.Environment.Name:
		fail("on_stop job %s have different environment name")
	case stop.Environment.Action != "stop":
		fail("on_stop job %s needs to have action stop defined")
	}
}

// circles finds jobs of one stage that need each other.
func (d *decoder) circles(instances map[string]*definition) {
	const (
		fresh = iota
		open
		closed
	)
	state := make(map[*definition]int, len(d.config.jobs))
	var path []string
	var visit func(def *definition) bool
	visit = func(def *definition) bool {
		switch state[def] {
		case open:
			from := slices.Index(path, def.Name)
			circle := append(slices.Clone(path[from:]), def.Name)
			d.errs = append(d.errs, failAt(def.pos, "jobs:"+def.Name+":needs", "The pipeline has circular dependencies: %s", strings.Join(circle, " -> ")))
			return false
		case closed:
			return true
		}
		state[def] = open
		path = append(path, def.Name)
		for _, need := range def.needs {
			if other := d.find(need.Job, instances); other != nil && !visit(other) {
				return false
			}
		}
		path = path[:len(path)-1]
		state[def] = closed
		return true
	}
	for _, def := range d.config.jobs {
		if !visit(def) {
			return
		}
	}
}
