package openapi

import (
	"reflect"
	"testing"
)

func TestExampleValues(t *testing.T) {
	t.Parallel()
	x := &examples{schemas: newSchemas(testServer())}
	tree := x.schemas.of(reflect.TypeFor[treeJSON]())
	tests := []struct {
		name   string // of the field
		schema *Schema
		want   string
	}{
		{"order", &Schema{Type: Types{"string"}, Enum: []any{"id", "name"}}, `"id"`},
		{"order", &Schema{Type: Types{"string"}, Enum: []any{"id", "name"}, Default: "name"}, `"name"`},
		{"web_url", scalar(reflect.TypeFor[string]()), `"https://forge.example.com/ada"`},
		{"other_url", scalar(reflect.TypeFor[string]()), `"https://forge.example.com"`},
		{"scopes", ArrayOf(scalar(reflect.TypeFor[string]())), `["read_api"]`},
		{"x", &Schema{Type: Types{"object"}, AdditionalProperties: &Schema{Type: Types{"number"}}}, `{"key":12.5}`},
		{"tree", tree, `{"name":"Ada Lovelace","below":[{}]}`},
	}
	for _, tt := range tests {
		got, err := encode(x.value(tt.name, tt.schema, nil))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
