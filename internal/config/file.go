package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fromFile reads the YAML file; for an empty path it returns nil. It uses the node
// tree instead of a decoded map, because the tree has the line of each key, the text
// of each value as written, and duplicate keys.
func fromFile(path string) (layer, []error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		// The message below already contains the path.
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return nil, []error{fmt.Errorf("config file %s: %w", path, err)}
	}
	return parseFile(path, data)
}

func parseFile(path string, data []byte) (layer, []error) {
	root, err := parseYAML(data)
	if err != nil {
		return nil, []error{fmt.Errorf("config file %s: %w", path, err)}
	}
	if root == nil {
		return nil, nil
	}
	known := make(map[string]setting)
	var keys []string
	for _, s := range settings() {
		known[s.key] = s
		keys = append(keys, s.key)
	}
	l := make(layer)
	var faults []error
	lines := make(map[string]int)
	for i := 0; i < len(root.Content); i += 2 {
		key, node := root.Content[i], root.Content[i+1]
		at := fmt.Sprintf("config file %s:%d", path, key.Line)
		s, ok := known[key.Value]
		if !ok {
			hint := ""
			if near := nearest(key.Value, keys); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			faults = append(faults, fmt.Errorf("%s: unknown key %q%s", at, key.Value, hint))
			continue
		}
		origin := at + ": " + s.key
		if first, twice := lines[s.key]; twice {
			faults = append(faults, fmt.Errorf("%s: is set in line %d already", origin, first))
			continue
		}
		lines[s.key] = key.Line
		text, given, err := nodeText(node, s.shape)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("%s: %w", origin, err))
		case given:
			l[s.key] = value{text, origin}
		}
	}
	return l, faults
}

// parseYAML returns the mapping at the root, or nil for an empty file.
func parseYAML(data []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		// The parser's message quotes the value, which may be a password.
		if strings.Contains(err.Error(), "unknown anchor") {
			return nil, errors.New("a value that starts with * must stand in quotes")
		}
		return nil, err
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be a single YAML document")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("must be a mapping of keys to values")
	}
	return root, nil
}

// nodeText returns a value of the file as it would be written in an environment
// variable. given is false for a key without a value.
func nodeText(node *yaml.Node, shape shape) (text string, given bool, err error) {
	switch {
	case node.Kind == yaml.ScalarNode:
		return node.Value, node.Tag != "!!null", nil
	case node.Kind == yaml.SequenceNode && shape == list:
		parts, err := texts(node.Content)
		return strings.Join(parts, ","), true, err
	case node.Kind == yaml.MappingNode && shape == table:
		parts, err := texts(node.Content)
		var pairs []string
		for i := 0; i < len(parts); i += 2 {
			pairs = append(pairs, parts[i]+"="+parts[i+1])
		}
		return strings.Join(pairs, ","), true, err
	case node.Kind == yaml.SequenceNode && shape == nested:
		text, err := yaml.Marshal(node)
		return string(text), true, err
	}
	return "", false, fmt.Errorf("must be %s", shape)
}

func (s shape) String() string {
	return [...]string{plain: "a text", list: "a text or a list of texts", table: "a text or a mapping of texts", nested: "a list of mappings"}[s]
}

func texts(nodes []*yaml.Node) ([]string, error) {
	var parts []string
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return nil, errors.New("must hold texts only")
		}
		if strings.Contains(n.Value, ",") {
			return nil, fmt.Errorf("%q must not have a comma in it", n.Value)
		}
		parts = append(parts, n.Value)
	}
	return parts, nil
}
