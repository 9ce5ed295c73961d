package repo_test

import (
	"testing"

	"svc/internal/git"
	"svc/internal/repo"
)

func TestReadme(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"":             {"a", "READ.ME", "readme.png", "xreadme.md", "index.txt"},
		"README":       {"INSTALL", "README"},
		"readme.md":    {"README", "README.rst", "readme.md", "z"},
		"README.rst":   {"README", "README.rst", "README.txt"},
		"Readme.Mkd":   {"Readme.Mkd", "readme.txt"},
		"index.md":     {"a.md", "index.md"},
		"readme.txt":   {"INDEX.MD", "index.md", "readme.txt"},
		"README.adoc":  {"README.adoc", "index.md"},
		"README.plain": nil,
	} {
		var entries []git.Entry
		for _, name := range names {
			entries = append(entries, git.Entry{Name: name, Path: "dir/" + name, Type: git.TypeBlob})
		}
		entries = append(entries, git.Entry{Name: "README.md", Path: "dir/README.md", Type: git.TypeTree})
		if want == "README.plain" { // nothing but a directory
			want = ""
		}
		if got, ok := repo.Readme(entries); got.Name != want || ok != (want != "") {
			t.Errorf("%v: %q, %t, want %q", names, got.Name, ok, want)
		}
	}
}
