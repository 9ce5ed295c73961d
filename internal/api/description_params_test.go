package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"svc/internal/bind"
)

// documented returns the operation of an endpoint in the document.
func documented[P, R any](route string, acc access, opts ...option) *operationJSON {
	return documentOf[P, R](route, acc, opts...).only()
}

// only returns the operation of a document with one operation.
func (d *documentJSON) only() *operationJSON {
	for _, methods := range d.Paths {
		for _, op := range methods {
			return op
		}
	}
	panic("no operation")
}

// documentOf returns the document of an API with one endpoint.
func documentOf[P, R any](route string, acc access, opts ...option) *documentJSON {
	a := New(Deps{Site: testSite()})
	a.endpoints = nil
	a.tag("Things")
	handle(a, route, acc, func(*call, P) (R, error) { panic("not called") }, opts...)
	return readDocument(a.document().JSON())
}

type itemParams struct {
	Key   string   `param:"key,required,nonblank" max:"20"`
	Count int      `param:"count" enum:"1,2"`
	Tags  []string `param:"tags" max:"3"`
}

func (itemParams) ParamRules() []bind.Rule { return []bind.Rule{bind.Exclusive("count", "tags")} }

type thingParams struct {
	ID      int64             `param:"id" doc:"Which one."`
	Name    string            `param:"name,required" doc:"The name." aliases:"title"`
	Text    string            `param:"text,required,blank"`
	Secret  *string           `param:"secret" secret:"true"`
	Limit   bind.Opt[int64]   `param:"limit" tier:"premium" doc:"null is none."`
	Flag    bool              `param:"flag" default:"true"`
	Only    onlyTrue          `param:"only"`
	Ratio   float64           `param:"ratio"`
	Since   *time.Time        `param:"since"`
	Day     bind.Date         `param:"day" default:"2026-03-14"`
	Order   string            `param:"order" enum:"id,name" default:"id"`
	Level   int               `param:"level" enum:"10,20" default:"10"`
	Scopes  []string          `param:"scopes,required,csv" enum:"a,b"`
	Numbers []int64           `param:"numbers" default:"1,2"`
	Attrs   map[string]string `param:"attrs"`
	Item    *itemParams       `param:"item"`
	Items   []itemParams      `param:"items"`
	pageParams
}

func (thingParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("flag", "only"), bind.ExactlyOne("since", "day"), bind.AllOrNone("order", "level")}
}

