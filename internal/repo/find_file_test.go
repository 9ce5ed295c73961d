package repo

import "testing"

// TestMatchScore compares how well words match paths: the better match comes first.
func TestMatchScore(t *testing.T) {
	t.Parallel()
	best := []string{"page.go", "page.go.md", "web_page.go", "webpage.go", "page.go/x", "a/mypage.go/x", "p/a/g/e/.go", "zpzazgzez.zgzoz"}
	for i, path := range best {
		got := matchScore(path, "page.go")
		if got == 0 {
			t.Errorf("%s does not match", path)
		}
		if i > 0 && got > matchScore(best[i-1], "page.go") {
			t.Errorf("%s comes before %s", path, best[i-1])
		}
	}
	for _, c := range []struct{ path, word string }{{"page", "pagex"}, {"egap", "page"}, {"", "p"}, {"größe", "ß§"}, {"a", "é"}} {
		if matchScore(c.path, c.word) != 0 || fuzzyAt(c.path, c.word) != nil {
			t.Errorf("%s matches %s", c.path, c.word)
		}
	}
	for _, word := range []string{"größe", "gß", "öe"} {
		if matchScore("dir/größe", word) == 0 || fuzzyAt("dir/größe", word) == nil {
			t.Errorf("%s does not match", word)
		}
	}
}
