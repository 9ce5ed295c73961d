package bind

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// message is a request with the properties that the binder uses.
type message struct {
	method string // if empty: POST with a body, GET without
	query  string
	media  string
	body   string
	path   map[string]string
}

func query(q string) message     { return message{query: q} }
func form(body string) message   { return message{media: formType, body: body} }
func jsonOf(body string) message { return message{media: jsonType, body: body} }

func (m message) read(t testing.TB, l Limits) (*Input, error) {
	t.Helper()
	method := m.method
	if method == "" {
		method = http.MethodGet
		if m.body != "" {
			method = http.MethodPost
		}
	}
	r := httptest.NewRequest(method, "/", strings.NewReader(m.body))
	r.URL.RawQuery = m.query
	if m.media != "" {
		r.Header.Set("Content-Type", m.media)
	}
	return ReadInput(r, httptest.NewRecorder(), func(name string) (string, bool) {
		text, ok := m.path[name]
		return text, ok
	}, l)
}

// bindMessage binds a request to a T and returns the value and the error text.
func bindMessage[T any](t testing.TB, m message) (T, string) {
	t.Helper()
	var names []string
	for name := range m.path {
		names = append(names, name)
	}
	p, err := NewLayout(reflect.TypeFor[T](), names...)
	if err != nil {
		t.Fatal(err)
	}
	var into T
	in, err := m.read(t, Limits{Body: 1 << 20})
	if err != nil {
		t.Fatalf("read %+v: %v", m, err)
	}
	defer in.Close()
	err = p.Bind(in, &into)
	if err == nil {
		return into, ""
	}
	if _, ok := errors.AsType[*ParamError](err); !ok {
		t.Fatalf("bind gave %T: %v", err, err)
	}
	return into, err.Error()
}

// caseOf is a request and the expected value or error.
type caseOf[T any] struct {
	name  string
	sent  message
	want  T
	error string
}

