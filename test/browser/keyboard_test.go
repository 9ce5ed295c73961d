package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestKeyboard walks through the main pages at 1440 px with the Tab key alone: every
// control that can be seen gets the focus, the focus can be seen, and it leaves the
// page at its end.
func TestKeyboard(t *testing.T) {
	s, c := start(t), launch(t)
	b := s.engine(t, c)
	b.screen(1440, "light")
	s.call(t, "POST", engineAPI+"/repository/files/notes.md", url.Values{"branch": {"topic-01"}, "content": {"# Notes\n"}, "commit_message": {"Add notes"}})
	s.call(t, "POST", engineAPI+"/merge_requests", url.Values{"title": {"Notes"}, "source_branch": {"topic-01"}, "target_branch": {"main"}})
	s.call(t, "POST", engineAPI+"/issues/1/notes", url.Values{"body": {"A comment"}})
	b.do(emulation.SetFocusEmulationEnabled(true))
	for _, path := range []string{
		"/", "/dashboard/issues", "/dashboard/merge_requests", "/dashboard/todos", "/ada/engine", engineAt + "blob/main/src/main.go", engineAt + "commits/main",
		engineAt + "commit/main", engineAt + "branches", engineAt + "issues", engineAt + "issues/1", engineAt + "issues/new", engineAt + "boards",
		engineAt + "merge_requests", engineAt + "merge_requests/1", engineAt + "merge_requests/1/diffs", engineAt + "pipelines", engineAt + "settings/general",
		engineAt + "settings/members", "/-/user_settings/profile", "/projects/new",
	} {
		b.visit(path)
		b.tabThrough(path)
	}
}

// focused says what has the focus: its name, and whether the focus can be seen. The
// browser marks the part of a date that has it.
const focused = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body || e === document.documentElement) return {Out: true};
	window.seenByTab.add(e);
	const marked = (x) => { const s = x && getComputedStyle(x); return s && ((s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none"); };
	const box = e.getBoundingClientRect();
	return {Name: e.outerHTML.slice(0, 160), Marked: e.type === "date" || marked(e) || marked(e.closest("label")) || marked(e.nextElementSibling) || marked(e.parentElement), Shown: box.width > 0 && box.height > 0};
})()`

// unreached are the controls that can be seen and did not get the focus.
const unreached = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")].filter((e) =>
	!window.seenByTab.has(e) && !e.disabled && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length > 0 &&
	!(e.type === "radio" && [...document.getElementsByName(e.name)].some((o) => window.seenByTab.has(o)))).map((e) => e.outerHTML.slice(0, 160))`

func (b *tab) tabThrough(path string) {
	b.t.Helper()
	// The first control, where the page does not say that another has the focus.
	b.do(chromedp.Evaluate(`window.seenByTab = new Set([document.querySelector(".skip")]); document.querySelector(".skip").focus()`, nil))
	const most = 600
	for n := 0; ; n++ {
		var at struct {
			Out, Marked, Shown bool
			Name               string
		}
		b.do(chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(focused, &at))
		if at.Out {
			break
		}
		if !at.Marked || !at.Shown {
			b.t.Errorf("%s: the focus cannot be seen at %s", path, at.Name)
		}
		if n == most {
			b.t.Fatalf("%s: the focus does not leave the page; it is at %s", path, at.Name)
		}
	}
	var left []string
	b.do(chromedp.Evaluate(unreached, &left))
	if len(left) > 0 {
		b.t.Errorf("%s: %s", path, fmt.Sprintf("%d controls cannot be reached:\n%s", len(left), strings.Join(left, "\n")))
	}
}
