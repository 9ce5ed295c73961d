// Package apitest checks responses of the API against its OpenAPI document, for
// tests. A response or field that is not in the document is an error in the API or
// in the document.
package apitest

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// prefix is the path of the API. Paths in the document are relative to it.
const prefix = "/api/v4"

// location is the start of schema URLs for the compiler; the JSON pointer follows.
// Each schema has its own URL, because the compiler copies a document for each
// schema in it. Nothing is loaded from these URLs.
const location = "https://api.invalid"

// Oracle checks responses against a document. It is safe for concurrent use.
type Oracle struct {
	root   map[string]any
	routes map[int][]*route // by number of segments, the most literal first

	mu       sync.Mutex // held while a schema is compiled
	compiler *jsonschema.Compiler
	schemas  sync.Map // by JSON pointer: *jsonschema.Schema
}

// NewOracle parses a document. Schemas are compiled on first use; Verify compiles
// all of them.
func NewOracle(document []byte) (*Oracle, error) {
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, errors.New("read the document: not an object")
	}
	o := &Oracle{root: root, routes: map[int][]*route{}, compiler: jsonschema.NewCompiler()}
	o.compiler.DefaultDraft(jsonschema.Draft2020)
	o.compiler.AssertFormat()
	for name := range object(o.at(shared)) {
		if err := o.add(shared + pointerTo(name)); err != nil {
			return nil, fmt.Errorf("read the document: %w", err)
		}
	}
	paths, _ := root["paths"].(map[string]any)
	for path, item := range paths {
		r, err := o.newRoute(path, item)
		if err != nil {
			return nil, fmt.Errorf("read the document: %s: %w", path, err)
		}
		n := len(r.segments)
		o.routes[n] = append(o.routes[n], r)
	}
	for _, list := range o.routes {
		slices.SortFunc(list, moreLiteral)
	}
	return o, nil
}

