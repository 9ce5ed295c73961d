package runner

import "strings"

// fixed returns the part of a pattern before the first path segment with a wildcard.
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
