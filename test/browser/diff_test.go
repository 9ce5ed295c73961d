package browser

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// as calls the API as a user.
func (s *server) as(t *testing.T, user, method, path string, body any) string {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/api/v4"+path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Private-Token", rootToken)
	r.Header.Set("Sudo", user)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	if res.StatusCode >= 400 {
		t.Fatalf("%s %s: %s: %s", method, path, res.Status, answer)
	}
	return string(answer)
}

// commitFiles writes files to a branch: action, path and content of each.
func (s *server) commitFiles(t *testing.T, branch, start, message string, files ...string) {
	t.Helper()
	var actions []map[string]string
	for i := 0; i+2 < len(files); i += 3 {
		actions = append(actions, map[string]string{"action": files[i], "file_path": files[i+1], "content": files[i+2]})
	}
	body := map[string]any{"branch": branch, "commit_message": message, "actions": actions}
	if start != "" {
		body["start_branch"] = start
	}
	s.as(t, "ada", "POST", "/projects/ada%2Fengine/repository/commits", body)
}

// program returns a Go file with some changed lines.
func program(changed ...int) string {
	var b strings.Builder
	b.WriteString("package engine\n")
	for i := 2; i <= 120; i++ {
		value := "old"
		for _, n := range changed {
			if n == i {
				value = "new"
			}
		}
		fmt.Fprintf(&b, "func line%d() string { return \"the %s value\" }\n", i, value)
	}
	return b.String()
}

