package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	variables := LookupIn([]Variable{{Key: "A", Value: "1"}, {Key: "AB_2", Value: "two"}, {Key: "REF", Value: "$A"}, {Key: "E"}})
	for _, c := range []struct{ in, all, existing string }{
		{"", "", ""},
		{"plain", "plain", "plain"},
		{"$A-${A}-%A%", "1-1-1", "1-1-1"},
		{"$AB_2x", "", "$AB_2x"},
		{"${AB_2}x", "twox", "twox"},
		{"$A.$AB_2", "1.two", "1.two"},
		{"$NO${NO}%NO%", "", "$NO${NO}%NO%"},
		{"[$E]", "[]", "[]"},
		{"$REF", "$A", "$A"},
		{"$$A", "$1", "$1"},
		{"100%", "100%", "100%"},
		{"50% of %A% %", "50% of 1 %", "50% of 1 %"},
		{"$", "$", "$"},
		{"${A", "${A", "${A"},
		{"${}", "${}", "${}"},
		{"$1A", "$1A", "$1A"},
		{"$(A)", "$(A)", "$(A)"},
		{"$ä", "$ä", "$ä"},
	} {
		if got := Expand(c.in, variables); got != c.all {
			t.Errorf("Expand(%q) = %q", c.in, got)
		}
		if got := ExpandExisting(c.in, variables); got != c.existing {
			t.Errorf("ExpandExisting(%q) = %q", c.in, got)
		}
	}
}

func TestExpandBounds(t *testing.T) {
	t.Parallel()
	variables := LookupIn([]Variable{{Key: "A", Value: strings.Repeat("x", 100<<10)}})
	got := Expand(strings.Repeat("$A", 10_000), variables)
	if len(got) > maxExpansion+200<<10 {
		t.Errorf("%d bytes", len(got))
	}
	if !strings.HasSuffix(got, "$A$A") {
		t.Error("the rest is not left as it is")
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	got, err := Resolve([]Variable{
		{Key: "A", Value: "$B-${C}"},
		{Key: "B", Value: "%C%"},
		{Key: "C", Value: "old"},
		{Key: "C", Value: "c"},
		{Key: "RAW", Value: "$A", Raw: true},
		{Key: "USES_RAW", Value: "$RAW"},
		{Key: "FILE", Value: "secret $A", File: true},
		{Key: "USES_FILE", Value: "cat $FILE"},
		{Key: "ESCAPED", Value: "$$A $$$C %%C%%"},
		{Key: "UNKNOWN", Value: "$NO"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Variable{
		{Key: "A", Value: "c-c"},
		{Key: "B", Value: "c"},
		{Key: "C", Value: "c"},
		{Key: "RAW", Value: "$A", Raw: true},
		{Key: "USES_RAW", Value: "$A"},
		{Key: "FILE", Value: "secret c-c", File: true},
		{Key: "USES_FILE", Value: "cat $FILE"},
		{Key: "ESCAPED", Value: "$$A $$c %%C%%"},
		{Key: "UNKNOWN", Value: "$NO"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	for want, variables := range map[string][]Variable{
		"circular variable reference detected: A -> A": {{Key: "A", Value: "x$A"}},
		"circular variable reference detected: A -> B -> C -> A": {
			{Key: "A", Value: "$B"}, {Key: "B", Value: "${C}"}, {Key: "C", Value: "%A%"},
		},
	} {
		if _, err := Resolve(variables); err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$A ${B} %C% $$A", "$B", "x$C", "c")
	f.Add("${A}", "$A", "", "%A%%B%")
	f.Fuzz(func(t *testing.T, in, a, b, c string) {
		list := []Variable{{Key: "A", Value: a}, {Key: "B", Value: b}, {Key: "C", Value: c}}
		variables := LookupIn(list)
		Expand(in, variables)
		if ExpandExisting(in, LookupIn()) != in {
			t.Fatal("text changed without variables")
		}
		out, err := Resolve(list)
		if err != nil {
			return
		}
		// What is resolved holds no more than references to what is not there.
		if len(out) != 3 {
			t.Fatalf("%d variables", len(out))
		}
		full := nested(variables)
		for _, v := range out {
			if got, ok := full(v.Key); !ok || got.Value != v.Value {
				t.Fatalf("%s is %q and %q", v.Key, got.Value, v.Value)
			}
		}
	})
}
