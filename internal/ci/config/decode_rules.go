package config

import (
	"regexp"
	"slices"
	"strings"
)

// ruleKinds are the features that the rules of a section support.
type ruleKinds struct {
	keys    []string
	whens   []When
	ignored []string // keys without effect
}

// rules reads a list of rules. Nested lists are flattened.
func (d *decoder) rules(n *node, loc string, kinds ruleKinds) []*rule {
	if n.kind != list {
		d.fail(n.pos, attribute(loc, "rules"), "should be an array containing hashes and arrays of hashes")
		return nil
	}
	out := []*rule{}
	for _, item := range flatten(n, maxNesting) {
		if item.kind != table {
			d.fail(item.pos, attribute(loc, "rules"), "should be an array containing hashes and arrays of hashes")
			return nil
		}
		out = append(out, d.rule(item, loc+":rules:rule", kinds))
	}
	return out
}

func (d *decoder) rule(n *node, loc string, kinds ruleKinds) *rule {
	for _, key := range kinds.ignored {
		n = n.without(key)
	}
	d.known(n, loc, kinds.keys...)
	r := &rule{pos: n.pos, bare: len(n.fields) == 1 && n.has("when")}
	if len(n.fields) == 0 {
		d.fail(n.pos, whole(loc), "can't be blank")
	}
	if v := n.get("if"); v != nil {
		r.condition = d.expression(v, attribute(loc, "if"))
	}
	if v := n.get("when"); v != nil {
		r.when = When(v.text)
		if !slices.Contains(kinds.whens, r.when) {
			d.fail(v.pos, attribute(loc, "when"), "unknown value: %s", v.text)
		}
	}
	r.changes = d.changes(n.get("changes"), loc+":changes")
	r.exists = d.exists(n.get("exists"), loc+":exists")
	switch start := n.get("start_in"); {
	case r.when == Delayed && start == nil:
		d.fail(n.keyPos("when"), attribute(loc, "start_in"), "can't be blank")
	case r.when == Delayed:
		r.startIn = d.duration(start, attribute(loc, "start_in"), week)
	case start != nil:
		d.fail(n.keyPos("start_in"), whole(loc), "contains disallowed keys: start_in")
	}
	r.allowFailure = d.truth(n.get("allow_failure"), attribute(loc, "allow_failure"))
	r.interruptible = d.truth(n.get("interruptible"), attribute(loc, "interruptible"))
	r.variables = d.variables(n.get("variables"), loc+":variables")
	r.autoCancel = d.autoCancel(n.get("auto_cancel"), loc+":auto_cancel")
	if v := n.get("needs"); v != nil && slices.Contains(kinds.keys, "needs") {
		var def definition
		def.bridge = true // artifacts of other pipelines are not allowed here
		r.hasNeeds = true
		r.needs = d.needList(v, loc+":needs", &def)
		if def.MirrorPipeline != "" {
			d.fail(v.pos, entry(loc, "needs"), "uses invalid types: bridge")
		}
	}
	return r
}

func (d *decoder) expression(n *node, s spot) *Expression {
	if n.kind == text {
		if e, err := ParseExpression(n.text); err == nil {
			return e
		}
	}
	d.fail(n.pos, s, "invalid expression syntax")
	return nil
}

func (d *decoder) changes(n *node, loc string) *changes {
	if n == nil {
		return nil
	}
	c := &changes{}
	paths := n
	if n.kind == table {
		d.known(n, loc, "paths", "compare_to")
		if paths = n.get("paths"); paths == nil {
			d.fail(n.pos, whole(loc), "missing required keys: paths")
			return nil
		}
		c.compareTo = d.text(n.get("compare_to"), attribute(loc, "compare_to"))
	}
	if c.paths = d.texts(paths, whole(loc)); len(c.paths) > 50 {
		d.fail(paths.pos, whole(loc), "has too many entries (maximum 50)")
	}
	return c
}

func (d *decoder) exists(n *node, loc string) *exists {
	if n == nil {
		return nil
	}
	e := &exists{}
	paths := n
	if n.kind == table {
		d.known(n, loc, "paths", "project", "ref")
		if paths = n.get("paths"); paths == nil {
			d.fail(n.pos, whole(loc), "missing required keys: paths")
			return nil
		}
		e.project = d.text(n.get("project"), attribute(loc, "project"))
		e.ref = d.text(n.get("ref"), attribute(loc, "ref"))
		if e.ref != "" && e.project == "" {
			d.fail(n.pos, whole(loc), "must specify `project` when using `ref`")
		}
	}
	if e.paths = d.texts(paths, whole(loc)); len(e.paths) > 50 {
		d.fail(paths.pos, whole(loc), "has too many entries (maximum 50)")
	}
	return e
}

// policy reads only or except: a list of refs, or a table.
func (d *decoder) policy(n *node, loc string) *policy {
	if n == nil {
		return nil
	}
	p := &policy{pos: n.pos}
	switch n.kind {
	case text:
		p.Refs, p.hasRefs = []string{n.text}, true
		d.refs(p, n, whole(loc))
		return p
	case list:
		p.Refs, p.hasRefs = d.refList(n, whole(loc)), true
		d.refs(p, n, whole(loc))
		return p
	case table:
	default:
		d.fail(n.pos, whole(loc), "has to be either an array of conditions or a hash")
		return nil
	}
	d.known(n, loc, "refs", "kubernetes", "variables", "changes")
	if len(n.fields) == 0 {
		d.fail(n.pos, whole(loc), "can't be blank")
	}
	if v := n.get("kubernetes"); v != nil {
		d.fail(v.pos, attribute(loc, "kubernetes"), "is not supported")
	}
	if v := n.get("refs"); v != nil {
		p.Refs, p.hasRefs = d.refList(v, attribute(loc, "refs")), true
		d.refs(p, v, attribute(loc, "refs"))
	}
	if v := n.get("changes"); v != nil {
		p.Changes = d.texts(v, attribute(loc, "changes"))
	}
	if v := n.get("variables"); v != nil {
		p.Variables = d.texts(v, attribute(loc, "variables"))
		for _, text := range p.Variables {
			e, err := ParseExpression(text)
			if err != nil {
				d.fail(v.pos, attribute(loc, "variables"), "invalid expression syntax")
				break
			}
			p.exprs = append(p.exprs, e)
		}
	}
	return p
}

const refsMessage = "should be an array of strings or regular expressions using re2 syntax"

func (d *decoder) refList(n *node, s spot) []string {
	refs, ok := stringsOf(n)
	if !ok || n.kind != list {
		d.fail(n.pos, s, refsMessage)
	}
	return refs
}

func (d *decoder) refs(p *policy, n *node, s spot) {
	for _, ref := range p.Refs {
		ref, _ = splitRef(ref)
		if !looksLikePattern(ref) {
			continue
		}
		if _, _, err := checkPattern(ref); err != nil {
			d.fail(n.pos, s, refsMessage)
			return
		}
	}
}

// patternAt matches a pattern that is followed by @ and a project. An @ inside the pattern
// does not count.
var patternAt = regexp.MustCompile(`^(/(?:[^/\\]|\\.)*/[ismU]*)@(.+)$`)

// splitRef splits ref@group/project into the ref and the project.
func splitRef(ref string) (name, project string) {
	if !strings.HasPrefix(ref, "/") {
		name, project, _ = strings.Cut(ref, "@")
		return name, project
	}
	if m := patternAt.FindStringSubmatch(ref); m != nil {
		return m[1], m[2]
	}
	return ref, ""
}
