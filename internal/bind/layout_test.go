package bind

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLayoutFields(t *testing.T) {
	t.Parallel()
	type inner struct {
		Key string `param:"key,required" doc:"the key"`
	}
	type base struct {
		Page int `param:"page" default:"1"`
	}
	type params struct {
		ID sampleRef `param:"id"`
		base
		Scope  []string          `param:"scope,csv" enum:"a,b" doc:"which ones"`
		List   []inner           `param:"list" max:"9"`
		Hash   map[string]string `param:"hash"`
		Avatar Opt[*Upload]      `param:"avatar" aliases:"picture"`
		Secret *string           `param:"password,nonblank" secret:"true" tier:"premium"`
		At     Opt[time.Time]    `param:"at"`
		Day    Date              `param:"day"`
		Inner  inner             `param:"inner"`
		Ratio  float64           `param:"ratio"`
		Sure   bool              `param:"sure"`
		Off    string            `param:"-"`
		hidden string
	}
	_ = params{}.hidden
	p, err := NewLayout(reflect.TypeFor[params](), "id")
	if err != nil {
		t.Fatal(err)
	}
	if !p.files {
		t.Error("the layout does not report that it has files")
	}
	var got []string
	for _, f := range p.Fields {
		got = append(got, f.Name)
	}
	if want := "id page scope list hash avatar password at day inner ratio sure"; strings.Join(got, " ") != want {
		t.Fatalf("fields %q, want %q", got, want)
	}
	at := func(name string) *Field {
		for i := range p.Fields {
			if p.Fields[i].Name == name {
				return &p.Fields[i]
			}
		}
		t.Fatalf("no field %s", name)
		return nil
	}
	for name, want := range map[string]Kind{
		"id": KindCustom, "page": KindInt, "scope": KindList, "list": KindList, "hash": KindHash, "avatar": KindFile,
		"password": KindText, "at": KindTime, "day": KindDate, "inner": KindObject, "ratio": KindFloat, "sure": KindBool,
	} {
		if got := at(name).Shape.Kind; got != want {
			t.Errorf("%s is of kind %d, want %d", name, got, want)
		}
	}
	if f := at("scope"); f.Doc != "which ones" || len(f.Enum) != 2 || !f.CSV || f.Shape.Elem.Kind != KindText {
		t.Errorf("scope is %+v", f)
	}
	if f := at("list").Shape.Elem.Object.Fields[0]; f.Name != "key" || !f.Required || f.Doc != "the key" || f.Shape.Type.Kind() != reflect.String {
		t.Errorf("list has %+v", f)
	}
	if f := at("password"); f.Tier != "premium" || !f.Secret || !f.Nonblank || f.Shape.Wrap != WrapPointer {
		t.Errorf("password is %+v", f)
	}
	if f := at("avatar"); f.Shape.Wrap != WrapOpt || f.Aliases[0] != "picture" {
		t.Errorf("avatar is %+v", f)
	}
	if f := at("page"); f.Default != "1" || at("list").Max != 9 {
		t.Errorf("page is %+v", f)
	}
	for _, c := range []struct {
		name, method string
		want         Location
	}{{"id", "GET", InPath}, {"id", "POST", InPath}, {"page", "GET", InQuery}, {"page", "DELETE", InQuery}, {"page", "HEAD", InQuery}, {"page", "PUT", InBody}, {"page", "POST", InBody}, {"page", "PATCH", InBody}} {
		if got := at(c.name).Location(c.method); got != c.want {
			t.Errorf("%s of a %s is in %s, want %s", c.name, c.method, got, c.want)
		}
	}
}

type ruleTypo struct {
	A string `param:"a"`
	B string `param:"b"`
}

func (ruleTypo) ParamRules() []Rule { return []Rule{Exclusive("a", "c")} }

type ruleOfOne struct {
	A string `param:"a"`
}

func (ruleOfOne) ParamRules() []Rule { return []Rule{AllOrNone("a")} }

type rulesLeft struct {
	A string `param:"a"`
	B string `param:"b"`
}

func (rulesLeft) ParamRules() []Rule { return []Rule{Exclusive("a", "b")} }

type rulesRight struct {
	C string `param:"c"`
	D string `param:"d"`
}

