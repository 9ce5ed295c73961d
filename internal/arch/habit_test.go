package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayExec lists the packages that may start programs. Tests and helpers may too.
func mayExec() []string {
	return []string{
		"git",    // the engine is the git binary
		"runner", // jobs are programs
	}
}

// habits returns a sentence for each line of a file that breaks a rule of the
// code base. pkg is the path of its package below the module.
func habits(pkg string, fset *token.FileSet, f *ast.File) []string {
	var found []string
	at := func(n ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	where := locate(pkg)
	if where.helper || where.band == outside {
		return nil
	}
	for _, spec := range f.Imports {
		if importPath(spec) == "os/exec" && !slices.Contains(mayExec(), where.unit) {
			at(spec, "only git and the runner start programs; a package that must is listed in mayExec of internal/arch/habit_test.go")
		}
	}
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == "init" && d.Recv == nil {
				at(d, "no init functions: pass dependencies as arguments")
			}
		case *ast.GenDecl:
			for _, name := range variables(d) {
				at(name, "%s is a mutable package variable; keep state in a value that is passed", name.Name)
			}
		}
	}
	if where.band == feature {
		for _, call := range clockCalls(f) {
			at(call, "use Now of Deps instead of the clock")
		}
	}
	return found
}

// variables returns the names in a package-level declaration that are mutable state.
// Tables, sentinel errors, compiled patterns, embedded files and pools are allowed.
func variables(d *ast.GenDecl) []*ast.Ident {
	if d.Tok != token.VAR {
		return nil
	}
	var found []*ast.Ident
	for _, s := range d.Specs {
		spec := s.(*ast.ValueSpec)
		if embedded(d.Doc) || embedded(spec.Doc) {
			continue
		}
		for i, name := range spec.Names {
			if len(spec.Values) == 0 || i < len(spec.Values) && changing(spec.Values[i]) {
				found = append(found, name)
			}
		}
	}
	return found
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// changing reports whether a value is likely to be changed: it is created by make or
// new, or is a lock or counter.
func changing(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.CallExpr:
		name, ok := v.Fun.(*ast.Ident)
		return ok && (name.Name == "make" || name.Name == "new")
	case *ast.UnaryExpr:
		return changing(v.X)
	case *ast.CompositeLit:
		sel, ok := v.Type.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		pkg, ok := sel.X.(*ast.Ident)
		return ok && (pkg.Name == "sync" && sel.Sel.Name != "Pool" || pkg.Name == "atomic")
	}
	return false
}

// clockCalls returns the calls that read the clock. time.Now as a value is not
// a call.
func clockCalls(f *ast.File) []*ast.CallExpr {
	if !slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return importPath(s) == "time" && s.Name == nil }) {
		return nil
	}
	var found []*ast.CallExpr
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
			found = append(found, call)
		}
		return true
	})
	return found
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

func TestHabits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		pkg  string
		src  string
		want []string // each is a part of one finding
	}{
		{name: "exec in a feature", pkg: "internal/repo", src: `import "os/exec"; func f() { exec.Command("x") }`, want: []string{"x.go:2:8: only git and the runner start programs"}},
		{name: "exec in the git engine", pkg: "internal/git", src: `import "os/exec"`},
		{name: "exec in a helper", pkg: "internal/blob/blobtest", src: `import "os/exec"`},
		{name: "init", pkg: "internal/db", src: `func init() {}`, want: []string{"no init functions"}},
		{name: "a method called init", pkg: "internal/db", src: `type s struct{}; func (s) init() {}`},

		{name: "clock in a feature", pkg: "internal/user", src: `import "time"; var day = 1; func f() { _ = time.Now(); _ = time.Since(time.Time{}) }`,
			want: []string{"use Now of Deps", "use Now of Deps"}},
		{name: "clock in a subpackage of a feature", pkg: "internal/ci/config", src: `import "time"; var x = time.Now()`, want: []string{"use Now of Deps"}},
		{name: "clock as a value", pkg: "internal/user", src: `import "time"; func f() any { return time.Now }`},
		{name: "another Now", pkg: "internal/user", src: `import "time"; type s struct{ Now func() time.Time }; func (s s) f() { s.Now() }`},
		{name: "clock in an interface", pkg: "internal/api", src: `import "time"; func f() { time.Now() }`},

		{name: "no value", pkg: "internal/api", src: `var cache map[string]string`, want: []string{"cache is a mutable package variable"}},
		{name: "no value in a group", pkg: "internal/api", src: "import \"sync\"\nvar (\n\ta = 1\n\tmu sync.Mutex\n)", want: []string{"x.go:5:2: mu is"}},
		{name: "make", pkg: "internal/api", src: `var cache = make(map[string]string)`, want: []string{"cache is"}},
		{name: "new", pkg: "internal/api", src: `var a, b = 1, new(int)`, want: []string{"b is"}},
		{name: "pointer to a lock", pkg: "internal/api", src: `import "sync"; var mu = &sync.Mutex{}`, want: []string{"mu is"}},
		{name: "counter", pkg: "internal/api", src: `import "sync/atomic"; var n = atomic.Int64{}`, want: []string{"n is"}},
		{name: "allowed", pkg: "internal/api", src: "import (\"embed\"; \"errors\"; \"io\"; \"regexp\"; \"sync\")\n" +
			"//go:embed x\nvar files embed.FS\n" +
			"var (\n\terrX = errors.New(\"x\")\n\tnext = map[string][]string{\"a\": {\"b\"}}\n\tpat = regexp.MustCompile(`x`)\n" +
			"\tpool = sync.Pool{New: func() any { return nil }}\n\t_ io.Reader = (*int)(nil)\n)\nfunc f() { var n int; _ = n }"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, "x.go", "package x\n"+tt.src, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			got := habits(tt.pkg, fset, f)
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
