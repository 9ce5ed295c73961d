package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLinks checks that relative links of all documents lead to existing files
// and headings.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := make(map[string]string)
	walk(t, ".", ".md", func(file, text string) { pages[file] = codeBlock.ReplaceAllString(text, "") })
	if len(pages) < 30 {
		t.Fatalf("%d documents were found", len(pages))
	}
	for file, text := range pages {
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			to := file
			if target != "" {
				to = path.Join(path.Dir(file), target)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, m[1])
				continue
			}
			if page, ok := pages[to]; ok && heading != "" && !anchors(page)[heading] {
				t.Errorf("%s links to %s, which has no such heading", file, m[1])
			}
		}
	}
}

var (
	codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of the headings of a page.
func anchors(page string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		found[strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return found
}
