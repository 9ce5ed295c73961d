package web_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

const ciFile = `
variables:
  TARGET: {value: staging, description: Where to, options: [staging, production]}
  PLAIN: x
stages: [build, test, deploy]
build:
  stage: build
  tags: [linux]
  script: [make]
  artifacts: {paths: [out], expire_in: 1 week}
unit:
  stage: test
  needs: [build]
  script: [make test]
lint:
  stage: test
  script: [make lint]
deploy:
  stage: deploy
  script: [make deploy]
  when: manual
  environment: {name: production, url: "https://example.org/app"}
`

// window is the response with lines of a log for the script.
type window struct {
	From, Total, Rev int
	Lines            []string
	Sections         []struct {
		Name       string
		Start, End int
		Took       string
	}
}

// TestPipelinePages starts a pipeline by the form, visits its pages while a runner
// works, and uses the buttons.
func TestPipelinePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, ciFile)
		const at = "/ada/p/-"
		b := newBrowser(t, s).signIn("ada", password)
		b.get(at+"/pipelines").want(200, "No pipelines yet")
		b.get(at+"/pipelines/new").want(200, `id="described_TARGET"`, "Where to", "<option selected>staging", "<option>production").not("described_PLAIN")
		b.get(at+"/pipelines/new?ref=none").want(200, "Reference not found")
		b.submit(at+"/pipelines/new", at+"/pipelines", "ref", "main", "variable_key", "1 2", "variable_value", "x").want(422, "can contain only letters")
		b.submit(at+"/pipelines/new", at+"/pipelines", "ref", "main", "described_TARGET", "production", "variable_key", "MORE", "variable_value", "42", "variable_key", "", "variable_value", "").want(303)
		st.idle()
		var list []struct{ ID int64 }
		st.api("GET /projects/%d/pipelines?source=web", 200, nil).JSON(t, &list)
		id := list[0].ID
		page := fmt.Sprintf("%s/pipelines/%d", at, id)
		b.get(page+"/variables").want(200, "TARGET", "production", "MORE", "42")
		b.get(at+"/pipelines").want(200, "First", page, "st-pending", `data-events="`+at+`/pipelines/events"`, `title="build: Pending"`, page+"/cancel")
		b.get(at+"/pipelines?status=failed").want(200, "No results found")
		b.get(at+"/pipelines?status=pending&source=web&ref=main&username=ada").want(200, page)
		b.get(at+"/pipelines?username=nobody").want(200, "No results found")
		for _, odd := range []string{"ref=%00", "username=%00%ff", "status=%ff", "source=%00", "sha=%00", "page=-1"} {
			if p := b.get(at + "/pipelines?" + odd); p.status >= 500 {
				t.Errorf("%s: %d", odd, p.status)
			}
		}
		b.get(page).want(200, `<svg class="needs"`, "unit, needs build", "<h3 title=\"deploy\">")
		b.get("/ada/p").want(200, `class="dot st-pending" href="`+page+`"`)
		b.get(at+"/commits/main").want(200, `<a href="`+page+`"><span class="dot st-pending"`)

		build := st.take()
		job := fmt.Sprintf("%s/jobs/%d", at, build.ID)
		b.get(job).want(200, "No output yet", job+"/cancel").not(job + "/retry")
		log := "section_start:100:step\r\x1b[0KStep\n\x1b[31mred <b>\x1b[0m\nsection_end:103:step\r\x1b[0K\nlast line"
		st.write(build, 0, log)
		b.get(job).want(200, `<span class="f1 ">red &lt;b&gt;</span>`, `id="L2"`, "last line")
		w := read[window](b.get(job + "/log?from=1&count=2"))
		if w.Total != 4 || len(w.Lines) != 2 || w.Lines[0] != "Step" || len(w.Sections) != 1 || w.Sections[0].Took != "00:03" || w.Sections[0].End != 3 {
			t.Errorf("window %+v", w)
		}
		if w = read[window](b.get(fmt.Sprintf("%s/log?from=-1&count=1&rev=%d", job, w.Rev))); w.From != 4 || w.Lines[0] != "last line" || w.Sections != nil {
			t.Errorf("the end %+v", w)
		}
		found := read[struct{ Lines []int }](b.get(job + "/log/search?q=RED"))
		if fmt.Sprint(found.Lines) != "[2]" {
			t.Errorf("found %v", found.Lines)
		}
		b.get(job+"?q=last").want(200, `href="?from=4#L4"`)
		if raw := b.get(job + "/raw?download=1").want(200); raw.body != log || !strings.HasPrefix(raw.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("raw %q %v", raw.body, raw.header)
		}
		st.upload(build, "artifact_type=archive&artifact_format=zip&expire_in=1+week", zipped(t, "out/a.txt", "hello", "out/deep/b.go", "package b\n", "out/c.bin", "\x00\x01"))
		st.end(build, "success")
		b.get(job).want(200, "The artifacts expire in 6 days", job+"/artifacts/keep", job+"/retry", job+"/erase", "linux")
		b.get(job+"/log?from=1").want(200, "Step") // the packed log
		b.get(job+"/artifacts/browse").want(200, job+"/artifacts/browse/out", "3 files")
		b.get(job+"/artifacts/browse/out").want(200, job+"/artifacts/browse/out/deep", job+"/artifacts/file/out/a.txt", "5 bytes")
		b.get(job + "/artifacts/browse/none").want(404)
		b.get(job+"/artifacts/file/out/deep/b.go").want(200, "package")
		b.get(job+"/artifacts/file/out/c.bin").want(200, "Not a text file")
		b.get(job + "/artifacts/file/out/none").want(404)
		if raw := b.get(job + "/artifacts/raw/out/a.txt").want(200); raw.body != "hello" || raw.header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("artifact %q %v", raw.body, raw.header)
		}
		b.get(job + "/artifacts/download").want(200)
		b.submit(job, job+"/artifacts/keep").leads(job)
		b.get(job).want(200, "do not expire", "The artifacts will be kept")

		for range 2 {
			r := st.take()
			if r.Info.Name == "unit" {
				st.write(r, 0, "about to fail\n\x1b[31mboom\x1b[0m\n")
				st.upload(r, "artifact_type=junit&artifact_format=gzip", gzipped(t, `<testsuite><testcase name="works" classname="C" time="0.5"/><testcase name="breaks" classname="C"><failure>want &lt;1&gt;</failure></testcase></testsuite>`))
				st.end(r, "failed")
				continue
			}
			st.end(r, "success")
		}
		b.get(page).want(200, "st-failed", page+"/retry", page+"/failures", page+"/delete")
		b.get(page+"/failures").want(200, "about to fail", `<span class="f1 ">boom</span>`)
		b.get(page+"/test_report").want(200, "works", "breaks", "want &lt;1&gt;", "<b>2</b> tests")
		b.get(page+"/builds").want(200, "unit", "lint", "build")
		b.submit(page, page+"/retry").leads(page)
		again := fmt.Sprintf("%s/jobs/%d", at, st.job(id, "unit"))
		b.get(again).want(200, "Attempts", "waiting for a runner", "created by").not("started by")
		if raw := b.get(again + "/raw?download=1").want(200); raw.body != "" || raw.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("the log of a job that waits: %q %v", raw.body, raw.header)
		}
		b.get(at + "/jobs/999999/raw").want(404)
		st.end(st.take(), "success")
		deploy := fmt.Sprintf("%s/jobs/%d", at, st.job(id, "deploy"))
		b.get(deploy).want(200, "Run with variables").not("started by")
		b.submit(deploy, deploy+"/play", "variable_key", "WHO", "variable_value", "me").leads(deploy)
		b.submit(deploy, deploy+"/play").want(422, "Unplayable")
		st.end(st.take(), "success")
		b.get(deploy).want(200, "production", "started by")
		b.get(at+"/environments").want(200, "production", `href="https://example.org/app"`, "ada")
		b.get(at+"/pipelines/charts?days=30").want(200, "<b>1</b> passed", `<rect class="ok"`)
		if svg := b.get(at+"/badges/main/pipeline.svg").want(200, ">passed<"); svg.header.Get("Content-Type") != "image/svg+xml; charset=utf-8" {
			t.Errorf("badge %v", svg.header)
		}
		b.get(at+"/badges/none/coverage.svg").want(200, ">unknown<")
		short := strings.TrimSuffix(at, "/-")
		b.get(short+"/badges/main/pipeline.svg").want(200, ">passed<")
		b.get(short+"/badges/none/coverage.svg").want(200, ">unknown<")
		b.get(short + "/badges/main/other.svg").want(404)
		newBrowser(t, s).get("/none/at-all/badges/main/pipeline.svg").want(404)
		b.get(at + "/badges/main/other.svg").want(404)
		b.get(at + "/pipelines/latest?ref=main").leads(page)
		b.submit(job, job+"/retry").want(303)
		b.submit(again, job+"/erase").leads(job)
		b.get(job).want(200, "were erased")
		b.get(job + "/artifacts/browse").want(404)
		b.submit(page, page+"/cancel").leads(page)
		b.submit(page, page+"/delete").leads(at + "/pipelines")
		b.get(page).want(404)
		b.get(at + "/pipelines/0").want(404)
		b.get(at + "/jobs/999999").want(404)
	})
}

