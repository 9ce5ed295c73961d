package compat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

var update = flag.Bool("update", false, "rewrite docs/user/api-clients.md and docs/user/api-parameters.md")

const (
	// clientsPath and parametersPath are generated pages.
	clientsPath    = "../../docs/user/api-clients.md"
	parametersPath = "../../docs/user/api-parameters.md"
	// refusedPath lists the parameters that endpoints reject or ignore, with the
	// reason. The server reads it, too.
	refusedPath = "../../internal/api/parameters.txt"
	// fieldsPath lists the fields that are not sent, with the reason.
	fieldsPath = "testdata/fields.txt"
)

// TestClientCoverage calls every method of client-go without a server, and looks up
// its route, its parameters and the fields of its result in the OpenAPI document of
// the binary. Every documented parameter of a supported endpoint must be bound, or
// listed in internal/api/parameters.txt; every field must be returned, or listed in
// testdata/fields.txt. Fields that the public API does not return either are also
// listed there and not counted.
func TestClientCoverage(t *testing.T) {
	t.Parallel()
	doc := readDocument(t, start(t))
	c := &coverage{doc: doc, refused: readParameters(t), params: map[string]map[string]string{}, fields: map[string]map[string]bool{}}
	c.unsent, c.never = readFields(t)
	for _, m := range clientMethods(t) {
		c.add(m)
	}
	c.addListed(t)
	c.check(t)
	for path, text := range map[string]string{clientsPath: c.clients(), parametersPath: c.parameters()} {
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != text {
			t.Errorf("%s is out of date; run go test -run ClientCoverage -update in test/compat", filepath.Base(path))
		}
	}
}

// clientMethod is a method of a service of client-go, with the request that it
// sends.
type clientMethod struct {
	name, service string
	method, path  string
	options       []reflect.Type // structs of its parameters
	result        reflect.Type   // nil if there is none
}

// recorder is an http.RoundTripper that records requests and returns an error.
type recorder struct{ last *http.Request }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.last = req
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")), Request: req}, nil
}

// clientMethods returns the methods of all services that make a request.
func clientMethods(t *testing.T) []clientMethod {
	t.Helper()
	rec := &recorder{}
	client, err := gitlab.NewClient("x", gitlab.WithBaseURL("http://127.0.0.1"), gitlab.WithHTTPClient(&http.Client{Transport: rec}),
		gitlab.WithCustomRetryMax(0), gitlab.WithoutRetries())
	if err != nil {
		t.Fatal(err)
	}
	var list []clientMethod
	v := reflect.ValueOf(client).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || f.Type.Kind() != reflect.Interface || v.Field(i).IsNil() {
			continue
		}
		service := v.Field(i).Elem()
		for j := range f.Type.NumMethod() {
			m := f.Type.Method(j)
			rec.last = nil
			one := clientMethod{name: f.Name + "." + m.Name, service: f.Name}
			callMethod(service.MethodByName(m.Name), &one)
			if rec.last == nil || one.service == "GraphQL" {
				continue
			}
			one.method, one.path = rec.last.Method, strings.TrimPrefix(rec.last.URL.EscapedPath(), "/api/v4")
			list = append(list, one)
		}
	}
	if len(list) < 1000 {
		t.Fatalf("client-go has %d methods", len(list))
	}
	return list
}

// callMethod calls a method with placeholders for its arguments.
func callMethod(f reflect.Value, m *clientMethod) {
	defer func() { _ = recover() }() // for methods that need more than a placeholder
	var args []reflect.Value
	for i := range f.Type().NumIn() {
		t := f.Type().In(i)
		if f.Type().IsVariadic() && i == f.Type().NumIn()-1 {
			break
		}
		arg := placeholder(t)
		if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
			m.options = append(m.options, t.Elem())
		}
		args = append(args, arg)
	}
	if n := f.Type().NumOut(); n == 3 {
		m.result = f.Type().Out(0)
	}
	f.Call(args)
}

func placeholder(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Interface:
		switch {
		case reflect.TypeFor[*bytes.Reader]().Implements(t) && t.NumMethod() > 0:
			v.Set(reflect.ValueOf(bytes.NewReader([]byte("x"))))
		case t.NumMethod() == 0:
			v.Set(reflect.ValueOf(1))
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, placeholder(t.Elem())))
	case reflect.Struct:
		if f := v.FieldByName("Key"); f.IsValid() && f.Kind() == reflect.String { // a part of the path
			f.SetString("x")
		}
	}
	return v
}

// document is the OpenAPI document of the server.
type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
	routes     []route
}

