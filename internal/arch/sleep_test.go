package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// maySleep lists the packages and files whose tests may sleep.
func maySleep() []string {
	return []string{
		"internal/waittest",         // the helper for all others
		"test/compat/wait_test.go",  // the same helper, in another module
		"test/browser/wait_test.go", // the same helper, in another module
		"bench",                     // measures over a period of time
	}
}

// sleeps returns a sentence for each line of a test that sleeps instead of
// waiting for a condition. In a testing/synctest bubble the clock is fake and
// sleeping is exact, so it is allowed there.
func sleeps(pkg, file string, fset *token.FileSet, f *ast.File) []string {
	if slices.Contains(maySleep(), pkg) || slices.Contains(maySleep(), pkg+"/"+file) {
		return nil
	}
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "synctest", "Test") {
			return false
		}
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		for _, name := range []string{"Sleep", "After", "Tick"} {
			if isSelector(sel, "time", name) {
				found = append(found, fmt.Sprintf("%s: time.%s makes a test depend on the speed of the machine: "+
					"wait for a condition with internal/waittest, or use testing/synctest", fset.Position(n.Pos()), name))
			}
		}
		return true
	})
	return found
}

// isSelector reports whether an expression is pkg.name.
func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func TestSleeps(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		pkg  string
		file string
		src  string
		want []string // each is a part of one finding
	}{
		{name: "sleep", src: `func f() { time.Sleep(1) }`, want: []string{"x_test.go:2:12: time.Sleep"}},
		{name: "after", src: `func f() { select { case <-time.After(1): } }`, want: []string{"time.After"}},
		{name: "tick", src: `func f() { for range time.Tick(1) {} }`, want: []string{"time.Tick"}},
		{name: "sleep as a value", src: `var pause = time.Sleep`, want: []string{"time.Sleep"}},
		{name: "a loop", src: `func f() { for ; !done(); time.Sleep(1) {}; time.Sleep(2) }`, want: []string{"time.Sleep", "time.Sleep"}},
		{name: "in another module", pkg: "test/compat", src: `func f() { time.Sleep(1) }`, want: []string{"time.Sleep"}},
		{name: "in a bubble", src: `func f() { synctest.Test(t, func(t *testing.T) { time.Sleep(1); <-time.After(1) }) }`},
		{name: "beside a bubble", src: `func f() { time.Sleep(1); synctest.Test(t, g) }`, want: []string{"time.Sleep"}},
		{name: "other functions", src: `func f() { clock.Sleep(1); time.AfterFunc(1, f); time.Since(t) }`},
		{name: "the helper", pkg: "internal/waittest", src: `func f() { time.Sleep(1) }`},
		{name: "the helper of a module", pkg: "test/compat", file: "wait_test.go", src: `func f() { time.Sleep(1) }`},
		{name: "a benchmark", pkg: "bench", src: `func f() { time.Sleep(1) }`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pkg, file := "internal/api", "x_test.go"
			if tt.pkg != "" {
				pkg = tt.pkg
			}
			if tt.file != "" {
				file = tt.file
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, file, "package x\n"+tt.src, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			got := sleeps(pkg, file, fset, f)
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %d findings", got, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %q, want one with %q", got[i], want)
				}
			}
		})
	}
}