// TestAllowedFailure checks that parallel jobs are shown as groups, durations as
// running times, and failed jobs that are allowed to fail as warnings.
func TestAllowedFailure(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, "stages: [test, later]\nunit: {stage: test, parallel: 2, script: [x]}\nos: {stage: test, parallel: {matrix: [{OS: [linux, mac]}]}, script: [x]}\n"+
			"style: {stage: test, script: [x], allow_failure: true}\nship: {stage: later, script: [x], needs: [unit]}\n")
		const at = "/ada/p/-"
		b := newBrowser(t, s).signIn("ada", password)
		page := fmt.Sprintf("%s/pipelines/%d", at, st.pipeline("main"))
		p := b.get(page).want(200, `data-group="test/unit"`, `data-group="test/os"`, `<span class="badge">2<span class="sr"> jobs</span></span>`, "[mac]", "1/2").not(`data-group="later/ship"`, page+"/retry")
		if n := strings.Count(p.body, "<path d="); n != 1 {
			t.Errorf("%d lines", n)
		}
		var style string
		for range 6 {
			r := st.take()
			job := fmt.Sprintf("%s/jobs/%d", at, r.ID)
			st.write(r, 0, "at work\n")
			b.get(job).want(200, `<dt>Duration</dt><dd><span data-elapsed="`)
			if r.Info.Name == "style" {
				style = job
				st.end(r, "failed")
				continue
			}
			st.end(r, "success")
			b.get(job).want(200).not("data-elapsed")
		}
		const word = "Failed (allowed to fail)"
		b.get(page).want(200, "Passed with warnings", word, "dot st-warning", `<span class="badge warn" title="Allowed to fail">1<`, page+"/retry").not("st-failed", "badge bad")
		b.get(page+"/failures").want(200, "style", word)
		b.get(page+"/builds").want(200, word).not("st-failed")
		b.get(style).want(200, word, "note warn", "This job is allowed to fail").not("note bad")
		b.get(at+"/pipelines").want(200, "Passed with warnings", `title="test: Passed with warnings"`, `title="later: Passed"`)
		b.get(at+"/commits/main").want(200, "dot st-warning")
		b.get("/ada/p").want(200, `class="dot st-warning" href="`+page+`"`)
		b.submit(page, page+"/retry").leads(page)
		st.end(st.take(), "success")
		b.get(page).want(200, "Passed").not("st-warning", "Passed with warnings", page+"/retry")
	})
}

