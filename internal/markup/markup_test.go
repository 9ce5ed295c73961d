package markup_test

import (
	"slices"
	"strings"
	"testing"

	"svc/internal/markup"
)

// TestSafe checks that texts cannot inject scripts.
func TestSafe(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"# A head":                             `<h1 id="user-content-a-head">A head</h1>`,
		"[a](https://example.org)":             `rel="nofollow noreferrer"`,
		"```go\nfunc f() {}\n```":              `<pre class="chroma" tabindex="0"><code>func f() {}`,
		"- [x] done":                           `aria-label="Done"`,
		"<script>alert(1)</script>":            "",
		"<img src=x onerror=alert(1)>":         `<img src="x">`,
		"[a](javascript:alert(1))":             "a",
		"<a href=javascript:alert(1)>":         "",
		"<iframe src=//e></iframe>":            "",
		"<p style='position:fixed'>x":          "<p>x",
		"<form action=//e><input></form>":      "",
		"<svg><script>alert(1)</script></svg>": "",
		"<div class='skip card'>x</div>":       "x",
		"[a](data:text/html,x)":                "a",
		"<pre id=\"fetch\">x</pre>":            "<pre>x</pre>",
		"<p id=\"x user-content-x\">x":         "<p>x",
		"<p id=\"user-content-x\">x":           `<p id="user-content-x">x`,
		"<div class='df'>x</div>":              "<div>x</div>",
		"<pre class='prewrap'>x</pre>":         "<pre>x</pre>",
		"<span class='nf'>x</span>":            `<span class="nf">x</span>`,
		"a[^1]\n\n[^1]: b":                     `class="footnote-ref"`,
		"@\"><script>alert(1)</script>":        "",
		"~\"<img src=x onerror=alert(1)>\"":    "",
	} {
		got, err := markup.New(markup.Deps{}).Markdown(t.Context(), source, markup.Options{Resolve: all})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q becomes %q, want %q in it", source, got, want)
		}
		for _, bad := range []string{"<script", "javascript:", "onerror=", "<iframe", "<form", "style=", "data:", "skip card", `"fetch"`, `"df"`} {
			if strings.Contains(got, bad) {
				t.Errorf("%q becomes %q", source, got)
			}
		}
	}
	if got := markup.Plain("<b>&"); got != "<pre>&lt;b&gt;&amp;</pre>" {
		t.Errorf("plain text becomes %q", got)
	}
}

// all resolves every reference.
func all(refs []markup.Reference) (map[markup.Reference]markup.Target, error) {
	found := map[markup.Reference]markup.Target{}
	for _, r := range refs {
		found[r] = markup.Target{URL: "/" + string(r.Kind) + "/" + r.Project + "/" + r.Name, Title: `"` + r.Name + `"`}
	}
	return found, nil
}

func TestReferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		want   []markup.Reference
	}{
		{"see #12, and !3.", []markup.Reference{{Kind: markup.Issue, Name: "12"}, {Kind: markup.MergeRequest, Name: "3"}}},
		{"(#12)", []markup.Reference{{Kind: markup.Issue, Name: "12"}}},
		{"group/sub/my_project#12", []markup.Reference{{Kind: markup.Issue, Project: "group/sub/my_project", Name: "12"}}},
		{"beside my_project#12, it!3 and p@0123abc", []markup.Reference{{Kind: markup.Issue, Project: "my_project", Name: "12"}, {Kind: markup.MergeRequest, Project: "it", Name: "3"}, {Kind: markup.Commit, Project: "p", Name: "0123abc"}}},
		{"thanks @alice.b, @bob.", []markup.Reference{{Kind: markup.User, Name: "alice.b"}, {Kind: markup.User, Name: "bob"}}},
		{"~bug ~\"two words\" %v1.0", []markup.Reference{{Kind: markup.Label, Name: "bug"}, {Kind: markup.Label, Name: "two words"}, {Kind: markup.Milestone, Name: "v1.0"}}},
		{"in 0123abc and g/p@0123456789abcdef0123456789abcdef01234567", []markup.Reference{{Kind: markup.Commit, Name: "0123abc"}, {Kind: markup.Commit, Project: "g/p", Name: "0123456789abcdef0123456789abcdef01234567"}}},
		{"**#1** *@a*", []markup.Reference{{Kind: markup.Issue, Name: "1"}, {Kind: markup.User, Name: "a"}}},
		{"`#1` [#2](x) &#35;4x mail@example.org /#5 #6a\n\n    #7\n\n```\n#8\n```\n", nil},
		{"100% sure, ~~gone~~, 1234567890 things, v1!", []markup.Reference{{Kind: markup.Commit, Name: "1234567890"}}},
	} {
		var got []markup.Reference
		html, err := markup.New(markup.Deps{}).Markdown(t.Context(), c.source, markup.Options{Resolve: func(refs []markup.Reference) (map[markup.Reference]markup.Target, error) {
			got = refs
			return all(refs)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q has %v, want %v", c.source, got, c.want)
		}
		if n := strings.Count(html, `class="gfm `); n != len(c.want) {
			t.Errorf("%q has %d links: %s", c.source, n, html)
		}
	}
	html, err := markup.New(markup.Deps{}).Markdown(t.Context(), "a #1 b", markup.Options{Resolve: all})
	if want := "<p>a <a href=\"/issue//1\" class=\"gfm gfm-issue\" title=\"&#34;1&#34;\">#1</a> b</p>\n"; err != nil || html != want {
		t.Errorf("got %q, want %q, %v", html, want, err)
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n<b onclick=x>[c](d) #1 @a ~\"b\" `c`")
	f.Add("<a title='>#1'>&lt;script&gt;@x")
	f.Add("[[_TOC_]]\n# a :tada:\n$`x`$ $a$ $$\nb$$\n> [!note] c\n> d\n\n[[e|f]] <img src=\"g\">\n```mermaid\nh\n```\n[^1]\n\n[^1]: i")
	f.Fuzz(func(t *testing.T, source string) {
		html, err := markup.New(markup.Deps{}).Markdown(t.Context(), source, markup.Options{
			Resolve: all, Link: func(to string, _ bool) string { return to },
			Highlight: true, Wiki: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(html, "<script") {
			t.Errorf("%q becomes %q", source, html)
		}
		if letter := markup.EmailHTML(html, "https://forge.example"); strings.Contains(letter, "<script") || strings.Contains(letter, "<img") {
			t.Errorf("%q becomes %q in a letter", source, letter)
		}
	})
}
