package browser

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPipeline creates a project, commits a CI/CD configuration, and checks that the
// list and the log are updated without a reload while the built-in runner works. The
// job continues when the test allows it.
func TestPipeline(t *testing.T) {
	s, c := start(t, "SVC_RUNNER=builtin"), launch(t)
	s.user(t, "ada")
	gate := filepath.Join(t.TempDir(), "gate")
	ada := c.open(t, s)
	ada.signIn("ada", password)
	ada.visit("/projects/new")
	ada.fill("#name", "Engine")
	ada.press("main form button.main")
	ada.wantPath("/ada/engine")

	ada.visit("/ada/engine/-/pipelines")
	ada.wantText("No pipelines yet")
	// HTML in the output of a job must be escaped.
	file := "test:\n  script:\n    - echo \"before <img src=x onerror=alert(1)>\"\n    - for i in $(seq 1 300); do echo \"line $i\"; done\n" +
		"    - until [ -e '" + gate + "' ]; do sleep 0.1; done\n    - printf '\\033[31mafter\\033[0m\\n'\n"
	s.call(t, "POST", "/projects/ada%2Fengine/repository/files/.gitlab-ci.yml", url.Values{
		"branch": {"main"}, "commit_message": {"Add a pipeline"}, "encoding": {"base64"}, "content": {base64.StdEncoding.EncodeToString([]byte(file))},
	})
	ada.do(chromedp.WaitVisible(".pipelines .st-running", chromedp.ByQuery)) // without reloading the page
	ada.press(".pipelines .name")
	ada.wantText("Add a pipeline")
	ada.press(".graph .node a")
	job := ada.path()
	if !strings.HasPrefix(job, "/ada/engine/-/jobs/") {
		t.Fatalf("at %s", job)
	}
	ada.has("[data-lines]", "line 300")
	if got := ada.text("[data-part=head] .st"); got != "Running" {
		t.Errorf("the job is %s", got)
	}
	// While the user follows the log, its end stays visible and the duration is
	// updated.
	const end = `document.querySelector("[data-lines]").getBoundingClientRect().bottom <= innerHeight`
	var seen bool
	ada.do(chromedp.Poll(end, &seen), chromedp.Poll(`(window.first ??= document.querySelector("[data-elapsed]").textContent) !== document.querySelector("[data-elapsed]").textContent`, &seen))
	var lines int
	ada.do(chromedp.Evaluate(`document.querySelectorAll("[data-lines] .l").length`, &lines))
	if lines > 120 {
		t.Errorf("%d lines are in the page", lines)
	}

	// Search goes to a line that was not visible.
	ada.fill(".joblog input[name=q]", "BEFORE <img")
	ada.do(chromedp.Click(".joblog form [type=submit]", chromedp.ByQuery))
	ada.has(".l.hit", "before <img src=x onerror=alert(1)>")
	ada.has("[data-hits]", "1 of")
	// Sections can be collapsed.
	var before, after float64
	ada.do(chromedp.Evaluate(`document.querySelector("[data-lines]").scrollHeight`, &before),
		chromedp.Click("[data-fold]", chromedp.ByQuery),
		chromedp.WaitReady("[data-fold][aria-expanded=false]", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector("[data-lines]").scrollHeight`, &after))
	if after >= before {
		t.Errorf("the height of the log is %v after collapsing a section, %v before", after, before)
	}
	ada.do(chromedp.Click("[data-fold]", chromedp.ByQuery), chromedp.Evaluate("scrollTo(0, 0)", nil),
		chromedp.Click("[data-follow]", chromedp.ByQuery), chromedp.Poll(end, &seen))

	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ada.has("[data-lines] .f1", "after")
	ada.has("[data-part=head] .st", "Passed")
	ada.look("job")

	// A line has a URL.
	ada.visit(job + "#L20")
	ada.has(".l.here", "20")
	ada.press("#retry")
	if next := ada.path(); next == job || !strings.HasPrefix(next, "/ada/engine/-/jobs/") {
		t.Fatalf("retried, at %s", next)
	}
	ada.has("[data-lines]", "after")
	ada.has("[data-part=head] .st", "Passed")
	ada.wantText("Attempts")

	const at = "/ada/engine/-/"
	for name, path := range map[string]string{
		"pipelines": at + "pipelines", "pipeline": at + "pipelines/latest", "jobs": at + "jobs", "job": job, "run-pipeline": at + "pipelines/new",
		"new-schedule": at + "pipeline_schedules/new", "charts": at + "pipelines/charts", "lint": at + "ci/lint",
	} {
		ada.screens(name, path)
	}
}

// has waits until the element of a selector contains a text.
func (b *tab) has(selector, text string) {
	b.t.Helper()
	var ok bool
	b.do(chromedp.Poll(`document.querySelector(`+strconv.Quote(selector)+`)?.innerText.includes(`+strconv.Quote(text)+`)`, &ok))
}
