package config

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The keywords of a job with a script, of a bridge, and of both.
func processableKeys() []string {
	return []string{
		"extends", "stage", "only", "except", "rules", "variables", "inherit", "allow_failure", "when",
		"needs", "resource_group", "environment", "interruptible", "parallel", "manual_confirmation",
	}
}

func scriptKeys() []string {
	return append(processableKeys(),
		"tags", "script", "image", "services", "start_in", "artifacts", "cache", "dependencies", "before_script",
		"after_script", "hooks", "coverage", "retry", "timeout", "release", "id_tokens", "publish", "pages",
		"secrets", "identity", "dast_configuration", "run",
	)
}

func bridgeKeys() []string { return append(processableKeys(), "trigger") }

// job reads a job; nil if the entry is not a job at all.
func (d *decoder) job(f field, defaults *defaults) *definition {
	n := f.value
	loc := "jobs:" + f.key
	if n.kind != table || !n.has("script") && !n.has("run") && !n.has("trigger") && !n.has("needs") {
		d.fail(f.pos, spot{loc, "jobs " + f.key + " config"}, "should implement the script:, run:, or trigger: keyword")
		return nil
	}
	def := &definition{pos: f.pos}
	def.Name, def.Group = f.key, f.key
	def.bridge = !n.has("script") && !n.has("run")
	if utf8.RuneCountInString(f.key) > maxName {
		d.fail(f.pos, attribute(loc, "name"), "is too long (maximum is %d characters)", maxName)
		return nil // the locations of its keywords would all contain the name
	}
	if strings.TrimSpace(f.key) == "" {
		d.fail(f.pos, attribute(loc, "name"), "can't be blank")
	}
	if n.has("script") && n.has("trigger") {
		d.fail(n.keyPos("trigger"), whole(loc), "these keys cannot be used together: script, trigger")
		return def
	}
	if n.get("run") != nil {
		d.fail(n.keyPos("run"), attribute(loc, "run"), "is not supported, use `script`")
		return def
	}
	d.processable(n, loc, def)
	has := map[string]bool{}
	if def.bridge {
		d.known(n, loc, bridgeKeys()...)
		d.bridge(n, loc, def)
		has["interruptible"] = n.get("interruptible") != nil
	} else {
		d.known(n, loc, scriptKeys()...)
		d.common(n, loc, &def.Job, has)
		d.script(n, loc, def)
	}
	inherits := d.inherit(n.get("inherit"), loc+":inherit", def)
	defaults.fill(&def.Job, has, func(key string) bool {
		return (!def.bridge || key == "interruptible") && inherits(key)
	})
	if !def.bridge {
		d.pages(n, loc, def)
	}
	return def
}

// processable reads the keywords that jobs and bridges share.
func (d *decoder) processable(n *node, loc string, def *definition) {
	d.textOrTexts(n.get("extends"), attribute(loc, "extends"))
	def.Stage, def.at = "test", def.pos
	if s := n.get("stage"); s != nil {
		def.at = s.pos
		def.Stage = d.text(s, entry(loc, "stage"))
	}
	def.Variables = d.variables(n.get("variables"), loc+":variables", "value", "expand")
	def.ResourceGroup = d.text(n.get("resource_group"), attribute(loc, "resource_group"))
	def.ManualConfirmation = d.text(n.get("manual_confirmation"), attribute(loc, "manual_confirmation"))
	def.Environment = d.environment(n.get("environment"), loc+":environment")
	d.parallel(n.get("parallel"), loc+":parallel", def)

	whens := []string{"on_success", "on_failure", "always", "manual", "delayed"}
	if def.bridge {
		whens = whens[:4]
	}
	def.when = When(d.oneOf(n.get("when"), attribute(loc, "when"), whens...))
	d.allowFailure(n.get("allow_failure"), loc, def)
	d.conditions(n, loc, def)
}

// conditions reads the keywords that decide whether the job is part of a pipeline.
func (d *decoder) conditions(n *node, loc string, def *definition) {
	def.only = d.policy(n.get("only"), loc+":only")
	def.except = d.policy(n.get("except"), loc+":except")
	rules := n.get("rules")
	if rules == nil {
		// A job without rules runs for branches and tags, and so does a job whose only
		// names no refs.
		if def.only == nil && !d.config.workflow.hasRules {
			def.only = &policy{}
		}
		if def.only != nil && !def.only.hasRefs {
			def.only.Refs, def.only.hasRefs = []string{"branches", "tags"}, true
		}
		return
	}
	var clash []string
	for _, key := range []string{"only", "except", "start_in"} {
		if n.get(key) != nil {
			clash = append(clash, key)
		}
	}
	if clash != nil {
		d.fail(n.keyPos(clash[0]), whole(loc), "key may not be used with `rules`: %s", strings.Join(clash, ", "))
	}
	def.hasRules = true
	def.rules = d.rules(rules, loc, ruleKinds{
		keys:  []string{"if", "changes", "exists", "when", "start_in", "allow_failure", "variables", "needs", "interruptible"},
		whens: []When{OnSuccess, OnFailure, Always, Never, Manual, Delayed},
	})
	if len(def.rules) > 0 && !d.config.workflow.hasRules {
		if last := def.rules[len(def.rules)-1]; last.bare && last.when != Never {
			d.warn(last.pos, loc+":rules", "%s may allow multiple pipelines to run for a single action due to `rules:when` clause with no `workflow:rules`", loc)
		}
	}
}

