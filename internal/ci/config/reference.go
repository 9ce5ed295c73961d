package config

import "slices"

// referrer replaces !reference tags by what they refer to.
type referrer struct {
	root   *node
	budget *budget
	done   map[*node]*node
	chain  []*node // references that are being resolved
}

// resolveReferences replaces every !reference of the configuration.
func resolveReferences(root *node, b *budget) (*node, error) {
	r := &referrer{root: root, budget: b, done: map[*node]*node{}}
	return r.tree(root)
}

func (r *referrer) tree(n *node) (*node, error) {
	if !n.tagged {
		return n, nil
	}
	if made, ok := r.done[n]; ok {
		return made, nil
	}
	made, err := r.fresh(n)
	if err != nil {
		return nil, err
	}
	r.done[n] = made
	return made, r.budget.spend(nodeWeight*(1+len(n.items)+len(n.fields)), n.pos)
}

func (r *referrer) fresh(n *node) (*node, error) {
	if n.kind == reference {
		return r.target(n)
	}
	if n.kind == list {
		items := make([]*node, len(n.items))
		for i, item := range n.items {
			var err error
			if items[i], err = r.tree(item); err != nil {
				return nil, err
			}
		}
		return newList(list, items, n.pos), nil
	}
	fields := slices.Clone(n.fields)
	for i, f := range fields {
		made, err := r.tree(f.value)
		if err != nil {
			return nil, err
		}
		fields[i].value = made
	}
	return newTable(fields, n.pos), nil
}

func (r *referrer) target(n *node) (*node, error) {
	if slices.Contains(r.chain, n) {
		return nil, failAt(n.pos, "", "!reference %s is part of a circular chain", inspect(n.items))
	}
	if len(r.chain) >= maxReferences {
		return nil, failAt(n.pos, "", "!reference %s is nested too deep", inspect(n.items))
	}
	found := r.root
	for _, step := range n.items {
		if found = found.get(step.text); found == nil {
			return nil, failAt(n.pos, "", "!reference %s could not be found", inspect(n.items))
		}
	}
	r.chain = append(r.chain, n)
	made, err := r.tree(found)
	r.chain = r.chain[:len(r.chain)-1]
	if err != nil {
		return nil, err
	}
	return made, nil
}
