package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// people are the callers of the role tables of pipelines, the weakest first.
func people() []string {
	return []string{"nobody", "stranger", "guest", "reporter", "developer", "maintainer", "owner", "root"}
}

// TestPipelineRoles visits every page of pipelines as every role: in a public
// project with public pipelines, in one whose pipelines are visible to members only,
// and in a private one. Then every role uses all buttons.
func TestPipelineRoles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		st := newCIProject(t, s, "a:\n  script: [x]\n  artifacts: {paths: [out]}\nb:\n  stage: deploy\n  script: [x]\n  when: manual\n  environment: production\n")
		browsers := map[string]*browser{"nobody": newBrowser(t, s), "root": newBrowser(t, s).signIn("root", apptest.RootPassword)}
		for _, who := range people()[1:7] {
			id, _ := s.User(t, who)
			browsers[who] = newBrowser(t, s).signIn(who, password)
			if level := map[string]string{"guest": "10", "reporter": "20", "developer": "30", "maintainer": "40", "owner": "50"}[who]; level != "" {
				st.api("POST /projects/%d/members", 201, url.Values{"user_id": {fmt.Sprint(id)}, "access_level": {level}})
			}
		}
		id := st.pipeline("dev")
		a := st.take()
		st.write(a, 0, "secret words\n")
		st.upload(a, "artifact_type=archive&artifact_format=zip&expire_in=1+week", zipped(t, "out/a.txt", "hello"))
		st.end(a, "success")
		b := st.job(id, "b")
		st.api(fmt.Sprintf("POST /projects/%%d/jobs/%d/play", b), 200, nil)
		st.end(st.take(), "success")
		var environments, schedules []struct{ ID int64 }
		st.api("GET /projects/%d/environments", 200, nil).JSON(t, &environments)
		st.api("POST /projects/%d/pipeline_schedules", 201, url.Values{"description": {"nightly"}, "ref": {"dev"}, "cron": {"0 4 * * *"}})
		st.api("GET /projects/%d/pipeline_schedules", 200, nil).JSON(t, &schedules)
		names := strings.NewReplacer("{pipeline}", fmt.Sprint(id), "{job}", fmt.Sprint(a.ID), "{environment}", fmt.Sprint(environments[0].ID), "{schedule}", fmt.Sprint(schedules[0].ID))

		pages := []string{
			"pipelines", "pipelines/charts", "pipelines/{pipeline}", "pipelines/{pipeline}/builds", "pipelines/{pipeline}/failures", "pipelines/{pipeline}/test_report",
			"jobs", "jobs/{job}", "jobs/{job}/raw", "jobs/{job}/log", "jobs/{job}/log/search?q=secret", "jobs/{job}/log/events", "jobs/{job}/artifacts/browse", "jobs/{job}/artifacts/file/out/a.txt",
			"jobs/{job}/artifacts/raw/out/a.txt", "jobs/{job}/artifacts/download", "pipeline_schedules", "environments", "environments/{environment}", "badges/dev/pipeline.svg",
		}
		// The status of each page for each role, in the order of people.
		look := func(name, page, want string) {
			t.Helper()
			for i, status := range strings.Fields(want) {
				who := people()[i]
				if got := browsers[who].get("/ada/p/-/" + names.Replace(page)); fmt.Sprint(got.status) != status {
					t.Errorf("%s: %s gets %d for %s, want %s", name, who, got.status, page, status)
				}
			}
		}
		const all, members, within = "200 200 200 200 200 200 200 200", "303 403 403 200 200 200 200 200", "404 404 200 200 200 200 200 200"
		for _, page := range pages {
			look("public", page, all)
		}
		look("public", "ci/lint", all)
		look("public", "pipelines/new", "303 403 403 403 200 200 200 200")
		look("public", "pipeline_schedules/new", "303 403 403 403 200 200 200 200")
		look("public", "pipeline_schedules/{schedule}/edit", "303 403 403 403 403 403 403 200")
		look("public", "pipelines/{pipeline}/variables", "303 403 403 403 403 200 200 200")

		// Pages have no buttons for actions that the user may not take.
		for who, button := range map[string]string{"nobody": "<form method=\"post\"", "reporter": "/retry\"", "developer": "/erase\"", "maintainer": ""} {
			for _, page := range []string{"pipelines", "pipelines/{pipeline}", "jobs", "jobs/{job}"} {
				if body := browsers[who].get("/ada/p/-/" + names.Replace(page)).want(200).body; button != "" && strings.Contains(body, button) {
					t.Errorf("%s is shown %s on %s", who, button, page)
				}
			}
		}

		other := st.pipeline("main") // Developers may not run pipelines on it
		for _, page := range []string{"pipelines", fmt.Sprintf("pipelines/%d", other), "jobs?status=pending", fmt.Sprintf("jobs/%d", st.job(other, "a"))} {
			browsers["developer"].get("/ada/p/-/" + page).want(200).not("/cancel\"")
			browsers["maintainer"].get("/ada/p/-/"+page).want(200, "/cancel\"")
		}

		st.api("PUT /projects/%d", 200, url.Values{"public_jobs": {"false"}})
		for _, page := range pages {
			look("for members", page, members)
		}
		browsers["nobody"].get("/ada/p").want(200).not("/-/pipelines")
		browsers["nobody"].get("/ada/p/-/commits/main").want(200).not("/-/pipelines")
		browsers["reporter"].get("/ada/p/-/commits/main").want(200, `class="dot st-`)
		browsers["guest"].get("/ada/p").want(200).not("/-/pipelines")
		browsers["reporter"].get("/ada/p").want(200, "/-/pipelines")
		st.api("PUT /projects/%d", 200, url.Values{"public_jobs": {"true"}, "visibility": {"private"}})
		for _, page := range pages {
			look("private", page, within)
		}
		st.api("PUT /projects/%d", 200, url.Values{"visibility": {"public"}})

		// The buttons. The strongest role that has an effect comes last.
		for _, c := range []struct{ page, form, want string }{
			{"pipelines", "ref=dev", "403 403 403 303 303 303 303"},
			{"pipelines", "ref=main", "403 403 403 422 303 303 303"},
			{"jobs/{job}/retry", "", "403 403 403 303 403 403 403"}, // a retried job cannot be retried again
			{"jobs/{job}/cancel", "", "403 403 403 303 303 303 303"},
			{"jobs/{job}/play", "", "403 403 403 422 422 422 422"},
			{"jobs/{job}/unschedule", "", "403 403 403 422 422 422 422"},
			{"jobs/{job}/artifacts/keep", "", "403 403 403 303 303 303 303"},
			{"jobs/{job}/artifacts/delete", "", "403 403 403 403 303 404 404"},
			{"jobs/{job}/erase", "", "403 403 403 403 303 403 403"},
			{"pipelines/{pipeline}/cancel", "", "403 403 403 303 303 303 303"},
			{"pipelines/{pipeline}/retry", "", "403 403 403 303 303 303 303"},
			{"pipeline_schedules", "description=x&cron=0 4 * * *&cron_timezone=UTC&ref=dev", "403 403 403 303 303 303 303"},
			{"pipeline_schedules/{schedule}", "description=x&cron=0 4 * * *&cron_timezone=UTC&ref=dev", "403 403 403 403 403 403 303"},
			{"pipeline_schedules/{schedule}/play", "", "403 403 403 303 303 303 303"},
			{"pipeline_schedules/{schedule}/take_ownership", "", "403 403 403 403 303 303 303"},
			{"pipeline_schedules/{schedule}/delete", "", "403 403 403 403 303 404 404"},
			{"environments/{environment}/stop", "", "403 403 403 303 303 303 303"},
			{"environments/{environment}/delete", "", "403 403 403 303 404 404 404"},
			{"ci/lint", "content=a: {script: [x]}", "403 403 403 200 200 200 200"},
			{"pipelines/{pipeline}/delete", "", "403 403 403 403 403 303 404"},
		} {
			for i, status := range strings.Fields(c.want) {
				who := people()[i+1]
				form, err := url.ParseQuery(c.form)
				if err != nil {
					t.Fatal(err)
				}
				form.Set("authenticity_token", browsers[who].get("/").want(200).token())
				if got := browsers[who].post("/ada/p/-/"+names.Replace(c.page), form); fmt.Sprint(got.status) != status {
					t.Errorf("%s gets %d for %s, want %s", who, got.status, c.page, status)
				}
			}
			st.idle()
		}
	})
}
