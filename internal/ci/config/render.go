package config

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// render writes a tree as YAML in a canonical form that keeps the order of keys.
func render(n *node) (string, error) {
	var out bytes.Buffer
	out.WriteString("---\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(yamlNode(n)); err != nil {
		return "", err
	}
	if err := encoder.Close(); err != nil {
		return "", err
	}
	return out.String(), nil
}

// flow writes a tree on one line, for a list within a text.
func flow(n *node) string {
	top := yamlNode(n)
	top.Style = yaml.FlowStyle
	out, err := yaml.Marshal(top)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func yamlNode(n *node) *yaml.Node {
	switch n.kind {
	case list, reference:
		y := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if n.kind == reference {
			y.Tag, y.Style = "!reference", yaml.FlowStyle
		}
		if len(n.items) == 0 {
			y.Style = yaml.FlowStyle
		}
		for _, item := range n.items {
			y.Content = append(y.Content, yamlNode(item))
		}
		return y
	case table:
		y := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if len(n.fields) == 0 {
			y.Style = yaml.FlowStyle
		}
		for _, f := range n.fields {
			y.Content = append(y.Content, textNode(f.key, false), yamlNode(f.value))
		}
		return y
	case text:
		return textNode(n.text, true)
	case null:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	case boolean:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: n.text}
	case integer:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: n.text}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: floatLiteral(n.text)}
}

func floatLiteral(printed string) string {
	switch printed {
	case "Infinity":
		return ".inf"
	case "-Infinity":
		return "-.inf"
	case "NaN":
		return ".nan"
	}
	return printed
}

// textNode quotes texts that would be read as another type. Multi-line scripts are written
// as blocks.
func textNode(s string, block bool) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	k, _ := resolve(s)
	switch {
	case block && strings.Contains(s, "\n") && strings.TrimRight(s, "\n") != "" && !strings.ContainsAny(s, "\r\t\u0085\u2028\u2029"):
		y.Style = yaml.LiteralStyle
	case k != text, strings.ContainsAny(s, "\n\r\u0085\u2028\u2029"), s == "<<", s == "=":
		y.Style = yaml.DoubleQuotedStyle
	}
	return y
}
