package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// TestPlan creates an issue, completes a task, adds a label in place, drags the card
// of the issue on a board, and checks the layout of all planning pages.
func TestPlan(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	b := c.open(t, s)
	b.signIn("ada", password)
	b.visit("/projects/new")
	b.fill("#name", "Engine")
	b.press("main form button")
	made := func(path string, form url.Values) string {
		t.Helper()
		var thing struct{ ID json.Number }
		if err := json.Unmarshal([]byte(s.call(t, "POST", "/projects/ada%2Fengine/"+path, form)), &thing); err != nil {
			t.Fatal(err)
		}
		return thing.ID.String()
	}
	doing := made("labels", url.Values{"name": {"Doing"}, "color": {"#f0ad4e"}, "description": {"Somebody works on it"}})
	made("milestones", url.Values{"title": {"1.0"}, "due_date": {"2020-01-01"}, "description": {"The first *turn*"}})

	// A new issue: Enter in the title submits the form, and the description has a
	// preview.
	b.visit("/ada/engine/-/issues/new")
	b.fill("#description", "- [x] oil it\ncarve it\n\n") // the editor continues the list
	b.do(chromedp.Click("[data-look]", chromedp.ByQuery), chromedp.WaitVisible("[data-preview] li", chromedp.ByQuery), chromedp.Click("[data-write]", chromedp.ByQuery))
	b.do(chromedp.Evaluate(`{ const files = new DataTransfer(); files.items.add(new File(["seen"], "note.txt"));
		document.querySelector("#description").dispatchEvent(new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true})); }`, nil),
		chromedp.Poll(`/\[note\.txt\]\(\/uploads\/\w+\/note\.txt\)/.test(document.querySelector("#description").value)`, nil))
	b.fill("#title", "Wheel")
	if _, err := chromedp.RunResponse(b.ctx, chromedp.SendKeys("#title", "\r", chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
	b.wantPath("/ada/engine/-/issues/1")
	b.wantText("1 of 2 tasks done")

	// Complete a task and add a label without leaving the page.
	b.do(chromedp.Evaluate(`window.here = true`, nil), chromedp.Click(`.task[aria-checked=false]`, chromedp.ByQuery), chromedp.Poll(`document.querySelectorAll(".task[aria-checked=true]").length === 2`, nil))
	b.do(chromedp.Click(`[data-part=labels] a[data-sheet]`, chromedp.ByQuery), chromedp.WaitVisible(`[data-part=labels] input[value=Doing]`, chromedp.ByQuery),
		chromedp.Click(`[data-part=labels] input[value=Doing]`, chromedp.ByQuery), chromedp.Click(`[data-part=labels] form button`, chromedp.ByQuery), chromedp.WaitVisible(`[data-part=labels] .chip`, chromedp.ByQuery),
		chromedp.Poll(`window.here && !document.querySelector("[data-part=labels] form")`, nil))
	b.do(chromedp.SendKeys("#note", "It turns.", chromedp.ByQuery))
	b.press(".say .button.main")
	b.wantText("It turns.")

	for i := range 3 {
		made("issues", url.Values{"title": {fmt.Sprintf("Part %d", i+2)}})
	}
	board := made("boards", url.Values{"name": {"Work"}})
	list := made("boards/"+board+"/lists", url.Values{"label_id": {doing}})
	at := "/ada/engine/-/boards/" + board
	b.visit(at)
	b.do(chromedp.Evaluate(`window.here = true`, nil))
	b.drag(`[data-cards=backlog] [data-card]:nth-child(2)`, `[data-cards="`+list+`"] [data-card]`)
	b.do(chromedp.Poll(`document.querySelector('[data-part="column-`+list+`"] [data-total]').textContent === "2"`, nil))
	column := func(key string) string {
		var names []string
		b.do(chromedp.Evaluate(`[...document.querySelectorAll('[data-cards="`+key+`"] .name')].map(a => a.textContent)`, &names))
		return strings.Join(names, ", ")
	}
	for range 2 { // after dragging, and after a reload
		if open, worked := column("backlog"), column(list); open != "Part 2, Part 4" || worked != "Part 3, Wheel" {
			t.Errorf("the lists are %q and %q", open, worked)
		}
		b.visit(at)
	}

	// Without a mouse: the form of a card.
	b.do(chromedp.Focus(`[data-cards=backlog] [data-card] .move`, chromedp.ByQuery), typed("\r"), chromedp.WaitVisible(`[data-card] form select[name=to]`, chromedp.ByQuery),
		chromedp.SetValue(`[data-card] select[name=to]`, "closed", chromedp.ByQuery), chromedp.Click(`[data-card] form button`, chromedp.ByQuery),
		chromedp.Poll(`document.querySelector('[data-cards=closed] .name')?.textContent === "Part 2"`, nil))

	for i, p := range []struct{ name, path string }{
		{"issues", "/ada/engine/-/issues"}, {"issue", "/ada/engine/-/issues/1"}, {"issue-new", "/ada/engine/-/issues/new"}, {"issue-part", "/ada/engine/-/issues/1/edit/assignees"},
		{"own-issues", "/dashboard/issues"}, {"board", at}, {"board-edit", at + "/edit"}, {"labels", "/ada/engine/-/labels"}, {"label", "/ada/engine/-/labels/new"}, {"milestones", "/ada/engine/-/milestones"},
		{"milestone", "/ada/engine/-/milestones/1"}, {"milestone-new", "/ada/engine/-/milestones/new"}, {"activity", "/ada/engine/-/activity"}, {"calendar", "/ada?tab=activity"}, {"badges", "/ada/engine/-/settings/badges"},
	} {
		if os.Getenv("SVC_SCREENSHOTS") == "" {
			b.screenshot(p.name, p.path, []int64{1280, 390}[i%2], []string{"light", "dark"}[i/2%2])
			continue
		}
		b.screens(p.name, p.path)
	}
}

// drag drags the center of an element to the upper part of another one, with mouse
// events.
func (b *tab) drag(from, to string) {
	b.t.Helper()
	held := make(chan *input.DragData, 1)
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	chromedp.ListenTarget(ctx, func(e any) {
		if e, ok := e.(*input.EventDragIntercepted); ok {
			held <- e.Data
		}
	})
	var a, z []float64
	middle := func(q string, share float64) string {
		return fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height * %g]; })()`, q, share)
	}
	b.do(chromedp.Evaluate(middle(from, 0.5), &a), chromedp.Evaluate(middle(to, 0.2), &z), input.SetInterceptDrags(true))
	mouse := func(kind input.MouseType, at []float64) chromedp.Action {
		return input.DispatchMouseEvent(kind, at[0], at[1]).WithButton(input.Left).WithButtons(1).WithClickCount(1)
	}
	b.do(mouse(input.MousePressed, a), mouse(input.MouseMoved, []float64{a[0] + 5, a[1] + 5}), mouse(input.MouseMoved, z))
	data := receive(b.t, "the drag of "+from, held)
	// Browsers send DragOver repeatedly; the card moves below the pointer.
	for _, kind := range []input.DispatchDragEventType{input.DragEnter, input.DragOver, input.DragOver, input.Drop} {
		b.do(input.DispatchDragEvent(kind, z[0], z[1], data))
	}
	b.do(mouse(input.MouseReleased, z), input.SetInterceptDrags(false))
}