// allowFailure reads a boolean, or the exit codes that do not count as a failure.
func (d *decoder) allowFailure(n *node, loc string, def *definition) {
	if n == nil {
		def.AllowFailure = def.when == Manual
		return
	}
	def.allowFailureSet = true
	if n.kind != table {
		if n.kind != boolean {
			d.fail(n.pos, attribute(loc, "allow_failure"), "should be a hash or a boolean value")
			return
		}
		def.AllowFailure = n.text == "true"
		return
	}
	loc += ":allow_failure"
	d.known(n, loc, "exit_codes")
	if n.get("exit_codes") == nil {
		d.fail(n.pos, whole(loc), "missing required keys: exit_codes")
	}
	def.AllowFailureExitCodes = d.numbers(n.get("exit_codes"), attribute(loc, "exit_codes"))
}

// script reads the keywords of jobs with a script.
func (d *decoder) script(n *node, loc string, def *definition) {
	def.Script = d.commands(n.get("script"), entry(loc, "script"))
	if script := n.get("script"); script == nil || script.kind == list && len(script.items) == 0 || script.kind == text && script.text == "" {
		d.fail(n.keyPos("script"), attribute(loc, "script"), "can't be blank")
	}
	switch start := n.get("start_in"); {
	case def.when == Delayed && !def.hasRules:
		if start == nil {
			d.fail(n.keyPos("when"), attribute(loc, "start_in"), "should be a duration")
		}
		def.StartIn = d.duration(start, attribute(loc, "start_in"), week)
	case start != nil && !def.hasRules:
		d.fail(start.pos, attribute(loc, "start_in"), "must be blank")
	}
	def.Coverage = d.coverage(n.get("coverage"), entry(loc, "coverage"))
	def.Dependencies = d.texts(n.get("dependencies"), attribute(loc, "dependencies"))
	def.Release = d.release(n.get("release"), loc+":release")
	def.Secrets = d.secrets(n.get("secrets"), loc+":secrets")
	if dast := n.get("dast_configuration"); dast != nil && d.table(dast, loc+":dast_configuration", "site_profile", "scanner_profile") {
		def.DAST = raw(dast)
	}
	d.needs(n, loc, def)
	if def.Dependencies == nil || !def.hasNeeds {
		return
	}
	needed := make(map[string]bool, len(def.needs))
	for _, need := range def.needs {
		needed[need.Job] = true
	}
	var missing []string
	for _, name := range def.Dependencies {
		if !needed[name] {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		d.fail(n.keyPos("dependencies"), attribute(loc, "dependencies"), "the %s should be part of needs", strings.Join(missing, ", "))
	}
}

// bridge reads the keywords of bridges.
func (d *decoder) bridge(n *node, loc string, def *definition) {
	def.Interruptible = d.truth(n.get("interruptible"), entry(loc, "interruptible"))
	if trigger := n.get("trigger"); trigger != nil {
		def.Trigger = d.trigger(trigger, loc+":trigger", def)
	}
	if def.AllowFailureExitCodes != nil {
		d.fail(n.keyPos("allow_failure"), attribute(loc, "allow_failure"), "should be a boolean value")
	}
	d.needs(n, loc, def)
	if n.get("trigger") == nil && def.MirrorPipeline == "" {
		d.fail(def.pos, whole(loc), "should contain either a trigger or a needs:pipeline")
	}
}

// inherit returns a function that reports which defaults a job inherits.
func (d *decoder) inherit(n *node, loc string, def *definition) func(key string) bool {
	all := func(string) bool { return true }
	if n == nil || !d.table(n, loc, "default", "variables") {
		return all
	}
	if v := n.get("variables"); v != nil {
		switch {
		case v.kind == boolean:
			def.noVariables = v.text == "false"
		default:
			names, ok := stringsOf(v)
			if !ok || v.kind != list {
				d.fail(v.pos, entry(loc, "variables"), "should be a bool or array of strings")
			}
			def.someVariables = make(map[string]bool, len(names))
			for _, name := range names {
				def.someVariables[name] = true
			}
		}
	}
	v := n.get("default")
	switch {
	case v == nil:
		return all
	case v.kind == boolean:
		return func(string) bool { return v.text == "true" }
	}
	names, ok := stringsOf(v)
	if !ok || v.kind != list {
		d.fail(v.pos, entry(loc, "default"), "should be a bool or array of strings")
		return all
	}
	for _, name := range names {
		if !slices.Contains(defaultKeys(), name) {
			d.fail(v.pos, entry(loc, "default"), "contains unknown values: %s", name)
		}
	}
	return func(key string) bool { return slices.Contains(names, key) }
}
