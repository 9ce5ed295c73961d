package config

import (
	"math"
	"slices"
	"strconv"
)

// kind is the kind of a node.
type kind uint8

const (
	null kind = iota
	boolean
	integer
	float
	text
	list
	table
	reference // a !reference tag, until it is resolved
)

// A node is a part of a configuration. Nodes are shared and immutable: an alias costs
// nothing until the tree is walked, and trees whose weight is over the limit are not
// walked.
type node struct {
	kind   kind
	text   string // of a scalar
	items  []*node
	fields []field
	index  map[string]int // of the fields, if there are many
	pos    Pos
	weight int  // approximate size of the expanded tree in bytes
	height int  // levels below
	tagged bool // it contains a reference
}

type field struct {
	key   string
	pos   Pos
	value *node
}

const (
	nodeWeight = 16
	fieldCost  = 64              // of copying a field
	maxWeight  = math.MaxInt / 2 // a sum of two weights does not overflow
	indexFrom  = 12
)

func newScalar(k kind, value string, pos Pos) *node {
	return &node{kind: k, text: value, pos: pos, weight: nodeWeight + len(value)}
}

func newList(k kind, items []*node, pos Pos) *node {
	n := &node{kind: k, items: items, pos: pos, weight: nodeWeight, tagged: k == reference}
	for _, item := range items {
		n.hold(item, 0)
	}
	return n
}

func newTable(fields []field, pos Pos) *node {
	n := &node{kind: table, fields: fields, pos: pos, weight: nodeWeight}
	if len(fields) >= indexFrom {
		n.index = make(map[string]int, len(fields))
	}
	for i, f := range fields {
		n.hold(f.value, len(f.key))
		if n.index != nil {
			n.index[f.key] = i
		}
	}
	return n
}

func (n *node) hold(child *node, key int) {
	n.weight = min(n.weight+child.weight+key, maxWeight)
	n.height = max(n.height, child.height+1)
	n.tagged = n.tagged || child.tagged
}

// find returns the index of a field, or -1.
func (n *node) find(key string) int {
	if n.index != nil {
		if i, ok := n.index[key]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(n.fields, func(f field) bool { return f.key == key })
}

// get returns the value of a field; nil if it is missing or null, because a keyword that
// is null counts as not set.
func (n *node) get(key string) *node {
	if n == nil || n.kind != table {
		return nil
	}
	i := n.find(key)
	if i < 0 || n.fields[i].value.kind == null {
		return nil
	}
	return n.fields[i].value
}

// has reports whether a table has the key, even with a null value.
func (n *node) has(key string) bool { return n != nil && n.kind == table && n.find(key) >= 0 }

// keyPos returns the position of the key of a field; that of the node if there is
// none.
func (n *node) keyPos(key string) Pos {
	if i := n.find(key); n.kind == table && i >= 0 {
		return n.fields[i].pos
	}
	return n.pos
}

// number returns the value of an integer.
func (n *node) number() (int64, bool) {
	if n.kind != integer {
		return 0, false
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	return v, err == nil
}

// without returns a copy of the table without a field.
func (n *node) without(key string) *node {
	i := n.find(key)
	if i < 0 {
		return n
	}
	return newTable(slices.Delete(slices.Clone(n.fields), i, i+1), n.pos)
}

// merge merges over into base: tables are merged key by key, other values are replaced.
func merge(base, over *node, b *budget) (*node, error) {
	if base.kind != table || over.kind != table {
		return over, nil
	}
	if err := b.spend(fieldCost*(1+len(base.fields)+len(over.fields)), over.pos); err != nil {
		return nil, err
	}
	fields := slices.Clone(base.fields)
	for _, f := range over.fields {
		i := base.find(f.key)
		if i < 0 {
			fields = append(fields, f)
			continue
		}
		merged, err := merge(base.fields[i].value, f.value, b)
		if err != nil {
			return nil, err
		}
		fields[i] = field{key: f.key, pos: f.pos, value: merged}
	}
	return newTable(fields, over.pos), nil
}