type operation struct {
	Parameters  []struct{ Name, In string }
	RequestBody *struct {
		Content map[string]struct{ Schema *schema }
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct{ Schema *schema }
	}
}

type schema struct {
	Ref                   string `json:"$ref"`
	Properties            map[string]*schema
	Items                 *schema
	AllOf, OneOf, AnyOf   []*schema
	AdditionalProperties_ json.RawMessage `json:"additionalProperties"`
}

// route is an endpoint of the document, with its path as a pattern.
type route struct {
	method, path string
	pattern      *regexp.Regexp
	literals     int
	op           operation
}

func readDocument(t *testing.T, s *server) *document {
	t.Helper()
	resp, err := http.Get(s.url + "/api/v4/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	d := &document{}
	if err := json.NewDecoder(resp.Body).Decode(d); err != nil {
		t.Fatal(err)
	}
	param := regexp.MustCompile(`\{[^}]*\}`)
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		short := strings.TrimPrefix(path, "/api/v4")
		var parts []string
		for _, literal := range param.Split(short, -1) {
			parts = append(parts, regexp.QuoteMeta(literal))
		}
		for method, op := range d.Paths[path] {
			d.routes = append(d.routes, route{strings.ToUpper(method), short, regexp.MustCompile("^" + strings.Join(parts, "[^/]+") + "$"), len(param.ReplaceAllString(short, "")), op})
		}
	}
	return d
}

// find returns the most specific route of a request, or nil. HEAD is supported
// wherever GET is.
func (d *document) find(method, path string) *route {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var found *route
	for i := range d.routes {
		r := &d.routes[i]
		if r.method == method && r.pattern.MatchString(path) && (found == nil || r.literals > found.literals) {
			found = r
		}
	}
	return found
}

// names returns the parameters that an endpoint binds.
func (d *document) names(op operation) map[string]bool {
	names := map[string]bool{}
	for _, p := range op.Parameters {
		names[plainName(p.Name)] = true
	}
	if op.RequestBody != nil {
		for _, c := range op.RequestBody.Content {
			for name := range d.properties(c.Schema) {
				names[plainName(name)] = true
			}
		}
	}
	return names
}

// plainName returns the name of a parameter without the brackets of lists and
// objects.
func plainName(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return name
}

// properties returns the properties of a schema and of all its alternatives.
func (d *document) properties(s *schema) map[string][]*schema {
	found := map[string][]*schema{}
	var walk func(s *schema, depth int)
	walk = func(s *schema, depth int) {
		if s == nil || depth > 12 {
			return
		}
		if s.Ref != "" {
			walk(d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]], depth+1)
		}
		for name, p := range s.Properties {
			found[name] = append(found[name], p)
		}
		for _, more := range slices.Concat(s.AllOf, s.OneOf, s.AnyOf) {
			walk(more, depth+1)
		}
		walk(s.Items, depth+1)
	}
	walk(s, 0)
	return found
}

// coverage collects what is supported.
type coverage struct {
	doc     *document
	refused map[string]exception
	unsent  map[string]string // reasons by type and field
	never   map[string]string // fields that the public API does not return either

	methods []string // methods without an endpoint
	count   map[string][2]int
	params  map[string]map[string]string // by endpoint: parameter, state
	fields  map[string]map[string]bool   // by type: field, sent
}

// exception is a parameter that is rejected or ignored.
type exception struct{ state, reason string }

// servedIntegrations are the integrations that the server supports. The client has
// methods for others, too; their endpoints return 404.
var servedIntegrations = []string{
	"discord", "hangouts-chat", "matrix", "mattermost", "microsoft-teams", "pumble", "pushover", "slack", "telegram", "webex-teams",
}

// integrationPath matches the endpoints of one integration.
var integrationPath = regexp.MustCompile(`/(?:integrations|services)/([a-z-]+)`)

func otherIntegration(path string) bool {
	m := integrationPath.FindStringSubmatch(path)
	return m != nil && !slices.Contains(servedIntegrations, m[1])
}

func (c *coverage) add(m clientMethod) {
	if c.count == nil {
		c.count = map[string][2]int{}
	}
	n := c.count[m.service]
	n[1]++
	r := c.doc.find(m.method, m.path)
	if otherIntegration(m.path) {
		r = nil
	}
	if r != nil {
		n[0]++
	} else {
		c.methods = append(c.methods, m.name)
	}
	c.count[m.service] = n
	if r == nil {
		return
	}
	c.addParams(m, r)
	for status, resp := range r.op.Responses {
		if m.result == nil || status[0] != '2' {
			continue
		}
		for _, content := range resp.Content {
			c.addFields(m.result, []*schema{content.Schema}, map[reflect.Type]bool{})
		}
	}
}