// Check returns an error if a response does not match the document. path is the
// encoded path of the request with the prefix; a query is ignored. Paths outside the
// API, and its documentation, are not checked.
func (o *Oracle) Check(method, path string, status int, header http.Header, body []byte) error {
	path, _, _ = strings.Cut(path, "?")
	below, ok := strings.CutPrefix(path, prefix)
	if !ok || below != "" && below[0] != '/' || undescribed(below) {
		return nil
	}
	if method == http.MethodOptions {
		return checkPreflight(path, status, body)
	}
	asked := method
	if method == http.MethodHead {
		asked = http.MethodGet
	}
	r, op := o.find(asked, below)
	if op == nil {
		r, op = o.find(asked, strings.TrimSuffix(below, "/")) // a slash at the end has no meaning
	}
	if op == nil {
		err := o.checkNoOperation(method, path, r != nil, status, header, body)
		if err == nil {
			return nil
		}
		// The last parameter of a path may have slashes.
		for at := strings.LastIndexByte(below, '/'); at > 0 && op == nil; at = strings.LastIndexByte(below[:at], '/') {
			below = below[:at] + "%2F" + below[at+1:]
			r, op = o.find(asked, below)
		}
		if op == nil {
			return err
		}
	}
	name := fmt.Sprintf("%s %s%s returned %d", method, prefix, r.path, status)
	response, ok := op.responses[status]
	if !ok {
		return fmt.Errorf("%s: the document has no such response (%s)", name, op.id)
	}
	if err := o.checkBody(response, method, header, body); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// undescribed reports whether a path is that of the documentation, which is not in
// the document.
func undescribed(below string) bool {
	return below == "/openapi.json" || below == "/docs" || strings.HasPrefix(below, "/docs/")
}

func checkPreflight(path string, status int, body []byte) error {
	if status != http.StatusNoContent || len(body) > 0 {
		return fmt.Errorf("OPTIONS %s returned %d with %d bytes: want 204 without a body", path, status, len(body))
	}
	return nil
}

// checkNoOperation checks the response to a request without an operation.
func (o *Oracle) checkNoOperation(method, path string, known bool, status int, header http.Header, body []byte) error {
	want := map[int]string{http.StatusNotFound: "NotFound", http.StatusRequestURITooLong: "URITooLong"}
	if known {
		want = map[int]string{http.StatusMethodNotAllowed: "NotAllowed", http.StatusRequestURITooLong: "URITooLong"}
	}
	name := fmt.Sprintf("%s %s returned %d", method, path, status)
	shared, ok := want[status]
	if !ok {
		return fmt.Errorf("%s: the document has no such operation", name)
	}
	if status == http.StatusMethodNotAllowed && header.Get("Allow") == "" {
		return fmt.Errorf("%s: there is no Allow header", name)
	}
	a, err := o.newResponse("/components/responses/" + shared)
	if err == nil {
		err = o.checkBody(a, method, header, body)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (o *Oracle) checkBody(a *response, method string, header http.Header, body []byte) error {
	switch {
	case method == http.MethodHead && len(body) > 0:
		return fmt.Errorf("%d bytes in the response to HEAD", len(body))
	case method == http.MethodHead:
		return nil
	case len(a.content) == 0 && len(body) > 0:
		return fmt.Errorf("a body of %d bytes where the document has none: %s", len(body), extract(body))
	case len(a.content) == 0:
		return nil
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("content type %q: %w", header.Get("Content-Type"), err)
	}
	schema, ok := a.content[media]
	if !ok {
		if _, any := a.content["*/*"]; any {
			return nil
		}
		return fmt.Errorf("content type %q is not in the document", media)
	}
	if media == "text/plain" {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w: %s", err, extract(body))
	}
	return o.validate(schema, value)
}

func (o *Oracle) validate(pointer string, value any) error {
	s, err := o.schema(pointer)
	if err != nil {
		return err
	}
	err = s.Validate(value)
	if fault, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return errors.New(explain(fault))
	}
	return err
}

// schema returns the compiled schema at a JSON pointer of the document.
func (o *Oracle) schema(pointer string) (*jsonschema.Schema, error) {
	if s, ok := o.schemas.Load(pointer); ok {
		return s.(*jsonschema.Schema), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s, ok := o.schemas.Load(pointer); ok { // another goroutine has compiled it
		return s.(*jsonschema.Schema), nil
	}
	if !strings.HasPrefix(pointer, shared) {
		if err := o.add(pointer); err != nil {
			return nil, err
		}
	}
	s, err := o.compiler.Compile(address(pointer))
	if err != nil {
		return nil, fmt.Errorf("the schema at %s: %w", pointer, err)
	}
	o.schemas.Store(pointer, s)
	return s, nil
}

// shared is the JSON pointer to the components.
const shared = "/components/schemas"

// add adds the schema at a pointer to the compiler.
func (o *Oracle) add(pointer string) error {
	if err := o.compiler.AddResource(address(pointer), addressed(o.at(pointer))); err != nil {
		return fmt.Errorf("the schema at %s: %w", pointer, err)
	}
	return nil
}

// addressed returns a schema with URLs as references.
func addressed(schema any) any {
	switch x := schema.(type) {
	case []any:
		list := make([]any, len(x))
		for i, one := range x {
			list[i] = addressed(one)
		}
		return list
	case map[string]any:
		members := make(map[string]any, len(x))
		for name, one := range x {
			members[name] = addressed(one)
			if ref, ok := one.(string); ok && name == "$ref" {
				members[name] = address(strings.TrimPrefix(ref, "#"))
			}
		}
		return members
	}
	return schema
}

// address returns the URL of the schema at a JSON pointer.
func address(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return location + strings.Join(parts, "/")
}

// extract returns the start of a body, for a message.
func extract(body []byte) string {
	if len(body) > 200 {
		return string(body[:200]) + "…"
	}
	return string(body)
}
