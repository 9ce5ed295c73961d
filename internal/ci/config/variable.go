package config

import (
	"regexp"
	"slices"
	"strings"
)

// Variable is a CI/CD variable.
type Variable struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Raw disables the expansion of references in the value.
	Raw bool `json:"raw,omitempty"`
	// File passes the value as a file: the variable contains its path.
	File bool `json:"file,omitempty"`
	// Masked hides the value in messages and logs.
	Masked bool `json:"masked,omitempty"`
}

// Lookup finds a variable by name.
type Lookup func(name string) (Variable, bool)

// LookupIn finds variables in lists. If a name occurs several times, within a list or in
// several lists, the last occurrence is used.
func LookupIn(lists ...[]Variable) Lookup {
	size := 0
	for _, l := range lists {
		size += len(l)
	}
	byName := make(map[string]Variable, size)
	for _, l := range lists {
		for _, v := range l {
			byName[v.Key] = v
		}
	}
	return func(name string) (Variable, bool) {
		v, ok := byName[name]
		return v, ok
	}
}

// layered calls the lookups in order, and returns the first variable that is found.
func layered(lookups ...Lookup) Lookup {
	return func(name string) (Variable, bool) {
		for _, l := range lookups {
			if v, ok := l(name); ok {
				return v, true
			}
		}
		return Variable{}, false
	}
}

// overlay sets variables in a list. It keeps the order; new variables come last.
func overlay(base, over []Variable) []Variable {
	if len(over) == 0 {
		return base
	}
	result := slices.Clone(base)
	at := make(map[string]int, len(result)+len(over))
	for i, v := range result {
		at[v.Key] = i
	}
	for _, v := range over {
		if i, ok := at[v.Key]; ok {
			result[i] = v
			continue
		}
		at[v.Key] = len(result)
		result = append(result, v)
	}
	return result
}

// mask removes the values of masked variables from a message.
func mask(message string, variables ...[]Variable) string {
	for _, l := range variables {
		for _, v := range l {
			if v.Masked && v.Value != "" {
				message = strings.ReplaceAll(message, v.Value, "[MASKED]")
			}
		}
	}
	return message
}

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9_]{1,255}$`)

// ValidKey reports whether a text can be the key of a variable.
func ValidKey(key string) bool { return keyPattern.MatchString(key) }

// ScopeCovers reports whether an environment scope, in which * matches any text,
// covers an environment.
func ScopeCovers(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}
