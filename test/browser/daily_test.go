package browser

import (
	"fmt"
	"net/url"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// leads runs actions and waits for the next page.
func (b *tab) leads(actions ...chromedp.Action) {
	b.t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.WaitReady("main", chromedp.ByQuery))
}

const engineAPI, engineAt = "/projects/ada%2Fengine", "/ada/engine/-/"

// engine creates a project of ada with files, branches and issues, and opens a tab
// as ada.
func (s *server) engine(t *testing.T, c *chromium) *tab {
	t.Helper()
	s.user(t, "ada")
	b := c.open(t, s)
	b.screen(1280, "light")
	b.signIn("ada", password)
	b.visit("/projects/new")
	b.fill("#name", "Engine")
	b.press("main form button.main")
	for path, text := range map[string]string{"src%2Fmain.go": "package main\n\nfunc main() {}\n", "src%2Fweb%2Fpage.go": "package web\n"} {
		s.call(t, "POST", engineAPI+"/repository/files/"+path, url.Values{"branch": {"main"}, "content": {text}, "commit_message": {"Add"}})
	}
	for i := range 70 {
		s.call(t, "POST", engineAPI+"/repository/branches", url.Values{"branch": {fmt.Sprintf("topic-%02d", i)}, "ref": {"main"}})
	}
	for i := range 3 {
		s.call(t, "POST", engineAPI+"/issues", url.Values{"title": {fmt.Sprintf("Issue %d", i)}, "labels": {"bug"}, "weight": {fmt.Sprint(i)}})
	}
	return b
}

