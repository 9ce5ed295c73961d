package browser

import (
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestReview reviews a merge request: it inserts a suggestion, adds it to a pending
// review, publishes the review with a request for changes, and applies the
// suggestion in a batch.
func TestReview(t *testing.T) {
	s, c, ada := proposal(t)
	const one = "/ada/engine/-/merge_requests/1"

	eve := c.open(t, s)
	eve.signIn("eve", password)
	eve.visit(one + "/diffs")
	eve.wantText("Evry day")
	eve.do(chromedp.Click(`.diff tr:nth-child(3) td[data-n]`, chromedp.ByQuery), chromedp.WaitVisible(`.talkrow textarea[name=note]`, chromedp.ByQuery),
		chromedp.WaitVisible(`.talkrow [data-suggest]`, chromedp.ByQuery), chromedp.Click(`.talkrow [data-suggest]`, chromedp.ByQuery))
	var text string
	if eve.do(chromedp.Value(`.talkrow textarea[name=note]`, &text, chromedp.ByQuery)); text != "```suggestion:-0+0\nEvry day\n```\n" {
		t.Errorf("the suggestion is %q", text)
	}
	eve.fill(".talkrow textarea[name=note]", "```suggestion:-0+0\nEvery day\n```\n")
	eve.do(chromedp.Click(`.talkrow [name=review]`, chromedp.ByQuery))
	eve.has(".talkrow .pending", "Every day")
	eve.has(".reviewbar", "1 pending comment")
	// The review bar stays at the bottom of the window; further comments are added
	// to the review.
	eve.screen(1280, "light")
	var below float64
	eve.do(chromedp.Evaluate(`document.querySelector(".df-body").style.minHeight = "3000px"; scrollTo({top: 0, behavior: "instant"}); document.querySelector(".reviewbar").getBoundingClientRect().bottom - innerHeight`, &below))
	if below > 1 {
		t.Errorf("the bar of the review is %v pixels below the window", below)
	}
	eve.do(chromedp.Evaluate(`document.querySelector(".df-body").style.minHeight = ""`, nil),
		chromedp.Click(`.diff tr:nth-child(2) td[data-n]`, chromedp.ByQuery), chromedp.WaitVisible(`.talkrow [name=review]`, chromedp.ByQuery))
	if got := eve.text(".talkrow [name=review]"); got != "Add to review" {
		t.Errorf("the button says %q", got)
	}
	eve.do(chromedp.Evaluate(`document.querySelector(".talkrow [name=review]").form.querySelector("[data-cancel]").click()`, nil))
	eve.look("review-pending")
	eve.shoot("review-pending")
	eve.do(chromedp.Click(".reviewbar summary", chromedp.ByQuery), chromedp.WaitVisible(".reviewbar [value=requested_changes]", chromedp.ByQuery))
	eve.fill(".reviewbar textarea", "A typing error.")
	eve.do(chromedp.WaitVisible(".reviewbar .toolbar", chromedp.ByQuery))
	eve.do(chromedp.Click(".reviewbar [value=requested_changes]", chromedp.ByQuery))
	eve.look("review-finish")
	eve.shoot("review-finish")
	eve.press(".reviewbar .reviewform button.main")
	eve.wantPath(one)
	eve.wantText("Merge blocked: changes requested")
	// The overview shows the lines of the diff that a thread belongs to.
	eve.do(chromedp.ScrollIntoView("[data-thread-lines]", chromedp.ByQuery))
	eve.has(".thread-lines .diff", "Evry day")
	eve.look("review-lines")

	ada.visit(one)
	ada.wantText("Changes requested by Eve")
	for i, theme := range []string{"light", "dark"} {
		ada.screenshot("review-suggestion-"+theme, one, []int64{1280, 390}[i], theme)
	}
	ada.screen(1280, "light")
	ada.visit(one)
	ada.do(chromedp.Click(`.suggestion input[form=batch]`, chromedp.ByQuery))
	ada.has("#batch", "Apply 1 suggestion")
	ada.press("#batch button.main")
	ada.wantPath(one)
	ada.wantText("The suggestion was applied.")
	ada.visit("/ada/engine/-/blob/work/oil.txt")
	ada.wantText("Every day")
}

// proposal starts a server with a merge request: ada adds a file to their project
// ada/engine, in which eve is a Developer. It returns the tab of ada.
func proposal(t *testing.T) (*server, *chromium, *tab) {
	t.Helper()
	s, c := start(t), launch(t)
	s.user(t, "ada")
	s.user(t, "eve")
	ada := c.open(t, s)
	ada.signIn("ada", password)
	ada.visit("/projects/new")
	ada.fill("#name", "Engine")
	ada.press("main form button.main")
	ada.wantPath("/ada/engine")
	const project = "/projects/ada%2Fengine"
	s.call(t, "POST", project+"/members", url.Values{"username": {"eve"}, "access_level": {"30"}})
	s.call(t, "POST", project+"/repository/files/oil.txt", url.Values{"branch": {"work"}, "start_branch": {"main"}, "commit_message": {"Add oil"}, "content": {"More oil\nEvry day\n"}})
	s.call(t, "POST", project+"/merge_requests", url.Values{"source_branch": {"work"}, "target_branch": {"main"}, "title": {"Oil the engine"}})
	return s, c, ada
}
