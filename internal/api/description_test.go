package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"svc/internal/api/apitest"
	"svc/internal/openapi"
)

// documentJSON is the part of an OpenAPI document that tests read.
type documentJSON struct {
	Paths      map[string]map[string]*operationJSON `json:"paths"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

type operationJSON struct {
	ID          string                     `json:"operationId"`
	Description string                     `json:"description"`
	Security    []map[string][]string      `json:"security"`
	Parameters  []json.RawMessage          `json:"parameters"`
	Body        json.RawMessage            `json:"requestBody"`
	Responses   map[string]json.RawMessage `json:"responses"`
}

func readDocument(text []byte) *documentJSON {
	d := new(documentJSON)
	if err := json.Unmarshal(text, d); err != nil {
		panic(err)
	}
	return d
}

// TestDocument checks the document for each kind of instance.
func TestDocument(t *testing.T) {
	t.Parallel()
	for _, tier := range []Tier{Free, Premium, Ultimate} {
		for _, hosted := range []bool{false, true} {
			site := testSite()
			site.Tier, site.Hosted = tier, hosted
			a := New(Deps{Site: site})
			text := a.document().JSON()
			o, err := apitest.NewOracle(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := o.Verify(); err != nil {
				t.Errorf("%v, hosted %v: %v", tier, hosted, err)
			}
			has := map[string]bool{}
			for path, methods := range readDocument(text).Paths {
				for method := range methods {
					has[strings.ToUpper(method)+" "+path] = true
				}
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
			if got := strings.Contains(string(text), `"extra_shared_runners_minutes_limit":{"description"`); got != (tier >= Premium) {
				t.Errorf("%v, hosted %v: a parameter of premium: %v", tier, hosted, got)
			}
		}
	}
}

func TestDocumentIsStable(t *testing.T) {
	t.Parallel()
	first := New(Deps{Site: testSite()}).document().JSON()
	if second := New(Deps{Site: testSite()}).document().JSON(); !bytes.Equal(first, second) {
		t.Error("two documents of one instance differ")
	}
}

// TestEveryResultHasAShape finds endpoints whose result may be any JSON, because a
// check against such a schema would find no errors.
func TestEveryResultHasAShape(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	for _, e := range a.endpoints {
		for _, typ := range e.describe().Types {
			if typ.Kind() == reflect.Interface || typ == reflect.TypeFor[json.RawMessage]() {
				t.Errorf("%s %s: the result has no shape; name it with returns", e.method, e.path)
			}
		}
	}
}

// TestResultsMatchSchemas encodes a full and a sparse value of each result and
// checks them against the document: the schemas must match what encoding/json
// writes.
func TestResultsMatchSchemas(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	o, err := apitest.NewOracle(a.document().JSON())
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

// sampleResults returns values of each type that an endpoint may return.
func sampleResults(e *endpoint) []any {
	d := e.describe()
	var samples []any
	for _, t := range d.Types {
		for _, full := range []bool{true, false} {
			v := reflect.New(t).Elem()
			fill(v, full)
			sample := v.Interface()
			if d.Result == openapi.List {
				sample = []any{sample}
			}
			samples = append(samples, sample)
		}
	}
	return samples
}

// fill sets all fields of a value. If full, pointers and lists get one element.
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
