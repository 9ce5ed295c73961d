package git

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"svc/internal/git/gittest"
)

func TestLanguages(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name  string
		files map[string]string // a path with a leading * is executable
		want  map[string]int64
	}{
		{"nothing", map[string]string{"README.md": text(100), "data.json": text(100)}, map[string]int64{}},
		{"by extension", map[string]string{"main.go": text(70), "web/a.js": text(20), "web/b.JSX": text(5), "x.py": text(5), "empty.rs": ""},
			map[string]int64{"Go": 70, "JavaScript": 25, "Python": 5}},
		{"by the longest extension", map[string]string{"a.blade.php": text(10), "b.php": text(20)}, map[string]int64{"PHP": 20, "Blade": 10}},
		{"by name", map[string]string{"Makefile": text(10), "docker/Dockerfile": text(20), "CMakeLists.txt": text(5)}, map[string]int64{"Dockerfile": 20, "Makefile": 10, "CMake": 5}},
		{"by the first line", map[string]string{"*bin/run": "#!/usr/bin/env -S python3.11 -u\n", "*tool": "#!/bin/bash\n", "*data": "nothing", "script": "#!/bin/sh\n"},
			map[string]int64{"Python": 32, "Shell": 12}},
		{"someone else's", map[string]string{"a.go": text(10), "vendor/x/y.go": text(99), "web/node_modules/m/i.js": text(99), "jquery-3.1.js": text(99), "a.min.js": text(99),
			"api.pb.go": text(99), "docs/conf.py": text(99), "examples/e.go": text(99), "lib/docs/keep.go": text(1)}, map[string]int64{"Go": 11}},
		{"C", map[string]string{"a.c": text(10), "a.h": text(5), "b.cpp": text(3)}, map[string]int64{"C": 15, "C++": 3}},
		{"C++", map[string]string{"a.c": text(3), "a.h": text(5), "b.cpp": text(10)}, map[string]int64{"C++": 15, "C": 3}},
		{"Objective-C", map[string]string{"a.m": text(10), "a.h": text(5)}, map[string]int64{"Objective-C": 15}},
		{"headers alone", map[string]string{"a.h": text(5)}, map[string]int64{"C": 5}},
		{"MATLAB", map[string]string{"a.m": text(10), "x.py": text(1)}, map[string]int64{"MATLAB": 10, "Python": 1}},
		{"attributes", map[string]string{
			".gitattributes": strings.Join([]string{
				"# linguist-vendored is not for comments",
				"*.tpl linguist-language=Go-Template",
				"*.sql linguist-detectable",
				"*.js -linguist-detectable",
				"vendor/ours/** -linguist-vendored",
				"gen/**/*.go linguist-generated=true",
				"/top.go linguist-documentation",
				`"with space.go" linguist-vendored`,
				"*.rb linguist-language=NoSuchLanguage",
				"a?[0-9].py linguist-vendored",
			}, "\n"),
			"x.tpl": text(7), "q.sql": text(5), "w.js": text(99), "vendor/ours/a.go": text(1), "vendor/theirs/a.go": text(99), "gen/a.go": text(99), "gen/b/c/a.go": text(99),
			"top.go": text(99), "sub/top.go": text(2), "with space.go": text(99), "r.rb": text(3), "ab1.py": text(99), "abc.py": text(4),
			"sub/.gitattributes": "*.rb linguist-vendored\n", "sub/r.rb": text(99), "sub/deep/.gitattributes": "*.rb !linguist-vendored", "sub/deep/r.rb": text(6),
		}, map[string]int64{"Go Template": 7, "SQL": 5, "Go": 3, "Ruby": 9, "Python": 4}},
	} {
		r, g := open(t)
		var changes []gittest.Change
		for path, content := range c.files {
			path, program := strings.CutPrefix(path, "*")
			changes = append(changes, gittest.Change{Path: path, Content: content, Mode: map[bool]string{true: "100755"}[program]})
		}
		changes = append(changes, gittest.Change{Path: "link.go", Content: "main.go", Mode: "120000"},
			gittest.Change{Path: "module.go", Content: strings.Repeat("ab", 20), Mode: "160000"})
		g.Commit(gittest.Commit{Changes: changes})
		for range 2 { // the second time from the cache
			list, err := r.Languages(t.Context(), "main")
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			got := map[string]int64{}
			share, last := 0.0, int64(1<<62)
			for _, l := range list {
				got[l.Name] = l.Bytes
				share += l.Share
				if l.Bytes > last || l.Color == "" {
					t.Errorf("%s: %+v", c.name, list)
				}
				last = l.Bytes
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", c.name, d)
			}
			if len(list) > 0 && (share < 99.9 || share > 100.1) {
				t.Errorf("%s: %v %%", c.name, share)
			}
		}
	}
	r, _ := open(t)
	if _, err := r.Languages(t.Context(), "none"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func BenchmarkLanguages(b *testing.B) {
	g := gittest.Generate(b, gittest.Size{Commits: 1, Files: 5000})
	g.Commit(gittest.Commit{Changes: []gittest.Change{{Path: ".gitattributes", Content: "*.txt linguist-language=Go linguist-detectable\n/x linguist-vendored\n"}}})
	r := newEngine(b, Limits{}).Repo(g.Path)
	for b.Loop() {
		r.engine.cache.forget(r.scope())
		if list, err := r.Languages(b.Context(), "main"); err != nil || len(list) != 1 {
			b.Fatal(list, err)
		}
	}
}
