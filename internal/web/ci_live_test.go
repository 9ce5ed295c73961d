package web_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

// listener reads server-sent events like the script of a page.
type listener struct {
	t     *testing.T
	ctx   context.Context
	lines *bufio.Scanner
	stop  func()
}

// listen opens a stream of events. header has names and values in turn.
func (b *browser) listen(path string, header ...string) *listener {
	b.t.Helper()
	// The timeout is shorter than that of the test binary.
	ctx, stop := context.WithTimeout(b.t.Context(), 3*time.Minute)
	r, err := http.NewRequestWithContext(ctx, "GET", b.s.URL+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	if kind := res.Header.Get("Content-Type"); res.StatusCode != 200 || kind != "text/event-stream" {
		b.t.Fatalf("%s: %s %s", path, res.Status, kind)
	}
	end := func() { stop(); res.Body.Close() }
	b.t.Cleanup(end)
	return &listener{b.t, ctx, bufio.NewScanner(res.Body), end}
}

// next returns the name and data of the next event; both are empty at the end.
func (l *listener) next() (name, data string) {
	l.t.Helper()
	for l.lines.Scan() {
		text := l.lines.Text()
		switch {
		case strings.HasPrefix(text, "event: "):
			name = text[len("event: "):]
		case strings.HasPrefix(text, "data: "):
			data = text[len("data: "):]
		case text == "" && name != "":
			return name, data
		}
	}
	return "", ""
}

// TestLive follows the list of pipelines, a pipeline and the log of a job while they
// change.
func TestLive(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, "a:\n  script: [x]\n")
		guest := newBrowser(t, s)
		list := guest.listen("/ada/p/-/pipelines/events")
		id := st.pipeline("dev")
		if name, _ := list.next(); name != "changed" {
			t.Fatalf("the list hears %q", name)
		}
		one := guest.listen(fmt.Sprintf("/ada/p/-/pipelines/%d/events", id))
		job := st.take()
		if name, _ := one.next(); name != "changed" {
			t.Fatalf("the pipeline hears %q", name)
		}
		one.stop()

		log := guest.listen(fmt.Sprintf("/ada/p/-/jobs/%d/log/events?total=0", job.ID))
		if name, data := log.next(); name != "log" || !strings.Contains(data, `"total":0`) {
			t.Fatalf("first %s %s", name, data)
		}
		st.write(job, 0, "one\ntw")
		wait := func(event, want string) {
			t.Helper()
			for {
				name, data := log.next()
				if name == "" {
					t.Fatalf("the log ends before %s", want)
				}
				if name == event && strings.Contains(data, want) {
					return
				}
			}
		}
		wait("log", `"total":2,"lines":["one","tw"]`)
		st.write(job, len("one\ntw"), "o\n\x1b[32m<i>\n")
		wait("log", `"from":2,"total":3,"lines":["two","\u003cspan class=\"f2 \"\u003e\u0026lt;i\u0026gt;\u003c/span\u003e"]`)
		st.end(job, "success")
		wait("end", `"success"`)
		for name, _ := log.next(); name != ""; name, _ = log.next() {
			if name != "changed" {
				t.Errorf("after the end comes %s", name)
			}
		}
		// A listener that connects late gets the current lines and the end.
		late := guest.listen(fmt.Sprintf("/ada/p/-/jobs/%d/log/events?total=2", job.ID))
		if name, data := late.next(); name != "log" || !strings.Contains(data, `"from":2`) {
			t.Errorf("late %s %s", name, data)
		}
		if name, _ := late.next(); name != "end" {
			t.Errorf("late %s", name)
		}
	})
}

