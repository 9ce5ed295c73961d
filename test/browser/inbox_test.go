package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// counter waits until a counter in the header has a value; a counter of zero is
// hidden.
func (b *tab) counter(name, want string) {
	b.t.Helper()
	b.do(chromedp.Poll(fmt.Sprintf(`(e => e && (%q === "" ? e.hidden : !e.hidden && e.textContent.trim() === %[1]q))(document.querySelector("[data-count=%s]"))`, want, name), nil))
}

// TestInbox checks the counters of the header, which change while a page is open,
// and the to-do list.
func TestInbox(t *testing.T) {
	s, c := start(t), launch(t)
	b := s.engine(t, c)
	ada := id(t, s, "ada")
	b.visit("/dashboard/todos")
	b.counter("todos", "")
	b.counter("issues", "")
	// The page stays open while other users change things.
	s.call(t, "PUT", engineAPI+"/issues/1", url.Values{"assignee_ids": {ada}})
	b.counter("todos", "1")
	b.counter("issues", "1")
	b.do(chromedp.WaitVisible(".todos li", chromedp.ByQuery)) // the list is updated, too
	s.call(t, "POST", engineAPI+"/issues/2/notes", url.Values{"body": {"@ada please look"}})
	b.counter("todos", "2")
	b.look("to-do list")
	// Mark an item as done and restore it, by keyboard.
	b.do(chromedp.Focus(".todos li:first-child form button", chromedp.ByQuery))
	b.leads(typed(kb.Enter))
	b.counter("todos", "1")
	b.press(".note.ok form button")
	b.counter("todos", "2")
	s.call(t, "PUT", engineAPI+"/issues/1", url.Values{"state_event": {"close"}})
	b.counter("issues", "")
	b.leads(chromedp.Click(`form[action="/dashboard/todos/done"] button`, chromedp.ByQuery))
	b.counter("todos", "")
	b.look("empty to-do list")
}

// TestPickers selects members and labels that are not in the page, and that the
// script finds on the server.
func TestPickers(t *testing.T) {
	s, c := start(t), launch(t)
	b := s.engine(t, c)
	for i := range 30 {
		name := fmt.Sprintf("member%02d", i)
		s.user(t, name)
		s.call(t, "POST", engineAPI+"/members", url.Values{"user_id": {id(t, s, name)}, "access_level": {"30"}})
	}
	for i := range 60 {
		s.call(t, "POST", engineAPI+"/labels", url.Values{"name": {fmt.Sprintf("area::%02d", i)}, "color": {"#336699"}})
	}
	pick := func(part, text, chosen string) {
		t.Helper()
		form := `[data-part=` + part + `] [data-sheet-form]`
		b.do(chromedp.Click(`[data-part=`+part+`] a[data-sheet]`, chromedp.ByQuery), chromedp.WaitVisible(form+` input[type=search]`, chromedp.ByQuery),
			chromedp.SendKeys(form+` input[type=search]`, text, chromedp.ByQuery),
			chromedp.Poll(fmt.Sprintf(`[...document.querySelectorAll(%q)].filter(e => !e.hidden && e.textContent.includes(%q)).length === 1`, form+" label.tick", chosen), nil))
		b.look("picker of " + part)
		b.do(chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll(%q)].find(e => !e.hidden && e.textContent.includes(%q)).querySelector("input").focus()`, form+" label.tick", chosen), nil),
			typed(" "), chromedp.Click(form+` button.main`, chromedp.ByQuery),
			chromedp.Poll(fmt.Sprintf(`!document.querySelector(%q) && document.querySelector("[data-part=%s]").textContent.includes(%q)`, form, part, chosen), nil))
	}
	b.visit(engineAt + "issues/1")
	pick("assignees", "mber29", "Member29")
	pick("labels", "59", "59")
	body := s.call(t, "GET", engineAPI+"/issues/1", nil)
	for _, want := range []string{`"username":"member29"`, `"area::59"`, `"bug"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the issue does not have %s: %s", want, body)
		}
	}
	// The form for new issues has the same pickers.
	b.visit(engineAt + "issues/new")
	b.look("new issue")
}
