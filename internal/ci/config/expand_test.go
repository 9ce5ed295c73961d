package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/expand"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	budget := expand.NewBudget(t.Context())
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
		if got := Flat(budget, variables).All(c.in); got != c.all {
			t.Errorf("All(%q) = %q", c.in, got)
		}
		if got := Flat(budget, variables).Existing(c.in); got != c.existing {
			t.Errorf("Existing(%q) = %q", c.in, got)
		}
	}
}

func TestExpandBounds(t *testing.T) {
	t.Parallel()
	budget := expand.NewBudget(t.Context())
	text := strings.Repeat("$A", 10_000)
	got := Flat(budget, LookupIn([]Variable{{Key: "A", Value: strings.Repeat("x", 100<<10)}})).All(text)
	if got != text || !errors.Is(budget.Err(), expand.ErrLimit) {
		t.Errorf("%d bytes, %v", len(got), budget.Err())
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	got, err := Resolve(expand.NewBudget(t.Context()), []Variable{
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
		if _, err := Resolve(expand.NewBudget(t.Context()), variables); err == nil || err.Error() != want {
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
		budget := expand.NewBudget(t.Context())
		Flat(budget, variables).All(in)
		if Flat(budget, LookupIn()).Existing(in) != in {
			t.Fatal("text changed without variables")
		}
		out, err := Resolve(budget, list)
		if budget.Steps() > expand.MaxSteps+1 {
			t.Fatalf("%d steps", budget.Steps())
		}
		if err != nil {
			return
		}
		// Resolved values refer only to variables that do not exist.
		if len(out) != 3 {
			t.Fatalf("%d variables", len(out))
		}
		full := Nested(budget, variables)
		for _, v := range out {
			if got, err := full.Value(v.Key); err != nil || got != v.Value {
				t.Fatalf("%s is %q and %q", v.Key, got, v.Value)
			}
		}
	})
}
