package browser

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestMerge creates an issue, a branch for it, and a merge request, runs its
// pipeline, and merges it automatically when the pipeline has succeeded, which
// closes the issue. The job continues when the test allows it.
func TestMerge(t *testing.T) {
	s, c := start(t, "SVC_RUNNER=builtin"), launch(t)
	s.user(t, "ada")
	ada := c.open(t, s)
	ada.signIn("ada", password)
	ada.visit("/projects/new")
	ada.fill("#name", "Engine")
	ada.press("main form button.main")
	ada.wantPath("/ada/engine")
	gate := filepath.Join(t.TempDir(), "gate")
	file := "test:\n  rules: [{if: '$CI_COMMIT_BRANCH != $CI_DEFAULT_BRANCH'}]\n  script: [\"until [ -e '" + gate + "' ]; do sleep 0.1; done\"]\n"
	s.call(t, "POST", "/projects/ada%2Fengine/repository/files/.gitlab-ci.yml", url.Values{
		"branch": {"main"}, "commit_message": {"Add a pipeline"}, "encoding": {"base64"}, "content": {base64.StdEncoding.EncodeToString([]byte(file))},
	})
	const at = "/ada/engine/-/"

	ada.visit(at + "issues/new")
	ada.fill("#title", "The engine rattles")
	ada.press("main form button.main")
	ada.wantPath(at + "issues/1")

	ada.visit(at + "branches")
	ada.do(chromedp.Click(".fold summary", chromedp.ByQuery))
	ada.fill("#name", "1-no-rattling")
	ada.press(".fold form button.main")
	ada.wantPath(at + "tree/1-no-rattling")
	ada.visit(at + "new/1-no-rattling")
	ada.fill("#path", "oil.txt")
	ada.fill("#content", "More oil\nEvery day\n")
	ada.press("main form button.main")
	ada.wantPath(at + "blob/1-no-rattling/oil.txt")

	ada.visit(at + "branches")
	ada.press(`a[aria-label="New merge request from 1-no-rattling"]`)
	ada.wantPath(at + "merge_requests/new")
	ada.wantText("1 commit, 1 changed file")
	ada.look("new-merge-request")
	ada.press("main form button.main")
	const one = at + "merge_requests/1"
	ada.wantPath(one)
	ada.wantText("Closes #1")

	// A click on a line number opens a comment form below the line.
	ada.visit(one + "/diffs")
	ada.wantText("Every day")
	ada.do(chromedp.Click(`.diff tr:nth-child(3) td[data-n]`, chromedp.ByQuery), chromedp.WaitVisible(`.talkrow textarea[name=note]`, chromedp.ByQuery))
	ada.fill(".talkrow textarea[name=note]", "Twice a day would do")
	ada.do(chromedp.Click(".talkrow button.main", chromedp.ByQuery))
	ada.has(`.diff tr:nth-child(4).talkrow .said`, "Twice a day would do")
	ada.visit(one + "/pipelines")
	ada.do(chromedp.WaitVisible(".pipelines .state", chromedp.ByQuery))
	ada.wantText("1-no-rattling")

	for i, p := range [][2]string{{"merge-requests", at + "merge_requests"}, {"merge-request-edit", one + "/edit"}, {"merge-request-changes", one + "/diffs"}, {"merge-request", one}} {
		if os.Getenv("SVC_SCREENSHOTS") != "" {
			ada.screens(p[0], p[1])
			continue
		}
		ada.screenshot(p[0], p[1], []int64{1280, 390}[i%2], []string{"light", "dark"}[i/2%2])
	}
	ada.screen(1280, "light")

	// Add a label in the sidebar, without leaving the page.
	ada.visit(one)
	ada.do(chromedp.Click(`[data-part=labels] a[data-sheet]`, chromedp.ByQuery), chromedp.WaitVisible(`[data-part=labels] #new_label`, chromedp.ByQuery))
	ada.fill("#new_label", "quick")
	ada.do(chromedp.Click(`[data-part=labels] button.main`, chromedp.ByQuery))
	ada.has("[data-part=labels]", "quick")
	ada.wantPath(one)

	ada.press(".mergebox button[name=auto]")
	ada.wantText("merged automatically when the pipeline succeeds")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ada.has(".mergebox", "The changes were merged into main.") // without reloading the page
	ada.visit(at + "blob/main/oil.txt")
	ada.wantText("More oil")
	// The issue is closed and the branch is deleted in the background.
	ada.comes(at+"issues/1", "Reopen")
	ada.comes(at+"branches", "Default")
	var left int
	if ada.do(chromedp.Evaluate(`document.querySelectorAll('main a[href$="/-/tree/1-no-rattling"]').length`, &left)); left > 0 {
		t.Error("the branch still exists")
	}
}

// comes reloads a page until it contains a text.
func (b *tab) comes(path, text string) {
	b.t.Helper()
	waitFor(b.t, path+" shows "+text, func() bool {
		b.visit(path)
		return strings.Contains(b.text("main"), text)
	})
}

// TestMergeBoxRefresh checks that the open page of a merge request shows a
// dependency that is added elsewhere, and keeps the options that the user has
// selected.
func TestMergeBoxRefresh(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	s.call(t, "POST", "/projects", url.Values{"name": {"Engine"}, "path": {"engine"}, "visibility": {"public"}, "initialize_with_readme": {"true"}})
	const at = "/projects/root%2Fengine"
	s.call(t, "POST", at+"/members", url.Values{"username": {"ada"}, "access_level": {"30"}})
	var ids []string
	for _, branch := range []string{"one", "two"} {
		s.call(t, "POST", at+"/repository/files/"+branch, url.Values{"branch": {branch}, "start_branch": {"main"}, "commit_message": {branch}, "content": {"x"}})
		made := s.call(t, "POST", at+"/merge_requests", url.Values{"title": {branch}, "source_branch": {branch}, "target_branch": {"main"}})
		ids = append(ids, regexp.MustCompile(`"id":(\d+)`).FindStringSubmatch(made)[1])
	}
	root := c.open(t, s)
	root.signIn("root", rootPassword)
	waitFor(t, "the merge request is ready", func() bool {
		root.visit("/root/engine/-/merge_requests/2")
		return strings.Contains(root.text("[data-part=box]"), "Ready to merge")
	})
	root.do(chromedp.Click("[data-part=box] input[name=squash]", chromedp.ByQuery))
	s.call(t, "POST", at+"/merge_requests/2/approve?sudo=ada", nil)
	root.has("[data-part=box]", "Ada")
	var squash bool
	root.do(chromedp.Evaluate(`document.querySelector("[data-part=box] input[name=squash]").checked`, &squash))
	if !squash {
		t.Error("the option that the user selected was reset")
	}
	s.call(t, "POST", at+"/merge_requests/2/blocks", url.Values{"blocking_merge_request_id": {ids[0]}})
	root.has("[data-part=dependencies]", "one")
	root.has("[data-part=box]", "Merge blocked")
	s.call(t, "PUT", at+"/merge_requests/1/merge", nil)
	root.has("[data-part=box]", "Ready to merge")
}
