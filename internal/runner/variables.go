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

// newVariables takes the variables of a job; of two of one name the last
// counts.
func newVariables(given []variable) *variables {
	v := &variables{index: map[string]int{}, budget: expand.NewBudget(context.Background())}
	for _, one := range given {
		v.set(one)
	}
	return v
}

func (v *variables) set(one variable) {
	// Values that were expanded before may refer to this one.
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

// add sets a variable that the runner knows.
func (v *variables) add(key, value string) { v.set(variable{Key: key, Value: value, Raw: true}) }

// get returns the expanded value of a variable. A circular reference is empty.
func (v *variables) get(name string) string {
	value, err := v.expander.Value(name)
	if err != nil && v.err == nil {
		v.err = fmt.Errorf("variable %s: %w", name, err)
	}
	return value
}

// expand puts the variables into a text.
func (v *variables) expand(text string) string { return v.expander.Text(text, false) }

// fault returns an error if the variables exceed the limits of expansion.
func (v *variables) fault() error { return errors.Join(v.err, v.budget.Err()) }

// shellReferences finds references as a shell writes them; "$$" is a dollar sign.
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

// is reports whether a switch is on.
func (v *variables) is(name string) bool {
	on, err := strconv.ParseBool(v.get(name))
	return err == nil && on
}

// duration parses a variable with a duration, as in "5m".
func (v *variables) duration(name string, usual time.Duration) time.Duration {
	d, err := time.ParseDuration(v.get(name))
	if err != nil || d <= 0 {
		return usual
	}
	return d
}

// attempts parses a variable with a number of attempts.
func (v *variables) attempts(name string, usual int) int {
	n, err := strconv.Atoi(v.get(name))
	if err != nil || n < 1 || n > 10 {
		return usual
	}
	return n
}

// secrets are the values that must not be seen in a log.
func (v *variables) secrets() []string {
	var out []string
	for _, one := range v.list {
		if one.Masked {
			out = append(out, one.Value, v.get(one.Key))
		}
	}
	return out
}

// environ is the environment of the scripts. Variables that are files are
// written into dir, and the environment has their paths.
func (v *variables) environ(base []string, dir string) ([]string, error) {
	env := slices.Clone(base)
	for _, one := range v.list {
		value := v.get(one.Key)
		if !environName(one.Key) || strings.ContainsRune(value, 0) {
			continue // no program could be started with it
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

// environName reports whether a shell can have a variable of the name.
func environName(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// inherited is what scripts see of the environment of the runner. The rest may
// hold secrets: the runner can be a part of the server.
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
