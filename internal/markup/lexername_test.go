package markup

import (
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// TestLexerTable compares the results of the table and of the library.
func TestLexerTable(t *testing.T) {
	t.Parallel()
	compare := func(what, name string, got, want chroma.Lexer) {
		switch {
		case got == nil && want == nil:
		case got == nil || want == nil:
			t.Errorf("%s %q: %v, want %v", what, name, got, want)
		case got.Config().Name != want.Config().Name:
			t.Errorf("%s %q: %s, want %s", what, name, got.Config().Name, want.Config().Name)
		}
	}
	files := []string{
		"a.go", "b.go", "dir/a.py", "x.rb", "Makefile", "Makefile.am", "Dockerfile", "x.Dockerfile", "Dockerfile.build", "CMakeLists.txt", "a.txt", "plain", ".bashrc",
		"page.html", "a.html.erb", "x.blade.php", "go.mod", "a.1", "a.d.ts", "x.tar.gz", "", "a.", "nginx.conf", "x.conf", "package.json", "Jenkinsfile", "a.C", "a.c",
		"a.go~", "a.go.orig", "Makefile.in", "config.h.in", "a.go.bak.old", "~", ".in", "a.py.in~", "Dockerfile.a.bak",
	}
	languages := []string{"go", "Go", "GOLANG", "rs", "h", "hpp", "Makefile", "yml", "none", "c++", "C#", "plaintext", "text", "sh", "console"}
	for _, l := range lexers.GlobalLexerRegistry.Lexers {
		for _, pattern := range append(append([]string(nil), l.Config().Filenames...), l.Config().AliasFilenames...) {
			files = append(files, strings.NewReplacer("*", "x", "?", "y").Replace(pattern))
		}
		languages = append(append(languages, l.Config().Name), l.Config().Aliases...)
	}
	for _, name := range files {
		compare("file", name, lexerNames().find(name), lexers.Match(name))
	}
	for _, name := range languages {
		compare("language", name, lexerNames().language(name), lexers.Get(name))
	}
}

// TestLongLexerNames looks up names of one megabyte: of a file, of the language of a
// code block, and of a code block in a highlighted Markdown file. In the library,
// one such lookup takes minutes.
func TestLongLexerNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1<<20)
	for _, l := range []chroma.Lexer{lexerFor("x."+long, "", "text"), lexerFor(long+".go", "", "text"), lexerFor("x", long, "text")} {
		if l != nil {
			t.Errorf("a long name has the lexer %s", l.Config().Name)
		}
	}
	s := new(library).session()
	if l := s.registry.Get(long); l != nil {
		t.Errorf("a long language has the lexer %s", l.Config().Name)
	}
	if l := s.registry.Get("golang"); l == nil || l.Config().Name != "Go" {
		t.Errorf("golang has the lexer %v", l)
	}
}