func (c *coverage) addParams(m clientMethod, r *route) {
	key := r.method + " " + r.path
	bound := c.doc.names(r.op)
	if c.params[key] == nil {
		c.params[key] = map[string]string{}
	}
	for _, t := range m.options {
		for _, name := range optionNames(t, m.method == http.MethodGet) {
			state := "missing"
			if bound[name] {
				state = "supported"
			} else if e, ok := c.exception(r.method, r.path, name); ok {
				state = e.state + ": " + e.reason
			}
			if c.params[key][name] != "supported" {
				c.params[key][name] = state
			}
		}
	}
}

// addListed adds the parameters of internal/api/parameters.txt that the client does
// not have. None of them may be bound, because it would then be accepted.
func (c *coverage) addListed(t *testing.T) {
	for key, e := range c.refused {
		words := strings.SplitN(key, " ", 3)
		endpoint, name := words[0]+" "+words[1], words[2]
		r := c.doc.find(words[0], strings.NewReplacer("{", "", "}", "").Replace(words[1]))
		switch {
		case r == nil || r.path != words[1]:
			t.Errorf("%s: there is no %s", refusedPath, endpoint)
		case c.doc.names(r.op)[name]:
			t.Errorf("%s: %s supports %s, take it out", refusedPath, endpoint, name)
		default:
			if c.params[endpoint] == nil {
				c.params[endpoint] = map[string]string{}
			}
			c.params[endpoint][name] = e.state + ": " + e.reason
		}
	}
}

func (c *coverage) exception(method, path, name string) (exception, bool) {
	e, ok := c.refused[method+" "+path+" "+name]
	return e, ok
}

// optionNames returns the parameter names of the fields of options.
func optionNames(t reflect.Type, query bool) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			e := f.Type
			if e.Kind() == reflect.Pointer {
				e = e.Elem()
			}
			switch {
			case e == reflect.TypeFor[gitlab.ListOptions](): // other fields depend on the endpoint
				names = append(names, "page", "per_page")
			case e.Kind() == reflect.Struct:
				names = append(names, optionNames(e, query)...)
			}
			continue
		}
		tag := cmp.Or(f.Tag.Get("json"), f.Tag.Get("url"))
		if query {
			tag = cmp.Or(f.Tag.Get("url"), f.Tag.Get("json"))
		}
		name, _, _ := strings.Cut(tag, ",")
		if name = plainName(name); name != "" && name != "-" && f.IsExported() {
			names = append(names, name)
		}
	}
	return names
}

// addFields looks up the fields of a type in schemas, and recursively those of the
// types of its fields.
func (c *coverage) addFields(t reflect.Type, schemas []*schema, above map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "gitlab.com/") || above[t] || t.Name() == "Settings" {
		return
	}
	above[t] = true
	defer delete(above, t)
	props := map[string][]*schema{}
	for _, s := range schemas {
		for name, p := range c.doc.properties(s) {
			props[name] = append(props[name], p...)
		}
	}
	if len(props) == 0 {
		return
	}
	if t.Name() != "" && c.fields[t.Name()] == nil {
		c.fields[t.Name()] = map[string]bool{}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			c.addFields(f.Type, schemas, above)
		case name != "" && name != "-":
			if t.Name() != "" {
				c.fields[t.Name()][name] = c.fields[t.Name()][name] || len(props[name]) > 0
			}
			if len(props[name]) > 0 {
				c.addFields(f.Type, props[name], above)
			}
		}
	}
}

