package bind

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// faultOf returns the fault and text of an error of ReadInput.
func faultOf(t *testing.T, err error) (Fault, string) {
	t.Helper()
	if err == nil {
		return 0, ""
	}
	e, ok := errors.AsType[*InputError](err)
	if !ok {
		t.Fatalf("error of type %T: %v", err, err)
	}
	return e.Fault, e.Text
}

func TestReadInput(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return "a" + strings.Repeat("[k]", n) + "=1" }
	for _, c := range []struct {
		name  string
		sent  message
		fault Fault
		text  string
	}{
		{name: "nothing"},
		{name: "json without a body", sent: message{method: "POST", media: jsonType}},
		{name: "json of white space", sent: message{method: "POST", media: jsonType, body: " \r\n\t"}},
		{name: "multipart without a body", sent: message{method: "POST", media: "multipart/form-data"}},
		{name: "json with a charset", sent: message{media: "Application/JSON; charset=utf-8", body: `{}`}},
		{name: "json of a kind", sent: message{media: "application/merge-patch+json", body: `{}`}},
		{name: "json after a byte order mark", sent: jsonOf("\ufeff{}")},
		{name: "no content type is a form", sent: message{body: "a=%zz"}, fault: FaultMalformed, text: "the form body has a malformed %-escape"},
		{name: "escape in the query", sent: query("a=%zz"), fault: FaultMalformed, text: "the query string has a malformed %-escape"},
		{name: "escape cut off", sent: query("a=%4"), fault: FaultMalformed, text: "the query string has a malformed %-escape"},
		{name: "escape cut off, longer", sent: query("%"), fault: FaultMalformed, text: "the query string has a malformed %-escape"},
		{name: "escape in a name", sent: form("%g0=1"), fault: FaultMalformed, text: "the form body has a malformed %-escape"},
		{name: "as many parameters as may be", sent: form(strings.Repeat("a=1&", maxParams))},
		{name: "too many parameters", sent: form(strings.Repeat("a=1&", maxParams) + "a=1"), fault: FaultMalformed, text: "the request has more than 10000 parameters"},
		{name: "too many of query and form", sent: message{query: "a=1", media: formType, body: strings.Repeat("a=1&", maxParams)}, fault: FaultMalformed, text: "the request has more than 10000 parameters"},
		{name: "as deep as may be", sent: form(deep(maxDepth - 1))},
		{name: "too deep", sent: form(deep(maxDepth)), fault: FaultMalformed, text: "a parameter has more than 32 levels"},
		{name: "form over the limit", sent: form("a=" + strings.Repeat("x", 1<<20)), fault: FaultTooLarge, text: "the body is too large"},
		{name: "json over the limit", sent: jsonOf(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`), fault: FaultTooLarge, text: "the body is too large"},
		{name: "unknown type", sent: message{media: "application/xml", body: "<a/>"}, fault: FaultMediaType, text: "the body's content type is not supported"},
		{name: "other multipart", sent: message{media: "multipart/mixed; boundary=b", body: "--b--"}, fault: FaultMediaType, text: "the body's content type is not supported"},
		{name: "unknown type without a body", sent: message{method: "POST", media: "application/xml"}},
		{name: "unknown type of a GET", sent: message{method: "GET", media: "application/xml", body: "<a/>"}},
		{name: "plain text", sent: message{media: "text/plain; charset=utf-8", body: "a=%zz"}},
		{name: "multipart without a boundary", sent: message{media: "multipart/form-data", body: "x"}, fault: FaultMalformed, text: "the multipart body has no usable boundary"},
		{name: "bad json in a GET", sent: message{method: "GET", media: jsonType, body: "{"}, fault: FaultMalformed, text: "the body is not valid JSON: unexpected end at line 1, column 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, err := c.sent.read(t, Limits{Body: 1 << 20})
			if fault, text := faultOf(t, err); fault != c.fault || text != c.text {
				t.Fatalf("fault %d %q, want %d %q", fault, text, c.fault, c.text)
			}
			if err == nil {
				in.Close()
			}
		})
	}
}

func TestReadInputGetWithBody(t *testing.T) {
	t.Parallel()
	type params struct {
		A string `param:"a"`
		B string `param:"b"`
	}
	want := params{"body", "query"}
	for _, m := range []message{
		{method: "GET", query: "a=query&b=query", media: jsonType, body: `{"a":"body"}`},
		{method: "DELETE", query: "a=query&b=query", media: formType, body: "a=body"},
		{method: "PATCH", query: "a=query&b=query", media: multipartType, body: part(`name="a"`, "body") + partsEnd},
	} {
		if got, text := bindMessage[params](t, m); got != want || text != "" {
			t.Errorf("%s bound %+v, %q", m.method, got, text)
		}
	}
}

// TestReadInputChunked checks that the limit applies to bodies without
// Content-Length.
func TestReadInputChunked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, media string
		body        io.Reader
		fault       Fault
	}{
		{"form at the limit", formType, strings.NewReader("a=" + strings.Repeat("x", 98)), 0},
		{"form over the limit", formType, strings.NewReader("a=" + strings.Repeat("x", 99)), FaultTooLarge},
		{"json over the limit", jsonType, strings.NewReader(`{"a":"` + strings.Repeat("x", 100) + `"}`), FaultTooLarge},
		{"multipart over the limit", multipartType, strings.NewReader(part(`name="a"`, strings.Repeat("x", 101)) + partsEnd), FaultTooLarge},
		{"json cut off", jsonType, io.MultiReader(strings.NewReader(`{"a"`), iotest.ErrReader(io.ErrUnexpectedEOF)), FaultIncomplete},
		{"form cut off", formType, io.MultiReader(strings.NewReader(`a=`), iotest.ErrReader(io.ErrUnexpectedEOF)), FaultIncomplete},
		{"multipart cut off", multipartType, io.MultiReader(strings.NewReader(part(`name="a"`, "x")), iotest.ErrReader(io.ErrUnexpectedEOF)), FaultIncomplete},
		{"unknown type cut off", "application/xml", iotest.ErrReader(io.ErrUnexpectedEOF), FaultIncomplete},
		{"unknown type, empty", "application/xml", strings.NewReader(""), 0},
		{"unknown type", "application/xml", strings.NewReader("x"), FaultMediaType},
		{"json, byte by byte", jsonType, iotest.OneByteReader(strings.NewReader(`{"a":"x"}`)), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(c.body))
			r.ContentLength = -1
			r.Header.Set("Content-Type", c.media)
			in, err := ReadInput(r, httptest.NewRecorder(), nil, Limits{Body: 100})
			if fault, text := faultOf(t, err); fault != c.fault {
				t.Fatalf("fault %d %q, want %d", fault, text, c.fault)
			}
			if err == nil {
				in.Close()
			}
		})
	}
}

func TestReadInputRaw(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPatch, "/?a=x", strings.NewReader("{not read"))
	r.Header.Set("Content-Type", jsonType)
	in, err := ReadInput(r, httptest.NewRecorder(), nil, Limits{Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if body, _ := io.ReadAll(r.Body); string(body) != "{not read" {
		t.Errorf("the handler reads %q", body)
	}
	if len(in.pairs) != 1 {
		t.Errorf("%d parameters from the query", len(in.pairs))
	}
}

// TestReadInputAnnounced checks that a body whose Content-Length is over the limit
// is rejected without reading it.
func TestReadInputAnnounced(t *testing.T) {
	t.Parallel()
	for _, media := range []string{formType, jsonType, multipartType} {
		r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(iotest.ErrReader(errors.New("the body was read"))))
		r.ContentLength = 101
		r.Header.Set("Content-Type", media)
		_, err := ReadInput(r, httptest.NewRecorder(), nil, Limits{Body: 50, File: 50})
		if fault, text := faultOf(t, err); fault != FaultTooLarge {
			t.Errorf("%s: fault %d %q, %v", media, fault, text, err)
		}
	}
}

// TestInputErrorsEchoNothing checks that errors contain no parts of the input, which
// logs or pages could show.
func TestInputErrorsEchoNothing(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, m := range []message{
		jsonOf(`{"password":"` + secret + `" ` + secret + `}`),
		jsonOf(`["` + secret + `"]`),
		jsonOf(secret),
		query("password=" + secret + "%zz"),
		{media: "text/" + secret, body: "x"},
		{media: multipartType, body: part(`name="`+secret+`"`, secret)},
		{media: multipartType, body: secret},
		{media: multipartType, body: "--=_b\r\n" + secret + "\r\n\r\n"},
		{media: "multipart/form-data; boundary=" + secret, body: secret},
	} {
		_, err := m.read(t, Limits{Body: 1 << 10})
		if _, text := faultOf(t, err); text == "" || strings.Contains(text+err.Error(), secret) {
			t.Errorf("%+v gave %q: %v", m, text, err)
		}
	}
}
