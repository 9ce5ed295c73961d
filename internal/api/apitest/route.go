package apitest

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// route is a path of the document with its operations.
type route struct {
	path       string
	segments   []segment
	operations map[string]*operation // by method, in uppercase
}

// operation is the part of an operation that the oracle needs.
type operation struct {
	id        string
	responses map[int]*response
}

// response is a response of an operation: JSON pointers to schemas by media type.
type response struct {
	content map[string]string
}

// segment is a part of a path: a literal, or a pattern with parameters.
type segment struct {
	literal string
	pattern *regexp.Regexp
}

func (s segment) matches(text string) bool {
	if s.pattern == nil {
		return s.literal == text
	}
	return s.pattern.MatchString(text)
}

var parameter = regexp.MustCompile(`\\\{[^}]*\\\}`)

func newSegment(text string) segment {
	if !strings.Contains(text, "{") {
		return segment{literal: text}
	}
	return segment{pattern: regexp.MustCompile("^" + parameter.ReplaceAllString(regexp.QuoteMeta(text), ".+") + "$")}
}

func (o *Oracle) newRoute(path string, item any) (*route, error) {
	r := &route{path: path, operations: map[string]*operation{}}
	for part := range strings.SplitSeq(path[min(1, len(path)):], "/") {
		r.segments = append(r.segments, newSegment(part))
	}
	methods, _ := item.(map[string]any)
	for method, one := range methods {
		described, _ := one.(map[string]any)
		id, _ := described["operationId"].(string)
		op := &operation{id: id, responses: map[int]*response{}}
		responses, _ := described["responses"].(map[string]any)
		for code := range responses {
			status, err := strconv.Atoi(code)
			if err != nil {
				return nil, fmt.Errorf("%s: the status %q: %w", method, code, err)
			}
			op.responses[status], err = o.newResponse(pointerTo("paths", path, method, "responses", code))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", method, err)
			}
		}
		r.operations[strings.ToUpper(method)] = op
	}
	return r, nil
}

// newResponse parses the response at a pointer, or the response that it refers to.
func (o *Oracle) newResponse(pointer string) (*response, error) {
	described, ok := o.at(pointer).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("there is no response at %s", pointer)
	}
	if ref, ok := described["$ref"].(string); ok {
		return o.newResponse(strings.TrimPrefix(ref, "#"))
	}
	a := &response{content: map[string]string{}}
	content, _ := described["content"].(map[string]any)
	for media := range content {
		a.content[media] = pointer + pointerTo("content", media, "schema")
	}
	return a, nil
}

// at returns the value at a JSON pointer, or nil.
func (o *Oracle) at(pointer string) any {
	var value any = o.root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v := value.(type) {
		case map[string]any:
			value = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// pointerTo returns a JSON pointer.
func pointerTo(tokens ...string) string {
	var pointer strings.Builder
	for _, token := range tokens {
		pointer.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1"))
	}
	return pointer.String()
}

// find returns the route of a path and, if it has the method, the operation. As in
// the API, a literal takes precedence over a parameter unless it has no operation,
// and a path may end with .json.
func (o *Oracle) find(method, path string) (*route, *operation) {
	r, op := o.match(method, path)
	if bare, ok := strings.CutSuffix(path, ".json"); ok && op == nil {
		if other, found := o.match(method, bare); found != nil {
			return other, found
		}
	}
	return r, op
}

func (o *Oracle) match(method, path string) (first *route, op *operation) {
	parts := strings.Split(path[min(1, len(path)):], "/")
	for _, r := range o.routes[len(parts)] {
		if !r.matches(parts) {
			continue
		}
		if op := r.operations[method]; op != nil {
			return r, op
		}
		if first == nil {
			first = r
		}
	}
	return first, nil
}

func (r *route) matches(parts []string) bool {
	for i, s := range r.segments {
		if !s.matches(parts[i]) {
			return false
		}
	}
	return true
}

// moreLiteral sorts routes of one length: from left to right, literals first.
func moreLiteral(a, b *route) int {
	for i := range a.segments {
		switch literal := a.segments[i].pattern == nil; {
		case literal == (b.segments[i].pattern == nil):
		case literal:
			return -1
		default:
			return 1
		}
	}
	return strings.Compare(a.path, b.path)
}

// methods returns the HTTP methods that a path in the document can have.
func methods() []string {
	return []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}
