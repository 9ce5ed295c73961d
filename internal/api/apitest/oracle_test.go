package apitest

import (
	"net/http"
	"strings"
	"testing"
)

// things is a small document for the tests of this package.
const things = `{
	"openapi": "3.1.0",
	"security": [{"token": []}],
	"tags": [{"name": "Things"}],
	"paths": {
		"/things": {
			"get": {
				"operationId": "getThings", "tags": ["Things"], "summary": "List things",
				"responses": {
					"200": {"content": {"application/json": {"schema": {"type": "array", "items": {"anyOf": [
						{"$ref": "#/components/schemas/Thing"}, {"$ref": "#/components/schemas/OwnThing"}]}}}}},
					"304": {"$ref": "#/components/responses/NotModified"},
					"404": {"$ref": "#/components/responses/NotFound"}
				}
			},
			"post": {"operationId": "postThings", "tags": ["Things"], "summary": "Make a thing", "responses": {"204": {}}}
		},
		"/things/{id}": {
			"get": {
				"operationId": "getThingsById", "tags": ["Things"], "summary": "Get a thing",
				"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
				"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/OwnThing"}}}}}
			}
		},
		"/things/latest": {
			"get": {"operationId": "getThingsLatest", "tags": ["Things"], "summary": "Get the latest", "responses": {"200": {
				"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}}
		},
		"/things/{id}/pack.{format}": {
			"get": {
				"operationId": "getThingsByIdPack", "tags": ["Things"], "summary": "Pack a thing",
				"parameters": [
					{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}},
					{"name": "format", "in": "path", "required": true, "schema": {"type": "string"}}
				],
				"responses": {"200": {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}}
			}
		}
	},
	"components": {
		"schemas": {
			"Thing": {"type": "object", "required": ["id", "made_at"], "additionalProperties": false, "properties": {
				"id": {"type": "integer"}, "made_at": {"type": ["string", "null"], "format": "date-time"}}},
			"OwnThing": {"type": "object", "required": ["id", "made_at", "owner", "tags"], "additionalProperties": false, "properties": {
				"id": {"type": "integer"}, "made_at": {"type": ["string", "null"], "format": "date-time"},
				"owner": {"anyOf": [{"$ref": "#/components/schemas/Owner"}, {"type": "null"}]},
				"tags": {"type": "array", "items": {"type": "string"}}}},
			"Owner": {"type": "object", "required": ["name"], "additionalProperties": false, "properties": {"name": {"type": "string"}}},
			"Error": {"type": "object", "required": ["error"], "additionalProperties": false, "properties": {"error": {"type": "string"}}}
		},
		"responses": {
			"NotModified": {},
			"NotFound": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
			"NotAllowed": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
			"URITooLong": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
		},
		"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}
	}
}`

