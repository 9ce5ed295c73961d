package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, src, want string
	}{
		{"in order", `func TestA(t *testing.T) { s.Check(t, call) }`, ""},
		{"a goroutine", `func TestA(t *testing.T) { go f() }`, "TestA"},
		{"a wait group", `func TestA(t *testing.T) { wg.Go(f) }`, "TestA"},
		{"a lock", `func TestA(t *testing.T) { var mu sync.Mutex }`, "TestA"},
		{"a channel", `func TestA(t *testing.T) { <-done }; func TestB(t *testing.T) { done <- 1 }; func TestC(t *testing.T) { f(make(chan int)) }`, "TestA TestB TestC"},
		{"in a function literal", `func TestA(t *testing.T) { apptest.Each(t, func(t *testing.T, s *apptest.Server) { go f() }) }`, "TestA"},
		{"background work", waits, ""},
		{"by a helper", `func TestA(t *testing.T) { a() }; func TestB(t *testing.T) { c() }; func a() { b() }; func b() { go f() }; func c() {}`, "TestA"},
		{"by a method", `func TestA(t *testing.T) { x.watch() }; func (x x) watch() { select {} }`, "TestA"},
		{"by a function that is passed on", `func TestA(t *testing.T) { each(t, a) }; func a() { go f() }`, "TestA"},
		{"by a function that is stored", `func TestA(t *testing.T) { f := a; f() }; func TestB(t *testing.T) { use(c{f: x.watch}) }; func a() { go f() }; func (x x) watch() { select {} }`, "TestA TestB"},
		{"by a generic function", `func TestA(t *testing.T) { a[int]() }; func a[T any]() { go f() }`, "TestA"},
		{"a field is not a helper", `func TestA(t *testing.T) { s.Check(t, call{push: 1}); push := 2; push++ }; func push() { go f() }`, ""},
		{"a function is not a method", `func TestA(t *testing.T) { x.push() }; func push() { go f() }`, ""},
		{"helpers alone are no tests", `func a() { go f() }; func TestMain(m *testing.M) { go f() }; func BenchmarkA(b *testing.B) { go f() }`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+tt.src, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			got, err := choose([]*ast.File{f}, false)
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// waits is a test file with tests that wait for background jobs.
const waits = `func TestA(t *testing.T) { s.Queue.Idle(ctx) }; func TestB(t *testing.T) { waittest.For(t, "", f) }; func TestC(t *testing.T) { call() }`

// TestChooseWaiting checks that tests that wait are selected only with waiting.
func TestChooseWaiting(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+waits, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := choose([]*ast.File{f}, true); err != nil || strings.Join(got, " ") != "TestA TestB" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAmbiguous checks names that would select sequential tests.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	const watches = `func (x x) watch() { select {} };`
	for src, refused := range map[string]bool{
		watches: false,
		watches + `type call struct{ watch string }`:                true,
		watches + `func (y y) watch() {}`:                           true,
		`type call struct{ watch string }; func (x x) watch() {}`:   false,
		`type call struct{ watch string }; func watch() { go f() }`: false,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := choose([]*ast.File{f}, false); (err != nil) != refused {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestPackages(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{
		`func a() { b() }`:                     false,
		`func a() { go b() }`:                  true,
		`type a struct{ mu sync.Mutex }`:       true,
		`type a struct{ n atomic.Int64 }`:      true,
		`var c chan int`:                       true,
		`func a() { <-c }`:                     true,
		`func a(g *group) { g.Go(b) }`:         true,
		`type sync struct{}; func a() { b() }`: false,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := concurrent(f); got != want {
			t.Errorf("%s: %v", src, got)
		}
	}
	var out strings.Builder
	if err := list(&out, true, false, []string{"../../internal/queue", "../../internal/errs"}); err != nil || out.String() != "../../internal/queue\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
