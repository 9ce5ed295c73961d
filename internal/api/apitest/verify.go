package apitest

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Verify returns all errors in the document: schemas that do not compile, broken
// references, operations without a unique ID, path parameters that are not
// declared.
func (o *Oracle) Verify() error {
	v := &verifier{oracle: o, ids: map[string]string{}}
	if version, _ := o.root["openapi"].(string); !strings.HasPrefix(version, "3.1.") {
		v.add("openapi is %q, not 3.1", version)
	}
	v.walk("", o.root, false)
	v.security("the document", o.root)
	for name := range object(o.at("/components/schemas")) {
		v.compile(pointerTo("components", "schemas", name))
	}
	shapes := map[string]string{}
	paths := object(o.root["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		v.path(path, object(paths[path]), shapes)
	}
	if len(paths) == 0 {
		v.add("there are no paths")
	}
	return errors.Join(v.faults...)
}

type verifier struct {
	oracle *Oracle
	ids    map[string]string
	faults []error
}

func (v *verifier) add(format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf(format, args...))
}

// walk visits every value: references must resolve, schemas must compile. Members
// of an object of names are not keywords.
func (v *verifier) walk(pointer string, value any, names bool) {
	switch x := value.(type) {
	case []any:
		for i, one := range x {
			v.walk(fmt.Sprintf("%s/%d", pointer, i), one, false)
		}
	case map[string]any:
		for name, one := range x {
			here := pointer + pointerTo(name)
			if ref, ok := one.(string); ok && name == "$ref" && !names && v.oracle.at(strings.TrimPrefix(ref, "#")) == nil {
				v.add("%s: %s leads nowhere", here, ref)
			}
			if name == "schema" && !names {
				v.compile(here)
			}
			v.walk(here, one, !names && slices.Contains([]string{"properties", "schemas", "responses", "headers", "paths", "securitySchemes"}, name))
		}
	}
}

func (v *verifier) compile(pointer string) {
	if _, err := v.oracle.schema(pointer); err != nil {
		v.faults = append(v.faults, err)
	}
}

var pathParameter = regexp.MustCompile(`\{([^}]*)\}`)

func (v *verifier) path(path string, item map[string]any, shapes map[string]string) {
	if !strings.HasPrefix(path, "/") {
		v.add("the path %q does not begin with a slash", path)
	}
	shape := pathParameter.ReplaceAllString(path, "{}")
	if other, taken := shapes[shape]; taken {
		v.add("%s and %s are the same path", other, path)
	}
	shapes[shape] = path
	for method, one := range item {
		if !slices.Contains(methods(), strings.ToUpper(method)) {
			v.add("%s: unknown method %q", path, method)
		}
		v.operation(strings.ToUpper(method)+" "+path, path, object(one))
	}
}

func (v *verifier) operation(name, path string, op map[string]any) {
	id, _ := op["operationId"].(string)
	switch other, taken := v.ids[id]; {
	case id == "":
		v.add("%s has no operationId", name)
	case taken:
		v.add("%s and %s have the same operationId %s", other, name, id)
	}
	v.ids[id] = name
	if summary, _ := op["summary"].(string); summary == "" {
		v.add("%s has no summary", name)
	}
	v.parameters(name, path, op)
	v.tags(name, op)
	v.security(name, op)
	responses := object(op["responses"])
	good := 0
	for code := range responses {
		if code[0] == '2' {
			good++
		}
	}
	if good == 0 {
		v.add("%s has no success response", name)
	}
}

func (v *verifier) parameters(name, path string, op map[string]any) {
	declared := map[string]bool{}
	list, _ := op["parameters"].([]any)
	for _, one := range list {
		p := object(one)
		field, in := p["name"], p["in"]
		key := fmt.Sprintf("%s in %s", field, in)
		if declared[key] {
			v.add("%s declares %s twice", name, key)
		}
		declared[key] = true
		if in == "path" && p["required"] != true {
			v.add("%s: %s must be required", name, key)
		}
		if in == "path" && !strings.Contains(path, fmt.Sprintf("{%s}", field)) {
			v.add("%s: the path has no {%s}", name, field)
		}
	}
	for _, m := range pathParameter.FindAllStringSubmatch(path, -1) {
		if !declared[m[1]+" in path"] {
			v.add("%s does not declare {%s}", name, m[1])
		}
	}
}

func (v *verifier) tags(name string, op map[string]any) {
	all, _ := v.oracle.root["tags"].([]any)
	used, _ := op["tags"].([]any)
	for _, tag := range used {
		if !slices.ContainsFunc(all, func(one any) bool { return object(one)["name"] == tag }) {
			v.add("%s: the tag %q is not declared", name, tag)
		}
	}
}

func (v *verifier) security(name string, op map[string]any) {
	ways, _ := op["security"].([]any)
	for _, way := range ways {
		for scheme := range object(way) {
			if v.oracle.at(pointerTo("components", "securitySchemes", scheme)) == nil {
				v.add("%s: the security scheme %q is not declared", name, scheme)
			}
		}
	}
}

// object returns a value as a JSON object, empty for other values.
func object(value any) map[string]any {
	members, _ := value.(map[string]any)
	return members
}