// TestInvalidPipeline checks that a pipeline with an invalid configuration has no
// retry button and cannot be retried.
func TestInvalidPipeline(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, ciFile)
		st.api("PUT /projects/%d/repository/files/.gitlab-ci.yml", 200, url.Values{"branch": {"dev"}, "commit_message": {"Break it"}, "content": {"a: {script: [x], stage: nowhere}"}})
		st.idle()
		var list []struct{ ID int64 }
		st.api("GET /projects/%d/pipelines", 200, nil).JSON(t, &list)
		const at = "/ada/p/-/pipelines"
		page := fmt.Sprintf("%s/%d", at, list[0].ID)
		b := newBrowser(t, s).signIn("ada", password)
		b.get(at).want(200, "YAML invalid", "st-failed").not(page + "/retry")
		b.get(page).want(200, "st-failed", page+"/delete").not(page + "/retry")
		b.submit(page, page+"/retry").want(403, "not retryable")
		b.get(page).want(200, "st-failed").not("st-skipped")
	})
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write([]byte(text))
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestSchedulePages creates, changes, runs and deletes a schedule.
func TestSchedulePages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, ciFile)
		const at = "/ada/p/-/pipeline_schedules"
		b := newBrowser(t, s).signIn("ada", password)
		b.get(at).want(200, "No schedules")
		b.submit(at+"/new", at, "description", "", "cron", "nonsense", "cron_timezone", "UTC", "ref", "main").want(422, "can&#39;t be blank", "wrong")
		b.submit(at+"/new", at, "description", "Twice", "cron", "0 4 * * *", "cron_timezone", "UTC", "ref", "main",
			"variable_key", "A", "variable_value", "1", "variable_key", "A", "variable_value", "2").want(422, "duplicate")
		b.get(at).want(200, "No schedules") // the refused form created nothing
		b.submit(at+"/new", at, "description", "Nightly", "cron", "0 4 * * *", "cron_timezone", "UTC", "ref", "main", "active", "1",
			"variable_key", "A", "variable_value", "1", "variable_key", "B", "variable_value", "two").leads(at)
		var list []struct{ ID int64 }
		st.api("GET /projects/%d/pipeline_schedules", 200, nil).JSON(t, &list)
		one := fmt.Sprintf("%s/%d", at, list[0].ID)
		b.get(at).want(200, "Nightly", "0 4 * * *", one+"/edit", "No pipeline yet")
		b.get(one+"/edit").want(200, `value="A"`, ">two</textarea>")
		b.submit(one+"/edit", one, "description", "Weekly", "cron", "0 4 * * 1", "cron_timezone", "UTC", "ref", "dev", "variable_key", "B", "variable_value", "three", "variable_key", "B", "variable_value", "four").want(422, "duplicate")
		b.submit(one+"/edit", one, "description", "Weekly", "cron", "0 4 * * 1", "cron_timezone", "UTC", "ref", "dev", "variable_key", "B", "variable_value", "three").leads(at)
		b.get(at).want(200, "Weekly", "Inactive", "dev")
		b.get(one+"/edit").want(200, ">three</textarea>").not(`value="A"`)
		b.submit(at, one+"/play").leads(at)
		st.idle()
		b.get(at).want(200, "st-pending")
		b.submit(at, one+"/delete").leads(at)
		b.get(at).want(200, "No schedules")
	})
}

