package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"svc/internal/expand"
)

// reader reads the main file and its includes.
type reader struct {
	ctx      context.Context
	src      Source
	limits   Limits
	budget   *budget
	own      *access // of the user who starts the pipeline
	public   *access // of remote files
	included []Included
	warnings Errors
	bytes    int
	filtered bool // rules excluded an include
}

func newReader(ctx context.Context, src Source, limits Limits) *reader {
	r := &reader{
		ctx:    ctx,
		src:    src,
		limits: limits,
		budget: newBudget(limits),
	}
	expands := expand.NewBudget(ctx)
	r.own = newAccess(ctx, &src.Input, expands)
	r.own.component, r.own.artifact = src.Component, src.Artifact
	r.public = newAccess(ctx, &Input{Files: src.PublicFiles}, expands)
	r.public.component = src.PublicComponent
	return r
}

// access is what the includes of a file can use: variables, and files of projects. The
// includes of a remote file, which belongs to another site, see no variables and only
// public projects; so do all files that they include.
type access struct {
	scope     *scope
	variables Lookup
	expander  *Expander
	component func(ctx context.Context, project, version string) (at Place, released string, err error)
	artifact  func(ctx context.Context, job, path string, limit int) ([]byte, error)
}

func newAccess(ctx context.Context, in *Input, expands *expand.Budget) *access {
	a := &access{scope: newScope(ctx, in), variables: LookupIn(in.Predefined, in.Variables)}
	a.scope.expands = expands
	a.expander = Flat(expands, a.variables)
	return a
}

// file is YAML content with its origin.
type file struct {
	name   string
	at     Place // for include:local within
	local  bool  // at is a project whose files can be read
	inputs map[string]*node
	loose  map[string]bool // inputs whose type is not known yet
	asked  Pos             // position of the include
	depth  int
	path   string // of a component
	access *access

	component componentContext
}

// content returns the content of the main file.
func (r *reader) content() ([]byte, error) {
	name := r.src.Path
	content := r.src.Content
	if content == nil {
		if r.src.Input.Files == nil {
			return nil, failAt(Pos{File: name}, "", "Missing CI config file")
		}
		var err error
		content, err = r.src.Input.Files.Read(r.ctx, r.src.Input.At, strings.TrimLeft(name, "/"), r.limits.FileBytes)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, failAt(Pos{File: name}, "", "Missing CI config file")
		}
		if err != nil {
			return nil, err
		}
	}
	if strings.TrimSpace(string(content)) == "" {
		return nil, failAt(Pos{File: name}, "", "Please provide content of %s", path.Base("/"+name))
	}
	return content, nil
}

// main reads the main file and merges its includes.
func (r *reader) main() (*node, error) {
	name := r.src.Path
	content, err := r.content()
	if err != nil {
		return nil, err
	}
	inputs, loose := map[string]*node{}, map[string]bool{}
	for key, value := range r.src.Inputs {
		_, loose[key] = value.(Texts)
		n, err := nodeOf(value, Pos{File: name})
		if err != nil {
			return nil, err
		}
		inputs[key] = n
	}
	f := file{name: name, at: r.src.Input.At, local: r.src.Input.Files != nil, inputs: inputs, loose: loose, asked: Pos{File: name}, access: r.own}
	root, err := r.read(f, content)
	if err != nil {
		return nil, err
	}
	if root.kind != table {
		return nil, failAt(root.pos, "", "Invalid configuration format")
	}
	return root, nil
}

// read parses a file, fills in its inputs, and merges it over its includes.
func (r *reader) read(f file, content []byte) (*node, error) {
	if r.bytes += len(content); r.bytes > r.limits.TotalBytes {
		return nil, failAt(f.asked, "include", "Total size of the configuration is larger than %d bytes", r.limits.TotalBytes)
	}
	doc, err := parse(f.name, content, r.limits, r.budget)
	if err != nil {
		return nil, err
	}
	r.warnings = append(r.warnings, doc.twice[:min(len(doc.twice), maxErrors)]...)
	root, err := r.interpolate(f, doc)
	if err != nil {
		return nil, err
	}
	if root.kind != table || !root.has("include") {
		return root, nil
	}
	return r.include(f, root)
}

