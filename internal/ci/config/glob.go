package config

import (
	"slices"
	"strings"

	"svc/internal/glob"
)

// Glob is a pattern of paths in rules:changes: * and ? do not match a slash, **/ matches
// any number of directories, {a,b} matches alternatives, [a-z] a character class, and
// names that start with a dot are not special.
type Glob struct {
	exact string    // a pattern without wildcards
	match glob.Glob // nil for such a pattern
}

// ParseGlob parses a pattern. An invalid pattern matches only itself.
func ParseGlob(in string) Glob {
	if !strings.ContainsAny(in, `*?[{\`) {
		return Glob{exact: in}
	}
	g, ok := glob.Parse(in)
	if !ok {
		return Glob{exact: in}
	}
	for i, pattern := range g {
		// At the end of a pattern, ** is equivalent to *.
		if pattern == "**" || strings.HasSuffix(pattern, "/**") {
			g[i] = pattern[:len(pattern)-1]
		}
	}
	return Glob{match: g}
}

// Match reports whether the path matches.
func (g Glob) Match(path string) bool {
	if g.match == nil {
		return g.exact == path
	}
	return g.match.Match(path)
}

// Select returns the paths that match. After too much work it leaves out the rest.
func (g Glob) Select(paths []string) []string {
	var out []string
	work := maxMatching / 10
	for _, path := range paths {
		if work -= g.match.Size() * len(path); work < 0 {
			break
		}
		if g.Match(path) {
			out = append(out, path)
		}
	}
	return out
}

// Plain reports whether the pattern matches only itself.
func (g Glob) Plain() bool { return g.match == nil }

// globs caches parsed patterns, because jobs often share them.
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

// anyMatch reports whether any path matches any pattern. It returns true after too many
// comparisons.
func (g globs) anyMatch(patterns, paths []string) bool {
	patterns = slices.Compact(slices.Sorted(slices.Values(patterns)))
	left, work := maxComparisons, maxMatching
	for _, p := range patterns {
		glob := g.get(p)
		size := glob.match.Size()
		for _, path := range paths {
			left--
			work -= size * len(path)
			if (left < 0 || work < 0) && glob.match != nil || glob.Match(path) {
				return true
			}
		}
	}
	return false
}