// TestLintPage validates the configuration of the project, and a submitted one.
func TestLintPage(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, sqlite(t))
	newCIProject(t, s, ciFile)
	const at = "/ada/p/-/ci/lint"
	b := newBrowser(t, s).signIn("ada", password)
	b.get(at).want(200, "The configuration is valid: 4 jobs", "make deploy")
	b.submit(at, at, "content", "a: {script: [x], stage: nowhere}").want(200, "note bad", "nowhere")
	b.submit(at, at, "content", "a: {script: ['<b>']}", "dry_run", "1", "ref", "main").want(200, "note ok", "&lt;b&gt;")
	newBrowser(t, s).get(at).want(200, "The configuration is valid").not("<textarea")
}

// TestRunForm shows the inputs of a configuration.
func TestRunForm(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, sqlite(t))
	st := newCIProject(t, s, "spec:\n  inputs:\n    level: {type: number, description: How much, default: 3}\n    place: {options: [here, there]}\n---\na:\n  script:\n    - echo $[[ inputs.place ]] $[[ inputs.level ]]\n")
	const at = "/ada/p/-/pipelines"
	b := newBrowser(t, s).signIn("ada", password)
	b.get(at+"/new").want(200, "How much", `value="3"`, "<option>there", "(required)")
	b.submit(at+"/new", at, "ref", "main", "input_level", "much", "input_place", "here").want(422, "level")
	b.submit(at+"/new", at, "ref", "main", "input_level", "7", "input_place", "there").want(303)
	st.idle()
	if r := st.take(); r.Info.Name != "a" {
		t.Errorf("job %+v", r)
	}
}

// TestDownstreamPages checks that a child pipeline is shown to users who can see its
// parent, and a pipeline of another project to users who can see that project.
func TestDownstreamPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, "other:\n  trigger: {project: ada/secret}\nchild:\n  trigger: {include: [{local: child.yml}]}\n")
		st.s.Check(t, apptest.Call{Do: "POST /projects", As: st.owner, Form: url.Values{"name": {"Secret"}, "path": {"secret"}}, Status: 201})
		file := func(project, path, text string) {
			t.Helper()
			st.s.Check(t, apptest.Call{Do: "POST /projects/" + project + "/repository/files/" + path, As: st.owner, Status: 201,
				Form: url.Values{"branch": {"main"}, "commit_message": {"Add it [skip ci]"}, "content": {text}}})
			st.idle()
		}
		file("ada%2Fsecret", ".gitlab-ci.yml", "hush: {script: [x]}")
		file("ada%2Fp", "child.yml", "grow: {script: [x]}")
		id := st.pipeline("main")
		page := fmt.Sprintf("/ada/p/-/pipelines/%d", id)
		var bridges []struct {
			Name       string
			Downstream struct{ ID int64 } `json:"downstream_pipeline"`
		}
		st.api(fmt.Sprintf("GET /projects/%%d/pipelines/%d/bridges", id), 200, nil).JSON(t, &bridges)
		at := map[string]string{}
		for _, b := range bridges {
			at[b.Name] = map[string]string{"other": "/ada/secret", "child": "/ada/p"}[b.Name] + fmt.Sprintf("/-/pipelines/%d", b.Downstream.ID)
		}
		owner, guest := newBrowser(t, s).signIn("ada", password), newBrowser(t, s)
		owner.get(page).want(200, `href="`+at["other"]+`"`, `href="`+at["child"]+`"`)
		guest.get(page).want(200, `href="`+at["child"]+`"`).not("secret")
		owner.get(at["other"]).want(200, "hush", `Triggered by <a href="`+page+`"`)
		guest.get(at["other"]).want(404)
		guest.get(at["child"]).want(200, "grow", `Triggered by <a href="`+page+`"`)
		owner.get("/ada/p/-/pipelines?source=parent_pipeline").want(200, at["child"])
		owner.get("/ada/p/-/pipelines").want(200).not(at["child"])
	})
}
