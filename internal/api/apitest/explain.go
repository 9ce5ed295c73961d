package apitest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// explain describes the fields that do not match. If a value may have several
// shapes, it uses the shape with the fewest errors.
func explain(fault *jsonschema.ValidationError) string {
	return strings.Join(faults(fault), "; ")
}

func faults(e *jsonschema.ValidationError) []string {
	if _, ok := e.ErrorKind.(*kind.AnyOf); ok && len(e.Causes) > 0 {
		near := nearest(e)
		list := faults(near)
		if ref, ok := near.ErrorKind.(*kind.Reference); ok {
			list[0] = "as " + path.Base(strings.TrimSuffix(ref.URL, "#")) + ": " + list[0]
		}
		return list
	}
	if len(e.Causes) == 0 {
		return []string{place(e.InstanceLocation) + ": " + e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}
	}
	var list []string
	for _, cause := range e.Causes {
		list = append(list, faults(cause)...)
	}
	slices.Sort(list) // the order of members is random
	return list
}

// place formats the position of an error in the body: [3].identities[0].provider.
func place(tokens []string) string {
	var out strings.Builder
	for _, token := range tokens {
		if strings.Trim(token, "0123456789") == "" {
			fmt.Fprintf(&out, "[%s]", token)
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('.')
		}
		out.WriteString(token)
	}
	if out.Len() == 0 {
		return "the body"
	}
	return out.String()
}

// nearest returns the shape with the fewest errors.
func nearest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	best := e.Causes[0]
	for _, cause := range e.Causes[1:] {
		if distance(cause, len(e.InstanceLocation)) < distance(best, len(e.InstanceLocation)) {
			best = cause
		}
	}
	return best
}

// distance counts the wrong fields. A value of another JSON type has a large
// distance.
func distance(e *jsonschema.ValidationError, depth int) int {
	if _, ok := e.ErrorKind.(*kind.AnyOf); ok && len(e.Causes) > 0 {
		return distance(nearest(e), depth)
	}
	if len(e.Causes) > 0 {
		sum := 0
		for _, cause := range e.Causes {
			sum += distance(cause, depth)
		}
		return sum
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return len(k.Missing)
	case *kind.AdditionalProperties:
		return len(k.Properties)
	case *kind.Type:
		if len(e.InstanceLocation) == depth {
			return 1000
		}
	}
	return 1
}
