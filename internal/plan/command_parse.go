package plan

import "strings"

// Invocation is a quick action in a text.
type Invocation struct {
	Command *Command
	Args    string
}

// maxInvocations is the maximum number of quick actions of a text. Those after it
// stay text.
const maxInvocations = 100

// ParseCommands returns a text without its quick actions, and the quick actions.
// A quick action is a line that starts with a slash and the name of a command for
// this kind of objects; in code blocks, quotes and comments it is text.
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
		bare := strings.TrimRight(line, " \t\r\n")
		open := b.open() || b.read(bare)
		if b.open() && open {
			b.close(bare)
		}
		name, args, ok := invocation(bare)
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
			kept.WriteString(c.substitute(args) + line[len(bare):])
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

// invocation splits a line such as "/label ~bug".
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

// block is the state of a scan over lines: the end mark of the code block, quote
// or comment that the current line is in; empty outside.
type block struct {
	end   string
	fresh bool // the current line has opened it
}

func (b *block) open() bool { return b.end != "" }

// read enters a block if the line opens one, and reports whether it does.
func (b *block) read(line string) bool {
	bare := strings.TrimLeft(line, " ")
	if len(line)-len(bare) > 3 {
		return false
	}
	switch {
	case strings.HasPrefix(bare, "```"), strings.HasPrefix(bare, "~~~"):
		mark := bare[:len(bare)-len(strings.TrimLeft(bare, bare[:1]))]
		if mark[0] == '`' && strings.Contains(bare[len(mark):], "`") {
			return false // inline code
		}
		b.end = mark
	case bare == ">>>":
		b.end = ">>>"
	case strings.HasPrefix(bare, "<!--"):
		if strings.Contains(bare, "-->") {
			return false
		}
		b.end = "-->"
	case strings.HasPrefix(strings.ToLower(bare), "<pre"):
		if strings.Contains(strings.ToLower(bare), "</pre>") {
			return false
		}
		b.end = "</pre>"
	default:
		return false
	}
	b.fresh = true
	return true
}

// close leaves the block if the line ends it.
func (b *block) close(line string) {
	if b.fresh {
		b.fresh = false
		return
	}
	bare := strings.TrimLeft(line, " ")
	switch b.end[0] {
	case '`', '~':
		if strings.HasPrefix(bare, b.end) && strings.Trim(bare, b.end[:1]) == "" {
			b.end = ""
		}
	case '>':
		if bare == ">>>" {
			b.end = ""
		}
	default:
		if strings.Contains(strings.ToLower(line), b.end) {
			b.end = ""
		}
	}
}

// names splits the arguments of a command into names: words, or texts in quotes
// after the sign, such as ~bug ~"to do".
func names(args string, sign byte) (list []string) {
	const most = 100
	for args = strings.TrimLeft(args, " ,"); args != "" && len(list) < most; args = strings.TrimLeft(args, " ,") {
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