func (rulesRight) ParamRules() []Rule { return []Rule{Exclusive("c", "d")} }

type rulesBoth struct {
	rulesLeft
	rulesRight
}

type rulesDeep struct{ rulesBoth }

type selfish struct {
	Kids []selfish `param:"kids"`
}

func TestLayoutRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		params any
		want   string
	}{
		"no struct": {7, "not a struct"},
		"no tag":    {struct{ A string }{}, "field A has no param tag"},
		"not exported": {struct {
			a string `param:"a"`
		}{}, "field a is not exported"},
		"no name": {struct {
			A string `param:",required"`
		}{}, `"" is not a parameter name`},
		"brackets": {struct {
			A []string `param:"a[]"`
		}{}, `"a[]" is not a parameter name`},
		"option": {struct {
			A string `param:"a,requird"`
		}{}, `unknown option "requird"`},
		"same name": {struct {
			A string `param:"a"`
			B string `param:"a"`
		}{}, `the name "a" is taken`},
		"alias taken": {struct {
			A string `param:"a"`
			B string `param:"b" aliases:"a"`
		}{}, `the name "a" is taken`},
		"blank alone": {struct {
			A string `param:"a,blank"`
		}{}, "blank requires required"},
		"csv of text": {struct {
			A string `param:"a,csv"`
		}{}, "csv is only allowed for lists"},
		"enum of times": {struct {
			A time.Time `param:"a" enum:"x"`
		}{}, "enum is not allowed for"},
		"enum of words for a number": {struct {
			A int `param:"a" enum:"x"`
		}{}, `enum value "x"`},
		"default outside the enum": {struct {
			A string `param:"a" enum:"x,y" default:"z"`
		}{}, `the default "z"`},
		"default of another type": {struct {
			A int `param:"a" default:"z"`
		}{}, `the default "z"`},
		"default and required": {struct {
			A int `param:"a,required" default:"1"`
		}{}, "a default is only allowed for"},
		"default of a pointer": {struct {
			A *int `param:"a" default:"1"`
		}{}, "a default is only allowed for"},
		"max of a number": {struct {
			A int `param:"a" max:"1"`
		}{}, "max is only allowed for texts"},
		"max of nothing": {struct {
			A string `param:"a" max:"0"`
		}{}, `max "0"`},
		"tier": {struct {
			A string `param:"a" tier:"gold"`
		}{}, `unknown tier "gold"`},
		"channel": {struct {
			A chan int `param:"a"`
		}{}, "type chan int is not supported"},
		"any": {struct {
			A any `param:"a"`
		}{}, "type interface"},
		"upload by value": {struct {
			A Upload `param:"a"`
		}{}, "type bind.Upload is not supported"},
		"pointer to pointer": {struct {
			A **int `param:"a"`
		}{}, "wrapped twice"},
		"pointer in opt": {struct {
			A Opt[*int] `param:"a"`
		}{}, "wrapped twice"},
		"list of pointers": {struct {
			A []*int `param:"a"`
		}{}, "elements must not be optional"},
		"map of numbers": {struct {
			A map[int]string `param:"a"`
		}{}, "type map"},
		"itself":            {selfish{}, "contains itself"},
		"rule typo":         {ruleTypo{}, `a rule has "c"`},
		"rule of one":       {ruleOfOne{}, "fewer than two"},
		"hidden rules":      {rulesBoth{}, "are hidden"},
		"deep hidden rules": {rulesDeep{}, "are hidden"},
		"embedded pointer":  {struct{ *rulesLeft }{}, "field rulesLeft has no param tag"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := NewLayout(reflect.TypeOf(c.params))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if _, err := NewLayout(nil); err == nil {
		t.Error("a layout of nil was created")
	}
	if _, err := NewLayout(reflect.TypeFor[rulesLeft](), "id"); err == nil {
		t.Error("a path parameter without a field")
	}
	if _, err := NewLayout(reflect.TypeFor[selfFile](), "f"); err == nil {
		t.Error("a path parameter that is a file")
	}
	if p, err := NewLayout(reflect.TypeFor[struct{ rulesLeft }]()); err != nil || len(p.Rules) != 1 {
		t.Errorf("rules of an embedded struct: %v, %v", p, err)
	}
}

type selfFile struct {
	F *Upload `param:"f"`
}
