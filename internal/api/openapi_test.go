package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/api/apitest"
)

// TestDocument checks the whole document for each kind of installation.
func TestDocument(t *testing.T) {
	t.Parallel()
	for _, tier := range []Tier{Free, Premium, Ultimate} {
		for _, hosted := range []bool{false, true} {
			site := testSite()
			site.Tier, site.Hosted = tier, hosted
			a := New(Deps{Site: site})
			d := a.document()
			o, err := apitest.NewOracle(d.bytes())
			if err != nil {
				t.Fatal(err)
			}
			if err := o.Verify(); err != nil {
				t.Errorf("%v, hosted %v: %v", tier, hosted, err)
			}
			has := map[string]bool{}
			for _, op := range d.operations {
				has[op.endpoint.method+" "+op.endpoint.path] = true
			}
			for route, want := range map[string]bool{
				"GET /users":              true,
				"GET /audit_events":       tier >= Premium && !hosted,
				"GET /admin/ci/variables": !hosted,
			} {
				if has[route] != want {
					t.Errorf("%v, hosted %v: %s: got %v, want %v", tier, hosted, route, has[route], want)
				}
			}
			if got := strings.Contains(string(d.bytes()), `"extra_shared_runners_minutes_limit":{"description"`); got != (tier >= Premium) {
				t.Errorf("%v, hosted %v: a parameter of premium: %v", tier, hosted, got)
			}
		}
	}
}

func TestDocumentIsStable(t *testing.T) {
	t.Parallel()
	first := New(Deps{Site: testSite()}).document().bytes()
	if second := New(Deps{Site: testSite()}).document().bytes(); !bytes.Equal(first, second) {
		t.Error("two documents of one installation differ")
	}
}

// TestEveryResultHasAShape finds endpoints that answer with just anything: a
// test of their answers could find no fault.
func TestEveryResultHasAShape(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	s := newSchemas(&a.Site)
	for _, e := range a.endpoints {
		if e.result == reflect.TypeFor[streamed]() {
			continue
		}
		result, list := s.result(e)
		if list {
			result = result.Items
		}
		if reflect.DeepEqual(result, &schema{}) {
			t.Errorf("%s %s: the result has no shape; name it with forms", e.method, e.path)
		}
	}
}

// TestShapesFit writes a full and a sparse value of each result as the server
// would and holds them against the document: what is said of a type must be
// what encoding/json does with it.
func TestShapesFit(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	o, err := apitest.NewOracle(a.document().bytes())
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for _, e := range a.endpoints {
		for _, sample := range sampleResults(e) {
			body, err := json.Marshal(sample)
			if err != nil {
				t.Fatal(err)
			}
			path := prefix + pathParam.ReplaceAllString(e.path, "1")
			if err := o.Check(e.method, path, e.status, header, body); err != nil {
				t.Errorf("%v\n%s", err, body)
			}
		}
	}
}

// sampleResults gives values of each type that an endpoint may answer with.
func sampleResults(e *endpoint) []any {
	t, list := e.result, false
	switch {
	case t == reflect.TypeFor[none](), t == reflect.TypeFor[streamed](), t == reflect.TypeFor[accepted]():
		return nil
	case t.Implements(reflect.TypeFor[pager]()):
		items, _ := t.FieldByName("items")
		t, list = items.Type.Elem(), true
	case t.Implements(reflect.TypeFor[outcome]()):
		value, _ := t.FieldByName("value")
		t = value.Type
	}
	types := []reflect.Type{t}
	if e.forms != nil {
		types = nil
		for _, f := range e.forms {
			types = append(types, reflect.TypeOf(f))
		}
	}
	var samples []any
	for _, t := range types {
		for _, full := range []bool{true, false} {
			v := reflect.New(t).Elem()
			fill(v, full)
			sample := v.Interface()
			if list {
				sample = []any{sample}
			}
			samples = append(samples, sample)
		}
	}
	return samples
}

// fill sets everything in a value: pointers and lists get one element if it
// is to be full.
func fill(v reflect.Value, full bool) {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.Set(reflect.ValueOf(json.RawMessage("null")))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if full && v.CanSet() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), full)
		}
	case reflect.Slice:
		n := 0
		if full {
			n = 1
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), full)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Struct:
		for _, f := range v.Fields() {
			if f.CanSet() || f.Kind() == reflect.Struct {
				fill(f, full)
			}
		}
	case reflect.String:
		if !v.CanSet() {
			return
		}
		v.SetString("text")
		switch v.Type() {
		case reflect.TypeFor[stamp]():
			v.SetString("2026-03-14T09:26:53.000Z")
		case reflect.TypeFor[day]():
			v.SetString("2026-03-14")
		}
	}
}

type partJSON struct {
	Part  string `json:"part"`
	Again string `json:"again"`
}

type extraJSON struct {
	Extra *int64 `json:"extra"`
}

type treeJSON struct {
	Name  string     `json:"name"`
	Below []treeJSON `json:"below"`
}

// namedJSON has a member that is called after the installation.
type namedJSON struct{}

