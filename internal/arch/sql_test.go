package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestSQL checks that SQL is only in the files store*.go of a package, so that all
// database access of a feature is in one place.
func TestSQL(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	tree := readTree(t, fset, skipped)
	for pkg, files := range tree {
		if !hasStore(pkg) {
			continue
		}
		for _, s := range files {
			if s.test || strings.HasPrefix(path.Base(s.name), "store") {
				continue
			}
			for _, found := range sqlIn(fset, s.file) {
				t.Error(strings.TrimPrefix(found, root+"/"))
			}
		}
	}
}

// hasStore reports whether a package must have its SQL in store files: all packages
// of the server, except the one that gives access to the database.
func hasStore(pkg string) bool {
	return strings.HasPrefix(pkg, "internal/") && locate(pkg).unit != "db" && !locate(pkg).helper
}

// statement matches SQL, and conditions with arguments.
var statement = regexp.MustCompile(`\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\s+[a-z0-9*(]` +
	`|\b(FROM|JOIN|WHERE)\s+[a-z]|[a-z_)] ?(=|<>|<|>|<=|>=) \?|\bIS (NOT )?NULL\b|\bLIKE \?`)

// sqlIn returns a finding for each literal that is SQL and each call that runs
// it.
func sqlIn(fset *token.FileSet, file *ast.File) []string {
	var found []string
	add := func(at token.Pos, what string) {
		found = append(found, fmt.Sprintf("%s: %s: move it to a function in store*.go that is named after what it does", fset.Position(at), what))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING && statement.MatchString(n.Value) {
				add(n.Pos(), "SQL outside of store*.go")
			}
		case *ast.CallExpr:
			if name := runs(n.Fun); name != "" {
				add(n.Pos(), name+" runs SQL outside of store*.go")
			}
		}
		return true
	})
	return found
}

// runs returns the name of a function that runs a statement, or an empty string.
func runs(f ast.Expr) string {
	if x, ok := f.(*ast.IndexExpr); ok { // with a type argument
		f = x.X
	}
	s, ok := f.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch s.Sel.Name {
	case "ExecContext", "QueryContext", "QueryRowContext":
		return s.Sel.Name
	case "All", "Each", "Exists", "ExecAny", "ExecCount", "ExecOne", "List":
		if isSelector(s, "db", s.Sel.Name) {
			return "db." + s.Sel.Name
		}
	}
	return ""
}

func TestSQLIn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		src  string
		want int // number of findings
	}{
		{"a query", "func f() { q.QueryRowContext(ctx, `SELECT 1 FROM users`) }", 2},
		{"a query in a variable", "func f() { q.ExecContext(ctx, query) }", 1},
		{"a list", "func f() { db.List(ctx, d, q, p) }", 1},
		{"a list of a type", "func f() { db.All[int](ctx, d, scan, query) }", 1},
		{"an existing row", "func f() { db.Exists(ctx, q, query) }", 1},
		{"a constant", "const q = `\n\tDELETE FROM users`", 1},
		{"a constant on several lines", "const q = `\n\tSELECT\n\t\tid, name\n\tFROM\n\t\tusers`", 1},
		{"a condition", "func f() { w.And(\"u.id = ?\", id) }", 1},
		{"a condition without arguments", "func f() { w.And(`u.deleted_at IS NULL`) }", 1},
		{"a search", "func f() { w.And(`fold(name) LIKE ? ESCAPE '\\'`, name) }", 1},

		{"other texts", "const a, b, c = \"Select a project\", \"update the settings from here\", \"is it so?\"", 0},
		{"a URL", "const a = \"/users?a=1&b=?\"", 0},
		{"other calls", "func f() { repo.List(ctx); s.All(ctx); exec.CommandContext(ctx, a) }", 0},
		{"store functions", "func f() { findUser(ctx, s.DB, id) }", 0},
	}
	for _, tt := range tests {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "x.go", "package x\n"+tt.src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := sqlIn(fset, file); len(got) != tt.want {
			t.Errorf("%s: got %q, want %d findings", tt.name, got, tt.want)
		}
	}
}