// check fails for parameters and fields that are neither supported nor listed.
func (c *coverage) check(t *testing.T) {
	for _, key := range slices.Sorted(maps.Keys(c.params)) {
		for _, name := range slices.Sorted(maps.Keys(c.params[key])) {
			if c.params[key][name] == "missing" {
				t.Errorf("parameter: %s %s", key, name)
			}
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(c.fields)) {
		for _, name := range slices.Sorted(maps.Keys(c.fields[typ])) {
			sent, listed := c.fields[typ][name], c.unsent[typ+"."+name]+c.never[typ+"."+name] != ""
			switch {
			case !sent && !listed:
				t.Errorf("field: %s.%s", typ, name)
			case sent && listed:
				t.Errorf("field: %s.%s is sent, take it out of %s", typ, name, fieldsPath)
			}
		}
	}
}

// readParameters reads lines "METHOD /path name state: reason".
func readParameters(t *testing.T) map[string]exception {
	found := map[string]exception{}
	for line := range dataLines(t, refusedPath) {
		words := strings.SplitN(line, " ", 5)
		if len(words) < 5 {
			t.Fatalf("%s: %s", refusedPath, line)
		}
		state, _, _ := strings.Cut(strings.TrimSuffix(words[3], ":"), "=")
		if !slices.Contains([]string{"refused", "ignored", "alias"}, state) {
			t.Fatalf("%s: %s", refusedPath, line)
		}
		for name := range strings.SplitSeq(words[2], ",") {
			found[words[0]+" "+words[1]+" "+name] = exception{state, words[4]}
		}
	}
	return found
}

// readFields reads lines "Type.field reason" and "never Type.field reason".
func readFields(t *testing.T) (unsent, never map[string]string) {
	unsent, never = map[string]string{}, map[string]string{}
	for line := range dataLines(t, fieldsPath) {
		found := unsent
		if rest, ok := strings.CutPrefix(line, "never "); ok {
			line, found = rest, never
		}
		names, reason, ok := strings.Cut(line, " ")
		typ, fields, dot := strings.Cut(names, ".")
		if !ok || !dot {
			t.Fatalf("%s: %s", fieldsPath, line)
		}
		for name := range strings.SplitSeq(fields, ",") {
			found[typ+"."+name] = reason
		}
	}
	return unsent, never
}

func dataLines(t *testing.T, path string) func(yield func(string) bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string) bool) {
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !yield(line) {
				return
			}
		}
	}
}

// clients renders docs/user/api-clients.md.
func (c *coverage) clients() string {
	var b strings.Builder
	served, all := 0, 0
	for _, n := range c.count {
		served, all = served+n[0], all+n[1]
	}
	sent, declared, never := 0, 0, 0
	for typ, f := range c.fields {
		for name, ok := range f {
			switch {
			case ok:
				sent++
				declared++
			case c.never[typ+"."+name] != "":
				never++
			default:
				declared++
			}
		}
	}
	fmt.Fprintf(&b, `# Coverage of a public client

<!-- Generated by "go test -run ClientCoverage -update" in test/compat. -->

The public Go client (client-go) has %d methods that make a request; %d of them (%.0f %%) have a route here. The types of the results of
these methods declare %d fields (application settings excluded); %d of them (%.1f %%) are sent. They declare %d more fields that the public API
does not send either.

## Services

| Service | Methods | Served |
| --- | ---: | ---: |
`, all, served, 100*float64(served)/float64(all), declared, sent, 100*float64(sent)/float64(declared), never)
	for _, name := range slices.Sorted(maps.Keys(c.count)) {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", name, c.count[name][1], c.count[name][0])
	}
	for _, list := range []struct {
		title   string
		reasons map[string]string
	}{{"Fields that are not sent", c.unsent}, {"Fields that the public API does not send", c.never}} {
		b.WriteString("\n## " + list.title + "\n\n| Type | Field | Reason |\n| --- | --- | --- |\n")
		for _, typ := range slices.Sorted(maps.Keys(c.fields)) {
			for _, name := range slices.Sorted(maps.Keys(c.fields[typ])) {
				if reason := list.reasons[typ+"."+name]; reason != "" && !c.fields[typ][name] {
					fmt.Fprintf(&b, "| %s | `%s` | %s |\n", typ, name, reason)
				}
			}
		}
	}
	return b.String()
}

// parameters renders docs/user/api-parameters.md.
func (c *coverage) parameters() string {
	var b strings.Builder
	states := map[string]int{}
	for _, params := range c.params {
		for _, state := range params {
			word, _, _ := strings.Cut(state, ":")
			states[word]++
		}
	}
	fmt.Fprintf(&b, `# API parameters

<!-- Generated by "go test -run ClientCoverage -update" in test/compat. -->

The documented parameters of the endpoints that are served: %d are supported. %d are refused: a request that sends one gets the status 400 and
an error that names it. %d are accepted without an effect.

| Endpoint | Parameter | State |
| --- | --- | --- |
`, states["supported"], states["refused"], states["ignored"])
	for _, key := range slices.Sorted(maps.Keys(c.params)) {
		var good []string
		for _, name := range slices.Sorted(maps.Keys(c.params[key])) {
			state := c.params[key][name]
			if state == "supported" {
				good = append(good, "`"+name+"`")
				continue
			}
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", key, name, state)
		}
		if len(good) > 0 {
			fmt.Fprintf(&b, "| `%s` | %s | supported |\n", key, strings.Join(good, ", "))
		}
	}
	return b.String()
}
