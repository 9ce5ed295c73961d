package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is a parsed file: its header and its content.
type document struct {
	spec    *node // the inputs of the header; nil without a header
	header  bool
	content *node
	twice   []*Error // duplicate keys
}

// parse parses a file. Aliases are shared, not copied.
func parse(file string, src []byte, l Limits, b *budget) (*document, error) {
	if len(src) > l.FileBytes {
		return nil, failAt(Pos{File: file}, "", "The YAML file `%s` is larger than %d bytes", file, l.FileBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	c := &converter{file: file, budget: b, done: map[*yaml.Node]*node{}, busy: map[*yaml.Node]bool{}}
	doc := &document{content: newTable(nil, Pos{File: file, Line: 1, Column: 1})}
	for i := range 2 {
		var top yaml.Node
		err := decoder.Decode(&top)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, syntaxError(file, err)
		}
		root, err := c.convert(&top)
		if err != nil {
			return nil, err
		}
		if err := l.check(root); err != nil {
			return nil, err
		}
		if i == 0 && root.has("spec") {
			doc.header = true
			doc.spec = root
			continue
		}
		doc.content = root
		break
	}
	doc.twice = c.twice
	return doc, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError converts an error of the YAML parser to a message as in CI Lint.
func syntaxError(file string, err error) *Error {
	message := err.Error()
	line := 0
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		line, _ = strconv.Atoi(m[1])
	}
	// For these errors the parser counts lines from 0 and omits line 0.
	late := []string{
		"did not find expected key", "did not find expected '-' indicator", "did not find expected ',' or",
		"did not find expected node content", "did not find expected <", "found undefined tag handle", "found duplicate",
	}
	if line == 0 || slices.ContainsFunc(late, func(s string) bool { return strings.HasPrefix(message, s) }) {
		line++
	}
	return failAt(Pos{File: file, Line: line}, "", "(%s): %s at line %d", file, message, line)
}

type converter struct {
	file   string
	budget *budget
	done   map[*yaml.Node]*node // of anchors
	busy   map[*yaml.Node]bool  // anchors that are being read: an alias to one is a cycle
	twice  []*Error
}

func (c *converter) pos(y *yaml.Node) Pos { return Pos{File: c.file, Line: y.Line, Column: y.Column} }

func (c *converter) convert(y *yaml.Node) (*node, error) {
	pos := c.pos(y)
	if err := c.budget.spend(nodeWeight+len(y.Value), pos); err != nil {
		return nil, err
	}
	if y.Anchor == "" || y.Kind == yaml.AliasNode {
		return c.fresh(y, pos)
	}
	if c.busy[y] {
		return nil, failAt(pos, "", "(%s): the anchor `%s` contains itself at line %d", c.file, y.Anchor, y.Line)
	}
	if n, ok := c.done[y]; ok {
		return n, nil
	}
	c.busy[y] = true
	n, err := c.fresh(y, pos)
	delete(c.busy, y)
	if err != nil {
		return nil, err
	}
	c.done[y] = n
	return n, nil
}

func (c *converter) fresh(y *yaml.Node, pos Pos) (*node, error) {
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) == 0 {
			return newScalar(null, "", pos), nil
		}
		return c.convert(y.Content[0])
	case yaml.AliasNode:
		return c.convert(y.Alias)
	case yaml.SequenceNode:
		return c.sequence(y, pos)
	case yaml.MappingNode:
		return c.mapping(y, pos)
	}
	if y.Tag == "!reference" {
		return nil, failAt(pos, "", "!reference \"%s\" is not valid", y.Value)
	}
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case y.Tag == "!!binary":
		return newScalar(text, unpack(y.Value), pos), nil
	case y.Style&quoted != 0, y.Style&yaml.TaggedStyle != 0 && y.Tag == "!!str":
		return newScalar(text, y.Value, pos), nil
	}
	k, printed := resolve(y.Value)
	return newScalar(k, printed, pos), nil
}

func (c *converter) sequence(y *yaml.Node, pos Pos) (*node, error) {
	items := make([]*node, 0, len(y.Content))
	for _, child := range y.Content {
		item, err := c.convert(child)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	if y.Tag != "!reference" {
		return newList(list, items, pos), nil
	}
	for _, item := range items {
		if item.kind != text {
			return nil, failAt(pos, "", "!reference %s is not valid", inspect(items))
		}
	}
	if len(items) == 0 {
		return nil, failAt(pos, "", "!reference [] is not valid")
	}
	return newList(reference, items, pos), nil
}

// inspect formats a list of texts as messages do: ["a", "b"].
func inspect(items []*node) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = strconv.Quote(item.text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// mapping reads a table. Its own keys override those that are merged with <<; of merged
// keys, the first wins.
func (c *converter) mapping(y *yaml.Node, pos Pos) (*node, error) {
	var fields []field
	at := make(map[string]int, len(y.Content)/2)
	own := make(map[string]bool, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, failAt(c.pos(key), "", "(%s): a key is not a string at line %d", c.file, key.Line)
		}
		child, err := c.convert(value)
		if err != nil {
			return nil, err
		}
		if key.Value == "<<" && key.Tag == "!!merge" {
			if fields, err = c.mergeKey(fields, at, child); err != nil {
				return nil, err
			}
			continue
		}
		f := field{key: symbolName(key), pos: c.pos(key), value: child}
		if own[f.key] {
			c.twice = append(c.twice, failAt(f.pos, f.key, "the key `%s` is defined twice, the last one counts", f.key))
		}
		own[f.key] = true
		if j, ok := at[f.key]; ok {
			fields[j] = f
			continue
		}
		at[f.key] = len(fields)
		fields = append(fields, f)
	}
	return newTable(fields, pos), nil
}

func (c *converter) mergeKey(fields []field, at map[string]int, from *node) ([]field, error) {
	sources := []*node{from}
	if from.kind == list {
		sources = from.items
	}
	for _, source := range sources {
		if source.kind != table {
			return nil, failAt(from.pos, "", "(%s): the value of `<<` is not a hash at line %d", c.file, from.pos.Line)
		}
		if err := c.budget.spend(fieldCost*len(source.fields), from.pos); err != nil {
			return nil, err
		}
		for _, f := range source.fields {
			if _, ok := at[f.key]; ok {
				continue
			}
			at[f.key] = len(fields)
			fields = append(fields, f)
		}
	}
	return fields, nil
}

// symbolName returns a key. A plain key with a leading colon is a Ruby symbol, which old
// files contain: ":image" means "image".
func symbolName(key *yaml.Node) string {
	name, ok := strings.CutPrefix(key.Value, ":")
	if !ok || key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 || !symbolPattern.MatchString(name) {
		return key.Value
	}
	return name
}

var symbolPattern = regexp.MustCompile(`^[A-Za-z_]\w*$`)
