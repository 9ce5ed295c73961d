package browser

import (
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestApprovalRules adds an approval rule whose users and groups the form completes,
// comments on a line with the toolbar and preview, and continues the thread in an
// issue.
func TestApprovalRules(t *testing.T) {
	s, _, ada := proposal(t)
	s.call(t, "POST", "/groups", url.Values{"name": {"Mechanics"}, "path": {"mechanics"}})
	const one, settings = "/ada/engine/-/merge_requests/1", "/ada/engine/-/settings/merge_requests"

	ada.visit(settings)
	ada.fill(".rule-add [name=name]", "Review")
	ada.fill(".rule-add [name=approvals_required]", "1")
	ada.do(chromedp.SendKeys(".rule-add [name=users]", "ev", chromedp.ByQuery), chromedp.WaitVisible(".names li[aria-selected=true]", chromedp.ByQuery))
	ada.look("approval-complete")
	ada.shoot("approval-complete")
	ada.do(chromedp.SendKeys(".rule-add [name=users]", kb.Enter, chromedp.ByQuery), chromedp.WaitVisible(`.rule-add [name=users][aria-expanded=false]`, chromedp.ByQuery))
	var users string
	if ada.do(chromedp.Value(".rule-add [name=users]", &users, chromedp.ByQuery)); users != "eve, " {
		t.Errorf("the users are %q", users)
	}
	ada.press(".rule-add form button.button")
	ada.has(".rows", "Review")
	ada.visit(one)
	ada.wantText("Requires 1 approval from Review")
	ada.look("approval-box")
	ada.visit(one + "/approval_rules")
	ada.look("approval-rules")
	ada.shoot("approval-rules")

	ada.visit(one + "/diffs")
	ada.do(chromedp.Click(`.diff tr:nth-child(3) td[data-n]`, chromedp.ByQuery), chromedp.WaitVisible(`.talkrow .toolbar [aria-label=Bold]`, chromedp.ByQuery))
	ada.do(chromedp.SendKeys(".talkrow textarea", "very", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector(".talkrow textarea").select()`, nil),
		chromedp.Click(`.talkrow .toolbar [aria-label=Bold]`, chromedp.ByQuery), chromedp.Click(`.talkrow .edittabs [data-look]`, chromedp.ByQuery))
	ada.has(".talkrow [data-preview] strong", "very")
	ada.look("line-comment")
	ada.shoot("line-comment")
	ada.do(chromedp.Click(`.talkrow form button.main`, chromedp.ByQuery))
	ada.has(".talkrow .thread", "very")
	ada.do(chromedp.Click(`.talkrow .reply textarea`, chromedp.ByQuery), chromedp.WaitVisible(`.talkrow .reply .toolbar`, chromedp.ByQuery))
	ada.look("line-reply")
	ada.shoot("line-reply")

	ada.visit(one)
	ada.wantText("Resolve all with new issue")
	ada.press("[data-open-threads] a")
	ada.wantPath("/ada/engine/-/issues/new")
	ada.wantText("Creating this issue resolves 1 open thread of !1.")
	ada.look("follow-up")
	ada.shoot("follow-up")
	ada.press("main form button.main")
	ada.wantPath("/ada/engine/-/issues/1")
	ada.visit(one)
	ada.wantText("created #1 to continue this discussion")
}
