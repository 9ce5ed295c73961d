package browser

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestWriting writes comments with the keyboard: completion, the toolbar, a draft
// that survives a reload, a pasted image, and a quick action.
func TestWriting(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	s.user(t, "grace")
	b := c.open(t, s)
	b.signIn("ada", password)
	b.visit("/projects/new")
	b.fill("#name", "Engine")
	b.press("main form button")
	s.call(t, "POST", "/projects/ada%2Fengine/labels", url.Values{"name": {"to do"}, "color": {"#f0ad4e"}})
	s.call(t, "POST", "/projects/ada%2Fengine/issues", url.Values{"title": {"Wheel"}})
	s.call(t, "POST", "/projects/ada%2Fengine/issues", url.Values{"title": {"Axle"}})
	const at = "/ada/engine/-/issues/1"
	b.visit(at)

	value := func(want string) {
		t.Helper()
		b.do(chromedp.Poll(`document.querySelector("#note").value === `+quote(want), nil))
	}
	keys := func(list ...string) {
		t.Helper()
		for _, k := range list {
			b.do(chromedp.SendKeys("#note", k, chromedp.ByQuery))
		}
	}
	listed := func(text string) {
		t.Helper()
		b.do(chromedp.Poll(`[...document.querySelectorAll("#complete:not([hidden]) [role=option]")].some(o => o.textContent.includes(`+quote(text)+`))`, nil))
	}
	clear := `{ const a = document.querySelector("#note"); a.value = ""; a.dispatchEvent(new Event("input", {bubbles: true})); }`

	// Completion: a user by Enter, an issue by its title, a label in quotes by Tab.
	keys("@gr")
	listed("@grace")
	keys(kb.Enter, "has ", "#ax")
	listed("Axle")
	keys(kb.Tab)
	value("@grace has #2 ")
	keys("~to")
	listed("to do")
	keys(kb.Tab, ":rocke")
	listed(":rocket:")
	keys(kb.Enter)
	value(`@grace has #2 ~"to do" :rocket: `)
	keys("#")
	listed("Wheel")
	keys(kb.ArrowDown, kb.Escape)
	b.do(chromedp.Poll(`document.querySelector("#complete").hidden`, nil), chromedp.Evaluate(clear, nil))

	// The toolbar and its shortcuts; lists are continued.
	keys("bold")
	b.do(chromedp.Evaluate(`document.querySelector("#note").select()`, nil), chromedp.Click(`.toolbar [aria-label=Bold]`, chromedp.ByQuery))
	value("**bold**")
	b.do(chromedp.Evaluate(`document.querySelector("#note").setSelectionRange(2, 6)`, nil), chromedp.KeyEvent("b", chromedp.KeyModifiers(input.ModifierCtrl)))
	value("bold")
	b.do(chromedp.Evaluate(clear, nil))
	keys("- [x] one", kb.Enter, "two", kb.Enter, kb.Enter, "end")
	value("- [x] one\n- [ ] two\nend")

	// The draft survives a reload, and is deleted when the comment is created.
	b.do(chromedp.Poll(`Object.keys(localStorage).some(k => k.startsWith("svc.draft:"))`, nil))
	b.visit(at)
	value("- [x] one\n- [ ] two\nend")
	b.wantText("Your draft was restored.")
	b.do(chromedp.Evaluate(`{ const files = new DataTransfer(); files.items.add(new File([Uint8Array.from(atob("`+pixel+`"), c => c.charCodeAt(0))], "dot.png", {type: "image/png"}));
		const a = document.querySelector("#note"); a.setSelectionRange(a.value.length, a.value.length);
		a.dispatchEvent(new ClipboardEvent("paste", {clipboardData: files, bubbles: true, cancelable: true})); }`, nil),
		chromedp.Poll(`/!\[dot\.png\]\(\/uploads\/\w+\/dot\.png\)$/.test(document.querySelector("#note").value)`, nil))
	if _, err := chromedp.RunResponse(b.ctx, chromedp.Focus("#note", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(input.ModifierCtrl))); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.WaitVisible(`.prose img[alt="dot.png"]`, chromedp.ByQuery))
	b.visit(at)
	value("")

	// A quick action without other text creates no comment.
	keys("/clos")
	listed("/close")
	keys(kb.Enter)
	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(input.ModifierCtrl))); err != nil {
		t.Fatal(err)
	}
	b.wantText("Closed this issue.")
}

// pixel is a PNG image.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
