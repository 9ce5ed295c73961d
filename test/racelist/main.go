// Command racelist prints a regular expression for the tests of packages that do
// several things at once, or wait for what the server does in the background.
// scripts/test runs these under the race detector in packages whose
// tests start whole servers: the other tests there send one request after the
// other, and would take minutes under it.
//
// The choice is made from the source, so that no list has to be kept: a test is
// chosen if it, or a function of its package's tests that it calls, starts a
// goroutine, uses a channel, a lock or a wait group, or waits for a condition.
//
// usage: racelist DIRECTORY...
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: racelist DIRECTORY...")
		os.Exit(2)
	}
	var tests []string
	for _, dir := range os.Args[1:] {
		files, err := parse(dir)
		if err != nil {
			fmt.Fprintf(os.Stderr, "racelist: %v\n", err)
			os.Exit(1)
		}
		tests = append(tests, choose(files)...)
	}
	slices.Sort(tests)
	fmt.Printf("^(%s)$\n", strings.Join(slices.Compact(tests), "|"))
}

// parse reads the tests of a package.
func parse(dir string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no tests in %s", dir)
	}
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// function is what is known of the functions, or of the methods, of one name. The
// names of methods start with a dot, whatever their types are.
type function struct {
	concurrent bool
	uses       map[string]bool // the functions and methods that it calls, or passes on
}

// choose returns the names of the tests that do several things at once.
func choose(files []*ast.File) []string {
	known := map[string]*function{}
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				study(known, d)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, f := range known {
			if f.concurrent {
				continue
			}
			for name := range f.uses {
				if other, ok := known[name]; ok && other.concurrent {
					f.concurrent, changed = true, true
					break
				}
			}
		}
	}
	var tests []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if known[name].concurrent && strings.HasPrefix(name, "Test") && name != "TestMain" {
			tests = append(tests, name)
		}
	}
	return tests
}

// study adds what a function does by itself.
func study(known map[string]*function, d *ast.FuncDecl) {
	name := d.Name.Name
	if d.Recv != nil {
		name = "." + name
	}
	f := known[name]
	if f == nil {
		f = &function{uses: map[string]bool{}}
		known[name] = f
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			f.concurrent = true
		case *ast.UnaryExpr:
			f.concurrent = f.concurrent || n.Op == token.ARROW
		case *ast.CallExpr:
			f.use(n.Fun)
			f.use(n.Args...)
		case *ast.CompositeLit:
			f.use(n.Elts...)
		case *ast.KeyValueExpr:
			f.use(n.Value)
		case *ast.AssignStmt:
			f.use(n.Rhs...)
		case *ast.ValueSpec:
			f.use(n.Values...)
		case *ast.ReturnStmt:
			f.use(n.Results...)
		case *ast.SelectorExpr:
			x, _ := n.X.(*ast.Ident)
			switch {
			case x != nil && (x.Name == "sync" || x.Name == "atomic" || x.Name == "waittest"):
				f.concurrent = true
			case n.Sel.Name == "Go" || n.Sel.Name == "Idle": // a wait group, the queue
				f.concurrent = true
			}
		}
		return true
	})
}

// use notes expressions that may be a function or a method: one that is called,
// passed on or stored. The names of fields and variables are not: many helpers are
// called so.
func (f *function) use(list ...ast.Expr) {
	for _, e := range list {
		switch e := e.(type) {
		case *ast.Ident:
			f.uses[e.Name] = true
		case *ast.SelectorExpr:
			f.uses["."+e.Sel.Name] = true
		case *ast.IndexExpr: // a generic function
			f.use(e.X)
		case *ast.IndexListExpr:
			f.use(e.X)
		}
	}
}
