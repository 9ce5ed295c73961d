package bind

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

type benchPage struct {
	Page    int    `param:"page" default:"1"`
	PerPage int    `param:"per_page" default:"20"`
	OrderBy string `param:"order_by" enum:"id,name,updated_at" default:"id"`
	Sort    string `param:"sort" enum:"asc,desc" default:"desc"`
}

type benchParams struct {
	Project sampleRef `param:"id,required"`
	Job     int64     `param:"job_id"`
	Scope   []string  `param:"scope" enum:"created,pending,running"`
	Search  string    `param:"search" max:"255"`
	Retried bool      `param:"include_retried"`
	benchPage
}

type benchVariables struct {
	Ref       string      `param:"ref,required"`
	Variables []everyItem `param:"variables"`
}

func BenchmarkBind(b *testing.B) {
	path := func(name string) (string, bool) { return "42", name == "id" || name == "job_id" }
	for _, c := range []struct {
		name   string
		params any
		path   []string
		sent   message
	}{
		{"no query", benchParams{}, []string{"id", "job_id"}, query("")},
		{"small query", benchParams{}, []string{"id", "job_id"}, query("per_page=20&page=3&order_by=name&sort=asc&include_retried=true")},
		{"escaped query", benchParams{}, []string{"id", "job_id"}, query("search=a%20b&page=3")},
		{"list in a query", benchParams{}, []string{"id", "job_id"}, query("scope[]=created&scope[]=running")},
		{"small json", benchVariables{}, nil, jsonOf(`{"ref":"main"}`)},
		{"small form", benchVariables{}, nil, form("ref=main")},
		{"json of 100 hashes", benchVariables{}, nil, jsonOf(`{"ref":"main","variables":[` + strings.TrimSuffix(strings.Repeat(`{"key":"NAME","value":"text of the value"},`, 100), ",") + `]}`)},
		{"form of 100 hashes", benchVariables{}, nil, form("ref=main" + strings.Repeat("&variables[][key]=NAME&variables[][value]=text+of+the+value", 100))},
	} {
		b.Run(c.name, func(b *testing.B) {
			typ := reflect.TypeOf(c.params)
			p, err := NewLayout(typ, c.path...)
			if err != nil {
				b.Fatal(err)
			}
			into := reflect.New(typ)
			method := http.MethodGet
			if c.sent.body != "" {
				method = http.MethodPost
			}
			r := httptest.NewRequest(method, "/", nil)
			r.URL.RawQuery = c.sent.query
			r.Header.Set("Content-Type", c.sent.media)
			body := &repeatedBody{text: c.sent.body}
			if c.sent.body == "" {
				r.Body = http.NoBody
			}
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				into.Elem().SetZero()
				if c.sent.body != "" {
					body.Reset(body.text)
					r.Body, r.ContentLength = body, int64(len(body.text))
				}
				in, err := ReadInput(r, w, path, Limits{Body: 1 << 20})
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Bind(in, into.Interface()); err != nil {
					b.Fatal(err)
				}
				in.Close()
			}
		})
	}
}

// repeatedBody is a body that can be read repeatedly.
type repeatedBody struct {
	strings.Reader
	text string
}

func (*repeatedBody) Close() error { return nil }

// TestBindAllocations checks the number of allocations, because lists are requested
// often. Allocations can only be counted while no other test runs.
func TestBindAllocations(t *testing.T) {
	p, err := NewLayout(reflect.TypeFor[benchParams](), "id", "job_id")
	if err != nil {
		t.Fatal(err)
	}
	path := func(string) (string, bool) { return "42", true }
	for q, most := range map[string]float64{
		"": 1,
		"per_page=20&page=3&order_by=name&sort=asc&include_retried=true": 1,
	} {
		r := httptest.NewRequest(http.MethodGet, "/?"+q, nil)
		var into benchParams
		got := testing.AllocsPerRun(100, func() {
			into = benchParams{}
			in, err := ReadInput(r, nil, path, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Bind(in, &into); err != nil {
				t.Fatal(err)
			}
			in.Close()
		})
		if got > most {
			t.Errorf("%q: %v allocations, want at most %v", q, got, most)
		}
	}
}
