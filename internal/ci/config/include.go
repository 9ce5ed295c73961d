package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"svc/internal/re2"
)

// request is one file to include.
type request struct {
	kind      string // as Included.Type
	location  string
	project   string
	ref       string
	job       string
	name      string // of a component
	integrity string
	inputs    map[string]*node
	pos       Pos
}

// requests returns the files that an item of include names; none if its rules exclude it.
func (r *reader) requests(f file, item *node) ([]request, error) {
	q := request{pos: item.pos}
	if item.kind == text {
		location := f.access.expander.Existing(item.text)
		if err := f.access.scope.expanded(item.pos); err != nil {
			return nil, err
		}
		q.kind = "local"
		if strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://") {
			q.kind = "remote"
		}
		return r.located(f, q, []string{location})
	}
	if item.kind != table {
		return nil, r.fail(q, "include config should be a hash or a string")
	}
	known := []string{"local", "file", "project", "ref", "remote", "template", "artifact", "job", "component", "inputs", "rules", "integrity"}
	if key, pos := unknownKey(item, known...); key != "" {
		q.pos = pos
		return nil, r.fail(q, "include config contains unknown keys: %s", key)
	}
	pass, err := r.passes(f, item.get("rules"))
	if err != nil || !pass {
		r.filtered = true
		return nil, err
	}
	item, err = r.expandItem(f, item.without("rules"))
	if err != nil {
		return nil, err
	}
	return r.requested(f, q, item)
}

func (r *reader) requested(f file, q request, item *node) ([]request, error) {
	kinds := []string{"local", "project", "remote", "template", "artifact", "component"}
	for _, k := range kinds {
		if !item.has(k) {
			continue
		}
		if q.kind != "" {
			return nil, r.fail(q, "Each include must use only one of: `local`, `project`, `remote`, `template`, `artifact`, `component`")
		}
		q.kind = k
	}
	if q.kind == "" {
		return nil, r.fail(q, "`%s` does not have a valid subkey for include. Valid subkeys are: `local`, `project`, `remote`, `template`, `artifact`", cut(flow(item), 0, 200))
	}
	words := map[string]string{}
	for _, key := range []string{"local", "project", "ref", "remote", "template", "artifact", "component", "job", "integrity"} {
		v := item.get(key)
		if v == nil {
			continue
		}
		if v.kind != text {
			return nil, r.fail(q, "Included file `%s` needs to be a string", v.text)
		}
		words[key] = v.text
	}
	q.project, q.ref, q.job, q.integrity = words["project"], words["ref"], words["job"], words["integrity"]
	if err := q.readInputs(item.get("inputs")); err != nil {
		return nil, err
	}
	locations := []string{words[q.kind]}
	switch q.kind {
	case "component":
		return r.component(q, words["component"])
	case "artifact":
		if q.job == "" {
			return nil, r.fail(q, "include config must specify the job where to fetch the artifact from")
		}
	case "project":
		q.kind = "file"
		var ok bool
		if locations, ok = stringsOf(item.get("file")); !ok || len(locations) == 0 {
			return nil, r.fail(q, "include config must specify the file where to fetch the config from")
		}
	}
	return r.located(f, q, locations)
}

func (q *request) readInputs(n *node) error {
	if n == nil {
		return nil
	}
	if n.kind != table {
		return failAt(n.pos, "include:inputs", "include inputs should be a hash")
	}
	q.inputs = make(map[string]*node, len(n.fields))
	for _, f := range n.fields {
		q.inputs[f.key] = f.value
	}
	return nil
}

// located returns a request for each location, and for each file that matches a pattern in
// a local location.
func (r *reader) located(f file, q request, locations []string) ([]request, error) {
	var all []request
	for _, location := range locations {
		q.location = location
		if q.kind != "remote" && q.kind != "template" {
			q.location = strings.TrimLeft(location, "/")
		}
		if q.kind == "remote" {
			location, _, _ = strings.Cut(location, "?")
		}
		if ext := strings.ToLower(path.Ext(location)); ext != ".yml" && ext != ".yaml" {
			return nil, r.fail(q, "Included file `%s` does not have YAML extension!", q.location)
		}
		if q.kind != "local" || !strings.Contains(q.location, "*") {
			all = append(all, q)
			continue
		}
		matched, err := r.wildcard(f, q)
		if err != nil {
			return nil, err
		}
		all = append(all, matched...)
	}
	return all, nil
}

func (r *reader) wildcard(f file, q request) ([]request, error) {
	if !f.local {
		return nil, r.fail(q, "Local file `%s` does not have project!", q.location)
	}
	paths, err := f.access.scope.paths(f.at)
	if err != nil {
		return nil, err
	}
	var all []request
	// Unlike in rules, ** matches any text here: ci/**.yml matches every file below ci.
	pattern := strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(q.location))
	re, err := regexp.Compile(`(?s)^` + pattern + `$`)
	if err != nil || len(pattern) > re2.MaxLength {
		return nil, r.fail(q, "Included file `%s` is not a valid pattern!", q.location)
	}
	for _, p := range paths {
		if !re.MatchString(p) {
			continue
		}
		q.location = p
		if all = append(all, q); len(all) > r.limits.Includes {
			break // one more file shows that there are too many
		}
	}
	return all, nil
}

