package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"testing"
	"time"

	"svc/internal/user"
)

// plainJSON returns the encoding of a value by encoding/json.
func plainJSON(v any) (string, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), err
}

func sameJSON(t *testing.T, v any) {
	t.Helper()
	want, wantErr := plainJSON(v)
	got, err := new(encoders).appendJSON([]byte("before"), v)
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%#v: %v, want %v", v, err, wantErr)
	}
	if wantErr == nil && string(got) != "before"+want {
		t.Errorf("%#v:\n got %s\nwant before%s", v, got, want)
	}
}

// shouted only implements json.Marshaler on its pointer.
type shouted string

func (s *shouted) MarshalJSON() ([]byte, error) { return json.Marshal(string(*s) + "!") }

type brokenJSON struct{}

func (brokenJSON) MarshalJSON() ([]byte, error) { return nil, errors.New("broken") }

// twig is a recursive type.
type twig struct {
	Name  string  `json:"name"`
	Below []twig  `json:"below"`
	Next  *twig   `json:"next,omitempty"`
	Any   any     `json:"any"`
	Leaf  *string `json:"leaf"`
}

type wood struct {
	ID int64 `json:"id"`
	root
	*bark
	//lint:ignore U1000 a field that is not shown
	twig   twig
	Hidden string `json:"-"`
	//lint:ignore SA5008 the odd name is what is tested
	Dash   string `json:"-,"`
	Unsaid int
}

type root struct {
	Deep bool `json:"deep"`
}

type bark struct {
	Colour string `json:"colour"`
	Count  *int64 `json:"count,omitempty"`
}

func TestAppendJSON(t *testing.T) {
	t.Parallel()
	text, number := "a", int64(-7)
	word := shouted("hi")
	type named string
	type twice struct { // encoding/json omits two fields with the same name at the same depth
		root
		Other struct{} `json:"other"`
		bark
		*wood
	}
	for _, v := range []any{
		nil, true, false, "", "text", named("n"), 0, int64(-1 << 63), 12, int8(-3), int32(9), uint8(200), uint64(1 << 63), 1.5, float32(0.1), 1e21,
		(*int64)(nil), &number, &text, (*wood)(nil), [2]string{"a", "b"}, []byte("bytes"), []byte(nil), []string(nil), []string{}, []int64{1, 2},
		[]any{nil, 1, "x", &number, []any{}, map[string]any{"b": 1, "a": "<&>"}}, map[string]int(nil), map[int]string{2: "b", 1: "a"},
		json.RawMessage(`{"raw":[1]}`), json.Number("12.50"), time.Unix(0, 0).UTC(), netip.MustParseAddr("192.0.2.1"), struct{}{},
		&word, []shouted{"a", "b"}, map[string]*shouted{"k": &word}, &struct{ S shouted }{"x"},
		"quote \" and \\", "line\nend\r\t\b\f\x00\x1f\x7f", "<a href='x'>&amp;</a>", "äöü ß 日本 😀", "\u2028 and \u2029", "\xff\xfe bad", "\ufffd good",
		"ä\"", "日\n", "a\xc3", struct {
			//lint:ignore SA5008 the odd name is what is tested
			A string `json:"a\"b"`
			B string `json:"ä"`
			C int    `json:",omitempty"`
			D int    `json:"d,string"`
			E string `json:"e,omitzero"`
		}{"1", "2", 0, 4, ""},
		wood{ID: 1}, &wood{ID: 2, root: root{true}, bark: &bark{Colour: "red"}, Dash: "d", Unsaid: 3},
		[]wood{{}, {bark: &bark{Count: &number}}}, []*wood{nil, {}}, twice{}, twice{wood: &wood{ID: 3}},
		twig{}, twig{Name: "a", Below: []twig{{Name: "b", Next: &twig{Any: twig{Name: "c"}}}}, Any: &twig{}, Leaf: &text},
		struct {
			A []string          `json:"a,omitempty"`
			B map[string]string `json:"b,omitempty"`
			C [0]int            `json:"c,omitempty"`
			D struct{}          `json:"d,omitempty"`
			E any               `json:"e,omitempty"`
			F *int              `json:"f,omitempty"`
			G string            `json:"g,omitempty"`
			H bool              `json:"h,omitempty"`
			I float64           `json:"i,omitempty"`
			J []string          `json:"j,omitempty"`
		}{J: []string{""}},
		struct{ *json.Number }{}, struct{ named }{"x"}, struct{ time.Time }{time.Unix(1, 0).UTC()},
		brokenJSON{}, []any{1, &brokenJSON{}}, make(chan int), func() {}, []any{1, make(chan int)}, struct{ C chan int }{}, map[string]any{"f": func() {}},
	} {
		sameJSON(t, v)
	}
}

// TestAppendJSONOfEveryResult checks that the result of each endpoint is encoded as
// by encoding/json.
func TestAppendJSONOfEveryResult(t *testing.T) {
	t.Parallel()
	a := New(Deps{Site: testSite()})
	n := 0
	for _, e := range a.endpoints {
		for _, sample := range sampleResults(e) {
			sameJSON(t, sample)
			n++
		}
	}
	if n < len(a.endpoints) {
		t.Errorf("%d samples of %d endpoints", n, len(a.endpoints))
	}
}

func FuzzAppendText(f *testing.F) {
	for _, text := range []string{"", "plain", "\"\\", "ä\n", "\xff", "\u2028", "\ufffd", "a\xe2\x80"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sameJSON(t, text)
		sameJSON(t, map[string]any{"of": []string{text}})
		sameJSON(t, struct{ Text, After string }{text, "after"})
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	c := &call{site: &Site{URL: "https://svc.example.org", Tier: Ultimate}}
	now := time.Unix(1_700_000_000, 0)
	id := int64(1)
	u := &user.User{
		ID: 123, Username: "user-1234", Name: "Name 1234", Email: "user@example.org", ConfirmedAt: &now, State: user.Active, CreatedBy: &id,
		CurrentSignInAt: &now, LastSignInAt: &now, LastActivityOn: "2024-01-01", CurrentSignInIP: "192.0.2.1", LastSignInIP: "192.0.2.2",
		Identities: []user.Identity{{Provider: "ldapmain", ExternUID: "uid=user"}}, Creator: &user.User{ID: 1, Username: "root", Name: "Root"},
	}
	form := toUserAdmin(c, u, now)
	items := make([]any, 20)
	for i := range items {
		items[i] = &form
	}
	b.Run("encoding/json", func(b *testing.B) {
		var out bytes.Buffer
		for b.Loop() {
			out.Reset()
			enc := json.NewEncoder(&out)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(items); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("appendJSON", func(b *testing.B) {
		var out []byte
		var es encoders
		for b.Loop() {
			var err error
			if out, err = es.appendJSON(out[:0], items); err != nil {
				b.Fatal(err)
			}
		}
	})
}