// TestDiff reviews changes: lines by keyboard and mouse, hidden lines, viewed files,
// threads.
func TestDiff(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	s.as(t, "ada", "POST", "/projects", map[string]string{"name": "engine"})
	s.commitFiles(t, "main", "", "Begin", "create", "src/engine.go", program(), "create", "docs/read.md", "# Engine\n\nIt runs.\n", "create", "src/gone.txt", "bye\n")
	s.commitFiles(t, "topic", "main", "Change", "update", "src/engine.go", program(20, 90), "update", "docs/read.md", "# Engine\n\nIt runs well.\n", "delete", "src/gone.txt", "",
		"create", "go.sum", "example.org/x v1.0.0 h1:abc=\n", "create", "src/parts/wheel.go", "package parts\n\nfunc Turn() {}\n")
	s.as(t, "ada", "POST", "/projects/ada%2Fengine/merge_requests", map[string]string{"source_branch": "topic", "target_branch": "main", "title": "New values"})
	ada := c.open(t, s)
	ada.signIn("ada", password)
	const diffs = "/ada/engine/-/merge_requests/1/diffs"
	ada.visit(diffs)
	ada.wantText("5 changed files")
	ada.wantText("0/5 files viewed")
	ada.has(".df-tree", "wheel.go")
	key := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			ada.do(typed(k))
		}
	}
	const engine = `article[aria-label="src/engine.go"] `
	var marks int
	if ada.do(chromedp.Evaluate(`document.querySelectorAll('.diff mark').length`, &marks)); marks == 0 {
		t.Error("no words are highlighted")
	}

	// Keyboard: two lines down, a range of two lines, a comment.
	ada.do(chromedp.WaitReady(`.diffs.scripted`, chromedp.ByQuery))
	key("j", "j")
	ada.do(chromedp.WaitReady(`tr.cur:focus`, chromedp.ByQuery))
	key("J", "c")
	ada.do(chromedp.WaitVisible(`.talkrow .linetalk-form textarea`, chromedp.ByQuery))
	ada.has(".linetalk-form", "Comment on lines")
	ada.do(chromedp.SendKeys(`.linetalk-form textarea`, "By keyboard", chromedp.ByQuery), chromedp.Click(`.linetalk-form button.main`, chromedp.ByQuery))
	ada.has(".talkrow .thread", "By keyboard")
	ada.has(".talkrow .thread", "Comment on lines")
	ada.has("[data-threads] summary", "1 of 1 thread open")

	// Mouse: drag from one line number to another.
	ada.do(chromedp.ScrollIntoView(engine+`td[data-n="90"]`, chromedp.ByQuery))
	from, to := ada.middle(engine+`tr.same td:nth-child(2)[data-n="88"]`), ada.middle(engine+`tr.add td[data-n="90"]`)
	ada.do(input.DispatchMouseEvent(input.MousePressed, from[0], from[1]).WithButton(input.Left).WithClickCount(1),
		input.DispatchMouseEvent(input.MouseMoved, (from[0]+to[0])/2, (from[1]+to[1])/2).WithButton(input.Left),
		input.DispatchMouseEvent(input.MouseMoved, to[0], to[1]).WithButton(input.Left),
		input.DispatchMouseEvent(input.MouseReleased, to[0], to[1]).WithButton(input.Left).WithClickCount(1))
	ada.has(".linetalk-form", "Comment on lines 88 to +90")
	ada.shoot("review-comment")
	ada.do(chromedp.SendKeys(`.linetalk-form textarea`, "By mouse", chromedp.ByQuery), chromedp.Click(`.linetalk-form button.main`, chromedp.ByQuery))
	ada.has(engine+".talkrow .thread", "By mouse")
	ada.has("[data-threads] summary", "2 of 2 threads open")

	// Hidden lines are expanded in place; comments on them are kept.
	ada.do(chromedp.Click(engine+`[data-unfold=all]`, chromedp.ByQuery), chromedp.WaitVisible(engine+`tr.same td[data-n="5"]`, chromedp.ByQuery))
	ada.do(chromedp.Click(engine+`[data-unfold=up]`, chromedp.ByQuery), chromedp.WaitVisible(engine+`tr.same td[data-n="70"]`, chromedp.ByQuery))
	ada.do(chromedp.Click(engine+`[data-unfold=down]`, chromedp.ByQuery), chromedp.WaitVisible(engine+`tr.same td[data-n="30"]`, chromedp.ByQuery))
	ada.do(chromedp.Click(engine+`[data-unfold=all]`, chromedp.ByQuery), chromedp.WaitVisible(engine+`td[data-n="50"]`, chromedp.ByQuery))
	ada.do(chromedp.ScrollIntoView(engine+`td[data-n="50"]`, chromedp.ByQuery), chromedp.Click(engine+`td[data-n="50"]`, chromedp.ByQuery),
		chromedp.SendKeys(`.linetalk-form textarea`, "On a hidden line", chromedp.ByQuery), chromedp.Click(`.linetalk-form button.main`, chromedp.ByQuery))
	ada.has(engine+".talkrow .thread", "")
	ada.has("[data-threads] summary", "3 of 3 threads open")
	ada.visit(diffs)
	ada.has(engine, "On a hidden line")
	ada.look("diff")

	// Threads by keyboard: resolve the first open one, go to the next.
	ada.do(chromedp.WaitReady(`.diffs.scripted`, chromedp.ByQuery))
	key("n")
	ada.do(chromedp.WaitReady(`.thread:focus`, chromedp.ByQuery))
	key("x")
	ada.has("[data-threads] summary", "2 of 3 threads open")
	key("n", "r")
	ada.do(chromedp.WaitReady(`.thread textarea[name=note]:focus`, chromedp.ByQuery))
	ada.do(chromedp.SendKeys(`.thread textarea:focus`, "A reply", chromedp.ByQuery), typed(kb.Tab), typed(kb.Enter))
	ada.has(".df-list", "A reply")

	// Files: viewed ones stay viewed until they change; a generated one is
	// collapsed.
	ada.has(`article[aria-label="go.sum"]`, "generated")
	ada.click(`article[aria-label="go.sum"] [data-expand]`)
	ada.do(chromedp.WaitVisible(`article[aria-label="go.sum"] tr.add`, chromedp.ByQuery))
	for i, name := range []string{"docs/read.md", "src/parts/wheel.go"} {
		ada.click(`article[aria-label="` + name + `"] .viewed`)
		ada.has(".df-bar", fmt.Sprintf("%d/5 files viewed", i+1))
		ada.do(chromedp.WaitReady(`article[aria-label="`+name+`"].folded`, chromedp.ByQuery))
	}
	ada.comes(diffs, "2/5 files viewed")
	ada.click(`article[aria-label="docs/read.md"] .df-fold`)
	ada.do(chromedp.WaitVisible(`article[aria-label="docs/read.md"] tr.add`, chromedp.ByQuery))
	s.commitFiles(t, "topic", "", "Change it again", "update", "docs/read.md", "# Engine\n\nIt runs very well.\n")
	ada.comes(diffs, "1/5 files viewed")
	ada.wantText("latest version")

	// The filter of the file tree, and the list of keyboard shortcuts.
	ada.do(chromedp.SendKeys(`[data-filter-files]`, "wheel", chromedp.ByQuery), chromedp.WaitNotVisible(`.df-tree a[href="#`+fileCode("src/engine.go")+`"]`, chromedp.ByQuery))
	ada.do(chromedp.Blur(`[data-filter-files]`, chromedp.ByQuery))
	key("?")
	ada.has("dialog[open]", "Next or previous open thread")
	key(kb.Escape)
	for _, p := range [][2]string{{"review", diffs}, {"review-sides", diffs + "?view=parallel"}} {
		ada.screens(p[0], p[1])
	}
	ada.fits("diff")
}