// TestPipelineMarkup uses markup as every name on the pages of pipelines: jobs,
// stages, refs, variables, environments, artifacts, reports, logs and search terms.
func TestPipelineMarkup(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, sqlite(t))
	quoted := `"` + strings.ReplaceAll(bad, `"`, `\"`) + `"`
	st := newCIProject(t, s, "variables:\n  V: {value: "+quoted+", description: "+quoted+"}\nstages: ["+quoted+", later]\n"+
		quoted+":\n  stage: "+quoted+"\n  tags: [linux]\n  script: ["+quoted+"]\n  environment: {name: production, url: 'javascript:alert(6)'}\n"+
		"next:\n  stage: later\n  needs: ["+quoted+"]\n  script: [x]\nworkflow: {name: "+quoted+"}\n")
	branch := "<u>onerror=1"
	st.api("POST /projects/%d/repository/branches", 201, url.Values{"branch": {branch}, "ref": {"main"}})
	st.idle()
	st.api("POST /projects/%d/pipeline_schedules", 201, url.Values{"description": {bad}, "ref": {branch}, "cron": {"0 4 * * *"}})
	r := st.take()
	st.write(r, 0, bad+"\nsection_start:1:x\r\x1b[0K"+bad+"\n\x1b]8;;javascript:alert(7)\x07link\x1b]8;;\x07\n\x1b[31"+bad+"m\n")
	st.upload(r, "artifact_type=archive&artifact_format=zip", zipped(t, "<img src=x onerror=alert(8)>/<u>.html", "<script>alert(9)</script>", "../evil", "x"))
	st.upload(r, "artifact_type=junit&artifact_format=gzip", gzipped(t, `<testsuite><testcase name="&lt;script&gt;alert(1)&lt;/script&gt;" classname="&lt;u&gt;"><failure>&lt;img src=x onerror=alert(2)&gt;</failure></testcase></testsuite>`))
	st.end(r, "failed")
	var list []struct{ ID int64 }
	st.api("GET /projects/%d/pipelines", 200, nil).JSON(t, &list)
	b := newBrowser(t, s).signIn("ada", password)
	tag := regexp.MustCompile(`<(script>|img src="?x|u>|i>)|="javascript:|<[a-z][^>]*\sonerror=`)
	attribute := regexp.MustCompile(`"[^"<>]*"`)
	pipeline, job := fmt.Sprintf("pipelines/%d", list[0].ID), fmt.Sprintf("jobs/%d", r.ID)
	for _, page := range []string{
		"", "pipelines", "pipelines?ref=" + url.QueryEscape(bad) + "&username=" + url.QueryEscape(bad), "pipelines/new?ref=" + url.QueryEscape(branch), "pipelines/new?ref=" + url.QueryEscape(bad),
		pipeline, pipeline + "/builds", pipeline + "/failures", pipeline + "/test_report", "jobs", job, job + "?q=" + url.QueryEscape(bad), job + "?from=1",
		job + "/artifacts/browse", job + "/artifacts/browse/" + url.PathEscape("<img src=x onerror=alert(8)>"),
		job + "/artifacts/file/" + url.PathEscape("<img src=x onerror=alert(8)>") + "/" + url.PathEscape("<u>.html"),
		"pipeline_schedules", "environments", "ci/lint", "pipelines/charts", "badges/" + url.PathEscape(branch) + "/pipeline.svg",
	} {
		path := "/ada/p/-/" + page
		if page == "" {
			path = "/ada/p"
		}
		p := b.get(path).want(200)
		if found := tag.FindString(attribute.ReplaceAllString(p.body, `""`)); found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
	w := read[window](b.get("/ada/p/-/" + job + "/log?from=1"))
	for _, line := range w.Lines {
		if found := tag.FindString(line); found != "" {
			t.Errorf("the log has %q", found)
		}
	}
	for _, page := range []string{job + "/raw", job + "/artifacts/raw/" + url.PathEscape("<img src=x onerror=alert(8)>") + "/" + url.PathEscape("<u>.html")} {
		p := b.get("/ada/p/-/" + page).want(200)
		kind := p.header.Get("Content-Type")
		if kind != "text/plain; charset=utf-8" && kind != "application/octet-stream" || !strings.Contains(p.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s comes as %s under %s", page, kind, p.header.Get("Content-Security-Policy"))
		}
	}
	b.get("/ada/p/-/" + job + "/artifacts/raw/..%2fevil").want(422)
}
