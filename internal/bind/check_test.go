package bind

import (
	"reflect"
	"strings"
	"testing"
)

func TestBindOptional(t *testing.T) {
	t.Parallel()
	type params struct {
		S Opt[string]   `param:"s"`
		N Opt[int64]    `param:"n"`
		B Opt[bool]     `param:"b"`
		L Opt[[]string] `param:"l,csv"`
		D Opt[Date]     `param:"d"`
		F Opt[*Upload]  `param:"f"`
		P *string       `param:"p"`
		Q *int          `param:"q"`
	}
	empty, three := "", 3
	runCases(t, []caseOf[params]{
		{name: "absent"},
		{name: "null", sent: jsonOf(`{"s":null,"n":null,"b":null,"l":null,"d":null,"f":null,"p":null,"q":null}`), want: params{
			S: Opt[string]{Set: true, Null: true}, N: Opt[int64]{Set: true, Null: true}, B: Opt[bool]{Set: true, Null: true},
			L: Opt[[]string]{Set: true, Null: true}, D: Opt[Date]{Set: true, Null: true}, F: Opt[*Upload]{Set: true, Null: true}}},
		{name: "blank", sent: form("s=&n=&b=&l=&d=&f=&p=&q="), want: params{
			S: Opt[string]{Set: true}, N: Opt[int64]{Set: true, Null: true}, B: Opt[bool]{Set: true, Null: true},
			L: Opt[[]string]{Set: true, Value: []string{}}, D: Opt[Date]{Set: true, Null: true}, F: Opt[*Upload]{Set: true, Null: true},
			P: &empty}},
		{name: "given", sent: jsonOf(`{"s":"x","n":0,"b":false,"l":"a,b","d":"2024-01-02","q":3}`), want: params{
			S: Opt[string]{Set: true, Value: "x"}, N: Opt[int64]{Set: true}, B: Opt[bool]{Set: true},
			L: Opt[[]string]{Set: true, Value: []string{"a", "b"}}, D: Opt[Date]{Set: true, Value: Date{2024, 1, 2}},
			Q: &three}},
		{name: "wrong", sent: form("s[]=x&n=x&b=x&d=x&f=x&q=x"),
			error: "s is invalid, n is invalid, b is invalid, d is invalid, f is invalid, q is invalid"},
	})
}

func TestBindChecks(t *testing.T) {
	t.Parallel()
	type pageParams struct {
		Page  int    `param:"page" default:"1"`
		Order string `param:"order_by" enum:"id,name" default:"id"`
	}
	type params struct {
		Name string `param:"name,required"`
		pageParams
		Value  string      `param:"value,required,blank"`
		Title  string      `param:"title,nonblank" enum:"a,b"`
		Note   string      `param:"note,nonblank" max:"3"`
		Scope  []string    `param:"scope" enum:"created,pending" default:"created,pending"`
		Level  int         `param:"level" enum:"10,20"`
		Truth  bool        `param:"truth" enum:"true"`
		Refs   []string    `param:"refs,required" max:"2"`
		Maybe  Opt[string] `param:"maybe,required"`
		Surely Opt[string] `param:"surely,nonblank"`
		Paused bool        `param:"paused" aliases:"active,on"`
	}
	base := params{Name: "n", pageParams: pageParams{1, "id"}, Scope: []string{"created", "pending"}, Refs: []string{"r"}, Maybe: Opt[string]{Set: true, Value: "m"}}
	with := func(change func(*params)) params { p := base; change(&p); return p }
	const fine = "name=n&value=&refs=r&maybe=m"
	runCases(t, []caseOf[params]{
		{name: "least", sent: query(fine), want: base},
		{name: "nothing", error: "name is missing, value is missing, refs is missing, maybe is missing"},
		{name: "all wrong, in order", sent: query("name=&page=x&order_by=up&value[]=&title=&note=+&scope[]=gone&level=30&truth=false&refs[]=&maybe[x]=y&surely=&paused=2"),
			error: "name is empty, page is invalid, order_by does not have a valid value, value is invalid, title is empty, note is empty, " +
				"scope does not have a valid value, level does not have a valid value, truth does not have a valid value, refs is empty, " +
				"maybe is invalid, surely is empty, paused is invalid"},
		{name: "null where a value is required", sent: jsonOf(`{"name":null,"value":null,"refs":null,"maybe":"m"}`), error: "name is empty, value is empty, refs is empty"},
		{name: "null in an option that is required", sent: message{query: fine, media: jsonType, body: `{"maybe":null}`},
			want: with(func(p *params) { p.Maybe = Opt[string]{Set: true, Null: true} })},
		{name: "null in an option that is nonblank", sent: message{query: fine, media: jsonType, body: `{"surely":null}`}, error: "surely is empty"},
		{name: "white space is enough for required", sent: query(strings.Replace(fine, "name=n", "name=+", 1)), want: with(func(p *params) { p.Name = " " })},
		{name: "enum", sent: query(fine + "&title=b&level=20&truth=1&scope=pending"),
			want: with(func(p *params) { p.Title, p.Level, p.Truth, p.Scope = "b", 20, true, []string{"pending"} })},
		{name: "enum is case-sensitive", sent: query(fine + "&title=B"), error: "title does not have a valid value"},
		{name: "enum of every element", sent: query(fine + "&scope[]=pending&scope[]=x"), error: "scope does not have a valid value"},
		{name: "blank for an enum with a default", sent: query(fine + "&order_by="), error: "order_by does not have a valid value"},
		{name: "longest", sent: query(fine + "&note=äöü"), want: with(func(p *params) { p.Note = "äöü" })},
		{name: "too long", sent: query(fine + "&note=abcd"), error: "note must be less than 3 characters"},
		{name: "list in two forms", sent: query(fine + "&refs[]=a"), error: "refs is invalid"},
		{name: "one too many", sent: query("name=n&value=&maybe=m&refs[]=a&refs[]=b&refs[]=c"), error: "refs must contain at most 2 items"},
		{name: "alias", sent: query(fine + "&active=true"), want: with(func(p *params) { p.Paused = true })},
		{name: "last alias", sent: query(fine + "&on=true"), want: with(func(p *params) { p.Paused = true })},
		{name: "name before alias", sent: message{query: fine + "&paused=true", media: formType, body: "active=false"}, want: with(func(p *params) { p.Paused = true })},
		{name: "errors say the alias that was sent", sent: query(fine + "&active=x"), error: "active is invalid"},
	})
}

