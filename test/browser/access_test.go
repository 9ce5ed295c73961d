package browser

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe returns the script of axe-core, which checks the accessibility of pages. It is
// downloaded once, in the version of package-lock.json; it is not in the repository
// because of its license.
var axe = sync.OnceValues(func() (string, error) {
	path := filepath.Join("node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(path); err != nil {
		fetch := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		if out, err := fetch.CombinedOutput(); err != nil {
			return string(out), err
		}
	}
	text, err := os.ReadFile(path)
	return string(text), err
})

// rules are the options of axe-core: the rules that pages are checked for.
const rules = `{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]}`

// access checks that a page is accessible.
func (b *tab) access(name string) {
	b.t.Helper()
	script, err := axe()
	if err != nil {
		b.t.Fatalf("axe-core is missing, run scripts/setup: %v: %s", err, script)
	}
	var found string
	wait := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	b.do(chromedp.Evaluate(script+"; 0", nil), chromedp.Evaluate(`axe.run(document, `+rules+`).then(r => JSON.stringify(r.violations.map(v =>
		({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " | " + n.failureSummary)}))))`, &found, wait))
	var list []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(found), &list); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range list {
		// Line numbers of code and logs are as high as their line. The rule for the
		// size of targets exempts them only in running text.
		line := func(n string) bool { return strings.HasPrefix(n, `<a id="L`) || strings.HasPrefix(n, `<a href="#L`) }
		if v.ID == "target-size" && !slices.ContainsFunc(v.Nodes, func(n string) bool { return !line(n) }) {
			continue
		}
		b.t.Errorf("%s: %s: %s: %s", name, v.ID, v.Help, strings.Join(v.Nodes, "\n\t"))
	}
}

// TestAccessRules checks that axe-core finds violations.
func TestAccessRules(t *testing.T) {
	c := launch(t)
	script, err := axe()
	if err != nil {
		t.Fatalf("%v: %s", err, script)
	}
	b := c.open(t, &server{})
	var found []string
	wait := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	b.do(chromedp.Evaluate(`document.body.innerHTML = '<main><input><p style="color:#eee;background:#fff">pale</p></main>'; 0`, nil),
		chromedp.Evaluate(script+"; 0", nil),
		chromedp.Evaluate(`axe.run(document, `+rules+`).then(r => r.violations.map(v => v.id))`, &found, wait))
	for _, want := range []string{"label", "color-contrast"} {
		if !strings.Contains(strings.Join(found, " "), want) {
			t.Errorf("%s is not among %q", want, found)
		}
	}
}
