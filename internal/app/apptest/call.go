package apptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Call is a request and the expected response. Tests usually have a table of them.
type Call struct {
	Name string // name of the subtest; by default the request

	Do     string // "GET /users/1": method and path below /api/v4, or an absolute path with //
	As     string // token; empty for an anonymous request
	Header map[string]string
	Form   url.Values // sent as a form
	JSON   string     // sent as JSON

	Status int
	// Want is JSON that the body must contain: objects may have more members,
	// lists must have the same length. "<any>" stands for any value but null.
	Want string
	// Text is the expected body if it is not JSON; empty means any.
	Text string
	// Not are texts that the body must not contain.
	Not []string
	// WantHeader are headers with their exact values; "-" means absent.
	WantHeader map[string]string
}

// Answer is a response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Table checks each call in order, as subtests.
func (s *Server) Table(t *testing.T, calls []Call) {
	t.Helper()
	for _, c := range calls {
		name := c.Name
		if name == "" {
			name = c.Do
		}
		t.Run(name, func(t *testing.T) { s.Check(t, c) })
	}
}

// Check sends a call and compares the response with the expected one.
func (s *Server) Check(t testing.TB, c Call) Answer {
	t.Helper()
	a := s.Send(t, c)
	if a.Status != c.Status {
		t.Errorf("%s: status %d, want %d: %s", c.Do, a.Status, c.Status, a.Body)
	}
	if c.Want != "" {
		if diff := contains(c.Want, a.Body); diff != "" {
			t.Errorf("%s: %s\nbody: %s", c.Do, diff, a.Body)
		}
	}
	if c.Text != "" && string(a.Body) != c.Text {
		t.Errorf("%s: body %q, want %q", c.Do, a.Body, c.Text)
	}
	for _, text := range c.Not {
		if bytes.Contains(a.Body, []byte(text)) {
			t.Errorf("%s: the body contains %q: %s", c.Do, text, a.Body)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.WantHeader)) {
		want, got := c.WantHeader[name], a.Header.Get(name)
		if want == "-" {
			want = ""
			if _, there := a.Header[http.CanonicalHeaderKey(name)]; there {
				t.Errorf("%s: unexpected header %s: %q", c.Do, name, got)
			}
		}
		if got != want {
			t.Errorf("%s: header %s is %q, want %q", c.Do, name, got, want)
		}
	}
	return a
}

// Send sends a call and returns the response, without comparing it.
func (s *Server) Send(t testing.TB, c Call) Answer {
	t.Helper()
	method, path, _ := strings.Cut(c.Do, " ")
	address := s.URL + "/api/v4" + path
	if root, ok := strings.CutPrefix(path, "//"); ok {
		address = s.URL + "/" + root
	}
	var body io.Reader
	kind := ""
	switch {
	case c.Form != nil:
		body, kind = strings.NewReader(c.Form.Encode()), "application/x-www-form-urlencoded"
	case c.JSON != "":
		body, kind = strings.NewReader(c.JSON), "application/json"
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if c.As != "" {
		r.Header.Set("PRIVATE-TOKEN", c.As)
	}
	for name, value := range c.Header {
		r.Header.Set(name, value)
	}
	return s.Exchange(t, r)
}

// Exchange sends a request and returns the response.
func (s *Server) Exchange(t testing.TB, r *http.Request) Answer {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.oracle.Check(r.Method, r.URL.EscapedPath(), res.StatusCode, res.Header, text); err != nil {
		t.Errorf("the response does not match the OpenAPI document: %v", err)
	}
	return Answer{res.StatusCode, res.Header, text}
}

// JSON decodes the body into a value.
func (a Answer) JSON(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
}

// contains returns a description of the first difference between want and got, or an
// empty string if got contains want.
func contains(want string, got []byte) string {
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		return fmt.Sprintf("the test's own JSON: %v", err)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return fmt.Sprintf("the body is not JSON: %v", err)
	}
	return differ("body", w, g)
}

func differ(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, want an object", at, got)
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			value, there := g[key]
			if !there {
				return fmt.Sprintf("%s.%s is missing", at, key)
			}
			if d := differ(at+"."+key, w[key], value); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s is %v, want %d items", at, got, len(w))
		}
		for i := range w {
			if d := differ(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); d != "" {
				return d
			}
		}
		return ""
	case string:
		if w == "<any>" {
			if got == nil {
				return at + " is null, want a value"
			}
			return ""
		}
	}
	if want != got {
		return fmt.Sprintf("%s is %#v, want %#v", at, got, want)
	}
	return ""
}
