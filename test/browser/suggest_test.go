package browser

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestFastTyping presses Enter before the suggestions for the typed text are there:
// what is listed belongs to an earlier text and is not taken. A script types, because
// nothing can happen between its steps.
func TestFastTyping(t *testing.T) {
	s, c := start(t), launch(t)
	b := s.engine(t, c)
	for _, name := range []string{"grace", "gregor"} {
		s.user(t, name)
		s.call(t, "POST", engineAPI+"/members", url.Values{"username": {name}, "access_level": {"40"}})
	}
	s.call(t, "POST", engineAPI+"/labels", url.Values{"name": {"bugle"}, "color": {"#336699"}})
	s.call(t, "PUT", engineAPI+"/issues/1", url.Values{"labels": {"bugle"}})
	// enter replaces the text of a field and presses Enter, which sends the form
	// unless the script of the page handles it.
	enter := func(field, text string) chromedp.Action {
		return chromedp.Evaluate(fmt.Sprintf(`{
			const f = document.querySelector(%q), key = (type) => f.dispatchEvent(new KeyboardEvent(type, {key: "Enter", bubbles: true, cancelable: true}));
			f.value = %q;
			f.setSelectionRange(f.value.length, f.value.length);
			f.dispatchEvent(new InputEvent("input", {bubbles: true}));
			if (key("keydown") && f.matches("input")) f.form.requestSubmit();
		}`, field, text), nil)
	}
	value := func(field, want string) {
		t.Helper()
		b.do(chromedp.Poll(fmt.Sprintf(`document.querySelector(%q).value === %q`, field, want), nil))
	}

	b.visit(engineAt + "issues/1")
	b.do(chromedp.SendKeys("#note", "@gr", chromedp.ByQuery), chromedp.Poll(`document.querySelectorAll("#complete [role=option]").length === 2`, nil))
	b.do(enter("#note", "@gregor"))
	value("#note", "@gregor ")

	b.visit(engineAt + "issues")
	const bar = ".issuefilter input[name=search]"
	b.do(chromedp.SendKeys(bar, "Label:bug", chromedp.ByQuery), chromedp.Poll(`document.querySelector(".suggest [aria-selected=true]")?.textContent === "bug"`, nil))
	b.leads(enter(bar, "bugle"))
	b.do(chromedp.Poll(`new URLSearchParams(location.search).get("label_name[]") === "bugle"`, nil))

	b.visit(engineAt + "tree/main")
	b.do(chromedp.Click(".refs > summary", chromedp.ByQuery), chromedp.SendKeys(".refs input[name=ref]", "topic", chromedp.ByQuery),
		chromedp.Poll(`document.querySelector(".refs [aria-selected=true]")?.textContent === "topic-00"`, nil))
	b.leads(enter(".refs input[name=ref]", "topic-42"))
	b.wantPath(engineAt + "tree/topic-42")

	b.visit(engineAt + "settings/merge_requests")
	const users = ".rule-add [name=users]"
	b.do(chromedp.SendKeys(users, "gr", chromedp.ByQuery), chromedp.Poll(`document.querySelectorAll(".names:not([hidden]) [role=option]").length === 2`, nil))
	b.do(enter(users, "gregor"), chromedp.SendKeys(users, kb.Escape, chromedp.ByQuery))
	value(users, "gregor, ")
}
