package arch

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// recompiles reports whether the tests of a package make the compiler compile the
// features and interfaces above it twice: some of the tests access unexported code,
// and others import a server that is built on the package. The two kinds of tests
// must be in separate directories.
func recompiles(pkg string, files []source) bool {
	if p := locate(pkg); p.band != feature && p.band != base {
		return false // only the server itself imports it
	}
	var inside, server bool
	for _, s := range files {
		if !s.test {
			continue
		}
		_, imports := ownImports([]source{s})
		inside = inside || !strings.HasSuffix(s.file.Name.Name, "_test") && hasCode(files)
		server = server || slices.Contains(imports, "internal/app/apptest")
	}
	return inside && server
}

// hasCode reports whether a package has declarations outside of its tests.
func hasCode(files []source) bool {
	return slices.ContainsFunc(files, func(s source) bool { return !s.test && len(s.file.Decls) > 0 })
}

func TestRecompiles(t *testing.T) {
	t.Parallel()
	const code, inside, outside, server = "package repo; func f() {}", "package repo; import \"testing\"", "package repo_test; import \"testing\"",
		"package repo_test; import \"svc/internal/app/apptest\""
	for _, test := range []struct {
		name, pkg   string
		code, tests []string
		want        bool
	}{
		{name: "both", pkg: "internal/repo", code: []string{code}, tests: []string{inside, server}, want: true},
		{name: "unexported code only", pkg: "internal/repo", code: []string{code}, tests: []string{inside, outside}},
		{name: "a server only", pkg: "internal/repo", code: []string{code}, tests: []string{outside, server}},
		{name: "a directory of tests", pkg: "internal/repo/servertest", code: []string{"package servertest"}, tests: []string{strings.ReplaceAll(server, "repo_test", "servertest")}},
		{name: "an interface", pkg: "internal/api", code: []string{code}, tests: []string{inside, server}},
	} {
		var files []source
		for i, text := range append(test.code, test.tests...) {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", text, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, source{test: i >= len(test.code), file: file})
		}
		if got := recompiles(test.pkg, files); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