func TestQueryParameters(t *testing.T) {
	t.Parallel()
	op := documented[thingParams, none]("GET /things/{id}", readAPI)
	want := []string{
		`{"name":"id","in":"path","description":"Which one.","required":true,"schema":{"type":"integer","format":"int64"}}`,
		"{\"name\":\"name\",\"in\":\"query\",\"description\":\"The name. Alias: `title`.\",\"required\":true,\"schema\":{\"type\":\"string\",\"minLength\":1}}",
		`{"name":"text","in":"query","required":true,"schema":{"type":"string"}}`,
		`{"name":"secret","in":"query","schema":{"type":"string"}}`,
		`{"name":"limit","in":"query","description":"null is none. Requires the premium tier or higher.","schema":{"type":["integer","null"],"format":"int64"}}`,
		`{"name":"flag","in":"query","schema":{"type":"boolean","default":true}}`,
		`{"name":"only","in":"query","schema":{"type":"boolean"}}`,
		`{"name":"ratio","in":"query","schema":{"type":"number"}}`,
		`{"name":"since","in":"query","schema":{"type":"string","format":"date-time"}}`,
		`{"name":"day","in":"query","schema":{"type":"string","format":"date","default":"2026-03-14"}}`,
		`{"name":"order","in":"query","schema":{"type":"string","enum":["id","name"],"default":"id"}}`,
		`{"name":"level","in":"query","schema":{"type":"integer","enum":[10,20],"default":10}}`,
		`{"name":"scopes","in":"query","description":"Also accepted as one string, separated by commas.","required":true,"style":"form","explode":false,` +
			`"schema":{"type":"array","minItems":1,"items":{"type":"string","enum":["a","b"]}}}`,
		`{"name":"numbers[]","in":"query","schema":{"type":"array","default":[1,2],"items":{"type":"integer","format":"int64"}}}`,
		`{"name":"attrs","in":"query","style":"deepObject","explode":true,"schema":{"type":"object","additionalProperties":{"type":"string"}}}`,
		"{\"name\":\"item\",\"in\":\"query\",\"style\":\"deepObject\",\"explode\":true,\"schema\":{\"description\":\"At most one of `count`, `tags` is allowed.\"," +
			`"type":"object","properties":{"key":{"type":"string","minLength":1,"maxLength":20},"count":{"type":"integer","enum":[1,2]},` +
			`"tags":{"type":"array","maxItems":3,"items":{"type":"string"}}},"required":["key"]}}`,
		"{\"name\":\"items[]\",\"in\":\"query\",\"schema\":{\"type\":\"array\",\"items\":{\"description\":\"At most one of `count`, `tags` is allowed.\"," +
			`"type":"object","properties":{"key":{"type":"string","minLength":1,"maxLength":20},"count":{"type":"integer","enum":[1,2]},` +
			`"tags":{"type":"array","maxItems":3,"items":{"type":"string"}}},"required":["key"]}}}`,
		`{"name":"page","in":"query","description":"Page number.","schema":{"type":"integer","format":"int64","default":1}}`,
		`{"name":"per_page","in":"query","description":"Items per page, at most 100.","schema":{"type":"integer","format":"int64","default":20}}`,
	}
	var got []string
	for _, p := range op.Parameters {
		got = append(got, string(p))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const notes = "Requires a token with one of the scopes `api`, `read_api`. At least one of `flag`, `only` is required. " +
		"Exactly one of `since`, `day` is required. All or none of `order`, `level` are required."
	if op.Description != notes {
		t.Errorf("got %q, want %q", op.Description, notes)
	}
}

type bodyParams struct {
	ID     int64   `param:"id"`
	Name   string  `param:"name,required"`
	Secret *string `param:"secret" secret:"true"`
}

type fileParams struct {
	bodyParams
	Avatar *bind.Upload `param:"avatar" doc:"An image."`
}

type onlyFileParams struct {
	File *bind.Upload `param:"file,required"`
}

func TestBody(t *testing.T) {
	t.Parallel()
	const (
		plain = `{"type":"object","properties":{"name":{"type":"string","minLength":1},"secret":{"type":"string","writeOnly":true}},"required":["name"]}`
		filed = `{"type":"object","properties":{"name":{"type":"string","minLength":1},"secret":{"type":"string","writeOnly":true},` +
			`"avatar":{"description":"An image.","type":"string","format":"binary"}},"required":["name"]}`
	)
	tests := []struct {
		name string
		doc  *documentJSON
		want string
	}{
		{"plain", documentOf[bodyParams, none]("PUT /things/{id}", writeAPI),
			`{"required":true,"content":{"application/json":{"schema":` + plain + `},"application/x-www-form-urlencoded":{"schema":` + plain +
				`},"multipart/form-data":{"schema":` + plain + `}}}`},
		{"with a file", documentOf[fileParams, none]("PUT /things/{id}", writeAPI, files(1<<10)),
			`{"required":true,"content":{"application/json":{"schema":` + plain + `},"application/x-www-form-urlencoded":{"schema":` + plain +
				`},"multipart/form-data":{"schema":` + filed + `}}}`},
		{"a file alone", documentOf[onlyFileParams, none]("POST /things", writeAPI, files(1<<10)),
			`{"required":true,"content":{"multipart/form-data":{"schema":{"type":"object","properties":{"file":{"type":"string","format":"binary"}},"required":["file"]}}}}`},
		{"path alone", documentOf[userParams, none]("POST /things/{id}", writeAPI), ``},
		{"query alone", documentOf[onlyFileParams, none]("DELETE /things", writeAPI), ``},
		{"left to the handler", documentOf[bodyParams, none]("PUT /things/{id}", writeAPI, func(e *endpoint) { e.limits.Raw = true }),
			`{"content":{"application/octet-stream":{"schema":{"type":"string","format":"binary"}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := string(tt.doc.only().Body)
			for name, schema := range tt.doc.Components.Schemas {
				body = strings.ReplaceAll(body, `{"$ref":"#/components/schemas/`+name+`"}`, string(schema))
			}
			if diff := cmp.Diff(tt.want, body); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		op   *operationJSON
		want string // the successful responses, and 304
	}{
		{"none", documented[struct{}, none]("DELETE /things", writeAPI), `{"204":{"description":"Success, without content."}}`},
		{"accepted", documented[struct{}, accepted]("POST /things", writeAPI),
			`{"202":{"description":"Accepted; processing continues in the background.","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Accepted"}}}}}`},
		{"streamed", documented[struct{}, streamed]("GET /things", readAPI),
			`{"200":{"description":"The content.","content":{"*/*":{"schema":{"type":"string","format":"binary"}}}},` +
				`"206":{"description":"The requested range of the content.","content":{"*/*":{"schema":{"type":"string","format":"binary"}}}},` +
				`"304":{"$ref":"#/components/responses/NotModified"}}`},
		{"made", documented[struct{}, partJSON]("POST /things", writeAPI),
			`{"201":{"description":"Success.","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Part"}}}}}`},
		{"made, but not as usual", documented[struct{}, bool]("POST /things", writeAPI, status(http.StatusOK)),
			`{"200":{"description":"Success.","content":{"application/json":{"schema":{"type":"boolean"}}}}}`},
		{"unchanged", documented[struct{}, unchanged[partJSON]]("POST /things", writeAPI),
			`{"201":{"description":"Success.","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Part"}}}},"304":{"$ref":"#/components/responses/NotModified"}}`},
		{"forms", documented[struct{}, any]("PUT /things", writeAPI, returns(partJSON{}, extraJSON{})),
			`{"200":{"description":"Success.","content":{"application/json":{"schema":{"anyOf":[{"$ref":"#/components/schemas/Part"},{"$ref":"#/components/schemas/Extra"}]}}}}}`},
		{"a page", documented[pageParams, page[any]]("GET /things", readAPI, returns(partJSON{})),
			`{"200":{"description":"One page of the list.","headers":{"Link":{"$ref":"#/components/headers/Link"},"X-Page":{"$ref":"#/components/headers/X-Page"},` +
				`"X-Per-Page":{"$ref":"#/components/headers/X-Per-Page"},"X-Next-Page":{"$ref":"#/components/headers/X-Next-Page"},` +
				`"X-Prev-Page":{"$ref":"#/components/headers/X-Prev-Page"},"X-Total":{"$ref":"#/components/headers/X-Total"},` +
				`"X-Total-Pages":{"$ref":"#/components/headers/X-Total-Pages"}},` +
				`"content":{"application/json":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/Part"}}}}},` +
				`"304":{"$ref":"#/components/responses/NotModified"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var want map[string]json.RawMessage
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			good := map[string]json.RawMessage{}
			for status, r := range tt.op.Responses {
				if status < "4" {
					good[status] = r
				}
			}
			if diff := cmp.Diff(want, good, cmp.Transformer("text", func(r json.RawMessage) string { return string(r) })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorResponses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		op   *operationJSON
		want []string
	}{
		{"read", documented[struct{}, partJSON]("GET /things", readAPI), []string{"400", "401", "403", "404", "414", "429", "500", "503"}},
		{"list", documented[pageParams, page[partJSON]]("GET /things", readAPI), []string{"400", "401", "403", "404", "405", "414", "429", "500", "503"}},
		{"write", documented[struct{}, partJSON]("POST /things", writeAPI),
			[]string{"400", "401", "403", "404", "409", "413", "414", "415", "422", "429", "500", "503"}},
		{"delete", documented[struct{}, none]("DELETE /things", writeAPI),
			[]string{"400", "401", "403", "404", "409", "412", "413", "414", "415", "422", "429", "500", "503"}},
		{"content", documented[struct{}, streamed]("GET /things", readAPI),
			[]string{"400", "401", "403", "404", "414", "416", "429", "500", "503"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for status := range tt.op.Responses {
				if status >= "4" {
					got = append(got, status)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAccessDescription(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		op   *operationJSON
		want string
		open bool
	}{
		{"scopes", documented[struct{}, none]("DELETE /things", writeAPI), "Requires a token with the scope `api`.", false},
		{"optional", documented[struct{}, none]("GET /things", readAPI.orAnonymous()), "Authentication is optional. A token must have one of the scopes `api`, `read_api`.", true},
		{"any token", documented[struct{}, none]("DELETE /things", anyToken), "Requires a token with any scope.", false},
		{"anonymous", documented[struct{}, none]("GET /things", anyToken.orAnonymous(), tier(Premium)), "Authentication is not required. Requires the premium tier or higher.", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.op.Description != tt.want {
				t.Errorf("got %q, want %q", tt.op.Description, tt.want)
			}
			if open := len(tt.op.Security) > 0 && len(tt.op.Security[0]) == 0; open != tt.open {
				t.Errorf("open without sign-in: got %v, want %v", open, tt.open)
			}
		})
	}
}
