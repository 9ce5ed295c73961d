// Package quickaction implements the syntax of quick actions: lines of a text such
// as "/label ~bug ~\"to do\"".
package quickaction

import "strings"

// Replace calls f for each line of a text that has the form of a quick action: a
// slash, a name in lowercase and arguments. f returns the replacement of the line,
// or false to keep it; an empty replacement removes the line. Lines in code blocks,
// quotes and HTML comments are kept.
func Replace(text string, f func(name, args string) (string, bool)) string {
	var kept strings.Builder
	var b block
	for line := range strings.Lines(text) {
		trimmed := strings.TrimRight(line, " \t\r\n")
		open := b.open() || b.read(trimmed)
		if b.open() && open {
			b.close(trimmed)
		}
		name, args, ok := split(trimmed)
		if open || !ok {
			kept.WriteString(line)
			continue
		}
		switch replacement, ok := f(name, args); {
		case !ok:
			kept.WriteString(line)
		case replacement != "":
			kept.WriteString(replacement + line[len(trimmed):])
		}
	}
	return kept.String()
}

// split parses a line such as "/label ~bug".
func split(line string) (name, args string, ok bool) {
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

// Names splits the arguments of a command at spaces and commas. A name may be
// prefixed with sign and quoted: ~bug ~"to do".
func Names(args string, sign byte) (list []string) {
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
