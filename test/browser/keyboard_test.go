package browser

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestKeyboard goes through the main pages at 1440 px with the Tab key: every
// visible control gets the focus, the focus is visible, and it leaves the page at
// the end. Then it opens every menu, and dialogs, popovers and inline forms.
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
		b.menus(path)
	}
	b.dialogs()
}

// typed types text. A browser handles a key press and its character at once;
// chromedp sends two events, so that on a busy machine the character might go to a
// form that the key press opened.
func typed(text string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for _, r := range text {
			events := kb.Encode(r)
			if len(events) == 3 { // down, character, up
				events[0].Text, events[0].UnmodifiedText = events[1].Text, events[1].UnmodifiedText
				events = []*input.DispatchKeyEventParams{events[0], events[2]}
			}
			for _, e := range events {
				if err := e.Do(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// key presses a key and returns the element with the focus.
func (b *tab) key(key string) (at focus) {
	b.t.Helper()
	b.do(typed(key), chromedp.Evaluate(focused, &at))
	return at
}

// focus describes the element with the focus.
type focus struct {
	Out, Marked, Shown bool
	Menu, Dialog       bool // whether it is in an open menu, in a dialog or popover
	Button             bool // whether it is the button of a menu
	Opener             bool // whether it has opened the menu, dialog or form
	Name               string
}

// from focuses an element and records it as the opener.
func (b *tab) from(selector string, n int) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`window.seenByTab = new Set(); window.opener_ = [...document.querySelectorAll(%q)].filter((e) => e.checkVisibility())[%d]; window.opener_.focus()`, selector, n), nil))
}

func (b *tab) count(script string) (n int) {
	b.t.Helper()
	b.do(chromedp.Evaluate(script, &n))
	return n
}

// menus opens every menu of a page with Enter and with Space. The arrow keys and Tab
// move through it, Escape closes it and returns the focus to its button, and it
// closes when Tab leaves it.
func (b *tab) menus(path string) {
	b.t.Helper()
	const buttons, open = "details.menu > summary", `document.querySelectorAll("details.menu[open]").length`
	total := b.count(`[...document.querySelectorAll("` + buttons + `")].filter((e) => e.checkVisibility()).length`)
	if total < 2 {
		b.t.Errorf("%s has %d menus", path, total)
	}
	for n := range total {
		fail := func(what string, at focus) {
			b.t.Helper()
			b.t.Errorf("%s: menu %d: %s; the focus is at %s", path, n, what, at.Name)
		}
		b.from(buttons, n)
		b.key(kb.Enter)
		waitFor(b.t, "the menu opens by Enter", func() bool { return b.count(open) == 1 })
		for range 3 {
			if at := b.key(kb.ArrowDown); !at.Menu || !at.Marked || !at.Shown {
				fail("ArrowDown moves the focus out of the menu", at)
			}
		}
		if at := b.key(kb.Escape); !at.Opener || b.count(open) != 0 {
			fail("Escape does not close it", at)
		}
		if at := b.key(kb.ArrowDown); !at.Menu || at.Button {
			fail("ArrowDown does not open it", at)
		}
		if at := b.key(kb.Escape); !at.Opener {
			fail("Escape does not return the focus", at)
		}
		b.key(" ")
		waitFor(b.t, "the menu opens by Space", func() bool { return b.count(open) == 1 })
		at := b.key(kb.Tab)
		if !at.Menu {
			fail("Tab does not enter it", at)
		}
		for steps := 0; at.Menu; steps++ {
			if !at.Marked || !at.Shown {
				fail("the focus is not visible", at)
			}
			if steps == 100 {
				b.t.Fatalf("%s: menu %d: Tab does not leave it", path, n)
			}
			at = b.key(kb.Tab)
		}
		// If no control follows the menu, the focus is at the end of the page.
		if b.count(open) != 0 && !at.Out {
			fail("it stays open when Tab leaves it", at)
		}
		b.do(chromedp.Evaluate(`document.querySelectorAll("details.menu[open]").forEach((m) => { m.open = false })`, nil))
	}
}

