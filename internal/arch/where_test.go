package arch

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhere checks docs/dev/where.md: each text in the last column of a table
// must occur in a package of its row.
func TestWhere(t *testing.T) {
	t.Parallel()
	const page = "docs/dev/where.md"
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 {
			continue
		}
		pkg := spans(cells[2])
		if len(pkg) == 0 || !strings.HasPrefix(pkg[0], "internal/") {
			continue
		}
		rows++
		code := ""
		for _, name := range pkg {
			code += packageText(t, name)
		}
		for _, want := range spans(cells[3]) {
			if !strings.Contains(code, want) {
				t.Errorf("%s: %q no longer occurs in %s; correct the row:\n%s", page, want, strings.Join(pkg, " or "), line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("%s has %d rows; the tables were not read", page, rows)
	}
}

// TestDocumentPaths checks that the files and directories named in code spans of
// docs/dev, docs/glossary.md and CONTRIBUTING.md exist.
func TestDocumentPaths(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`^(internal|cmd|docs|scripts|test|bench|tools|changelog)/[\w./-]*$`)
	examples := map[string]bool{ // created in the how-tos
		"internal/api/project_stars.go": true, "internal/api/project_stars_test.go": true, "internal/db/migrations/0042_bookmarks.sql": true,
	}
	walk(t, ".", ".md", func(file, text string) {
		if path.Dir(file) != "docs/dev" && file != glossary && file != "CONTRIBUTING.md" {
			return
		}
		for _, named := range spans(text) {
			if !pattern.MatchString(named) || examples[named] {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, named)); err != nil {
				t.Errorf("%s names %s, which does not exist", file, named)
			}
		}
	})
}

// spans returns the code spans of a Markdown text, without code blocks.
func spans(text string) []string {
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
	var list []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// packageText returns the code of a directory and those below it, without tests.
func packageText(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
