package api

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"svc/internal/bind"
)

// parametersText lists the documented parameters that have no effect in svc. The
// file describes its format. docs/user/api-parameters.md is generated from it.
//
//go:embed parameters.txt
var parametersText string

// refusedParam is a documented parameter that an endpoint rejects, because it would
// restrict or trigger something that svc does not have.
type refusedParam struct {
	name     string
	harmless []string // values that are accepted, because they request nothing
}

// refusedParams parses the refused parameters by endpoint, "METHOD /path".
func refusedParams(text string) map[string][]refusedParam {
	found := map[string][]refusedParam{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 5 || strings.HasPrefix(line, "#") {
			continue
		}
		state, values, _ := strings.Cut(strings.TrimSuffix(words[3], ":"), "=")
		if state != "refused" {
			continue
		}
		var harmless []string
		if values != "" {
			harmless = strings.Split(values, ",")
		}
		key := words[0] + " " + words[1]
		for name := range strings.SplitSeq(words[2], ",") {
			found[key] = append(found[key], refusedParam{name, harmless})
		}
	}
	return found
}

// refuse returns an error if the request has parameters that the endpoint rejects.
func (e *endpoint) refuse(in *bind.Input) error {
	var messages []string
	for _, p := range e.refused {
		if in.Asks(p.name, p.harmless...) {
			messages = append(messages, fmt.Sprintf("%s is not supported", p.name))
		}
	}
	if len(messages) > 0 {
		return bind.Invalid(messages...)
	}
	return nil
}

// unbound returns the parameters of list that the endpoint does not bind, so that a
// parameter that is added to an endpoint works even while it is still listed.
func (e *endpoint) unbound(list []refusedParam) []refusedParam {
	return slices.DeleteFunc(slices.Clone(list), func(p refusedParam) bool {
		return slices.ContainsFunc(e.layout.Fields, func(f bind.Field) bool { return f.Name == p.name })
	})
}