func runCases[T any](t *testing.T, cases []caseOf[T]) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, text := bindMessage[T](t, c.sent)
			if text != c.error {
				t.Fatalf("error %q, want %q", text, c.error)
			}
			if c.error != "" {
				return
			}
			if diff := cmp.Diff(c.want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Errorf("bound (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBindText(t *testing.T) {
	t.Parallel()
	type params struct {
		A string `param:"a"`
	}
	a := func(s string) params { return params{s} }
	runCases(t, []caseOf[params]{
		{name: "absent", sent: query("")},
		{name: "query", sent: query("a=x"), want: a("x")},
		{name: "plus and escapes", sent: query("a=x+y%2Bz%c3%a9"), want: a("x y+zé")},
		{name: "escaped name", sent: query("%61=x"), want: a("x")},
		{name: "semicolon is text", sent: query("a=x;b=y"), want: a("x;b=y")},
		{name: "equals in value", sent: query("a=x=y"), want: a("x=y")},
		{name: "empty pairs", sent: query("&&a=x&"), want: a("x")},
		{name: "last of repeated", sent: query("a=x&a=y"), want: a("y")},
		{name: "empty", sent: query("a="), want: a("")},
		{name: "no equals is null", sent: query("a"), want: a("")},
		{name: "form", sent: form("a=x+y"), want: a("x y")},
		{name: "json", sent: jsonOf(`{"a":"x\u00e9\ud83d\ude00\n"}`), want: a("xé😀\n")},
		{name: "json number", sent: jsonOf(`{"a":1.50}`), want: a("1.50")},
		{name: "json bool", sent: jsonOf(`{"a":true}`), want: a("true")},
		{name: "json null", sent: jsonOf(`{"a":null}`)},
		{name: "json repeated", sent: jsonOf(`{"a":"x","a":"y"}`), want: a("y")},
		{name: "json list", sent: jsonOf(`{"a":["x"]}`), error: "a is invalid"},
		{name: "json object", sent: jsonOf(`{"a":{"x":1}}`), error: "a is invalid"},
		{name: "list", sent: query("a[]=x"), error: "a is invalid"},
		{name: "hash", sent: query("a[k]=x"), error: "a is invalid"},
		{name: "two forms", sent: query("a=x&a[]=y"), error: "a is invalid"},
		{name: "two forms, other way", sent: query("a[]=y&a=x"), error: "a is invalid"},
		{name: "bad brackets are another name", sent: query("a[=x&a]=y&a[b]c=z&[a]=w&a[[b]]=v"), want: a("")},
		{name: "NUL", sent: query("a=x%00"), error: "a is invalid"},
		{name: "NUL in json", sent: jsonOf(`{"a":"\u0000"}`), error: "a is invalid"},
		{name: "not UTF-8", sent: query("a=%ff"), error: "a is invalid"},
		{name: "not UTF-8 in json", sent: jsonOf("{\"a\":\"\xff\"}"), error: "a is invalid"},
		{name: "half a character in json", sent: jsonOf(`{"a":"\ud800x"}`), error: "a is invalid"},
		{name: "a first half and a letter in json", sent: jsonOf(`{"a":"\ud83d\u0041"}`), error: "a is invalid"},
		{name: "bad text elsewhere", sent: query("b=%ff%00&a=x"), want: a("x")},
	})
}

func TestBindWinner(t *testing.T) {
	t.Parallel()
	type params struct {
		A string   `param:"a"`
		L []string `param:"l"`
	}
	runCases(t, []caseOf[params]{
		{name: "path over all", want: params{A: "p"},
			sent: message{path: map[string]string{"a": "p"}, query: "a=q", media: formType, body: "a=b"}},
		{name: "path over json", want: params{A: "p"},
			sent: message{path: map[string]string{"a": "p"}, media: jsonType, body: `{"a":["b"]}`}},
		{name: "form over query", want: params{A: "b", L: []string{"y"}},
			sent: message{query: "a=q&l[]=x&a=r", media: formType, body: "a=b&l=y"}},
		{name: "json over query", want: params{A: "b", L: []string{"y"}},
			sent: message{query: "a=q&l[]=x", media: jsonType, body: `{"a":"b","l":["y"]}`}},
		{name: "null of the body over query",
			sent: message{query: "a=q", media: jsonType, body: `{"a":null}`}},
		{name: "each from where it is", want: params{A: "q", L: []string{"y"}},
			sent: message{query: "a=q", media: jsonType, body: `{"l":["y"]}`}},
		{name: "a path name is taken from the path alone in the path", want: params{A: "q"},
			sent: query("a=q")},
	})
}

func TestBindNumbers(t *testing.T) {
	t.Parallel()
	type params struct {
		I int     `param:"i"`
		N int64   `param:"n"`
		S int32   `param:"s"`
		F float64 `param:"f"`
	}
	runCases(t, []caseOf[params]{
		{name: "query", sent: query("i=-1&n=9223372036854775807&s=7&f=1.5"), want: params{-1, math.MaxInt64, 7, 1.5}},
		{name: "json numbers", sent: jsonOf(`{"i":-1,"n":9223372036854775807,"s":7,"f":1.5}`), want: params{-1, math.MaxInt64, 7, 1.5}},
		{name: "json texts", sent: jsonOf(`{"i":"-1","n":"007","f":"1e3"}`), want: params{I: -1, N: 7, F: 1000}},
		{name: "whole json floats", sent: jsonOf(`{"i":1.0,"n":1e3,"f":2}`), want: params{I: 1, N: 1000, F: 2}},
		{name: "smallest", sent: query("n=-9223372036854775808"), want: params{N: math.MinInt64}},
		{name: "blank is nothing", sent: query("i=&n=&f="), want: params{}},
		{name: "words", sent: query("i=x&n=1x&f=one"), error: "i is invalid, n is invalid, f is invalid"},
		{name: "out of range", sent: query("n=9223372036854775808&s=2147483648&f=1e999"), error: "n is invalid, s is invalid, f is invalid"},
		{name: "fractions", sent: jsonOf(`{"i":1.5,"n":"1.0"}`), error: "i is invalid, n is invalid"},
		{name: "large json floats", sent: jsonOf(`{"i":1e19,"n":1e400}`), error: "i is invalid, n is invalid"},
		{name: "words of Go", sent: query("i=0x10&n=1_000&f=NaN"), error: "i is invalid, n is invalid, f is invalid"},
		{name: "infinity", sent: query("f=Inf"), error: "f is invalid"},
		{name: "hexadecimal float", sent: query("f=0x1p-2"), error: "f is invalid"},
		{name: "booleans", sent: jsonOf(`{"i":true,"f":false}`), error: "i is invalid, f is invalid"},
		{name: "list", sent: jsonOf(`{"i":[1]}`), error: "i is invalid"},
	})
}

func TestBindBool(t *testing.T) {
	t.Parallel()
	type params struct {
		A bool `param:"a" default:"true"`
	}
	var cases []caseOf[params]
	for want, words := range map[bool]string{
		true:  "1 t T true True TRUE y Y yes Yes YES on On ON",
		false: "0 f F false False FALSE n N no No NO off Off OFF",
	} {
		for word := range strings.FieldsSeq(words) {
			cases = append(cases,
				caseOf[params]{name: "query " + word, sent: query("a=" + word), want: params{want}},
				caseOf[params]{name: "json text " + word, sent: jsonOf(`{"a":"` + word + `"}`), want: params{want}})
		}
	}
	for _, word := range []string{"2", "tRue", "null", "ja", "01", "-"} {
		cases = append(cases, caseOf[params]{name: "no " + word, sent: query("a=" + word), error: "a is invalid"})
	}
	runCases(t, append(cases,
		caseOf[params]{name: "json", sent: jsonOf(`{"a":false}`), want: params{false}},
		caseOf[params]{name: "json one", sent: jsonOf(`{"a":1}`), want: params{true}},
		caseOf[params]{name: "json zero", sent: jsonOf(`{"a":0}`), want: params{false}},
		caseOf[params]{name: "json two", sent: jsonOf(`{"a":2}`), error: "a is invalid"},
		caseOf[params]{name: "default for absent", sent: query(""), want: params{true}},
		caseOf[params]{name: "default for null", sent: jsonOf(`{"a":null}`), want: params{true}},
		caseOf[params]{name: "default for blank", sent: query("a="), want: params{true}},
	))
}

func TestBindTimes(t *testing.T) {
	t.Parallel()
	type params struct {
		T time.Time `param:"t"`
		D Date      `param:"d"`
	}
	at := func(s string) params {
		moment, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return params{T: moment.UTC()}
	}
	bad := func(s string) caseOf[params] {
		return caseOf[params]{name: "refused " + s, sent: jsonOf(`{"t":"` + s + `","d":"` + s + `"}`), error: "t is invalid, d is invalid"}
	}
	good := func(s, want string) caseOf[params] {
		return caseOf[params]{name: s, sent: jsonOf(`{"t":"` + s + `"}`), want: at(want)}
	}
	runCases(t, []caseOf[params]{
		good("2024-02-29T23:59:58Z", "2024-02-29T23:59:58Z"),
		good("2024-02-29t23:59:58z", "2024-02-29T23:59:58Z"),
		good("2024-02-29T23:59:58", "2024-02-29T23:59:58Z"),
		good("2024-02-29 23:59:58", "2024-02-29T23:59:58Z"),
		good("2024-02-29T23:59", "2024-02-29T23:59:00Z"),
		good("2024-02-29T23:59+01:00", "2024-02-29T22:59:00Z"),
		good("2024-02-29T23:59:58.123Z", "2024-02-29T23:59:58.123Z"),
		good("2024-02-29T23:59:58,5Z", "2024-02-29T23:59:58.5Z"),
		good("2024-02-29T23:59:58.1234567899Z", "2024-02-29T23:59:58.123456789Z"),
		good("2024-03-01T01:00:00+02:30", "2024-02-29T22:30:00Z"),
		good("2024-03-01T01:00:00-0230", "2024-03-01T03:30:00Z"),
		good("2024-03-01T01:00:00+02", "2024-02-29T23:00:00Z"),
		good("2024-03-01 01:00:00 +0200", "2024-02-29T23:00:00Z"),
		good("2024-03-01 01:00:00 UTC", "2024-03-01T01:00:00Z"),
		good("2024-02-29", "2024-02-29T00:00:00Z"),
		{name: "escaped plus", sent: query("t=2024-03-01T01:00:00%2B02:00"), want: at("2024-02-29T23:00:00Z")},
		{name: "plus lost in a query", sent: query("t=2024-03-01T01:00:00+02:00"), error: "t is invalid"},
		{name: "date", sent: query("d=2024-02-29"), want: params{D: Date{2024, time.February, 29}}},
		{name: "date of a moment", sent: jsonOf(`{"d":"2024-02-29T23:59:58-10:00"}`), want: params{D: Date{2024, time.February, 29}}},
		{name: "blank", sent: query("t=&d=")},
		bad("2023-02-29"), bad("2024-13-01"), bad("2024-00-01"), bad("2024-01-00"), bad("0000-01-01"),
		bad("2024-1-1"), bad("24-01-01"), bad("20240101"), bad("tomorrow"), bad("1700000000"),
		bad("2024-01-01T"), bad("2024-01-01T10"), bad("2024-01-01T24:00:00Z"), bad("2024-01-01T10:60:00Z"),
		bad("2024-01-01T10:00:60Z"), bad("2024-01-01T10:00:00."), bad("2024-01-01T10:00:00+24:00"),
		bad("2024-01-01T10:00:00+1"), bad("2024-01-01T10:00:00+01:00x"), bad("2024-01-01T10:00:00Zx"),
		bad("2024-01-01x10:00:00"), bad("2024-01-01T10:00:00 "), bad("0001-01-01T00:00:00+01:00"),
		bad("9999-12-31T23:59:59-01:00"), bad(" 2024-01-01"), bad("+2024-01-01"),
	})
}

// sampleRef is an example of a custom type of a feature.
type sampleRef struct{ ID string }

func (r *sampleRef) UnmarshalParam(text string) error {
	if strings.ContainsAny(text, " <>") {
		return errors.New("not a reference: " + text)
	}
	r.ID = text
	return nil
}

func TestBindCustom(t *testing.T) {
	t.Parallel()
	type level string
	type params struct {
		Ref   sampleRef   `param:"id,required"`
		Refs  []sampleRef `param:"refs,csv"`
		Maybe *sampleRef  `param:"maybe"`
		Level level       `param:"level" enum:"low,high"`
	}
	path := map[string]string{"id": "g/p"}
	runCases(t, []caseOf[params]{
		{name: "all", sent: message{path: path, query: "refs=a,b&maybe=c&level=high"},
			want: params{sampleRef{"g/p"}, []sampleRef{{"a"}, {"b"}}, &sampleRef{"c"}, "high"}},
		{name: "json number", sent: jsonOf(`{"id":7}`), want: params{Ref: sampleRef{"7"}}},
		{name: "refused", sent: message{path: map[string]string{"id": "a b"}, query: "refs=<&level=mid"},
			error: "id is invalid, refs is invalid, level does not have a valid value"},
		{name: "missing", error: "id is missing"},
		{name: "empty", sent: query("id="), error: "id is empty"},
		{name: "NUL in the path", sent: message{path: map[string]string{"id": "a\x00"}}, error: "id is invalid"},
	})
}