// click clicks an element that may be covered by the bars at the top of the page.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.WaitReady(selector, chromedp.ByQuery), chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).click()`, selector), nil))
}

// middle returns the center of an element in window coordinates.
func (b *tab) middle(selector string) (at [2]float64) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`, selector), &at))
	return at
}

// fileCode returns the identifier of a file in URLs.
func fileCode(path string) string {
	sum := sha1.Sum([]byte(path))
	return hex.EncodeToString(sum[:])
}

// TestLargeDiff scrolls through a diff that is loaded in parts: files are loaded
// when they become visible, and shortcuts go to threads in files that are not loaded
// yet.
func TestLargeDiff(t *testing.T) {
	s, c := start(t), launch(t)
	s.user(t, "ada")
	s.as(t, "ada", "POST", "/projects", map[string]string{"name": "engine"})
	var before, after []string
	for i := range 12 {
		name := fmt.Sprintf("part%02d.go", i)
		before, after = append(before, "create", name, program()), append(after, "update", name, program(lines(120)...))
	}
	s.commitFiles(t, "main", "", "Begin", before...)
	s.commitFiles(t, "topic", "main", "Change", after...)
	s.as(t, "ada", "POST", "/projects/ada%2Fengine/merge_requests", map[string]string{"source_branch": "topic", "target_branch": "main", "title": "New values"})
	var made struct {
		Refs struct {
			Base  string `json:"base_sha"`
			Start string `json:"start_sha"`
			Head  string `json:"head_sha"`
		} `json:"diff_refs"`
	}
	if err := json.Unmarshal([]byte(s.as(t, "ada", "GET", "/projects/ada%2Fengine/merge_requests/1", nil)), &made); err != nil {
		t.Fatal(err)
	}
	s.as(t, "ada", "POST", "/projects/ada%2Fengine/merge_requests/1/discussions", map[string]any{"body": "In the last file", "position": map[string]any{
		"base_sha": made.Refs.Base, "start_sha": made.Refs.Start, "head_sha": made.Refs.Head, "position_type": "text", "new_path": "part11.go", "old_path": "part11.go", "new_line": 60,
	}})
	ada := c.open(t, s)
	ada.signIn("ada", password)
	ada.visit("/ada/engine/-/merge_requests/1/diffs")
	ada.do(chromedp.WaitReady(`.diffs.scripted article[aria-label="part10.go"][data-later]`, chromedp.ByQuery))
	ada.do(typed("n"))
	ada.has(`article[aria-label="part11.go"] .thread:focus`, "In the last file")
	ada.do(chromedp.Evaluate(`document.querySelector('article[aria-label="part08.go"]').scrollIntoView()`, nil), chromedp.WaitVisible(`article[aria-label="part08.go"] tr.add`, chromedp.ByQuery))
}

// lines returns the numbers from 2 to n.
func lines(n int) (list []int) {
	for i := 2; i <= n; i++ {
		list = append(list, i)
	}
	return list
}