func TestCheck(t *testing.T) {
	t.Parallel()
	const own = `{"id":1,"made_at":"2026-03-14T09:26:53.000Z","owner":{"name":"ada"},"tags":[]}`
	tests := []struct {
		name   string
		method string
		path   string
		status int
		media  string // JSON unless given
		body   string
		want   string // part of the error; empty for none
	}{
		{name: "a list", path: "/api/v4/things", status: 200, body: `[{"id":1,"made_at":null},` + own + `]`},
		{name: "an empty list", path: "/api/v4/things?page=9", status: 200, body: `[]`},
		{name: "no list", path: "/api/v4/things", status: 200, body: `null`, want: "the body: got null, want array"},
		{name: "not modified", path: "/api/v4/things", status: 304},
		{name: "a shared response", path: "/api/v4/things", status: 404, body: `{"error":"404 Not Found"}`},
		{name: "a wrong shared response", path: "/api/v4/things", status: 404, body: `{"message":"404"}`, want: "missing property 'error'"},
		{name: "an unknown status", path: "/api/v4/things", status: 418, body: `{}`,
			want: "GET /api/v4/things returned 418: the document has no such response (getThings)"},

		{name: "one", path: "/api/v4/things/7", status: 200, body: own},
		{name: "with .json", path: "/api/v4/things/7.json", status: 200, body: own},
		{name: "an encoded slash", path: "/api/v4/things/a%2Fb", status: 200, body: own},
		{name: "null for an object", path: "/api/v4/things/7", status: 200, body: strings.Replace(own, `{"name":"ada"}`, "null", 1)},
		{name: "a stray field", path: "/api/v4/things/7", status: 200, body: strings.Replace(own, `"id":1`, `"id":1,"x":2`, 1),
			want: "GET /api/v4/things/{id} returned 200: the body: additional properties 'x' not allowed"},
		{name: "a missing field", path: "/api/v4/things/7", status: 200, body: `{"id":1,"made_at":null,"owner":null}`, want: "missing property 'tags'"},
		{name: "a wrong type", path: "/api/v4/things/7", status: 200, body: strings.Replace(own, "[]", `["a",3]`, 1), want: "tags[1]: got number, want string"},
		{name: "a wrong time", path: "/api/v4/things/7", status: 200, body: strings.Replace(own, "T09", " 9", 1), want: "made_at: "},
		{name: "within an object that may be null", path: "/api/v4/things/7", status: 200, body: strings.Replace(own, `"ada"`, `3,"x":4`, 1),
			want: "as Owner: owner.name: got number, want string; owner: additional properties 'x' not allowed"},
		{name: "the nearest shape is told", path: "/api/v4/things", status: 200, body: `[` + strings.Replace(own, `[]`, "null", 1) + `]`,
			want: "as OwnThing: [0].tags: got null, want array"},

		{name: "a literal wins", path: "/api/v4/things/latest", status: 200, body: `{"id":1,"made_at":null}`},
		{name: "a literal wins over the other shape", path: "/api/v4/things/latest", status: 200, body: own, want: "additional properties"},
		{name: "a parameter inside of a segment", path: "/api/v4/things/7/pack.tar.gz", status: 200, media: "application/gzip", body: "\x1f\x8b"},
		{name: "no content", method: "POST", path: "/api/v4/things", status: 204},
		{name: "content in no content", method: "POST", path: "/api/v4/things", status: 204, body: "{}", want: "a body of 2 bytes where the document has none: {}"},
		{name: "head", method: "HEAD", path: "/api/v4/things", status: 200},
		{name: "head with a body", method: "HEAD", path: "/api/v4/things", status: 200, body: "[]", want: "2 bytes in the response to HEAD"},
		{name: "another content type", path: "/api/v4/things", status: 200, media: "text/html", body: "[]", want: `content type "text/html" is not in the document`},
		{name: "no JSON", path: "/api/v4/things", status: 200, body: "[", want: "the body is not JSON"},
		{name: "two values", path: "/api/v4/things", status: 200, body: "[] []", want: "the body is not JSON"},

		{name: "no such path", path: "/api/v4/nothing", status: 404, body: `{"error":"404 Not Found"}`},
		{name: "no such path, but a response", path: "/api/v4/nothing", status: 200, body: `[]`, want: "GET /api/v4/nothing returned 200: the document has no such operation"},
		{name: "too deep", path: "/api/v4/things/7/pack.zip/x", status: 404, body: `{"error":"404 Not Found"}`},
		{name: "no such method", method: "PATCH", path: "/api/v4/things", status: 405, body: `{"error":"405 Not Allowed"}`},
		{name: "no such method, told as no path", method: "PATCH", path: "/api/v4/things", status: 404, body: `{"error":"404 Not Found"}`, want: "has no such operation"},
		{name: "preflight", method: "OPTIONS", path: "/api/v4/things", status: 204},
		{name: "a refused preflight", method: "OPTIONS", path: "/api/v4/things", status: 405, want: "want 204"},

		{name: "the root", path: "/api/v4", status: 404, body: `{"error":"404 Not Found"}`},
		{name: "another version", path: "/api/v40/things", status: 200, body: "x"},
		{name: "outside", path: "/-/health", status: 200, body: "ok"},
		{name: "the document", path: "/api/v4/openapi.json", status: 200, body: "{}"},
		{name: "its page", path: "/api/v4/docs/page.css", status: 200, media: "text/css", body: "a {}"},
	}
	o, err := NewOracle([]byte(things))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{"Content-Type": {"application/json"}, "Allow": {"GET"}}
			if tt.media != "" {
				header.Set("Content-Type", tt.media)
			}
			method := tt.method
			if method == "" {
				method = http.MethodGet
			}
			err := o.Check(method, tt.path, tt.status, header, []byte(tt.body))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestCheckAllow(t *testing.T) {
	t.Parallel()
	o, err := NewOracle([]byte(things))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	err = o.Check("PATCH", "/api/v4/things", 405, header, []byte(`{"error":"405 Not Allowed"}`))
	if err == nil || !strings.Contains(err.Error(), "no Allow header") {
		t.Errorf("got %v", err)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		old, new string
		want     string // the error; empty for none
	}{
		{name: "good"},
		{"version", `"3.1.0"`, `"3.0.3"`, `openapi is "3.0.3", not 3.1`},
		{"lost reference", `"items": {"anyOf": [
						{"$ref": "#/components/schemas/Thing"}`, `"items": {"anyOf": [
						{"$ref": "#/components/schemas/Nothing"}`, "#/components/schemas/Nothing leads nowhere"},
		{"no schema", `"type": "array", "items": {"type": "string"}`, `"type": "arrow"`, "/components/schemas/OwnThing"},
		{"the same id", `"postThings"`, `"getThings"`, "have the same operationId getThings"},
		{"no id", `"operationId": "postThings", `, ``, "POST /things has no operationId"},
		{"no summary", `"summary": "Make a thing", `, ``, "POST /things has no summary"},
		{"no success", `"responses": {"204": {}}`, `"responses": {"404": {}}`, "POST /things has no success response"},
		{"an undeclared parameter", `"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],`, ``,
			"GET /things/{id} does not declare {id}"},
		{"a parameter too many", `{"name": "format", "in": "path"`, `{"name": "form", "in": "path"`, "the path has no {form}"},
		{"an optional path", `[{"name": "id", "in": "path", "required": true,`, `[{"name": "id", "in": "path",`, "id in path must be required"},
		{"twice", `[{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}]`,
			`[{"name": "id", "in": "path", "required": true, "schema": {}}, {"name": "id", "in": "path", "required": true, "schema": {}}]`,
			"declares id in path twice"},
		{"the same path", `"/things/latest"`, `"/things/{name}"`, "are the same path"},
		{"tag", `"tags": [{"name": "Things"}]`, `"tags": []`, `the tag "Things" is not declared`},
		{"scheme", `"securitySchemes": {"token"`, `"securitySchemes": {"tok"`, `the security scheme "token" is not declared`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := things
			if tt.old != "" {
				if !strings.Contains(text, tt.old) {
					t.Fatalf("the document has no %s", tt.old)
				}
				text = strings.Replace(text, tt.old, tt.new, 1)
			}
			o, err := NewOracle([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			err = o.Verify()
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestNewOracleRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON":         `{`,
		"no object":       `[]`,
		"no status":       `{"paths": {"/a": {"get": {"responses": {"ok": {}}}}}}`,
		"a lost response": `{"paths": {"/a": {"get": {"responses": {"200": {"$ref": "#/components/responses/X"}}}}}}`,
	} {
		if _, err := NewOracle([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	o, err := NewOracle([]byte(things))
	if err != nil {
		b.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	body := []byte(`[{"id":1,"made_at":null},{"id":1,"made_at":"2026-03-14T09:26:53.000Z","owner":{"name":"ada"},"tags":["a"]}]`)
	for b.Loop() {
		if err := o.Check("GET", "/api/v4/things", 200, header, body); err != nil {
			b.Fatal(err)
		}
	}
}
