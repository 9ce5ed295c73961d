package browser

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// leads runs actions and waits for the page that they lead to.
func (b *tab) leads(actions ...chromedp.Action) {
	b.t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.WaitReady("main", chromedp.ByQuery))
}

// TestDaily switches branches, finds files, edits two files in one commit,
// filters and changes issues, and edits the pipeline: by keyboard where a script
// suggests what to choose.
func TestDaily(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	b := c.open(t, s)
	b.signIn("ada", password)
	b.visit("/projects/new")
	b.fill("#name", "Engine")
	b.press("main form button.main")
	const api, at = "/projects/ada%2Fengine", "/ada/engine/-/"
	for path, text := range map[string]string{"src%2Fmain.go": "package main\n\nfunc main() {}\n", "src%2Fweb%2Fpage.go": "package web\n"} {
		s.call(t, "POST", api+"/repository/files/"+path, url.Values{"branch": {"main"}, "content": {text}, "commit_message": {"Add"}})
	}
	for i := range 70 {
		s.call(t, "POST", api+"/repository/branches", url.Values{"branch": {fmt.Sprintf("topic-%02d", i)}, "ref": {"main"}})
	}
	for i := range 3 {
		s.call(t, "POST", api+"/issues", url.Values{"title": {fmt.Sprintf("Issue %d", i)}, "labels": {"bug"}, "weight": {fmt.Sprint(i)}})
	}

	// The switcher loads branches from the server, and Enter goes there.
	b.screens("tree-menu", "/ada/engine")
	b.visit(at + "blob/main/src/main.go")
	b.do(chromedp.Click(".refs > summary", chromedp.ByQuery), chromedp.WaitVisible(".refs [role=option]", chromedp.ByQuery))
	b.shoot("switcher-light-1280")
	b.do(chromedp.SendKeys(".refs input[name=ref]", "pic-42", chromedp.ByQuery), chromedp.Poll(`document.querySelectorAll(".refs [role=option]").length === 1`, nil))
	b.leads(chromedp.KeyEvent(kb.Enter))
	b.wantPath(at + "blob/topic-42/src/main.go")

	// The key t finds files.
	b.leads(chromedp.KeyEvent("t"))
	b.wantPath(at + "find_file/topic-42")
	b.do(chromedp.SendKeys("[data-finder] input", "webp", chromedp.ByQuery), chromedp.Poll(`document.querySelectorAll("[data-results] li").length === 1`, nil))
	b.look("finder")
	b.shoot("finder-light-1280")
	b.leads(chromedp.KeyEvent(kb.Enter))
	b.wantPath(at + "blob/topic-42/src/web/page.go")
	b.leads(chromedp.KeyEvent("y"))
	b.do(chromedp.Poll(`/blob\/[0-9a-f]{40}\//.test(location.pathname)`, nil))

	// The editor paints and indents; two files are one commit.
	b.screens("edit", at+"edit/main/src/main.go")
	b.visit(at + "edit_files/main/src/main.go")
	b.do(chromedp.WaitVisible(".ed .ed-gutter div", chromedp.ByQuery), chromedp.Focus(".ed textarea", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector(".ed textarea").setSelectionRange(0, 0)`, nil),
		chromedp.KeyEvent("// Package main.\n"), chromedp.Poll(`document.querySelector(".ed-paint .c")?.textContent === "// Package main."`, nil),
		chromedp.SendKeys("#add", "page", chromedp.ByQuery), chromedp.WaitVisible(".filelist [role=option]", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowDown))
	b.leads(chromedp.KeyEvent(kb.Enter))
	b.do(chromedp.WaitVisible("#path-1", chromedp.ByQuery))
	b.fill("#path-1", "src/web/renamed.go")
	b.look("edit files")
	b.shoot("edit-files-light-1280")
	b.press("main button.main[value=commit]")
	b.wantPath(at + "tree/main")
	b.visit(at + "commit/main")
	b.wantText("2 changed files")
	b.screens("edit-files", at+"edit_files/main/src/main.go")

	// The filter bar suggests filters and values.
	b.screens("issues-bulk", at+"issues?bulk=1&author_username=ada")
	b.visit(at + "issues")
	b.do(chromedp.Focus(".issuefilter input[name=search]", chromedp.ByQuery), chromedp.WaitVisible(".suggest [role=option]", chromedp.ByQuery))
	b.shoot("filter-light-1280")
	b.do(chromedp.KeyEvent("Weight:"), chromedp.WaitVisible(".searchbox .kind", chromedp.ByQuery), chromedp.KeyEvent("2"), chromedp.WaitVisible(`.suggest [aria-selected=true]`, chromedp.ByQuery))
	b.leads(chromedp.KeyEvent(kb.Enter))
	b.do(chromedp.Poll(`new URLSearchParams(location.search).get("weight") === "2"`, nil))
	b.wantText("Issue 2")
	b.look("issues with a filter")

	// Assignees are chosen beside the issue.
	b.visit(at + "issues/1")
	b.do(chromedp.Click(`[data-part=assignees] a[data-sheet]`, chromedp.ByQuery), chromedp.WaitVisible(`[data-part=assignees] form input[type=search]`, chromedp.ByQuery),
		chromedp.SendKeys(`[data-part=assignees] form input[type=search]`, "ad", chromedp.ByQuery), chromedp.Click(`[data-part=assignees] label:not([hidden]) input`, chromedp.ByQuery),
		chromedp.Click(`[data-part=assignees] form button`, chromedp.ByQuery), chromedp.WaitVisible(`[data-part=assignees] a.person`, chromedp.ByQuery))
	b.screens("issue-branch", at+"issues/1")

	// The pipeline is validated while one types.
	b.visit(at + "ci/editor")
	b.do(chromedp.WaitVisible("[data-result] .note.ok", chromedp.ByQuery), chromedp.Focus("#content", chromedp.ByQuery), chromedp.KeyEvent("oops\n"), chromedp.WaitVisible("[data-result] .note.bad", chromedp.ByQuery))
	b.look("pipeline editor")
	b.screens("ci-editor", at+"ci/editor")
	b.screens("fork", at+"forks/new")
	b.screens("gpg-keys", "/-/user_settings/gpg_keys")
	b.screens("upload", at+"upload/main/src")
	b.screens("blame", at+"blame/main/src/main.go")
}
