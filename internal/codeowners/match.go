package codeowners

import (
	"strings"
	"unicode/utf8"
)

// split returns the parts of a pattern, which are matched against the elements of a
// path. ** matches any number of directories. A pattern without a leading slash
// matches at any depth, and one with a trailing slash matches everything below.
func split(pattern string) []string {
	if pattern == "*" {
		return []string{"**", "*"}
	}
	var text strings.Builder
	for i := 0; i < len(pattern); i++ {
		if c := pattern[i]; c == '\\' && i+1 < len(pattern) && (pattern[i+1] == ' ' || pattern[i+1] == '\t' || pattern[i+1] == '#' && i == 0) {
			continue
		}
		text.WriteByte(pattern[i])
	}
	full := text.String()
	rooted := strings.HasPrefix(full, "/")
	below := strings.HasSuffix(full, "/")
	var parts []string
	if !rooted {
		parts = append(parts, "**")
	}
	for part := range strings.SplitSeq(strings.Trim(full, "/"), "/") {
		if part == "**" && len(parts) > 0 && parts[len(parts)-1] == "**" {
			continue
		}
		parts = append(parts, part)
	}
	if below {
		parts = append(parts, "**", "*")
	}
	if parts[len(parts)-1] == "**" { // at the end it matches one element
		parts[len(parts)-1] = "*"
	}
	return parts
}

// matchParts matches the parts of a pattern against the elements of a path. The time
// is proportional to the product of both lengths, because it backtracks only to the
// last **. steps is the remaining number of steps.
func matchParts(parts, names []string, steps *int) bool {
	p, n := 0, 0
	again, from := -1, 0
	for n < len(names) {
		switch {
		case p < len(parts) && parts[p] == "**":
			again, from = p, n
			p++
		case p < len(parts) && matchName(parts[p], names[n], steps):
			p++
			n++
		case again >= 0:
			from++
			p, n = again+1, from
		default:
			return false
		}
	}
	for p < len(parts) && parts[p] == "**" {
		p++
	}
	return p == len(parts)
}

// matchName matches a part of a pattern against an element: * matches any text, ?
// one character, and [a-z] one character of a class.
func matchName(pattern, name string, steps *int) bool {
	p, n := 0, 0
	again, from := -1, 0
	for n < len(name) {
		if *steps--; *steps < 0 {
			return false
		}
		if p < len(pattern) && pattern[p] == '*' {
			again, from = p, n
			p++
			continue
		}
		if step, width, ok := matchOne(pattern[p:], name[n:]); ok {
			p += step
			n += width
			continue
		}
		if again < 0 {
			return false
		}
		_, width := utf8.DecodeRuneInString(name[from:])
		from += width
		p, n = again+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches the first element of a pattern against the first character of a
// name, and returns the length of each in bytes.
func matchOne(pattern, name string) (step, width int, ok bool) {
	if pattern == "" {
		return 0, 0, false
	}
	r, width := utf8.DecodeRuneInString(name)
	switch pattern[0] {
	case '?':
		return 1, width, true
	case '[':
		if step, in, ok := class(pattern, r); ok {
			return step, width, in
		}
	case '\\':
		if len(pattern) > 1 {
			want, size := utf8.DecodeRuneInString(pattern[1:])
			return 1 + size, width, want == r
		}
	}
	want, size := utf8.DecodeRuneInString(pattern)
	return size, width, want == r
}

// class matches a character against a class like [a-z] or [!a]; ok is false if the
// class is not closed.
func class(pattern string, r rune) (step int, in, ok bool) {
	i, not := 1, false
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		i, not = i+1, true
	}
	for first := true; i < len(pattern); first = false {
		if pattern[i] == ']' && !first {
			return i + 1, in != not, true
		}
		low, size := utf8.DecodeRuneInString(pattern[i:])
		i += size
		high := low
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			high, size = utf8.DecodeRuneInString(pattern[i+1:])
			i += 1 + size
		}
		in = in || low <= r && r <= high
	}
	return 0, false, false
}
