package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestCode creates a project, edits a file in place, and views the commit and its
// changes.
func TestCode(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	b := c.open(t, s)
	b.signIn("ada", password)
	b.visit("/projects/new")
	b.fill("#name", "Engine")
	b.press("main form button")
	b.wantPath("/ada/engine")

	b.press(`.files a[href$="/README.md"]`)
	b.press(`a[href="/ada/engine/-/edit/main/README.md"]`)
	b.do(chromedp.Evaluate(`document.querySelector("#content").value = "# Engine\n\nIt weaves algebra.\n"`, nil))
	b.fill("#message", "Say what it does")
	b.press("main form button.main")
	b.wantPath("/ada/engine/-/blob/main/README.md")
	b.wantText("Committed to main as")
	b.wantText("It weaves algebra.")

	b.press(`.last a.title`)
	b.wantText("Say what it does")
	b.wantText("1 changed file")
	if added := b.text(".diff tr.add:last-of-type td:last-child"); added != "It weaves algebra." {
		t.Errorf("the last line that was added is %q", added)
	}
	b.press(`a[href*="view=parallel"]`)
	b.do(chromedp.WaitVisible(".diff.two", chromedp.ByQuery))
	b.visit("/ada/engine/-/commits/main")
	b.wantText("Say what it does")

	// Select lines by the URL.
	b.visit("/ada/engine/-/blob/main/README.md?plain=1#L1-2")
	b.do(chromedp.Poll(`document.querySelectorAll(".marked").length === 2`, nil))
	b.do(chromedp.Evaluate(`document.querySelector("#L3 a").dispatchEvent(new MouseEvent("click", {shiftKey: true, bubbles: true, cancelable: true}))`, nil),
		chromedp.Poll(`location.hash === "#L1-3" && document.querySelectorAll(".marked").length === 3`, nil))
	var permanent string
	b.do(chromedp.Evaluate(`document.querySelector("[data-permalink]").href`, &permanent))
	if !strings.HasSuffix(permanent, "/README.md#L1-3") || strings.Contains(permanent, "/main/") {
		t.Errorf("the permanent link is %s", permanent)
	}

	// Create and delete a branch. The deletion of the second branch asks for
	// confirmation.
	b.visit("/ada/engine/-/branches")
	b.do(chromedp.Click(".fold > summary", chromedp.ByQuery), chromedp.WaitVisible("#name", chromedp.ByQuery))
	b.fill("#name", "topic")
	b.press(".fold form button")
	b.wantPath("/ada/engine/-/tree/topic")
	b.visit("/ada/engine/-/branches")
	b.do(chromedp.Click(`button[aria-label="Delete topic"]`, chromedp.ByQuery), chromedp.WaitVisible("dialog[open]", chromedp.ByQuery))
	b.press(`dialog[open] button[value="yes"]`)
	b.wantText("The branch topic was deleted.")
}
