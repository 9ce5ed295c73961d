package markup

import (
	"context"
	"strings"
	"testing"
)

// TestSyntax checks the extensions of Markdown.
func TestSyntax(t *testing.T) {
	t.Parallel()
	r := New(Deps{})
	for _, tt := range []struct{ name, source, want string }{
		{"emoji", "Done :tada: :+1:, 10:30:45 a:tada: `:tada:` :nothing: :", "<p>Done <span title=\"tada\">🎉</span> <span title=\"thumbsup\">👍</span>, 10:30:45 a:tada: <code>:tada:</code> :nothing: :</p>\n"},
		{"inline math", "$`a^2`$ and $x<y$", "<p><code class=\"math\" data-math-style=\"inline\">a^2</code> and <code class=\"math\" data-math-style=\"inline\">x&lt;y</code></p>\n"},
		{"money", "It costs $5 or $ 6, $10-$20, \\$a$ and $", "<p>It costs $5 or $ 6, $10-$20, $a$ and $</p>\n"},
		{"display math", "$$\na\n+b\n$$", "<p><code class=\"math\" data-math-style=\"display\">\na\n+b\n</code></p>\n"},
		{"open math", "$$\na", "<p>$$\na</p>\n"},
		{"math block", "```math\na<b\n```", "<pre class=\"math\" tabindex=\"0\" data-math-style=\"display\"><code>a&lt;b\n</code></pre>\n"},
		{"mermaid", "```mermaid\ngraph LR\nA-->B\n```", "<pre class=\"mermaid\" tabindex=\"0\"><code>graph LR\nA--&gt;B\n</code></pre>\n"},
		{"alert", "> [!NOTE]\n> Some *text*.", "<div class=\"markdown-alert markdown-alert-note\">\n<p class=\"markdown-alert-title\">Note</p>\n<p>Some <em>text</em>.</p>\n</div>\n"},
		{"alert with a title", "> [!warning] Mind <b>this</b>\n>\n> x", "<div class=\"markdown-alert markdown-alert-warning\">\n<p class=\"markdown-alert-title\">Mind &lt;b&gt;this&lt;/b&gt;</p>\n<p>x</p>\n</div>\n"},
		{"alert alone", "> [!tip]", "<div class=\"markdown-alert markdown-alert-tip\">\n<p class=\"markdown-alert-title\">Tip</p>\n</div>\n"},
		{"no alert", "> [!other]\n> x\n\n> a\n> [!note]", "<blockquote>\n<p>[!other]\nx</p>\n</blockquote>\n<blockquote>\n<p>a\n[!note]</p>\n</blockquote>\n"},
		{"contents", "[[_TOC_]]\n\n# A *b*\n\n### C\n\n## D & :tada:\n\n# A b\n\ntext [TOC]", "<div class=\"toc\"><ul><li><a href=\"#user-content-a-b\">A b</a><ul><li><a href=\"#user-content-c\">C</a></li></ul><ul><li><a href=\"#user-content-d--tada\">D &amp; 🎉</a></li></ul></li><li><a href=\"#user-content-a-b-1\">A b</a></li></ul></div>\n"},
		{"contents of nothing", "[TOC]", "<div class=\"toc\"></div>"},
		{"wiki link", "[[Some page]] [[the text|dir/other page#part]] [[https://example.org/x]] [[logo.png]] [[]] [[ | ]] `[[x]]` [a](b)",
			"<p><a href=\"link:/Some-page\">Some page</a> <a href=\"link:/dir/other-page#part\">the text</a> <a href=\"https://example.org/x\" rel=\"nofollow\">https://example.org/x</a> <img src=\"link:/logo.png\" alt=\"logo.png\"> [[]] [[ | ]] <code>[[x]]</code> <a href=\"link:b\">a</a></p>\n"},
		{"HTML", "<a href='x.md'>x</a> <img alt=\"a>b\" src = \"y.png\"><b>c</b>\n\n<p>\n<img src=\"z.png\"\nwidth=1></p>",
			"<p><a href=\"link:x.md\">x</a> <img src=\"link:y.png\"><b>c</b></p>\n<p>\n<img src=\"link:z.png\" width=\"1\"></p>"},
	} {
		got, err := r.Markdown(t.Context(), tt.source, Options{Wiki: true, LinkKey: "x", Link: func(to string, _ bool) string {
			if strings.Contains(to, "://") || strings.HasPrefix(to, "#") {
				return to
			}
			return "/l/" + to
		}})
		got = strings.ReplaceAll(strings.ReplaceAll(got, "/l//", "link:/"), "/l/", "link:")
		want := strings.ReplaceAll(tt.want, ` rel="nofollow"`, "")
		got = strings.ReplaceAll(strings.ReplaceAll(got, ` rel="nofollow noreferrer"`, ""), ` rel="nofollow"`, "")
		if tt.name == "contents" {
			got, _, _ = strings.Cut(got, "<h1")
		}
		if err != nil || got != want {
			t.Errorf("%s: %v\n got %q\nwant %q", tt.name, err, got, want)
		}
	}
	// Wiki links work only in wikis.
	if got, _ := r.Markdown(t.Context(), "[[Some page]]", Options{}); got != "<p>[[Some page]]</p>\n" {
		t.Errorf("outside of wikis: %q", got)
	}
}

// TestFootnotes checks that the footnotes of two texts on one page have different
// IDs.
func TestFootnotes(t *testing.T) {
	t.Parallel()
	r := New(Deps{})
	one, _ := r.Markdown(t.Context(), "a[^1]\n\n[^1]: one", Options{})
	two, _ := r.Markdown(t.Context(), "b[^1]\n\n[^1]: two", Options{})
	for _, got := range []string{one, two} {
		id := between(got, `<li id="`, `"`)
		if id == "" || !strings.HasPrefix(id, HeadingPrefix) || !strings.Contains(got, `href="#`+id+`"`) {
			t.Errorf("%q: %s", id, got)
		}
	}
	if between(one, `<li id="`, `"`) == between(two, `<li id="`, `"`) {
		t.Error("the ids are the same")
	}
}

func between(text, start, end string) string {
	_, rest, _ := strings.Cut(text, start)
	inner, _, _ := strings.Cut(rest, end)
	return inner
}

// TestSyntaxCost checks that no extension takes quadratic time.
func TestSyntaxCost(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{
		"emoji": ":a", "math": "$a ", "math open": "$$a\n", "math code": "$`a ", "wiki": "[[a", "alerts": "> [!note]\n\n", "contents": "[TOC]\n\n# a\n\n", "colons": "::", "html": "<img src=", "links": "<a href='",
	} {
		steps := func(n int) int {
			total := 0
			_, err := spending(context.Background(), Limits{CPU: 60e9, Steps: 1e9}, func(b *budget) error {
				defer func() { total = b.steps }()
				_, err := markdown(b, strings.Repeat(part, n/len(part)), style{link: func(to string, _ bool) string { return to }, wiki: true})
				return err
			})
			if err != nil {
				t.Logf("%s: %v", name, err)
			}
			return total
		}
		small, large := steps(4_000), steps(40_000)
		t.Logf("%s: %d and %d steps", name, small, large)
		if large > 40*small+100_000 {
			t.Errorf("%s: %d steps for 4 kB, %d for 40 kB", name, small, large)
		}
	}
}
