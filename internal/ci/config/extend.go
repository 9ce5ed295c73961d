package config

import (
	"slices"
	"strings"
)

// extender merges jobs with those that they extend.
type extender struct {
	root   *node
	budget *budget
	done   map[string]*node
	levels map[string]int // the levels of extends of each resolved job
}

// extend resolves extends in every job of the configuration.
func extend(root *node, b *budget) (*node, error) {
	e := &extender{root: root, budget: b, done: map[string]*node{}, levels: map[string]int{}}
	fields := slices.Clone(root.fields)
	for i, f := range fields {
		if slices.Contains(rootKeys(), f.key) {
			continue
		}
		made, err := e.job(f.key, nil)
		if err != nil {
			return nil, err
		}
		fields[i].value = made
	}
	return newTable(fields, root.pos), nil
}

func (e *extender) job(name string, chain []string) (*node, error) {
	if made, ok := e.done[name]; ok {
		return made, nil
	}
	n := e.root.fields[e.root.find(name)].value
	bases := e.bases(n)
	if len(bases) == 0 {
		return n, nil
	}
	pos := n.keyPos("extends")
	fail := func(format string, args ...any) error {
		return failAt(pos, name+":extends", name+": "+format, args...)
	}
	if slices.Contains(chain, name) {
		return nil, fail("circular dependency detected in `extends`")
	}
	if len(chain) > maxExtends {
		return nil, fail("nesting too deep in `extends`")
	}
	var unknown []string
	for _, b := range bases {
		if !e.root.has(b) {
			unknown = append(unknown, b)
		}
	}
	if len(unknown) > 0 {
		return nil, fail("unknown keys in `extends` (%s)", strings.Join(unknown, ", "))
	}
	made, levels := newTable(nil, n.pos), 0
	for _, b := range bases {
		base, err := e.job(b, append(slices.Clone(chain), name))
		if err != nil {
			return nil, err
		}
		if base.kind != table {
			return nil, fail("invalid base hash in `extends` (%s)", b)
		}
		levels = max(levels, e.levels[b]+1)
		if made, err = merge(made, base.without("extends"), e.budget); err != nil {
			return nil, err
		}
	}
	made, err := merge(made, n, e.budget)
	if err != nil {
		return nil, err
	}
	if levels > maxExtends {
		return nil, fail("nesting too deep in `extends`")
	}
	e.done[name], e.levels[name] = made, levels
	return made, nil
}

// bases returns the names of the jobs that a job extends. Values of a wrong type are
// reported later, by the check of the job.
func (e *extender) bases(n *node) []string {
	of := n.get("extends")
	switch {
	case of == nil:
		return nil
	case of.kind == text:
		return []string{of.text}
	}
	var names []string
	for _, item := range of.items {
		if item.kind != text {
			return nil
		}
		names = append(names, item.text)
	}
	return names
}