// TestBindDefaultIsCopied checks that a handler that changes a list in place does
// not change the default, which all requests share.
func TestBindDefaultIsCopied(t *testing.T) {
	t.Parallel()
	type params struct {
		L []string `param:"l" default:"b,a"`
	}
	p, err := NewLayout(reflect.TypeFor[params]())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		in, err := query("").read(t, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var got params
		if err := p.Bind(in, &got); err != nil || got.L[0] != "b" {
			t.Fatalf("bound %v, %v", got, err)
		}
		got.L[0] = "changed"
	}
}

type groupParams struct {
	A *string    `param:"a" aliases:"z"`
	B string     `param:"b" default:"x"`
	C string     `param:"c"`
	D string     `param:"d"`
	E string     `param:"e"`
	G groupInner `param:"g"`
}

type groupInner struct {
	X string `param:"x"`
	Y string `param:"y"`
}

func (*groupInner) ParamRules() []Rule { return []Rule{AllOrNone("x", "y")} }

func (groupParams) ParamRules() []Rule {
	return []Rule{Exclusive("a", "b", "c"), AtLeastOne("a", "b"), ExactlyOne("c", "d"), AllOrNone("d", "e")}
}

func TestBindRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sent  message
		error string
	}{
		{"fine", query("a=1&d=1&e=1&g[x]=1&g[y]=1"), ""},
		{"a default is not sent", query("a=1&c=&g="), "a, c are mutually exclusive"},
		{"none", query(""), "a, b are missing, at least one parameter must be provided, c, d are missing, exactly one parameter must be provided"},
		{"null is sent", jsonOf(`{"a":null,"b":"1","d":"1","e":"1"}`), "a, b are mutually exclusive"},
		{"alias", query("z=1&b=1&d=1&e="), "a, b are mutually exclusive"},
		{"all", query("a=1&b=1&c=1&d=1&e=1"), "a, b, c are mutually exclusive, c, d are mutually exclusive"},
		{"one of all or none", query("b=1&d=1"), "d, e provide all or none of parameters"},
		{"nested, after what is wrong with values", query("b[]=1&d=1&e=1&g[x]=1"), "b is invalid, g[x], g[y] provide all or none of parameters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, text := bindMessage[groupParams](t, c.sent); text != c.error {
				t.Errorf("error %q, want %q", text, c.error)
			}
		})
	}
}

func TestBindBoundsItsAnswer(t *testing.T) {
	t.Parallel()
	type item struct {
		Key string `param:"key,required"`
	}
	type params struct {
		L []item `param:"l"`
	}
	_, text := bindMessage[params](t, jsonOf(`{"l":[{}`+strings.Repeat(",{}", 5000)+`]}`))
	if n := strings.Count(text, "is missing"); n != maxMessages {
		t.Errorf("%d messages, want %d", n, maxMessages)
	}
	_, text = bindMessage[params](t, jsonOf(`{"l":[{}`+strings.Repeat(",{}", maxParams)+`]}`))
	if text != "l is invalid" {
		t.Errorf("too many structs: %.50q", text)
	}
}

func TestBindWrongStruct(t *testing.T) {
	t.Parallel()
	p, err := NewLayout(reflect.TypeFor[groupParams]())
	if err != nil {
		t.Fatal(err)
	}
	var other groupInner
	for _, into := range []any{nil, other, &other, groupParams{}} {
		if err := p.Bind(&Input{}, into); err == nil {
			t.Errorf("bind into %T gave no error", into)
		}
	}
}
