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

// TestKeyboard walks through the main pages at 1440 px with the Tab key alone: every
// control that can be seen gets the focus, the focus can be seen, and it leaves the
// page at its end. Then it opens every menu, and dialogs, popovers and forms in place.
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

// keys types keys. A browser handles the press of a key and the character that it
// types at once; chromedp sends two events, and on a busy machine a form that the
// first one opened would get the second.
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

// key sends a key and says what has the focus then.
func (b *tab) key(key string) (at focus) {
	b.t.Helper()
	b.do(typed(key), chromedp.Evaluate(focused, &at))
	return at
}

// focus is what has the focus.
type focus struct {
	Out, Marked, Shown bool
	Menu, Dialog       bool // it is in an open menu, in a dialog or popover
	Button             bool // it is the button of a menu
	Opener             bool // it is what opened the menu, dialog or form
	Name               string
}

// from focuses an element and remembers it as the opener.
func (b *tab) from(selector string, n int) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`window.seenByTab = new Set(); window.opener_ = [...document.querySelectorAll(%q)].filter((e) => e.checkVisibility())[%d]; window.opener_.focus()`, selector, n), nil))
}

func (b *tab) count(script string) (n int) {
	b.t.Helper()
	b.do(chromedp.Evaluate(script, &n))
	return n
}

// menus opens every menu of a page by Enter and by Space. The arrow keys and Tab go
// through it, Escape closes it and gives the focus back to its button, and it is
// closed when Tab leaves it.
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
				fail("ArrowDown leads elsewhere", at)
			}
		}
		if at := b.key(kb.Escape); !at.Opener || b.count(open) != 0 {
			fail("Escape does not close it", at)
		}
		if at := b.key(kb.ArrowDown); !at.Menu || at.Button {
			fail("ArrowDown does not open it", at)
		}
		if at := b.key(kb.Escape); !at.Opener {
			fail("Escape loses the focus", at)
		}
		b.key(" ")
		waitFor(b.t, "the menu opens by Space", func() bool { return b.count(open) == 1 })
		at := b.key(kb.Tab)
		if !at.Menu {
			fail("Tab does not enter it", at)
		}
		for steps := 0; at.Menu; steps++ {
			if !at.Marked || !at.Shown {
				fail("the focus cannot be seen", at)
			}
			if steps == 100 {
				b.t.Fatalf("%s: menu %d: Tab does not leave it", path, n)
			}
			at = b.key(kb.Tab)
		}
		// Without a control behind the menu the focus is at the end of the page.
		if b.count(open) != 0 && !at.Out {
			fail("it stays open when Tab leaves it", at)
		}
		b.do(chromedp.Evaluate(`document.querySelectorAll("details.menu[open]").forEach((m) => { m.open = false })`, nil))
	}
}

// dialogs opens dialogs, popovers and the forms that pages show in place. The focus
// stays in a dialog, and is back where it was when Escape has closed it.
func (b *tab) dialogs() {
	b.t.Helper()
	shut := `document.querySelectorAll("dialog[open], :popover-open").length`
	inside := func(name string) {
		b.t.Helper()
		waitFor(b.t, name+" opens", func() bool { return b.count(shut) == 1 })
		for range 6 {
			// Between the last control and the first one the browser itself has the focus.
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
			b.t.Errorf("%s: the focus is not back; it is at %s", name, at.Name)
		}
	}
	const issue, account = engineAt + "issues/1", `summary[aria-label="Your account"]`
	b.visit(issue)
	b.from(".brand", 0)
	b.key("?")
	inside("the list of shortcuts")
	escape("the list of shortcuts")

	// From a menu, that is closed then.
	b.from(account, 0)
	b.key(kb.Enter)
	b.do(chromedp.Evaluate(`document.querySelector("[data-show-keys]").focus()`, nil))
	b.key(kb.Enter)
	inside("the list of shortcuts of the menu")
	escape("the list of shortcuts of the menu")

	// A question about a button of a menu, which stays open.
	b.from(".top details.menu > summary", 0)
	b.key(kb.Enter)
	b.from("form[data-confirm] button", 0)
	b.key(kb.Enter)
	inside("the question")
	escape("the question")
	b.do(chromedp.Evaluate(`window.opener_ = document.querySelector(".top details.menu > summary")`, nil))
	if at := b.key(kb.Escape); !at.Opener || at.Menu && !at.Button {
		b.t.Errorf("the menu of the question: the focus is at %s", at.Name)
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

	// Forms in place.
	forms := b.count(`document.querySelectorAll(".facets a[data-sheet]").length`)
	if forms < 4 {
		b.t.Errorf("the issue has %d forms in place", forms)
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

	// The navigation of a phone.
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

// focused says what has the focus: its name, and whether the focus can be seen. The
// browser marks the part of a date that has it.
const focused = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body || e === document.documentElement) return {Out: true};
	window.seenByTab.add(e);
	const marked = (x) => { const s = x && getComputedStyle(x); return s && ((s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none"); };
	const box = e.getBoundingClientRect();
	return {Menu: !!e.closest("details.menu[open]"), Dialog: !!e.closest("dialog[open], :popover-open"), Button: e.matches("details.menu > summary"), Opener: e === window.opener_,
		Name: e.outerHTML.slice(0, 160), Marked: e.type === "date" || marked(e) || marked(e.closest("label")) || marked(e.nextElementSibling) || marked(e.parentElement), Shown: box.width > 0 && box.height > 0};
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
		at := b.key(kb.Tab)
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
