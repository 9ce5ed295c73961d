package config

import (
	"regexp"
	"slices"
	"strings"
)

// Glob is a pattern of paths as in rules:changes: * and ? stay within a
// directory, **/ crosses directories, {a,b} is either, [a-z] a set, and a name
// that starts with a dot is like any other.
type Glob struct {
	exact string // a pattern without signs
	match *regexp.Regexp
}

// ParseGlob reads a pattern. One that makes no sense matches itself alone.
func ParseGlob(in string) Glob {
	if !strings.ContainsAny(in, `*?[{\`) {
		return Glob{exact: in}
	}
	re, err := regexp.Compile(`(?s)^(?:` + globRegexp(in) + `)$`)
	if err != nil {
		return Glob{exact: in}
	}
	return Glob{match: re}
}

// Match reports whether the path is meant.
func (g Glob) Match(path string) bool {
	if g.match == nil {
		return g.exact == path
	}
	return g.match.MatchString(path)
}

func globRegexp(in string) string {
	var out strings.Builder
	var braces []bool // open ones: whether they stand at the start of a name
	start := true     // of a name
	for i := 0; i < len(in); i++ {
		c := in[i]
		if start && strings.HasPrefix(in[i:], "**/") {
			out.WriteString(`(?:[^/]+/)*`)
			i += 2
			continue
		}
		start = c == '/'
		switch {
		case c == '*':
			out.WriteString(`[^/]*`)
			for i+1 < len(in) && in[i+1] == '*' {
				i++
			}
		case c == '?':
			out.WriteString(`[^/]`)
		case c == '\\' && i+1 < len(in):
			i++
			start = false
			out.WriteString(quoteRune(in, &i))
		case c == '[':
			set, size := globSet(in[i:])
			out.WriteString(set)
			i += size - 1
		case c == '{' && closes(in[i:]):
			start = i == 0 || in[i-1] == '/' || len(braces) > 0 && braces[len(braces)-1] && strings.IndexByte("{,", in[i-1]) >= 0
			braces = append(braces, start)
			out.WriteString(`(?:`)
		case c == '}' && len(braces) > 0:
			braces = braces[:len(braces)-1]
			out.WriteString(`)`)
		case c == ',' && len(braces) > 0:
			start = braces[len(braces)-1]
			out.WriteString(`|`)
		default:
			out.WriteString(quoteRune(in, &i))
		}
	}
	return out.String()
}

// quoteRune quotes the character at i, which may be of several bytes, and
// leaves i at its last byte.
func quoteRune(in string, i *int) string {
	from := *i
	for *i+1 < len(in) && in[*i+1]&0xC0 == 0x80 {
		*i++
	}
	return regexp.QuoteMeta(in[from : *i+1])
}

// closes reports whether a brace at the start is closed; an open one is a
// character like others.
func closes(in string) bool {
	depth := 0
	for i := 0; i < len(in); i++ {
		switch in[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// globSet reads [a-z] or [!a-z] at the start. Without an end it is a bracket.
func globSet(in string) (set string, size int) {
	end := strings.IndexByte(in, ']')
	if end < 2 || strings.ContainsAny(in[1:end], "[/") {
		return `\[`, 1
	}
	body := in[1:end]
	negated := body[0] == '!' || body[0] == '^'
	if negated {
		body = body[1:]
	}
	if body == "" {
		return `\[`, 1
	}
	quoted := strings.NewReplacer(`\`, `\\`, `^`, `\^`, `&`, `\&`, `~`, `\~`).Replace(body)
	if negated {
		quoted = `^/` + quoted
	}
	re := "[" + quoted + "]"
	if _, err := regexp.Compile(re); err != nil {
		return `\[`, 1
	}
	return re, end + 1
}

// globs keeps patterns that have been read: jobs ask for the same ones.
type globs map[string]Glob

func (g globs) get(pattern string) Glob {
	if known, ok := g[pattern]; ok {
		return known
	}
	glob := ParseGlob(pattern)
	if len(g) < 1000 {
		g[pattern] = glob
	}
	return glob
}

// anyMatch reports whether a path is meant by a pattern. After too many
// comparisons it says yes.
func (g globs) anyMatch(patterns, paths []string) bool {
	patterns = slices.Compact(slices.Sorted(slices.Values(patterns)))
	left := maxComparisons
	for _, p := range patterns {
		glob := g.get(p)
		for _, path := range paths {
			if left--; left < 0 && glob.match != nil || glob.Match(path) {
				return true
			}
		}
	}
	return false
}
