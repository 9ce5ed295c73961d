package bind

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// roundParams has parameters that both a form and JSON can represent.
type roundParams struct {
	S Opt[string]       `param:"s"`
	I int64             `param:"i"`
	N Opt[int64]        `param:"n"`
	F float64           `param:"f"`
	B *bool             `param:"b"`
	T time.Time         `param:"t"`
	D Date              `param:"d"`
	L []string          `param:"l"`
	C Opt[[]int64]      `param:"c,csv"`
	H map[string]string `param:"h"`
	O *roundInner       `param:"o"`
	V []roundInner      `param:"v"`
}

type roundInner struct {
	Key  string   `param:"key"`
	Val  string   `param:"val"`
	Tags []string `param:"tags"`
}

func drawInner(t *rapid.T) roundInner {
	return roundInner{drawText.Draw(t, "key"), drawText.Draw(t, "val"), rapid.SliceOfN(drawWord, 1, 3).Draw(t, "tags")}
}

var (
	drawText = rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r != 0 && (r < 0xd800 || r > 0xdfff) }))
	drawWord = drawText.Filter(func(s string) bool { return s != "" })
	drawName = rapid.StringMatching(`[a-z0-9 .&=+%"\\é€-]{1,5}`)
)

func drawParams(t *rapid.T) roundParams {
	p := roundParams{
		I: rapid.Int64().Draw(t, "i"),
		F: rapid.Float64().Draw(t, "f"),
		T: time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "t"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
		L: rapid.SliceOfN(drawWord, 0, 5).Draw(t, "l"),
		H: rapid.MapOfN(drawName, drawText, 1, 20).Draw(t, "h"),
	}
	day := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "d"), 0).UTC()
	p.D = Date{day.Year(), day.Month(), day.Day()}
	if rapid.Bool().Draw(t, "has s") {
		p.S = Opt[string]{Set: true, Null: rapid.Bool().Draw(t, "null s")}
		if !p.S.Null {
			p.S.Value = drawText.Draw(t, "s")
		}
	}
	if rapid.Bool().Draw(t, "has n") {
		p.N = Opt[int64]{Set: true, Null: rapid.Bool().Draw(t, "null n")}
		if !p.N.Null {
			p.N.Value = rapid.Int64().Draw(t, "n")
		}
	}
	if rapid.Bool().Draw(t, "has b") {
		b := rapid.Bool().Draw(t, "b")
		p.B = &b
	}
	if rapid.Bool().Draw(t, "has c") {
		p.C = Opt[[]int64]{Set: true, Value: rapid.SliceOfN(rapid.Int64(), 0, 4).Draw(t, "c")}
	}
	if rapid.Bool().Draw(t, "has o") {
		o := drawInner(t)
		p.O = &o
	}
	for range rapid.IntRange(0, 4).Draw(t, "len v") {
		p.V = append(p.V, drawInner(t))
	}
	return p
}

// asForm encodes the parameters as a form; if indexed is true, with v[0][key]
// instead of v[][key].
func (p roundParams) asForm(indexed bool) string {
	var out []string
	add := func(key, text string) { out = append(out, url.QueryEscape(key)+"="+url.QueryEscape(text)) }
	addInner := func(prefix string, o roundInner) {
		add(prefix+"[key]", o.Key)
		add(prefix+"[val]", o.Val)
		for _, tag := range o.Tags {
			add(prefix+"[tags][]", tag)
		}
	}
	switch {
	case p.S.Null:
		out = append(out, "s")
	case p.S.Set:
		add("s", p.S.Value)
	}
	switch {
	case p.N.Null:
		add("n", "")
	case p.N.Set:
		add("n", strconv.FormatInt(p.N.Value, 10))
	}
	if p.B != nil {
		add("b", strconv.FormatBool(*p.B))
	}
	add("i", strconv.FormatInt(p.I, 10))
	add("f", strconv.FormatFloat(p.F, 'g', -1, 64))
	add("t", p.T.Format(time.RFC3339Nano))
	add("d", p.D.String())
	for _, s := range append(p.L, "") {
		add("l[]", s)
	}
	if p.C.Set {
		var parts []string
		for _, n := range p.C.Value {
			parts = append(parts, strconv.FormatInt(n, 10))
		}
		add("c", strings.Join(parts, ", "))
	}
	for k, v := range p.H {
		add("h["+k+"]", v)
	}
	if p.O != nil {
		addInner("o", *p.O)
	}
	for i, v := range p.V {
		prefix := "v[]"
		if indexed {
			prefix = "v[" + strconv.Itoa(i) + "]"
		}
		addInner(prefix, v)
	}
	return strings.Join(out, "&")
}

func (p roundParams) asJSON(t *rapid.T) string {
	inner := func(o roundInner) map[string]any { return map[string]any{"key": o.Key, "val": o.Val, "tags": o.Tags} }
	m := map[string]any{"i": p.I, "f": p.F, "t": p.T, "d": p.D.String(), "l": p.L, "h": p.H}
	if p.S.Null {
		m["s"] = nil
	} else if p.S.Set {
		m["s"] = p.S.Value
	}
	if p.N.Null {
		m["n"] = nil
	} else if p.N.Set {
		m["n"] = p.N.Value
	}
	if p.B != nil {
		m["b"] = *p.B
	}
	if p.C.Set {
		m["c"] = p.C.Value
	}
	if p.O != nil {
		m["o"] = inner(*p.O)
	}
	if p.V != nil {
		var list []any
		for _, v := range p.V {
			list = append(list, inner(v))
		}
		m["v"] = list
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestBindRoundTrip checks that the same parameters bind to the same struct in all
// formats.
func TestBindRoundTrip(t *testing.T) {
	t.Parallel()
	layout, err := NewLayout(reflect.TypeFor[roundParams]())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		want := drawParams(r)
		for name, m := range map[string]message{
			"query":   query(want.asForm(false)),
			"form":    form(want.asForm(true)),
			"json":    jsonOf(want.asJSON(r)),
			"over it": {query: drawParams(r).asForm(false) + "&v[]=&c=&o[x]=&s&n&b=0", media: jsonType, body: want.asJSON(r)},
		} {
			in, err := m.read(t, Limits{Body: 1 << 20})
			if err != nil {
				r.Fatalf("%s: %v", name, err)
			}
			var got roundParams
			if err := layout.Bind(in, &got); err != nil {
				r.Fatalf("%s %+v: %v", name, m, err)
			}
			expected := want
			if name == "over it" {
				// Parameters that are not in the body are taken from the query.
				if !want.S.Set {
					got.S = want.S
				}
				if !want.N.Set {
					got.N = want.N
				}
				if !want.C.Set {
					got.C = want.C
				}
				if want.B == nil {
					got.B = nil
				}
				if want.O == nil {
					got.O = nil
				}
				if want.V == nil {
					got.V = nil
				}
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				r.Fatalf("%s %+v (-want +got):\n%s", name, m, diff)
			}
		}
	})
}
