package expand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func dollars(text string, with func(match, name string) string) string {
	return os.Expand(text, func(name string) string { return with("${"+name+"}", name) })
}

func newExpander(ctx context.Context, values map[string]string) *Expander {
	return &Expander{Budget: NewBudget(ctx), Syntax: dollars, Nested: dollars, Variables: func(name string) (Variable, bool) {
		v, ok := values[name]
		return Variable{Value: v}, ok
	}}
}

// TestExponentialExpansion expands variables that each contain the previous one
// several times.
func TestExponentialExpansion(t *testing.T) {
	t.Parallel()
	values := map[string]string{"V0": ""}
	for i := range 50 {
		values[fmt.Sprintf("V%d", i+1)] = strings.Repeat(fmt.Sprintf("$V%d", i), 10)
	}
	e := newExpander(t.Context(), values)
	if got := e.Text("$V50", false); got != "" || e.Budget.Err() != nil {
		t.Fatalf("%q, %v", got, e.Budget.Err())
	}
	if n := e.Budget.Steps(); n > 600 { // 50 values of 10 references, and the text
		t.Errorf("%d steps", n)
	}
	values["V0"] = "x" // 10^50 bytes
	e = newExpander(t.Context(), values)
	if got := e.Text("$V50", false); got != "$V50" || !errors.Is(e.Budget.Err(), ErrLimit) {
		t.Errorf("%d bytes, %v", len(got), e.Budget.Err())
	}
	if _, err := e.Value("V50"); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	if n := e.Budget.Bytes(); n > 1<<20 {
		t.Errorf("%d bytes of work", n)
	}
}

// TestCircularExpansion expands variables that all refer to each other.
func TestCircularExpansion(t *testing.T) {
	t.Parallel()
	values := map[string]string{}
	all := ""
	for i := range 40 {
		all += fmt.Sprintf("$V%d", i)
	}
	for i := range 40 {
		values[fmt.Sprintf("V%d", i)] = all
	}
	e := newExpander(t.Context(), values)
	for name := range values {
		if _, err := e.Value(name); err == nil || !strings.Contains(err.Error(), "circular") {
			t.Fatal(err)
		}
	}
	if n := e.Budget.Steps(); n > 10_000 {
		t.Errorf("%d steps", n)
	}
	e = newExpander(t.Context(), values)
	e.DropCircular = true
	if _, err := e.Value("V0"); !errors.Is(err, ErrLimit) || !errors.Is(e.Budget.Err(), ErrLimit) {
		t.Error(err)
	}
	if n := e.Budget.Steps(); n > MaxSteps+1 {
		t.Errorf("%d steps", n)
	}
}

func TestExpansionLimits(t *testing.T) {
	t.Parallel()
	deep := map[string]string{"V0": "x", "BIG": strings.Repeat("x", MaxText/2)}
	for i := range MaxDepth + 20 {
		deep[fmt.Sprintf("V%d", i+1)] = fmt.Sprintf("$V%d", i)
	}
	e := newExpander(t.Context(), deep)
	if _, err := e.Value(fmt.Sprintf("V%d", MaxDepth+10)); !errors.Is(err, ErrLimit) {
		t.Error("depth:", err)
	}
	e = newExpander(t.Context(), deep)
	for i := range MaxDepth { // in this order, no chain is long
		if v, err := e.Value(fmt.Sprintf("V%d", i)); err != nil || v != "x" {
			t.Fatal(i, err)
		}
	}
	if _, err := e.Value(fmt.Sprintf("V%d", MaxDepth+1)); !errors.Is(err, ErrLimit) {
		t.Error("depth from below:", err)
	}
	e = newExpander(t.Context(), deep)
	for e.Budget.Err() == nil {
		if got := e.Text("$BIG", false); len(got) != MaxText/2 && e.Budget.Err() == nil {
			t.Fatal(len(got))
		}
	}
	if n := e.Budget.Bytes(); n > MaxBytes+MaxText {
		t.Errorf("%d bytes", n)
	}
	e = newExpander(t.Context(), deep)
	if e.Text("$BIG$BIG$BIG", false); !errors.Is(e.Budget.Err(), ErrLimit) {
		t.Error("text:", e.Budget.Err())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e = newExpander(ctx, deep)
	if e.Text(strings.Repeat("$V0", 10_000), false); !errors.Is(e.Budget.Err(), context.Canceled) || e.Budget.Steps() > 1024 {
		t.Error("context:", e.Budget.Err(), e.Budget.Steps())
	}
}

// FuzzExpand checks that the work for any graph of values is limited.
func FuzzExpand(f *testing.F) {
	f.Add("$A$B", "$B$B$B", "$C$C$C", "$D$D$D", "$A", true)
	f.Add("$A", "$B$C$D", "$A$C$D", "$A$B$D", "$A$B$C", true)
	f.Add("$D$D", "x", "$A$A", "$B$B", "$C$C", false)
	f.Fuzz(func(t *testing.T, text, a, b, c, d string, drop bool) {
		e := newExpander(t.Context(), map[string]string{"A": a, "B": b, "C": c, "D": d})
		e.DropCircular = drop
		out := e.Text(text, true)
		for _, name := range []string{"A", "B", "C", "D"} {
			if value, err := e.Value(name); err == nil && len(value) > MaxText+len(a)+len(b)+len(c)+len(d) {
				t.Fatalf("%s has %d bytes", name, len(value))
			}
		}
		if len(out) > MaxText+2*len(text) {
			t.Fatalf("%d bytes", len(out))
		}
		if n := e.Budget.Steps(); n > MaxSteps+1 {
			t.Fatalf("%d steps", n)
		}
		if n := e.Budget.Bytes(); n > MaxBytes+MaxText+len(text)+len(a)+len(b)+len(c)+len(d) {
			t.Fatalf("%d bytes of work", n)
		}
		refs := strings.Count(text+a+b+c+d, "$")
		if n := e.Budget.Steps(); !drop && n > 5*refs {
			t.Fatalf("%d steps for %d references", n, refs)
		}
	})
}
