package runner

import (
	"path"
	"strings"
)

// maxBraces bounds what one pattern may stand for.
const maxBraces = 256

// match reports whether a path fits a pattern. In a pattern * and ? stay within
// a name, ** stands for any number of directories, [ab] for one of some
// characters and {a,b} for one of some texts. A broken pattern fits nothing.
func match(pattern, name string) bool {
	names := strings.Split(name, "/")
	for _, one := range braces(pattern) {
		if matchParts(strings.Split(one, "/"), names) {
			return true
		}
	}
	return false
}

// matchParts goes through the pattern once and notes how many of the names each
// part can have used up, so that no pattern takes long.
func matchParts(parts, names []string) bool {
	reached := make([]bool, len(names)+1)
	reached[0] = true
	for _, part := range parts {
		next := make([]bool, len(names)+1)
		if part == "**" {
			some := false
			for i := range reached {
				some = some || reached[i]
				next[i] = some
			}
			reached = next
			continue
		}
		part = strings.ReplaceAll(part, "[!", "[^")
		for i, name := range names {
			if reached[i] {
				ok, err := path.Match(part, name)
				next[i+1] = ok && err == nil
			}
		}
		reached = next
	}
	return reached[len(names)]
}

// braces writes out the alternatives of a pattern.
func braces(pattern string) []string {
	done, todo := []string{}, []string{pattern}
	for len(todo) > 0 && len(done)+len(todo) <= maxBraces {
		one := todo[0]
		todo = todo[1:]
		open, shut, cuts := innermost(one)
		if shut < 0 {
			done = append(done, one)
			continue
		}
		from := open + 1
		for _, cut := range append(cuts, shut) {
			todo = append(todo, one[:open]+one[from:cut]+one[shut+1:])
			from = cut + 1
		}
	}
	return append(done, todo...)
}

// innermost finds a pair of braces without another one in it, and the commas
// between them; shut is -1 when there is none.
func innermost(pattern string) (open, shut int, cuts []int) {
	shut = strings.IndexByte(pattern, '}')
	if shut < 0 {
		return 0, -1, nil
	}
	open = strings.LastIndexByte(pattern[:shut], '{')
	if open < 0 {
		return 0, -1, nil
	}
	for i := open + 1; i < shut; i++ {
		if pattern[i] == ',' {
			cuts = append(cuts, i)
		}
	}
	return open, shut, cuts
}

// fixed is the part of a pattern before the first name that is not literal.
func fixed(pattern string) string {
	var names []string
	for _, name := range strings.Split(pattern, "/") {
		if strings.ContainsAny(name, `*?[{\`) {
			break
		}
		names = append(names, name)
	}
	return strings.Join(names, "/")
}