func (namedJSON) describe(s *schemas) *schema {
	return &schema{Type: typeNames{"object"}, Properties: members{{s.site.Name + "_name", &schema{Type: typeNames{"string"}}}}}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"text", reflect.TypeFor[string](), `{"type":"string"}`},
		{"text or null", reflect.TypeFor[*string](), `{"type":["string","null"]}`},
		{"number", reflect.TypeFor[int64](), `{"type":"integer","format":"int64"}`},
		{"small number", reflect.TypeFor[*int](), `{"type":["integer","null"]}`},
		{"fraction", reflect.TypeFor[float64](), `{"type":"number"}`},
		{"flag", reflect.TypeFor[bool](), `{"type":"boolean"}`},
		{"stamp", reflect.TypeFor[*stamp](), `{"type":["string","null"],"format":"date-time"}`},
		{"day", reflect.TypeFor[day](), `{"type":"string","format":"date"}`},
		{"anything", reflect.TypeFor[any](), `{}`},
		{"anything, written", reflect.TypeFor[*json.RawMessage](), `{}`},
		{"bytes", reflect.TypeFor[[]byte](), `{"type":"string","contentEncoding":"base64"}`},
		{"list", reflect.TypeFor[[]day](), `{"type":"array","items":{"type":"string","format":"date"}}`},
		{"list or null", reflect.TypeFor[*[]bool](), `{"type":["array","null"],"items":{"type":"boolean"}}`},
		{"map", reflect.TypeFor[map[string]*bool](), `{"type":"object","additionalProperties":{"type":["boolean","null"]}}`},
		{"named", reflect.TypeFor[[]extraJSON](), `{"type":"array","items":{"$ref":"#/components/schemas/Extra"}}`},
		{"named or null", reflect.TypeFor[*extraJSON](), `{"anyOf":[{"$ref":"#/components/schemas/Extra"},{"type":"null"}]}`},
		{"called after the installation", reflect.TypeFor[namedJSON](), `{"type":"object","properties":{"svc_name":{"type":"string"}}}`},
		{"struct", reflect.TypeFor[struct {
			B       string  `json:"b"`
			A       *string `json:"a"`
			Left    *string `json:"left,omitempty"`
			Zero    stamp   `json:"zero,omitzero"`
			Quoted  int     `json:"quoted,string"`
			Hidden  string  `json:"-"`
			Kind    string  `json:"kind" enum:"x,y" doc:"Of what kind."`
			Other   *string `json:"other" enum:"x"`
			private string
		}](), `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":["string","null"]},"left":{"type":"string"},` +
			`"zero":{"type":"string","format":"date-time"},"quoted":{"type":"string"},` +
			`"kind":{"description":"Of what kind.","type":"string","enum":["x","y"]},"other":{"type":["string","null"],"enum":["x",null]}},` +
			`"required":["b","a","quoted","kind","other"],"additionalProperties":false}`},
		{"embedded", reflect.TypeFor[struct {
			partJSON
			*extraJSON
			Again bool `json:"again"`
		}](), `{"type":"object","properties":{"part":{"type":"string"},"extra":{"type":["integer","null"],"format":"int64"},"again":{"type":"boolean"}},` +
			`"required":["part","again"],"additionalProperties":false}`},
		{"embedded under a name", reflect.TypeFor[struct {
			Inner partJSON `json:"inner"`
		}](), `{"type":"object","properties":{"inner":{"$ref":"#/components/schemas/Part"}},"required":["inner"],"additionalProperties":false}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			site := testSite()
			got, err := encode(newSchemas(&site).of(tt.typ))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSchemaOfATree(t *testing.T) {
	t.Parallel()
	site := testSite()
	s := newSchemas(&site)
	s.of(reflect.TypeFor[treeJSON]())
	got, err := encode(s.named["Tree"])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{"name":{"type":"string"},"below":{"type":"array","items":{"$ref":"#/components/schemas/Tree"}}},` +
		`"required":["name","below"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

// writesItself can not be described by reflection.
type writesItself struct{}

func (writesItself) MarshalJSON() ([]byte, error) { return []byte(`"?"`), nil }

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	type partJSON struct{ Other bool }
	tests := []struct {
		name  string
		types []reflect.Type
	}{
		{"a type that writes itself", []reflect.Type{reflect.TypeFor[writesItself]()}},
		{"what JSON does not have", []reflect.Type{reflect.TypeFor[chan int]()}},
		{"two types of one name", []reflect.Type{partsType(), reflect.TypeFor[partJSON]()}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			site := testSite()
			s := newSchemas(&site)
			for _, typ := range tt.types {
				s.of(typ)
			}
		})
	}
}

// partsType is partJSON of the package, where a function has its own.
func partsType() reflect.Type { return reflect.TypeFor[partJSON]() }

func TestNames(t *testing.T) {
	t.Parallel()
	for route, want := range map[string]string{
		"GET /users":                           "getUsers",
		"GET /users/{id}":                      "getUsersById",
		"POST /users/{user_id}/keys":           "postUsersByUserIdKeys",
		"DELETE /admin/ci/variables/{key}":     "deleteAdminCiVariablesByKey",
		"GET /projects/{id}/archive.{format}":  "getProjectsByIdArchiveFormat",
		"PATCH /users/{id}/disable_two_factor": "patchUsersByIdDisableTwoFactor",
	} {
		method, path, _ := strings.Cut(route, " ")
		if got := operationID(method, path); got != want {
			t.Errorf("%s: got %s, want %s", route, got, want)
		}
	}
	for group, want := range map[string]string{
		"users": "Users", "user_tokens": "User tokens", "oauth": "OAuth", "user_ssh_keys": "User SSH keys", "ci_variables": "CI variables",
	} {
		if got := groupTitle(group); got != want {
			t.Errorf("%s: got %s, want %s", group, got, want)
		}
	}
}
