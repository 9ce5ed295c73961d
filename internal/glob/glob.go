// Package glob matches paths against patterns: * and ? match within a name, **/ any
// number of directories, [a-z] one of several characters, and {a,b} one of several
// texts.
//
// The matching is that of doublestar, except for braces: doublestar tries nested
// alternatives by backtracking, so that twenty pairs take seconds. Here braces are
// expanded first, with a limit, because any user can push a CI/CD configuration with
// patterns.
package glob

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	// maxAlternatives is the maximum number of patterns that braces may expand to.
	maxAlternatives = 256
	// maxExpanded is the maximum size of these patterns together, in bytes.
	maxExpanded = 64 << 10
)

// Glob is a pattern, as a list of alternatives without braces. The zero value
// matches nothing.
type Glob []string

// Parse parses a pattern. It returns false if the pattern is invalid or expands to
// too many alternatives.
func Parse(pattern string) (Glob, bool) {
	if len(pattern) > maxExpanded || !doublestar.ValidatePattern(pattern) {
		return nil, false
	}
	expanded, todo := Glob{}, []string{pattern}
	for len(todo) > 0 {
		one := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		before, choices, after, ok := firstBraces(one)
		if !ok {
			expanded = append(expanded, one)
			continue
		}
		for _, choice := range choices {
			todo = append(todo, before+choice+after)
		}
		if made := len(expanded) + len(todo); made > maxAlternatives || made*len(one) > maxExpanded {
			return nil, false
		}
	}
	return expanded, true
}

// Match reports whether a path matches.
func (g Glob) Match(path string) bool {
	for _, pattern := range g {
		if doublestar.MatchUnvalidated(pattern, path) {
			return true
		}
	}
	return false
}

// Size returns the size of all alternatives in bytes: matching a path takes time in
// proportion to it.
func (g Glob) Size() int {
	n := 0
	for _, pattern := range g {
		n += len(pattern)
	}
	return n
}

// firstBraces splits a pattern at its first pair of braces. The alternatives may
// contain further braces.
func firstBraces(pattern string) (before string, choices []string, after string, ok bool) {
	depth, start := 0, 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[':
			i += max(0, classEnd(pattern[i:]))
		case c == '{':
			if depth++; depth == 1 {
				before, start = pattern[:i], i+1
			}
		case c == ',' && depth == 1:
			choices = append(choices, pattern[start:i])
			start = i + 1
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return before, append(choices, pattern[start:i]), pattern[i+1:], true
			}
		}
	}
	return "", nil, "", false
}

// classEnd returns the index of the bracket that closes a character class, which
// must not be its first character, or -1.
func classEnd(class string) int {
	for i := 1; i < len(class); i++ {
		switch {
		case class[i] == '\\':
			i++
		case class[i] == ']' && i > 1:
			return i
		}
	}
	return -1
}

// Wild reports whether a text matches a pattern in which each * matches any text,
// including slashes. It takes at most time in proportion to the product of their
// lengths.
func Wild(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		var part string
		if part, rest, wild = strings.Cut(rest, "*"); !wild {
			return strings.HasSuffix(text, part)
		}
		if _, text, ok = strings.Cut(text, part); !ok {
			return false
		}
	}
}