// dialogs opens dialogs, popovers and inline forms. The focus stays in a dialog, and
// returns to its opener when Escape closes it.
func (b *tab) dialogs() {
	b.t.Helper()
	shut := `document.querySelectorAll("dialog[open], :popover-open").length`
	inside := func(name string) {
		b.t.Helper()
		waitFor(b.t, name+" opens", func() bool { return b.count(shut) == 1 })
		for range 6 {
			// Between the last control and the first one, the focus is in the
			// browser itself.
			if at := b.key(kb.Tab); !at.Dialog && !at.Out {
				b.t.Errorf("%s: the focus left it, to %s", name, at.Name)
			}
		}
	}
	escape := func(name string) {
		b.t.Helper()
		at := b.key(kb.Escape)
		waitFor(b.t, name+" closes", func() bool { return b.count(shut) == 0 })
		if b.do(chromedp.Evaluate(focused, &at)); !at.Opener || !at.Shown {
			b.t.Errorf("%s: the focus did not return; it is at %s", name, at.Name)
		}
	}
	const issue, account = engineAt + "issues/1", `summary[aria-label="Your account"]`
	b.visit(issue)
	b.from(".brand", 0)
	b.key("?")
	inside("the list of shortcuts")
	escape("the list of shortcuts")

	// Opened from a menu, which is then closed.
	b.from(account, 0)
	b.key(kb.Enter)
	b.do(chromedp.Evaluate(`document.querySelector("[data-show-keys]").focus()`, nil))
	b.key(kb.Enter)
	inside("the list of shortcuts of the menu")
	escape("the list of shortcuts of the menu")

	// A confirmation for a button of a menu, which stays open.
	b.from(".top details.menu > summary", 0)
	b.key(kb.Enter)
	b.from("form[data-confirm] button", 0)
	b.key(kb.Enter)
	inside("the question")
	escape("the question")
	b.do(chromedp.Evaluate(`window.opener_ = document.querySelector(".top details.menu > summary")`, nil))
	if at := b.key(kb.Escape); !at.Opener || at.Menu && !at.Button {
		b.t.Errorf("the menu of the confirmation: the focus is at %s", at.Name)
	}

	b.from("a[data-react]", 0)
	b.key(kb.Enter)
	waitFor(b.t, "the picker opens", func() bool { return b.count(shut) == 1 })
	for _, key := range []string{kb.ArrowDown, kb.ArrowRight, kb.ArrowRight, kb.ArrowLeft} {
		if at := b.key(key); !at.Dialog || !at.Marked {
			b.t.Errorf("the picker of reactions: the focus is at %s", at.Name)
		}
	}
	escape("the picker of reactions")

	// Inline forms.
	forms := b.count(`document.querySelectorAll(".facets a[data-sheet]").length`)
	if forms < 4 {
		b.t.Errorf("the issue has %d inline forms", forms)
	}
	for n := range forms {
		b.from(".facets a[data-sheet]", n)
		b.key(kb.Enter)
		waitFor(b.t, "the form opens", func() bool {
			return b.count(`document.activeElement.closest("[data-sheet-form]") ? 1 : 0`) == 1
		})
		if at := b.key(kb.Escape); !at.Opener || b.count(`document.querySelectorAll("[data-sheet-form]").length`) != 0 {
			b.t.Errorf("form %d: Escape leads to %s", n, at.Name)
		}
	}

	// The navigation on a phone.
	b.screen(400, "light")
	b.visit(issue)
	b.from(".nav-open", 0)
	b.key(kb.Enter)
	waitFor(b.t, "the navigation opens", func() bool { return b.count(shut) == 1 })
	if at := b.key(kb.Tab); !at.Dialog {
		b.t.Errorf("the navigation: Tab leads to %s", at.Name)
	}
	escape("the navigation")
}

// focused returns the element with the focus: its name, and whether the focus is
// visible. For date fields, the browser marks the part with the focus.
const focused = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body || e === document.documentElement) return {Out: true};
	window.seenByTab.add(e);
	const marked = (x) => { const s = x && getComputedStyle(x); return s && ((s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none"); };
	const box = e.getBoundingClientRect();
	return {Menu: !!e.closest("details.menu[open]"), Dialog: !!e.closest("dialog[open], :popover-open"), Button: e.matches("details.menu > summary"), Opener: e === window.opener_,
		Name: e.outerHTML.slice(0, 160), Marked: e.type === "date" || marked(e) || marked(e.closest("label")) || marked(e.nextElementSibling) || marked(e.parentElement), Shown: box.width > 0 && box.height > 0};
})()`

// unreached returns the visible controls that did not get the focus.
const unreached = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")].filter((e) =>
	!window.seenByTab.has(e) && !e.disabled && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length > 0 &&
	!(e.type === "radio" && [...document.getElementsByName(e.name)].some((o) => window.seenByTab.has(o)))).map((e) => e.outerHTML.slice(0, 160))`

func (b *tab) tabThrough(path string) {
	b.t.Helper()
	// Start at the first control, unless the page sets the focus elsewhere.
	b.do(chromedp.Evaluate(`window.seenByTab = new Set([document.querySelector(".skip")]); document.querySelector(".skip").focus()`, nil))
	const most = 600
	for n := 0; ; n++ {
		at := b.key(kb.Tab)
		if at.Out {
			break
		}
		if !at.Marked || !at.Shown {
			b.t.Errorf("%s: the focus is not visible at %s", path, at.Name)
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
