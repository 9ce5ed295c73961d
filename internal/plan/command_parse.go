package plan

import "strings"

// Invocation is a use of a quick action in a text.
type Invocation struct {
	Command *Command
	Args    string
}

// maxInvocations is the maximum number of quick actions in a text. Further ones
// remain part of the text.
const maxInvocations = 100

// ParseCommands returns a text without its quick actions, and the quick actions. A
// quick action is a line that starts with a slash and the name of a command for
// this kind of object. Lines in code blocks, quotes and HTML comments are not
// parsed.
func (s *Service) ParseCommands(kind Kind, text string) (rest string, list []Invocation) {
	if !strings.Contains(text, "/") {
		return text, nil
	}
	known := s.commands[kind]
	return parseCommands(text, func(name string) *Command { return known[name] })
}

func parseCommands(text string, find func(name string) *Command) (rest string, list []Invocation) {
	var kept strings.Builder
	var b block
	for line := range strings.Lines(text) {
		trimmed := strings.TrimRight(line, " \t\r\n")
		open := b.open() || b.read(trimmed)
		if b.open() && open {
			b.close(trimmed)
		}
		name, args, ok := invocation(trimmed)
		if open || !ok || len(list) == maxInvocations {
			kept.WriteString(line)
			continue
		}
		c := find(name)
		if c == nil || c.text {
			kept.WriteString(line)
			continue
		}
		if c.substitute != nil {
			kept.WriteString(c.substitute(args) + line[len(trimmed):])
			continue
		}
		list = append(list, Invocation{c, args})
	}
	rest = kept.String()
	if len(list) > 0 {
		rest = strings.Trim(rest, "\r\n")
	}
	return rest, list
}

// invocation parses a line such as "/label ~bug".
func invocation(line string) (name, args string, ok bool) {
	if !strings.HasPrefix(line, "/") {
		return "", "", false
	}
	name, args, _ = strings.Cut(line[1:], " ")
	if name == "" || len(name) > 40 || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_") != "" {
		return "", "", false
	}
	return strings.ToLower(name), strings.TrimSpace(args), true
}

// block tracks whether the current line is in a code block, quote or HTML comment.
// end is the marker that closes the block, or empty outside.
type block struct {
	end   string
	fresh bool // the current line opened the block
}

func (b *block) open() bool { return b.end != "" }

// read reports whether the line opens a block, and enters it.
func (b *block) read(line string) bool {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 {
		return false
	}
	switch {
	case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
		mark := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
		if mark[0] == '`' && strings.Contains(trimmed[len(mark):], "`") {
			return false // inline code
		}
		b.end = mark
	case trimmed == ">>>":
		b.end = ">>>"
	case strings.HasPrefix(trimmed, "<!--"):
		if strings.Contains(trimmed, "-->") {
			return false
		}
		b.end = "-->"
	case strings.HasPrefix(strings.ToLower(trimmed), "<pre"):
		if strings.Contains(strings.ToLower(trimmed), "</pre>") {
			return false
		}
		b.end = "</pre>"
	default:
		return false
	}
	b.fresh = true
	return true
}

// close leaves the block if the line closes it.
func (b *block) close(line string) {
	if b.fresh {
		b.fresh = false
		return
	}
	trimmed := strings.TrimLeft(line, " ")
	switch b.end[0] {
	case '`', '~':
		if strings.HasPrefix(trimmed, b.end) && strings.Trim(trimmed, b.end[:1]) == "" {
			b.end = ""
		}
	case '>':
		if trimmed == ">>>" {
			b.end = ""
		}
	default:
		if strings.Contains(strings.ToLower(line), b.end) {
			b.end = ""
		}
	}
}

// names splits the arguments of a command at spaces and commas. A name may be
// prefixed with sign and quoted: ~bug ~"to do".
func names(args string, sign byte) (list []string) {
	const maxNames = 100
	for args = strings.TrimLeft(args, " ,"); args != "" && len(list) < maxNames; args = strings.TrimLeft(args, " ,") {
		if sign != 0 && args[0] == sign {
			args = args[1:]
		}
		var name string
		if strings.HasPrefix(args, `"`) {
			var closed bool
			if name, args, closed = strings.Cut(args[1:], `"`); !closed {
				args = ""
			}
		} else {
			end := strings.IndexAny(args, " ,")
			if end < 0 {
				end = len(args)
			}
			name, args = args[:end], args[end:]
		}
		if name = strings.TrimSpace(name); name != "" {
			list = append(list, name)
		}
	}
	return list
}
