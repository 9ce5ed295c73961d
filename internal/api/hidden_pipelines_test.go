package api_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

const hiddenYAML = `
open: {script: [x], environment: production, rules: [{if: $CI_COMMIT_BRANCH == "main"}]}
secret:
  script: [x]
  artifacts: {paths: [out/], reports: {junit: j.xml}}
  environment: review
  rules: [{if: $CI_PIPELINE_SOURCE == "merge_request_event"}]
below:
  trigger: {include: child.yml}
  rules: [{if: $CI_PIPELINE_SOURCE == "merge_request_event"}]
`

// TestMergeRequestPipelineLeak checks that merge request pipelines are only visible
// to members if merge requests are, in a project with public pipelines.
func TestMergeRequestPipelineLeak(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, hiddenYAML)
		at := fmt.Sprintf("/projects/%d", w.project)
		s.Check(t, apptest.Call{Do: "PUT " + at, As: w.owner, JSON: `{"visibility":"public","merge_requests_access_level":"private"}`, Status: 200})
		open := w.push("main", "Shown work", map[string]string{"child.yml": "inner: {script: [x], rules: [{when: always}]}\n"})
		w.push("work", "Hidden work", map[string]string{"work.txt": hiddenText + "\n"})
		sha := w.sha("work")
		requested(t, s, w.owner, w.project, "work", "")
		w.settled()
		jobs := map[string]int64{}
		for range 2 { // the child pipeline starts after its trigger job
			for j := range w.taken() {
				jobs[j.JobInfo.Name] = j.ID
				w.patch(j, 0, "log with "+hiddenText+"\n", 202)
				if j.JobInfo.Name == "secret" {
					w.upload(j, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"out/a.txt": hiddenText}), 201)
					w.upload(j, "artifact_type=junit&artifact_format=gzip", gzipped(t, `<testsuite name="`+hiddenText+`"><testcase name="a"/></testsuite>`), 201)
				}
				w.update(j, 200, `{"state":"success"}`)
			}
			w.settled()
		}
		w.putAway()
		s.Check(t, apptest.Call{Do: "DELETE " + at + "/repository/branches/work", As: w.owner, Status: 204})
		w.settled()
		var list []struct {
			ID          int64
			Ref, Source string
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/pipelines?source=merge_request_event", As: w.owner, Status: 200}).JSON(t, &list)
		if len(list) != 1 || jobs["secret"] == 0 || jobs["inner"] == 0 {
			t.Fatalf("pipelines %v, jobs %v, trigger jobs %s", list, jobs, s.Send(t, apptest.Call{Do: fmt.Sprintf("GET %s/pipelines/%d/bridges", at, list[0].ID), As: w.owner}).Body)
		}
		made := list[0].ID
		s.Check(t, apptest.Call{Do: "GET " + at + "/pipelines?source=parent_pipeline", As: w.owner, Status: 200}).JSON(t, &list)
		if len(list) != 1 {
			t.Fatalf("child pipelines: %v", list)
		}
		var deployments []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + at + "/deployments?environment=review", As: w.owner, Status: 200}).JSON(t, &deployments)
		var environments []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + at + "/environments?name=review", As: w.owner, Status: 200}).JSON(t, &environments)
		if len(deployments) != 1 || len(environments) != 1 {
			t.Fatalf("deployments %v, environments %v", deployments, environments)
		}
		fill := strings.NewReplacer("{at}", at, "{made}", fmt.Sprint(made), "{child}", fmt.Sprint(list[0].ID), "{secret}", fmt.Sprint(jobs["secret"]), "{inner}", fmt.Sprint(jobs["inner"]),
			"{sha}", sha, "{deployment}", fmt.Sprint(deployments[0].ID), "{environment}", fmt.Sprint(environments[0].ID), "{ref}", "refs%2Fmerge-requests%2F1%2Fhead", "{open}", fmt.Sprint(open))
		// Endpoints that are for members only, and lists without these pipelines for
		// others.
		single := []string{
			"{at}/pipelines/{made}", "{at}/pipelines/{child}", "{at}/pipelines/{made}/jobs", "{at}/pipelines/{child}/jobs", "{at}/pipelines/{made}/bridges",
			"{at}/pipelines/{made}/test_report", "{at}/pipelines/{made}/test_report_summary", "{at}/jobs/{secret}", "{at}/jobs/{inner}", "{at}/jobs/{secret}/trace",
			"{at}/jobs/{secret}/artifacts", "{at}/jobs/{secret}/artifacts/out%2Fa.txt", "{at}/deployments/{deployment}",
			"{at}/jobs/artifacts/{ref}/download?job=secret", "{at}/jobs/artifacts/{ref}/raw/out%2Fa.txt?job=secret",
		}
		lists := []string{
			"{at}/pipelines", "{at}/pipelines?source=merge_request_event", "{at}/pipelines?source=parent_pipeline", "{at}/pipelines?sha={sha}", "{at}/pipelines?ref={ref}",
			"{at}/pipelines?scope=branches", "{at}/pipelines?scope=finished", "{at}/pipelines?status=success", "{at}/pipelines?order_by=updated_at", "{at}/jobs", "{at}/jobs?scope[]=success",
			"{at}/jobs?scope[]=success&scope[]=failed", "{at}/deployments", "{at}/deployments?environment=review", "{at}/environments/{environment}",
		}
		pages := []string{"pipelines", "jobs", "environments", "environments/{environment}", "pipelines?source=merge_request_event"}
		hiddenPages := []string{
			"pipelines/{made}", "pipelines/{child}", "jobs/{secret}", "jobs/{inner}", "jobs/{secret}/raw", "jobs/{secret}/log", "jobs/{secret}/log/search?q=log", "jobs/{secret}/log/events",
			"jobs/{secret}/artifacts/browse", "jobs/{secret}/artifacts/download", "pipelines/{made}/events", "pipelines/{made}/test_report", "pipelines/{made}/builds", "pipelines/{made}/failures",
		}
		leaks := func(body []byte) bool {
			for _, secret := range []string{hiddenText, "Hidden work", sha, "merge-requests", `"secret"`, `"inner"`} {
				if bytes.Contains(body, []byte(secret)) {
					return true
				}
			}
			return false
		}
		outsider, outsiderToken := s.User(t, "outsider")
		guest, guestToken := s.User(t, "guest")
		enlist(t, s, w.project, guest, project.Guest)
		reporter, reporterToken := s.User(t, "reporter")
		enlist(t, s, w.project, reporter, project.Reporter)
		for _, who := range []struct {
			name, token string
			header      map[string]string
			sees        bool
		}{
			{name: "anonymous"}, {name: "outsider", token: outsiderToken}, {name: "guest", token: guestToken},
			{name: "outsider with read_api", token: s.Token(t, outsider, "read_api")},
			{name: "outsider by OAuth", header: map[string]string{"Authorization": "Bearer " + oauthToken(t, s, outsider, "outsider", "read_api")}},
			{name: "reporter", token: reporterToken, sees: true}, {name: "reporter with read_api", token: s.Token(t, reporter, "read_api"), sees: true},
			{name: "administrator", token: root, sees: true},
		} {
			for _, read := range single {
				got := s.Send(t, apptest.Call{Do: "GET " + fill.Replace(read), As: who.token, Header: who.header})
				if want := map[bool]int{true: 200, false: 404}[who.sees]; got.Status != want || !who.sees && leaks(got.Body) {
					t.Errorf("%s, %s: status %d, want %d: %.300s", who.name, read, got.Status, want, got.Body)
				}
			}
			for _, read := range lists {
				got := s.Send(t, apptest.Call{Do: "GET " + fill.Replace(read), As: who.token, Header: who.header})
				if got.Status != 200 || leaks(got.Body) != who.sees {
					t.Errorf("%s, %s: status %d: %.600s", who.name, read, got.Status, got.Body)
				}
			}
			s.Check(t, apptest.Call{Name: who.name, Do: "GET " + fill.Replace("{at}/pipelines/{open}"), As: who.token, Header: who.header, Status: 200})
			s.Check(t, apptest.Call{Name: who.name, Do: "GET " + fill.Replace("{at}/pipelines/latest?ref={ref}"), As: who.token, Header: who.header, Status: 404})
		}
		for _, page := range hiddenPages {
			if got := s.Send(t, apptest.Call{Do: "GET //alice/code/-/" + fill.Replace(page)}); got.Status != 404 || leaks(got.Body) {
				t.Errorf("page %s: status %d: %.300s", page, got.Status, got.Body)
			}
		}
		for _, page := range pages {
			if got := s.Send(t, apptest.Call{Do: "GET //alice/code/-/" + fill.Replace(page)}); got.Status != 200 || leaks(got.Body) {
				t.Errorf("page %s: status %d", page, got.Status)
			}
		}
		badge := s.Send(t, apptest.Call{Do: "GET //alice/code/-/badges/refs/merge-requests/1/head/pipeline.svg"})
		if bytes.Contains(badge.Body, []byte("passed")) {
			t.Errorf("the badge of a merge request: %s", badge.Body)
		}
	})
}
