package runner

import "strings"

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
