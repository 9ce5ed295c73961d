package markup_test

import (
	"slices"
	"strings"
	"testing"

	"svc/internal/markup"
)

// TestEmailHTML checks how HTML is adapted to emails.
func TestEmailHTML(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"[a](/g/p)":                           `<a href="https://forge.example/g/p" rel="nofollow">a</a>`,
		"[a](//evil.example/x)":               `href="//evil.example/x"`,
		"[a](https://evil.example)":           `href="https://evil.example"`,
		"![cat](https://e.example/x.png)":     `<a href="https://e.example/x.png" rel="nofollow noreferrer">cat</a>`,
		"![](/uploads/x.png)":                 `<a href="https://forge.example/uploads/x.png" rel="nofollow noreferrer">picture</a>`,
		"[![b](https://e.example/b.svg)](/x)": `<a href="https://forge.example/x" rel="nofollow">b</a>`,
		"- [x] done\n- [ ] not":               `<li>[x]`,
		"# Head":                              `<h1>Head</h1>`,
		"@ada":                                `<a href="https://forge.example/user//ada" title="&#34;ada&#34;">@ada</a>`,
	} {
		safe, err := markup.New(markup.Deps{}).Markdown(t.Context(), source, markup.Options{Resolve: all})
		if err != nil {
			t.Fatal(err)
		}
		got := markup.EmailHTML(safe, "https://forge.example")
		if !strings.Contains(got, want) {
			t.Errorf("%q becomes %q, want %q in it", source, got, want)
		}
		for _, bad := range []string{"<img", "<input", "<script", " class=", " id="} {
			if strings.Contains(got, bad) {
				t.Errorf("%q becomes %q", source, got)
			}
		}
	}
}

// TestEmailLabel checks that emails show labels as links without their color dot.
func TestEmailLabel(t *testing.T) {
	t.Parallel()
	safe, err := markup.New(markup.Deps{}).Markdown(t.Context(), `see ~"a b"!`, markup.Options{Resolve: func(refs []markup.Reference) (map[markup.Reference]markup.Target, error) {
		return map[markup.Reference]markup.Target{refs[0]: {URL: "/x", Text: "a b", Color: `#"<`}}, nil
	}})
	if want := `<p>see <a href="/x" class="gfm gfm-label chip"><svg viewBox="0 0 8 8" aria-hidden="true"><circle cx="4" cy="4" r="4" fill="#&#34;&lt;"/></svg>a b</a>!</p>`; err != nil || strings.TrimSpace(safe) != want {
		t.Errorf("%s: %v", safe, err)
	}
	if got, want := markup.EmailHTML(safe, "https://f"), `<p>see <a href="https://f/x">a b</a>!</p>`; strings.TrimSpace(got) != want {
		t.Errorf("the email has %s", got)
	}
}

// TestMentions checks that mentions are found in text, but not in code.
func TestMentions(t *testing.T) {
	t.Parallel()
	got, err := markup.Mentions(t.Context(), "@ada, `@code` and @top/sub.\n\n    @block\n\n```\n@fence\n```\nmail@example.org @ada")
	if err != nil || !slices.Equal(got, []string{"ada", "top/sub"}) {
		t.Errorf("mentions are %q: %v", got, err)
	}
}
