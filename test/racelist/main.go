// Command racelist selects what runs under the race detector: everything that is
// concurrent. It decides from the source, so that there is no list to maintain.
// scripts/test uses it in two ways.
//
// In packages whose tests start whole servers it selects tests, and prints a regular
// expression for them. It selects a test that starts a goroutine or uses a channel, a
// lock or a wait group, also in a helper of the same package. With -waiting, it also
// selects a test that waits for a background job or another condition, because its
// requests may run concurrently with the job. The other tests send requests
// sequentially. All tests would take half an hour under the race detector.
//
// With -packages, it prints the directories of the other packages whose code or tests
// start goroutines or use channels, locks or atomic values.
//
// usage: racelist [-packages | -waiting] DIRECTORY...
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	whole := flag.Bool("packages", false, "select packages instead of tests")
	waiting := flag.Bool("waiting", false, "select tests that wait as well")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: racelist [-packages | -waiting] DIRECTORY...")
		os.Exit(2)
	}
	if err := list(os.Stdout, *whole, *waiting, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "racelist: %v\n", err)
		os.Exit(1)
	}
}

// list prints what it selects from the packages in some directories.
func list(out io.Writer, packages, waiting bool, dirs []string) error {
	var tests []string
	for _, dir := range dirs {
		pattern := "*_test.go"
		if packages {
			pattern = "*.go"
		}
		files, err := parse(dir, pattern)
		if err != nil {
			return err
		}
		if !packages {
			chosen, err := choose(files, waiting)
			if err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			tests = append(tests, chosen...)
		} else if slices.ContainsFunc(files, concurrent) {
			fmt.Fprintln(out, dir)
		}
	}
	if !packages {
		slices.Sort(tests)
		fmt.Fprintf(out, "^(%s)$\n", strings.Join(slices.Compact(tests), "|"))
	}
	return nil
}

// concurrent reports whether anything in a file is concurrent.
func concurrent(file *ast.File) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		found = found || concurrentNode(n) || waitingNode(n)
		return !found
	})
	return found
}

// concurrentNode reports whether a node starts a goroutine, or uses a channel, a
// lock, an atomic value or a wait group.
func concurrentNode(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
		return true
	case *ast.UnaryExpr:
		return n.Op == token.ARROW
	case *ast.SelectorExpr:
		x, _ := n.X.(*ast.Ident)
		return x != nil && (x.Name == "sync" || x.Name == "atomic" || x.Name == "errgroup") || n.Sel.Name == "Go"
	}
	return false
}

// waitingNode reports whether a node waits for a condition, or for the queue of
// background jobs.
func waitingNode(n ast.Node) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, _ := s.X.(*ast.Ident)
	return x != nil && x.Name == "waittest" || s.Sel.Name == "Idle"
}

// parse reads the files of a package that match a pattern.
func parse(dir, pattern string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no %s in %s", pattern, dir)
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

// function has the properties of all functions or methods with one name. The names
// of methods start with a dot, whatever their types are.
type function struct {
	concurrent bool
	types      int             // number of types with a method of this name
	uses       map[string]bool // the functions and methods that it calls, or passes on
}

// choose returns the names of the concurrent tests, and of those that wait if
// waiting is set. It has no type information: a test that reads a field or calls a
// method is treated as using all methods with that name. Therefore the name of a
// concurrent method must be unique.
func choose(files []*ast.File, waiting bool) ([]string, error) {
	known, fields := map[string]*function{}, map[string]bool{}
	for _, f := range files {
		addFields(fields, f)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				study(known, d, waiting)
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
		if !known[name].concurrent {
			continue
		}
		if method, ok := strings.CutPrefix(name, "."); ok && (fields[method] || known[name].types > 1) {
			return nil, fmt.Errorf("the method %s is concurrent: its name must not be used for a field or method of another type", method)
		}
		if strings.HasPrefix(name, "Test") && name != "TestMain" {
			tests = append(tests, name)
		}
	}
	return tests, nil
}

// addFields adds the names of the fields of the types in a file.
func addFields(fields map[string]bool, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					fields[name.Name] = true
				}
			}
		}
		return true
	})
}

// study adds the properties of a function itself.
func study(known map[string]*function, d *ast.FuncDecl, waiting bool) {
	name := d.Name.Name
	if d.Recv != nil {
		name = "." + name
	}
	f := known[name]
	if f == nil {
		f = &function{uses: map[string]bool{}}
		known[name] = f
	}
	f.types++
	ast.Inspect(d, func(n ast.Node) bool {
		f.concurrent = f.concurrent || concurrentNode(n) || waiting && waitingNode(n)
		switch n := n.(type) {
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
		}
		return true
	})
}

// use records expressions that may be a function or a method: those that are called,
// passed as arguments or stored. Names of fields and variables are not recorded,
// because many helpers have the same names.
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
