package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"svc/internal/expand"
)

const (
	maxBlock     = 1 << 10 // bytes of one $[[ … ]]
	maxFunctions = 3       // in one block
)

// interpolator replaces $[[ inputs.name ]] and $[[ component.name ]] by their values.
type interpolator struct {
	inputs    map[string]*node
	component map[string]*node
	variables Lookup // for expand_vars
	expands   *expand.Budget
	budget    *budget
	done      map[*node]*node // so that aliases are processed once
}

// tree interpolates keys and values.
func (p *interpolator) tree(n *node) (*node, error) {
	if made, ok := p.done[n]; ok {
		return made, nil
	}
	made, err := p.fresh(n)
	if err != nil {
		return nil, err
	}
	p.done[n] = made
	return made, p.budget.spend(nodeWeight, n.pos)
}

func (p *interpolator) fresh(n *node) (*node, error) {
	switch n.kind {
	case text:
		return p.scalar(n)
	case list, reference:
		items := make([]*node, len(n.items))
		for i, item := range n.items {
			var err error
			if items[i], err = p.tree(item); err != nil {
				return nil, err
			}
		}
		return newList(n.kind, items, n.pos), nil
	case table:
		fields := make([]field, 0, len(n.fields))
		at := make(map[string]int, len(n.fields))
		for _, f := range n.fields {
			key, err := p.text(f.key, f.pos)
			if err != nil {
				return nil, err
			}
			value, err := p.tree(f.value)
			if err != nil {
				return nil, err
			}
			f = field{key: key, pos: f.pos, value: value}
			if i, ok := at[key]; ok {
				fields[i] = f
				continue
			}
			at[key] = len(fields)
			fields = append(fields, f)
		}
		return newTable(fields, n.pos), nil
	}
	return n, nil
}

// scalar keeps the type of an input if the block is the whole value.
func (p *interpolator) scalar(n *node) (*node, error) {
	in := strings.TrimSpace(n.text)
	if strings.HasPrefix(in, "$[[") && strings.Index(in, "]]") == len(in)-2 {
		v, err := p.block(in[3:len(in)-2], n.pos)
		if err != nil {
			return nil, err
		}
		moved := *v
		moved.pos = n.pos
		return &moved, nil
	}
	out, err := p.text(n.text, n.pos)
	if err != nil {
		return nil, err
	}
	if out == n.text {
		return n, nil
	}
	return newScalar(text, out, n.pos), nil
}

func (p *interpolator) text(in string, pos Pos) (string, error) {
	if !strings.Contains(in, "$[[") {
		return in, nil
	}
	var out strings.Builder
	for {
		i := strings.Index(in, "$[[")
		end := -1
		if i >= 0 {
			end = strings.Index(in[i:], "]]")
		}
		if end < 0 {
			out.WriteString(in)
			return out.String(), nil
		}
		v, err := p.block(in[i+3:i+end], pos)
		if err != nil {
			return "", err
		}
		out.WriteString(in[:i])
		if v.kind == list || v.kind == table {
			out.WriteString(flow(v))
		} else {
			out.WriteString(v.text)
		}
		if err := p.budget.spend(v.weight, pos); err != nil {
			return "", err
		}
		in = in[i+end+2:]
	}
}

// block evaluates inputs.name | function | function, or component.name in the same way.
func (p *interpolator) block(in string, pos Pos) (*node, error) {
	refuse := func(format string, args ...any) error {
		return failAt(pos, "", "interpolation interrupted by errors, "+format, args...)
	}
	if len(in) > maxBlock {
		return nil, refuse("maximum interpolation expression size exceeded")
	}
	parts := strings.Split(in, "|")
	if len(parts) > 1+maxFunctions {
		return nil, refuse("too many functions in interpolation block")
	}
	object, name, ok := strings.Cut(strings.TrimSpace(parts[0]), ".")
	switch {
	case !ok:
		return nil, refuse("invalid interpolation access pattern")
	case object != "inputs" && object != "component":
		return nil, refuse("unknown interpolation key: `%s`", object)
	}
	values := p.inputs
	if object == "component" {
		values = p.component
	}
	v, ok := values[name]
	if !ok {
		return nil, refuse("unknown interpolation key: `%s`", name)
	}
	for _, call := range parts[1:] {
		out, err := p.call(strings.TrimSpace(call), v)
		if err != nil {
			return nil, refuse("%s", err)
		}
		v = newScalar(text, out, pos)
	}
	return v, nil
}

var truncateCall = regexp.MustCompile(`^truncate\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)$`)

func (p *interpolator) call(name string, v *node) (string, error) {
	m := truncateCall.FindStringSubmatch(name)
	if m == nil && name != "expand_vars" && name != "posix_escape" {
		return "", fmt.Errorf("no function matching `%s`: check that the function name, arguments, and types are correct", name)
	}
	if v.kind != text {
		return "", fmt.Errorf("`%s` can only be used with string inputs", strings.SplitN(name, "(", 2)[0])
	}
	switch {
	case m != nil:
		offset, _ := strconv.Atoi(m[1])
		length, _ := strconv.Atoi(m[2])
		return cut(v.text, offset, length), nil
	case name == "posix_escape":
		return posixEscape(v.text), nil
	}
	masked := false
	out := Flat(p.expands, func(name string) (Variable, bool) {
		found, ok := p.variables(name)
		masked = masked || found.Masked
		return found, ok
	}).Existing(v.text)
	if masked {
		return "", errors.New("variable expansion error: masked variables cannot be expanded")
	}
	return out, p.expands.Err()
}

// cut returns length characters of a text, starting at an offset.
func cut(in string, offset, length int) string {
	for ; offset > 0 && in != ""; offset-- {
		_, size := utf8.DecodeRuneInString(in)
		in = in[size:]
	}
	end := 0
	for ; length > 0 && end < len(in); length-- {
		_, size := utf8.DecodeRuneInString(in[end:])
		end += size
	}
	return in[:end]
}

// posixEscape escapes a text as one word for a shell, without quotes around it.
func posixEscape(in string) string {
	if in == "" {
		return "''"
	}
	var out strings.Builder
	for _, c := range in {
		switch {
		case c == '\n':
			out.WriteString("'\n'")
			continue
		case c < utf8.RuneSelf && !strings.ContainsRune("_-.,:+/@", c) &&
			(c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z'):
			out.WriteByte('\\')
		}
		out.WriteRune(c)
	}
	return out.String()
}
