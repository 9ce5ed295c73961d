package wiki

import (
	"strings"
	"testing"

	"svc/internal/git"
)

func TestLink(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ slug, to, want string }{
		{"home", "other", "/b/other"},
		{"docs/a", "other.md", "/b/docs/other"},
		{"docs/a", "../top#part", "/b/top#user-content-part"},
		{"docs/a", "/root", "/b/root"},
		{"docs/a", "../../../../etc", "/b/etc"},
		{"docs/a", "uploads/1/x.md", "/b/uploads/1/x"},
		{"docs/a", "uploads/1/x.png", "/b/uploads/1/x.png"},
		{"home", "#part", "#user-content-part"},
		{"home", "https://example.org/a", "https://example.org/a"},
		{"home", "//example.org", "//example.org"},
		{"home", "/uploads/1/x.png", "/uploads/1/x.png"},
		{"home", "javascript:alert(1)", "javascript:alert(1)"}, // the sanitizer removes it
	} {
		if got := link("/b", c.slug, c.to, false); got != c.want {
			t.Errorf("%s from %s leads to %s, want %s", c.to, c.slug, got, c.want)
		}
	}
}

func TestPageOf(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]Page{
		"home.md":            {Slug: "home", Title: "home", Format: Markdown},
		"a b/My-Page.ADOC":   {Slug: "a-b/My-Page", Title: "My Page", Format: ASCIIDoc},
		"x.textile":          {Slug: "x", Title: "x", Format: "textile"},
		".md":                {},
		"uploads/1/x.md":     {},
		"picture.png":        {},
		"dir/.markdown":      {},
		"bad\xff.md":         {},
		"v1.2-notes.md":      {Slug: "v1.2-notes", Title: "v1.2 notes", Format: Markdown},
		"uploads-of-mine.md": {Slug: "uploads-of-mine", Title: "uploads of mine", Format: Markdown},
	} {
		got, ok := pageOf(file)
		got.Path = ""
		if ok != (want.Slug != "") || got.Slug != want.Slug || got.Title != want.Title || got.Format != want.Format {
			t.Errorf("%q is %+v, %t", file, got, ok)
		}
	}
}

// FuzzTitle checks that each accepted title is a valid file name, and maps back to the
// same page.
func FuzzTitle(f *testing.F) {
	for _, seed := range []string{"home", " a / b  c ", "../x", ".git/x", "a\x00b", "-", "a\\b", "uploads/x", "é", "a//b", "x.md"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, title string) {
		clean, err := cleanTitle(title)
		if err != nil {
			return
		}
		file := slugOf(clean) + Markdown.end()
		if err := git.CheckNewPath(file); err != nil {
			t.Fatalf("%q becomes %q: %v", title, file, err)
		}
		p, ok := pageOf(file)
		if !ok || p.Slug != slugOf(clean) {
			t.Fatalf("%q becomes %q, whose slug is %q", title, file, p.Slug)
		}
		if again, err := cleanTitle(clean); err != nil || again != clean {
			t.Fatalf("%q becomes %q, and that %q, %v", title, clean, again, err)
		}
	})
}

func FuzzFrontMatter(f *testing.F) {
	f.Add("---\ntitle: x\n---\ntext")
	f.Add("---\n---\n")
	f.Add("---\n: x\n---")
	f.Fuzz(func(t *testing.T, content string) {
		fields, rest := frontMatter(content)
		if !strings.HasSuffix(content, rest) && rest != content {
			t.Fatalf("%q leaves %q", content, rest)
		}
		if len(fields) > maxFields {
			t.Fatalf("%d fields", len(fields))
		}
	})
}

// FuzzLink checks that a link leads out of the wiki only if it is an absolute URL.
func FuzzLink(f *testing.F) {
	f.Add("docs/a", "../../x")
	f.Add("a", "..//..//x?y#z")
	f.Fuzz(func(t *testing.T, slug, to string) {
		got := link("/b/-/wikis", slug, to, false)
		if got != to && !strings.HasPrefix(got, "/b/-/wikis/") && got[0] != '#' {
			t.Fatalf("%q from %q leads to %q", to, slug, got)
		}
	})
}
