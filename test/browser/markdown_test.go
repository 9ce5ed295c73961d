package browser

import (
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
)

const richText = "# Engine\n\n[[_TOC_]]\n\n## Formulas :tada:\n\nThe root $`\\sqrt{2}`$ and\n\n```math\n\\sum_{i=1}^n i = \\frac{n(n+1)}{2}\n```\n\nNot one: $`\\frac{`$\n\n" +
	"## Diagrams\n\n```mermaid\ngraph LR\n  Mill --> Store\n  Store --> Mill\n```\n\n```mermaid\nno diagram\n```\n\n## Notes\n\n> [!note]\n> Some *text*.[^1]\n\n> [!warning] Mind the cards\n> They jam.\n\n> [!caution]\n> Hot.\n\n" +
	"![drawing](a.svg) ![away](https://127.0.0.1:1/x.png)\n\n[^1]: A footnote.\n"

// TestRichText renders formulas and diagrams, in the page and in a sandboxed frame,
// in both themes.
func TestRichText(t *testing.T) {
	s, c := start(t), launch(t)
	s.fill(t)
	s.commit(t, "a.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20" fill="teal"/><script>alert(1)</script></svg>`)
	s.commit(t, "rich.md", richText)
	s.call(t, "POST", "/projects/analysis%2Fengine/issues", url.Values{"title": {"A formula"}, "description": {richText}})
	b := c.open(t, s)
	b.signIn("root", rootPassword)
	for _, at := range []struct {
		name, path, theme string
		width             int64
	}{
		{"rich-light-1280", "/analysis/engine/-/blob/main/rich.md", "light", 1280}, {"rich-dark-360", "/analysis/engine/-/blob/main/rich.md", "dark", 360},
		{"rich-issue-dark-1280", "/analysis/engine/-/issues/1", "dark", 1280},
	} {
		b.screen(at.width, at.theme)
		b.visit(at.path)
		b.do(chromedp.WaitReady(`.formula math mfrac`, chromedp.ByQuery), chromedp.Evaluate(`document.querySelector(".diagram, .diagram-source").scrollIntoView()`, nil), chromedp.WaitReady(`.diagram.drawn`, chromedp.ByQuery),
			chromedp.WaitReady(`.diagram-source[open]`, chromedp.ByQuery))
		b.wantText("The diagram is not valid")
		var inside bool
		var shown int
		b.do(chromedp.Evaluate(`document.querySelector(".diagram").contentDocument === null`, &inside),
			chromedp.Evaluate(`[...document.querySelectorAll(".prose img")].filter(i => i.complete && i.naturalWidth === 40).length`, &shown))
		if !inside {
			t.Error("the frame of a diagram can be read, so it can read the page")
		}
		if shown != 1 && at.path == "/analysis/engine/-/blob/main/rich.md" {
			t.Errorf("%d diagrams are shown", shown)
		}
		b.look(at.name)
		b.shoot(at.name)
	}
	// A page without formulas and diagrams loads no library.
	var loaded []string
	b.visit("/analysis/engine")
	b.do(chromedp.Evaluate(`performance.getEntriesByType("resource").map(e => e.name).filter(n => /rich|temml|mermaid/.test(n))`, &loaded))
	if len(loaded) > 0 {
		t.Errorf("a page without formulas and diagrams loads %q", loaded)
	}
}
