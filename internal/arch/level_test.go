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

// levels lists the constants of project.Level.
func levels() []string {
	return []string{"NoAccess", "Minimal", "Guest", "Planner", "Reporter", "Developer", "Maintainer", "Owner"}
}

// gated lists the features that use project.Change or project.Writable to check
// whether a project is archived. ci is not included, because pipelines have their
// own archived state.
func gated() []string {
	return []string{"plan", "comment", "board", "repo", "wiki", "snippet", "merge", "pages", "alert", "errortrack", "release", "catalog"}
}

// decisions returns a sentence for each permission check of an interface. An
// interface must not compare access levels, use .Archived as a condition, or ask
// a project about a level. It may show levels and .Archived, list levels, and
// pass a level to an operation. A gated feature must not use .Archived as a
// condition.
func decisions(pkg string, fset *token.FileSet, f *ast.File) []string {
	where := locate(pkg)
	iface := slices.Contains(interfaces(), where.unit)
	if where.helper || !iface && !slices.Contains(gated(), where.unit) {
		return nil
	}
	var found []string
	at := func(n ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s: the feature decides what an actor may do and returns it (project.Can, plan.CanIn, ci.JobCan, ...); an interface shows that",
			fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	archived := func(list ...ast.Expr) {
		for _, e := range list {
			if sel, ok := ast.Unparen(e).(*ast.SelectorExpr); ok && sel.Sel.Name == "Archived" {
				at(e, ".Archived is a condition")
			}
		}
	}
	level := func(list ...ast.Expr) {
		if !iface {
			return
		}
		if i := slices.IndexFunc(list, isLevel); i >= 0 {
			at(list[i], "levels are compared")
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LAND, token.LOR:
				archived(n.X, n.Y)
			case token.EQL, token.NEQ:
				if isLevel(n.X) || isLevel(n.Y) {
					level(n.X, n.Y)
				}
				if isBool(n.X) || isBool(n.Y) {
					archived(n.X, n.Y)
				}
			case token.LSS, token.LEQ, token.GTR, token.GEQ:
				if iface && (isLevel(n.X) || isLevel(n.Y) || isNamedLevel(n.X) || isNamedLevel(n.Y)) {
					at(n, "levels are compared")
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				archived(n.X)
			}
		case *ast.IfStmt:
			archived(n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				archived(n.Cond)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil {
				archived(n.Tag)
				level(n.Tag)
			}
		case *ast.CaseClause:
			archived(n.List...)
			level(n.List...)
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && iface && slices.Contains([]string{"Enough", "Change", "MayChange"}, sel.Sel.Name) && slices.ContainsFunc(n.Args, isLevel) {
				at(n, "a project is asked about a level")
			}
		}
		return true
	})
	return found
}

// isLevel reports whether an expression is a constant of project.Level, or a call
// of Level without arguments.
func isLevel(e ast.Expr) bool {
	e = ast.Unparen(e)
	if call, ok := e.(*ast.CallExpr); ok {
		sel, ok := call.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Level" && len(call.Args) == 0
	}
	return slices.ContainsFunc(levels(), func(name string) bool { return isSelector(e, "project", name) })
}

// isNamedLevel reports whether an expression is a variable or field named level.
func isNamedLevel(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return strings.EqualFold(e.Name, "level")
	case *ast.SelectorExpr:
		return strings.EqualFold(e.Sel.Name, "level")
	}
	return false
}

func isBool(e ast.Expr) bool {
	name, ok := ast.Unparen(e).(*ast.Ident)
	return ok && (name.Name == "true" || name.Name == "false")
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		pkg  string
		src  string
		want []string // each is a part of one finding
	}{
		{name: "order", src: `var a = p.Access.Level() >= project.Maintainer`, want: []string{"x.go:2:9: levels are compared"}},
		{name: "equality", src: `var a = l == project.Planner`, want: []string{"levels are compared"}},
		{name: "a level on the left", src: `var a = project.Guest != l`, want: []string{"levels are compared"}},
		{name: "two fields", src: `var a = m.Level <= s.level`, want: []string{"levels are compared"}},
		{name: "a variable", src: `var a = level < least`, want: []string{"levels are compared"}},
		{name: "a switch on the level", src: `func f() { switch p.Access.Level() { case x: } }`, want: []string{"levels are compared"}},
		{name: "a case", src: `func f() { switch l { case project.Owner, project.Guest: } }`, want: []string{"levels are compared"}},
		{name: "the gate", src: `var a = p.MayChange(by, project.IssuePart, project.Guest) || p.Enough(by, project.Owner) == nil`,
			want: []string{"a project is asked about a level", "a project is asked about a level"}},
		{name: "archived in if", src: `func f() { if p.Archived {} }`, want: []string{"x.go:2:15: .Archived is a condition"}},
		{name: "not archived", src: `var a = x{Edits: !(h.Project.Archived)}`, want: []string{".Archived is a condition"}},
		{name: "archived and", src: `var a = p.Archived && b || p.Archived`, want: []string{".Archived is a condition", ".Archived is a condition"}},
		{name: "archived compared", src: `var a = p.Archived == false`, want: []string{".Archived is a condition"}},
		{name: "archived in a case", src: `func f() { switch { case p.Archived: } }`, want: []string{".Archived is a condition"}},
		{name: "a feature", pkg: "internal/plan", src: `func f() { if p.Archived {} }`, want: []string{".Archived is a condition"}},
		{name: "githttp", pkg: "internal/githttp", src: `func f() { if p.Archived {} }`, want: []string{".Archived is a condition"}},

		{name: "levels shown", src: `var a = x{Level: int64(p.Access.Level()), Archived: p.Archived}; var b = []project.Level{project.Guest, project.Owner}`},
		{name: "levels passed", src: `func f() { s.Require(c, by, ref, project.NoAccess); s.Groups(x{MinLevel: project.Maintainer}) }`},
		{name: "what a feature answers", src: `var a = e.MayChange(by, p) && p.Can(by).Push`},
		{name: "a filter", src: `func f() { if p.Archived != "" { only := p.Archived == "only"; g.Archived = &only } }`},
		{name: "other constants", src: `var a = p.Issues != project.Disabled && l == notify.Level`},
		{name: "a feature", pkg: "internal/plan", src: `var a = p.MayChange(by, project.IssuePart, project.Guest) && p.Access.Level() >= project.Guest`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pkg := "internal/web"
			if tt.pkg != "" {
				pkg = tt.pkg
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, "x.go", "package x\n"+tt.src, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			got := decisions(pkg, fset, f)
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
