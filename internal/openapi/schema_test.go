package openapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testServer() Server {
	return Server{
		Name: "svc", URL: "https://forge.example.com", Prefix: "/api/v4", Version: "17.11.0", Tiers: []string{"free", "premium", "ultimate"},
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

// namedJSON has a member whose name contains the server's name.
type namedJSON struct{}

func (namedJSON) DescribeSchema(s *Schemas) *Schema {
	return &Schema{Type: Types{"object"}, Properties: Object{{s.Server.Name + "_name", &Schema{Type: Types{"string"}}}}}
}

// dateJSON is a string with its own schema.
type dateJSON string

func (dateJSON) DescribeSchema(*Schemas) *Schema {
	return &Schema{Type: Types{"string"}, Format: "date"}
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
		{"time", reflect.TypeFor[*time.Time](), `{"type":["string","null"],"format":"date-time"}`},
		{"described", reflect.TypeFor[dateJSON](), `{"type":"string","format":"date"}`},
		{"anything", reflect.TypeFor[any](), `{}`},
		{"anything, written", reflect.TypeFor[*json.RawMessage](), `{}`},
		{"bytes", reflect.TypeFor[[]byte](), `{"type":"string","contentEncoding":"base64"}`},
		{"list", reflect.TypeFor[[]dateJSON](), `{"type":"array","items":{"type":"string","format":"date"}}`},
		{"list or null", reflect.TypeFor[*[]bool](), `{"type":["array","null"],"items":{"type":"boolean"}}`},
		{"map", reflect.TypeFor[map[string]*bool](), `{"type":"object","additionalProperties":{"type":["boolean","null"]}}`},
		{"named", reflect.TypeFor[[]extraJSON](), `{"type":"array","items":{"$ref":"#/components/schemas/Extra"}}`},
		{"named or null", reflect.TypeFor[*extraJSON](), `{"anyOf":[{"$ref":"#/components/schemas/Extra"},{"type":"null"}]}`},
		{"named after the server", reflect.TypeFor[namedJSON](), `{"type":"object","properties":{"svc_name":{"type":"string"}}}`},
		{"struct", reflect.TypeFor[struct {
			B       string   `json:"b"`
			A       *string  `json:"a"`
			Left    *string  `json:"left,omitempty"`
			Zero    dateJSON `json:"zero,omitzero"`
			Quoted  int      `json:"quoted,string"`
			Hidden  string   `json:"-"`
			Kind    string   `json:"kind" enum:"x,y" doc:"Of what kind."`
			Other   *string  `json:"other" enum:"x"`
			private string
		}](), `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":["string","null"]},"left":{"type":"string"},` +
			`"zero":{"type":"string","format":"date"},"quoted":{"type":"string"},` +
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
			got, err := encode(newSchemas(testServer()).of(tt.typ))
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
	s := newSchemas(testServer())
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

// writesItself cannot be described by reflection.
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
			s := newSchemas(testServer())
			for _, typ := range tt.types {
				s.of(typ)
			}
		})
	}
}

// partsType returns the type of the package-level partJSON, which a test shadows.
func partsType() reflect.Type { return reflect.TypeFor[partJSON]() }

func TestOperationID(t *testing.T) {
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
}