// TestDaily switches branches, finds files, edits two files in one commit, filters
// and changes issues, and edits the pipeline. It uses the keyboard where a script
// suggests values.
func TestDaily(t *testing.T) {
	s, c := start(t), launch(t)
	b := s.engine(t, c)
	// The switcher loads branches from the server, and Enter selects one.
	b.visit(engineAt + "blob/main/src/main.go")
	b.do(chromedp.Click(".refs > summary", chromedp.ByQuery), chromedp.WaitVisible(".refs [role=option]", chromedp.ByQuery))
	b.shoot("switcher-light-1280")
	b.do(chromedp.SendKeys(".refs input[name=ref]", "pic-42", chromedp.ByQuery), chromedp.Poll(`document.querySelectorAll(".refs [role=option]").length === 1`, nil))
	var option string
	if b.do(chromedp.Evaluate(`document.querySelector(".refs [role=option]").innerText`, &option)); option != "topic-42" {
		t.Errorf("the switcher shows %q", option) // the matching part is highlighted without spaces around it
	}
	// Count how often the form is submitted: a second navigation would abort the
	// first.
	b.do(chromedp.Evaluate(`document.querySelector(".refs form").addEventListener("submit", () => { sessionStorage.sent = +(sessionStorage.sent || 0) + 1 })`, nil))
	b.leads(typed(kb.Enter))
	b.wantPath(engineAt + "blob/topic-42/src/main.go")
	var sent string
	b.do(chromedp.Evaluate(`sessionStorage.sent || ""`, &sent))
	if sent != "1" {
		t.Errorf("Enter sent the form of the switcher %q times", sent)
	}

	// The key t finds files.
	b.leads(typed("t"))
	b.wantPath(engineAt + "find_file/topic-42")
	b.do(chromedp.SendKeys("[data-finder] input", "webp", chromedp.ByQuery), chromedp.Poll(`document.querySelectorAll("[data-results] li").length === 1`, nil))
	b.look("finder")
	b.shoot("finder-light-1280")
	b.leads(typed(kb.Enter))
	b.wantPath(engineAt + "blob/topic-42/src/web/page.go")
	b.leads(typed("y"))
	b.do(chromedp.Poll(`/blob\/[0-9a-f]{40}\//.test(location.pathname)`, nil))

	// The editor highlights and indents; both files are changed in one commit.
	b.visit(engineAt + "edit_files/main/src/main.go")
	b.do(chromedp.WaitVisible(".ed .ed-gutter div", chromedp.ByQuery), chromedp.Focus(".ed textarea", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector(".ed textarea").setSelectionRange(0, 0)`, nil),
		typed("// Package main.\n"), chromedp.Poll(`document.querySelector(".ed-paint .c")?.textContent === "// Package main."`, nil),
		chromedp.SendKeys("#add", "page", chromedp.ByQuery), chromedp.WaitVisible(".filelist [role=option]", chromedp.ByQuery), typed(kb.ArrowDown))
	b.leads(typed(kb.Enter))
	b.do(chromedp.WaitVisible("#path-1", chromedp.ByQuery))
	b.fill("#path-1", "src/web/renamed.go")
	b.look("edit files")
	b.shoot("edit-files-light-1280")
	b.press("main button.main[value=commit]")
	b.wantPath(engineAt + "tree/main")
	b.visit(engineAt + "commit/main")
	b.wantText("2 changed files")

	// The filter bar suggests filters and values.
	b.visit(engineAt + "issues")
	b.do(chromedp.Focus(".issuefilter input[name=search]", chromedp.ByQuery), chromedp.WaitVisible(".suggest [role=option]", chromedp.ByQuery))
	b.shoot("filter-light-1280")
	b.do(typed("Weight:"), chromedp.WaitVisible(".searchbox .kind", chromedp.ByQuery), typed("2"), chromedp.WaitVisible(`.suggest [aria-selected=true]`, chromedp.ByQuery))
	b.leads(typed(kb.Enter))
	b.do(chromedp.Poll(`new URLSearchParams(location.search).get("weight") === "2"`, nil))
	b.wantText("Issue 2")
	b.do(chromedp.Evaluate(`document.querySelector(".issuefilter details.more").open = true`, nil))
	b.look("issues with a filter")

	// Assignees are selected in the sidebar of the issue.
	b.visit(engineAt + "issues/1")
	b.do(chromedp.Click(`[data-part=assignees] a[data-sheet]`, chromedp.ByQuery), chromedp.WaitVisible(`[data-part=assignees] [data-sheet-form] input[type=search]`, chromedp.ByQuery),
		chromedp.SendKeys(`[data-part=assignees] [data-sheet-form] input[type=search]`, "ad", chromedp.ByQuery), chromedp.Click(`[data-part=assignees] label:not([hidden]) input`, chromedp.ByQuery),
		chromedp.Click(`[data-part=assignees] [data-sheet-form] button`, chromedp.ByQuery), chromedp.WaitVisible(`[data-part=assignees] a.person`, chromedp.ByQuery))

	// The pipeline is validated during typing.
	b.visit(engineAt + "ci/editor")
	b.do(chromedp.WaitVisible("[data-result] .note.ok", chromedp.ByQuery), chromedp.Focus("#content", chromedp.ByQuery), typed("oops\n"), chromedp.WaitVisible("[data-result] .note.bad", chromedp.ByQuery))
	b.look("pipeline editor")
}

// TestDailyScreens checks the layout of the pages that TestDaily uses.
func TestDailyScreens(t *testing.T) {
	s, c := start(t), launch(t)
	first := s.engine(t, c)
	s.call(t, "POST", engineAPI+"/repository/tags", url.Values{"tag_name": {"v1"}, "ref": {"main"}})
	for i, p := range []struct{ name, path string }{
		{"tree-menu", "/ada/engine"},
		{"edit", engineAt + "edit/main/src/main.go"},
		{"edit-files", engineAt + "edit_files/main/src/main.go"},
		{"issues-bulk", engineAt + "issues?bulk=1&author_username=root"},
		{"issue-branch", engineAt + "issues/1"},
		{"ci-editor", engineAt + "ci/editor"},
		{"fork", engineAt + "forks/new"},
		{"gpg-keys", "/-/user_settings/gpg_keys"},
		{"upload", engineAt + "upload/main/src"},
		{"blame", engineAt + "blame/main/src/main.go"},
	} {
		b := first
		if os.Getenv("SVC_SCREENSHOTS") != "" { // each page takes several seconds
			b = c.open(t, s)
			b.signIn("ada", password)
			b.screens(p.name, p.path)
			continue
		}
		b.screenshot(p.name, p.path, []int64{1280, 390}[i%2], []string{"light", "dark"}[i/2%2])
		b.fits(p.name)
	}
}