// expandItem expands the variables in an include. Its rules were evaluated before.
func (r *reader) expandItem(in file, n *node) (*node, error) {
	if err := r.budget.spend(nodeWeight+len(n.text), n.pos); err != nil {
		return nil, err
	}
	switch n.kind {
	case text:
		expanded := in.access.expander.Existing(n.text)
		if err := in.access.scope.expanded(n.pos); err != nil {
			return nil, err
		}
		return newScalar(text, expanded, n.pos), nil
	case list:
		items := slices.Clone(n.items)
		for i, item := range items {
			var err error
			if items[i], err = r.expandItem(in, item); err != nil {
				return nil, err
			}
		}
		return newList(list, items, n.pos), nil
	case table:
		fields := slices.Clone(n.fields)
		for i, f := range fields {
			var err error
			if fields[i].value, err = r.expandItem(in, f.value); err != nil {
				return nil, err
			}
		}
		return newTable(fields, n.pos), nil
	}
	return n, nil
}

// passes evaluates include:rules.
func (r *reader) passes(f file, n *node) (bool, error) {
	if n == nil {
		return true, nil
	}
	d := &decoder{ctx: r.ctx, config: &Config{limits: r.limits}}
	rules := d.rules(n, "include", ruleKinds{
		keys:  []string{"if", "exists", "when", "changes"},
		whens: []When{Never, Always},
	})
	if len(d.errs) > 0 {
		return false, d.errs[0]
	}
	matched, err := f.access.scope.match(rules, f.at, f.access.variables)
	if err != nil {
		return false, err
	}
	return matched != nil && matched.when != Never, nil
}

// fetch reads a file and records its location.
func (r *reader) fetch(f file, q request, inner *file) ([]byte, error) {
	var content []byte
	var err error
	limit := r.limits.FileBytes
	switch q.kind {
	case "local":
		if !f.local {
			return nil, r.fail(q, "Local file `%s` does not have project!", q.location)
		}
		inner.at, inner.local = f.at, true
		content, err = f.access.scope.in.Files.Read(r.ctx, f.at, q.location, limit)
		if f.at != r.src.Input.At {
			inner.name = f.at.Project + ":" + q.location
		}
		return r.checked(q, content, err, "Local file `"+q.location+"`")
	case "file":
		return r.fetchProject(f, q, inner)
	case "template":
		if r.src.Templates == nil || !fs.ValidPath(q.location) {
			return nil, r.fail(q, "Template file `%s` is not a valid location!", q.location)
		}
		content, err = fs.ReadFile(r.src.Templates, q.location)
		return r.checked(q, content, err, "Template file `"+q.location+"`")
	case "component":
		return r.fetchComponent(f, q, inner)
	case "artifact":
		if f.access.artifact == nil {
			return nil, r.fail(q, "include:artifact can only be used in the `trigger` of a child pipeline")
		}
		content, err = f.access.artifact(r.ctx, q.job, q.location, limit)
		return r.checked(q, content, err, "File `"+q.location+"` of job `"+q.job+"`")
	}
	if r.src.Remote == nil {
		return nil, r.fail(q, "Remote file `%s` is not allowed: this server includes no files from other sites", q.location)
	}
	content, err = r.src.Remote(r.ctx, q.location, limit)
	if r.ctx.Err() != nil {
		return nil, r.ctx.Err()
	}
	if err != nil {
		return nil, r.fail(q, "Remote file `%s` could not be fetched: %s", q.location, err)
	}
	if !q.intact(content) {
		return nil, r.fail(q, "Remote file `%s` does not match its `integrity`", q.location)
	}
	return r.checked(q, content, nil, "Remote file `"+q.location+"`")
}

// intact checks include:integrity, sha256-<base64>.
func (q request) intact(content []byte) bool {
	if q.integrity == "" {
		return true
	}
	sum := sha256.Sum256(content)
	return q.integrity == "sha256-"+base64.StdEncoding.EncodeToString(sum[:])
}

func (r *reader) fetchProject(f file, q request, inner *file) ([]byte, error) {
	files := f.access.scope.in.Files
	if files == nil {
		return nil, r.fail(q, "Project `%s` not found or access denied! Make sure any includes in the pipeline configuration are correctly defined.", q.project)
	}
	at, err := files.Find(r.ctx, q.project, q.ref)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, r.fail(q, "Project `%s` not found or access denied! Make sure any includes in the pipeline configuration are correctly defined.", q.project)
	case err != nil:
		return nil, err
	case at.Commit == "":
		return nil, r.fail(q, "Project `%s` reference `%s` does not exist!", q.project, q.ref)
	}
	inner.at, inner.local, inner.name = at, true, q.project+":"+q.location
	content, err := files.Read(r.ctx, at, q.location, r.limits.FileBytes)
	return r.checked(q, content, err, "Project `"+q.project+"` file `"+q.location+"`")
}

func (r *reader) checked(q request, content []byte, err error, what string) ([]byte, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, r.fail(q, "%s does not exist!", what)
	case err != nil:
		return nil, err
	case len(bytes.TrimSpace(content)) == 0:
		return nil, r.fail(q, "%s is empty!", what)
	}
	return content, nil
}

// stringsOf returns the strings of a text or of a list of texts.
func stringsOf(n *node) ([]string, bool) {
	switch {
	case n == nil:
		return nil, true
	case n.kind == text:
		return []string{n.text}, true
	case n.kind != list:
		return nil, false
	}
	out := make([]string, 0, len(n.items))
	for _, item := range n.items {
		if item.kind != text {
			return nil, false
		}
		out = append(out, item.text)
	}
	return out, true
}
