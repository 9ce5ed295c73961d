package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "svc"
)

// source is a file of a package.
type source struct {
	name string
	test bool
	file *ast.File
}

// TestTree checks every package of the module against the rules.
func TestTree(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	tree := readTree(t, fset, skipped)
	if len(tree["internal/errs"]) == 0 || len(tree["internal/arch"]) == 0 {
		t.Fatalf("the tree was not found at %s", root)
	}
	for pkg, files := range tree {
		imports, testImports := ownImports(files)
		for _, b := range breaches(pkg, imports, testImports) {
			t.Error(b)
		}
		if n := lines(fset, files); n > maxLines && pkg != "internal/api" && pkg != "internal/web" {
			t.Errorf("%s has %d lines, more than %d: move a part that is independent of the rest to a subpackage", pkg, n, maxLines)
		}
		if fault := commentFault(files); fault != "" {
			t.Errorf("%s: %s", pkg, fault)
		}
		if recompiles(pkg, files) {
			t.Errorf("%s: tests of unexported code and tests with a server compile the API again: move the latter to %s/servertest", pkg, pkg)
		}
		for _, s := range files {
			if s.test {
				continue
			}
			for _, h := range append(habits(pkg, fset, s.file), decisions(pkg, fset, s.file)...) {
				t.Error(strings.TrimPrefix(h, root+"/"))
			}
		}
	}
}

// maxLines is the maximum number of lines of a package without its tests and
// subpackages. api and web may be larger: they have a file for each resource.
const maxLines = 10_500

// lines returns the number of lines of a package without its tests.
func lines(fset *token.FileSet, files []source) (n int) {
	for _, s := range files {
		if !s.test {
			n += fset.File(s.file.Pos()).LineCount()
		}
	}
	return n
}

// TestWaits checks that the tests of every module wait for conditions.
func TestWaits(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	tree := readTree(t, fset, hidden)
	if len(tree["test/compat"]) == 0 {
		t.Fatalf("the other modules were not found at %s", root)
	}
	for pkg, files := range tree {
		for _, s := range files {
			if !s.test && !locate(pkg).helper {
				continue
			}
			for _, fault := range sleeps(pkg, s.name, fset, s.file) {
				t.Error(strings.TrimPrefix(fault, root+"/"))
			}
		}
	}
}

// readTree parses the Go files below the root, by directory, except in directories
// for which skip returns true. It reads the files itself instead of running go list,
// so that it sees the files of all platforms, and go test detects that its result
// depends on them.
func readTree(t *testing.T, fset *token.FileSet, skip func(path, name string) bool) map[string][]source {
	t.Helper()
	tree := make(map[string][]source)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && skip(path, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(dir)
		tree[pkg] = append(tree[pkg], source{name: d.Name(), test: strings.HasSuffix(path, "_test.go"), file: file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// skipped reports directories that are not a part of the module: those that the
// go command skips, other modules, and the data of a server.
func skipped(path, name string) bool {
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil || hidden(path, name)
}

// hidden reports directories that are skipped for all modules of the tree.
func hidden(path, name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "vendor" {
		return true
	}
	return filepath.Dir(path) == root && (name == "bin" || name == "data") || name == "node_modules"
}

// ownImports returns the imported packages of this module, once each.
func ownImports(files []source) (imports, testImports []string) {
	for _, s := range files {
		for _, spec := range s.file.Imports {
			below, ok := strings.CutPrefix(importPath(spec), module+"/")
			switch {
			case !ok:
			case s.test:
				testImports = append(testImports, below)
			default:
				imports = append(imports, below)
			}
		}
	}
	slices.Sort(imports)
	slices.Sort(testImports)
	return slices.Compact(imports), slices.Compact(testImports)
}

// commentFault returns what is wrong with the package comment. In a package with
// only tests, the comment is in one of them.
func commentFault(files []source) string {
	onlyTests := !slices.ContainsFunc(files, func(s source) bool { return !s.test })
	for _, s := range files {
		if s.file.Doc == nil || s.test != onlyTests {
			continue
		}
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if text := s.file.Doc.Text(); name != "main" && !strings.HasPrefix(text, "Package "+name+" ") {
			return "the package comment in " + s.name + " does not start with \"Package " + name + "\""
		}
		return ""
	}
	return "there is no package comment"
}

func TestCommentFault(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"there", map[string]string{"a.go": "package x", "b.go": "// Package x does things.\npackage x"}, ""},
		{"none", map[string]string{"a.go": "package x"}, "there is no package comment"},
		{"only on a test", map[string]string{"a.go": "package x", "a_test.go": "// Package x is tested.\npackage x"}, "there is no package comment"},
		{"only tests", map[string]string{"a_test.go": "// Package x tries things.\npackage x_test"}, ""},
		{"a licence", map[string]string{"a.go": "// All rights.\n\npackage x"}, "there is no package comment"},
		{"another form", map[string]string{"a.go": "// Does things.\npackage x"}, `the package comment in a.go does not start with "Package x"`},
		{"a command", map[string]string{"main.go": "// Command svc is the server.\npackage main"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var files []source
			for name, src := range tt.files {
				f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, source{name: name, test: strings.HasSuffix(name, "_test.go"), file: f})
			}
			if got := commentFault(files); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
