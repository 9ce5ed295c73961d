package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestStatusesInPipelines sets commit statuses of external services in a pipeline
// with jobs.
func TestStatusesInPipelines(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "")
		first := w.sha("main")
		p := w.push("main", "go", map[string]string{".gitlab-ci.yml": "a: {script: [x]}\nb: {stage: deploy, script: [x]}\n"})
		sha := w.sha("main")
		set, list := w.at("POST", "/statuses/%s", sha), w.at("GET", "/repository/commits/%s/statuses", sha)
		single := w.at("GET", "/repository/commits/%s", sha)
		_, dave := s.User(t, "dave")
		s.Table(t, []apptest.Call{
			{Do: single, As: w.owner, Status: 200, Want: fmt.Sprintf(`{"status":"pending","last_pipeline":{"id":%d,"iid":1,"project_id":%d,"sha":%q,"ref":"main","status":"pending","source":"push",
				"created_at":"<any>","updated_at":"<any>","web_url":"<any>"}}`, p, w.project, sha)},
			{Do: w.at("GET", "/repository/commits/%s", first), As: w.owner, Status: 200, Want: `{"status":null,"last_pipeline":null}`},
			{Do: list, As: w.owner, Status: 200, Want: fmt.Sprintf(`[{"name":"a","status":"pending","target_url":"%s/alice/code/-/jobs/%d","pipeline_id":%d,"author":{"username":"alice"}},
				{"name":"b","status":"created","description":null,"allow_failure":false}]`, s.URL, w.job(p, "a"), p)},
			{Name: "joins", Do: set, As: w.owner, JSON: `{"state":"pending","name":"ext"}`, Status: 201, Want: fmt.Sprintf(`{"name":"ext","pipeline_id":%d}`, p)},
			{Name: "joins by id", Do: set, As: w.owner, JSON: fmt.Sprintf(`{"state":"running","name":"ext","pipeline_id":%d,"coverage":50}`, p), Status: 201},
			{Name: "another commit's", Do: w.at("POST", "/statuses/%s", first), As: w.owner, JSON: fmt.Sprintf(`{"state":"success","pipeline_id":%d}`, p), Status: 404,
				Want: `{"message":"404 Pipeline for pipeline_id, sha and ref Not Found"}`},
			{Name: "of one stage", Do: list + "?stage=external", As: w.owner, Status: 200, Want: `[{"name":"ext","status":"running"}]`},
			{Name: "of the other", Do: list + "?stage=deploy", As: w.owner, Status: 200, Want: `[{"name":"b"}]`},
			{Name: "of a pipeline", Do: list + fmt.Sprintf("?order_by=pipeline_id&sort=desc&per_page=1&page=3&pipeline_id=%d", p), As: w.owner, Status: 200, Want: `["<any>"]`,
				WantHeader: map[string]string{"X-Total": "3", "X-Next-Page": ""}},
			{Name: "of another", Do: list + "?pipeline_id=999999", As: w.owner, Status: 200, Want: `[]`},
		})
		w.end("success", "", "a")
		w.end("success", "", "b")
		w.see(p, "running | a:success b:success")
		s.Check(t, apptest.Call{Do: set, As: w.owner, JSON: `{"state":"success","name":"ext"}`, Status: 201})
		s.Check(t, apptest.Call{Do: w.at("GET", "/pipelines/%d", p), As: w.owner, Status: 200, Want: `{"status":"success","coverage":"50.00"}`})
		s.Check(t, apptest.Call{Do: set, As: w.owner, JSON: `{"state":"failed","name":"ext"}`, Status: 201})
		w.see(p, "failed | a:success b:success")

		// A status for a commit without a pipeline creates one, which can be
		// canceled.
		var made struct {
			PipelineID int64 `json:"pipeline_id"`
		}
		s.Check(t, apptest.Call{Do: w.at("POST", "/statuses/%s", first), As: w.owner, JSON: `{"state":"running"}`, Status: 201}).JSON(t, &made)
		s.Table(t, []apptest.Call{
			{Do: w.at("GET", "/pipelines?source=external"), As: w.owner, Status: 200, Want: fmt.Sprintf(`[{"id":%d,"status":"running","ref":"main","sha":%q}]`, made.PipelineID, first)},
			{Do: w.at("POST", "/pipelines/%d/cancel", made.PipelineID), As: w.owner, Status: 200, Want: `{"status":"canceled"}`},
			{Do: w.at("GET", "/repository/commits/%s/statuses", first), As: w.owner, Status: 200, Want: `[{"name":"default","status":"canceled","finished_at":"<any>"}]`},
			{Do: w.at("GET", "/repository/commits/%s", first), As: w.owner, Status: 200, Want: `{"status":"canceled"}`},

			// Jobs are only shown to users who can see pipelines.
			{Do: w.at("PUT", ""), As: w.owner, JSON: `{"visibility":"public","public_jobs":false}`, Status: 200},
			{Do: list, As: dave, Status: 200, Want: `[{"name":"ext"}]`},
			{Do: single, As: dave, Status: 200, Want: `{"status":null,"last_pipeline":null}`},
			{Do: single, As: w.owner, Status: 200, Want: `{"status":"failed"}`},

			// On a protected branch, setting a status requires permission to run
			// pipelines.
			{Do: w.at("POST", "/members"), As: w.owner, JSON: `{"username":"dave","access_level":30}`, Status: 201},
			{Do: set, As: dave, JSON: `{"state":"success"}`, Status: 201},
			{Do: w.at("POST", "/protected_branches"), As: w.owner, JSON: `{"name":"main","push_access_level":40,"merge_access_level":40}`, Status: 201},
			{Do: set, As: dave, JSON: `{"state":"success"}`, Status: 403},
			{Do: set, As: w.owner, JSON: `{"state":"success"}`, Status: 201},
		})
	})
}