func (r *reader) interpolate(f file, doc *document) (*node, error) {
	if !doc.header {
		if len(f.inputs) > 0 {
			return nil, failAt(f.asked, "include:inputs", "Given inputs not defined in the `spec` section of the included configuration file")
		}
		return doc.content, nil
	}
	header, err := readSpec(doc.spec)
	if err != nil {
		return nil, err
	}
	values, err := fillInputs(header.inputs, f.inputs, f.loose, f.asked)
	if err != nil {
		return nil, err
	}
	p := &interpolator{inputs: values, component: f.component.values(header.component), variables: r.own.variables, expands: r.own.scope.expands, budget: r.budget, done: map[*node]*node{}}
	root, err := p.tree(doc.content)
	if err != nil {
		return nil, err
	}
	if f.access != r.own && root.kind == table && root.has("include") {
		// The jobs of the file can use expand_vars; its includes cannot.
		p.variables, p.done = f.access.variables, map[*node]*node{}
		blind, err := p.tree(doc.content)
		if err != nil {
			return nil, err
		}
		root = root.without("include")
		if asked := blind.get("include"); asked != nil {
			root = newTable(append(slices.Clone(root.fields), field{key: "include", pos: blind.keyPos("include"), value: asked}), root.pos)
		}
	}
	return root, r.limits.check(root)
}

// include reads the includes of a file in order and merges them; later files override
// earlier ones, and the file itself overrides all of them.
func (r *reader) include(f file, root *node) (*node, error) {
	asked := root.get("include")
	merged := newTable(nil, root.pos)
	if asked != nil {
		items := []*node{asked}
		if asked.kind == list {
			items = flatten(asked, maxNesting)
		}
		for _, item := range items {
			requests, err := r.requests(f, item)
			if err != nil {
				return nil, err
			}
			for _, q := range requests {
				if merged, err = r.one(f, q, merged); err != nil {
					return nil, err
				}
			}
		}
	}
	return merge(merged, root.without("include"), r.budget)
}

// one fetches, reads and merges one file.
func (r *reader) one(f file, q request, merged *node) (*node, error) {
	if len(r.included) >= r.limits.Includes || f.depth >= maxIncludeDepth {
		return nil, r.fail(q, "Maximum of %d nested includes are allowed!", r.limits.Includes)
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	at := len(r.included)
	r.included = append(r.included, Included{Type: q.kind, Location: q.location, Project: q.project, Ref: q.ref, Job: q.job, From: f.at})
	inner := file{name: q.location, inputs: q.inputs, asked: q.pos, depth: f.depth + 1, access: f.access}
	if q.kind == "remote" {
		inner.access = r.public
	}
	content, err := r.fetch(f, q, &inner)
	if err != nil {
		return nil, err
	}
	r.included[at].At, r.included[at].Path = inner.at, inner.path
	root, err := r.read(inner, content)
	if err != nil {
		return nil, err
	}
	switch root.kind {
	case null:
		return merged, nil
	case table:
		return merge(merged, root, r.budget)
	}
	return nil, r.fail(q, "Included file `%s` does not have valid YAML syntax!", q.location)
}

// fail returns the error of an include, without masked values.
func (r *reader) fail(q request, format string, args ...any) *Error {
	message := mask(fmt.Sprintf(format, args...), r.src.Input.Predefined, r.src.Input.Variables)
	return newError(q.pos, "include", message)
}

// flatten returns the items of a list and of its nested lists.
func flatten(n *node, levels int) []*node {
	if !slices.ContainsFunc(n.items, func(i *node) bool { return i.kind == list }) || levels == 0 {
		return n.items
	}
	var items []*node
	for _, item := range n.items {
		if item.kind == list {
			items = append(items, flatten(item, levels-1)...)
			continue
		}
		items = append(items, item)
	}
	return items
}
