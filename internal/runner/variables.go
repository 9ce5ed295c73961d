package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/expand"
)

// variables are the variables of a job by name, with references expanded.
type variables struct {
	list     []variable
	index    map[string]int
	budget   *expand.Budget
	expander *expand.Expander
	err      error // the first value that could not be expanded
}

// newVariables returns the variables of a job. If a name occurs more than once, the
// last value is used.
func newVariables(given []variable) *variables {
	v := &variables{index: map[string]int{}, budget: expand.NewBudget(context.Background())}
	for _, one := range given {
		v.set(one)
	}
	return v
}

func (v *variables) set(one variable) {
	// A new expander drops the values that were expanded with the old value.
	v.expander = &expand.Expander{
		Budget: v.budget, Variables: v.find, Syntax: shellReferences, Nested: shellReferences, DropUnknown: true, DropCircular: true,
	}
	if i, ok := v.index[one.Key]; ok {
		v.list[i] = one
		return
	}
	v.index[one.Key] = len(v.list)
	v.list = append(v.list, one)
}

func (v *variables) find(name string) (expand.Variable, bool) {
	i, ok := v.index[name]
	if !ok {
		return expand.Variable{}, false
	}
	return expand.Variable{Value: v.list[i].Value, Raw: v.list[i].Raw || v.list[i].File}, true
}

// add sets a variable that is not expanded.
func (v *variables) add(key, value string) { v.set(variable{Key: key, Value: value, Raw: true}) }

// get returns the expanded value of a variable. A circular reference is empty.
func (v *variables) get(name string) string {
	value, err := v.expander.Value(name)
	if err != nil && v.err == nil {
		v.err = fmt.Errorf("variable %s: %w", name, err)
	}
	return value
}

// expand replaces the references to variables in a text.
func (v *variables) expand(text string) string { return v.expander.Text(text, false) }

// fault returns an error if the variables exceed the limits of expansion.
func (v *variables) fault() error { return errors.Join(v.err, v.budget.Err()) }

// shellReferences replaces references in shell syntax; "$$" is a dollar sign.
func shellReferences(text string, with func(match, name string) string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	return os.Expand(text, func(name string) string {
		if name == "$" {
			return "$"
		}
		return with("", name)
	})
}

func (v *variables) expandAll(list []string) []string {
	var out []string
	for _, text := range list {
		out = append(out, v.expand(text))
	}
	return out
}

// is reports whether a boolean variable is true.
func (v *variables) is(name string) bool {
	on, err := strconv.ParseBool(v.get(name))
	return err == nil && on
}

// duration parses a variable with a duration such as "5m". It returns usual if the
// value is not valid.
func (v *variables) duration(name string, usual time.Duration) time.Duration {
	d, err := time.ParseDuration(v.get(name))
	if err != nil || d <= 0 {
		return usual
	}
	return d
}

// attempts parses a variable with a number of attempts from 1 to 10. It returns
// usual if the value is not valid.
func (v *variables) attempts(name string, usual int) int {
	n, err := strconv.Atoi(v.get(name))
	if err != nil || n < 1 || n > 10 {
		return usual
	}
	return n
}

// secrets returns the values that are masked in the log.
func (v *variables) secrets() []string {
	var out []string
	for _, one := range v.list {
		if one.Masked {
			out = append(out, one.Value, v.get(one.Key))
		}
	}
	return out
}

// environ returns the environment of the scripts. Variables of type file are written
// into dir, and the environment contains their paths.
func (v *variables) environ(base []string, dir string) ([]string, error) {
	env := slices.Clone(base)
	for _, one := range v.list {
		value := v.get(one.Key)
		if !environName(one.Key) || strings.ContainsRune(value, 0) {
			continue // not possible in an environment
		}
		if one.File {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, fmt.Errorf("variable %s: %w", one.Key, err)
			}
			path := filepath.Join(dir, one.Key)
			if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
				return nil, fmt.Errorf("variable %s: %w", one.Key, err)
			}
			value = path
		}
		env = append(env, one.Key+"="+value)
	}
	return env, v.fault()
}

// environName reports whether a name is a valid name of a shell variable.
func environName(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// inherited returns the environment variables of the runner that scripts inherit.
// The others may contain secrets, because the runner can run inside the server
// process.
func inherited(environ []string) []string {
	names := []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
	}
	var out []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(names, name) || strings.HasPrefix(name, "LC_") {
			out = append(out, entry)
		}
	}
	return out
}
