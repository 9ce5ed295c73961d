package markup

import (
	"testing"

	"github.com/alecthomas/chroma/v2/lexers"
)

// TestLexerTable compares the table with the library itself.
func TestLexerTable(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"a.go", "b.go", "dir/a.py", "x.rb", "Makefile", "Makefile.am", "Dockerfile", "x.Dockerfile", "Dockerfile.build", "CMakeLists.txt", "a.txt", "plain", ".bashrc",
		"page.html", "a.html.erb", "x.blade.php", "go.mod", "a.1", "a.d.ts", "x.tar.gz", "", "a.", "nginx.conf", "x.conf", "package.json", "Jenkinsfile", "a.C", "a.c",
	} {
		for range 2 {
			got, want := lexerNames().find(name), lexers.Match(name)
			switch {
			case got == nil && want == nil:
			case got == nil || want == nil:
				t.Errorf("%q: %v, want %v", name, got, want)
			case got.Config().Name != want.Config().Name:
				t.Errorf("%q: %s, want %s", name, got.Config().Name, want.Config().Name)
			}
		}
	}
}
