package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/waittest"
)

const twoJobs = `
build:
  stage: build
  image: {name: alpine, entrypoint: [""]}
  services: [{name: postgres, alias: db}]
  variables: {GREETING: hello}
  before_script: [one]
  script: [two]
  after_script: [three]
  cache: {key: {files: [go.sum], prefix: p}, paths: [vendor/]}
  artifacts: {paths: [out/], expire_in: 1 week, reports: {junit: report.xml, dotenv: build.env}}
test:
  stage: test
  script: [four]
`

const twoPhase = `,"info":{"name":"r","version":"17.5.0","platform":"linux","features":{"two_phase_job_commit":true,"upload_multiple_artifacts":true,"artifacts_exclude":true}}`

func TestRunnerRunsPipeline(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, twoJobs)
		b.take(b.runner, 204, "")
		b.pipeline(b.project)
		answer := s.Check(t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1"%s}`, b.runner, twoPhase), Status: 201, Want: fmt.Sprintf(`{
			"allow_git_fetch":true,"job_info":{"name":"build","stage":"build","project_id":%d,"project_name":"code","project_full_path":"alice/code"},
			"git_info":{"ref":"main","ref_type":"branch","depth":20,"repo_object_format":"sha1"},
			"runner_info":{"timeout":3600},
			"steps":[{"name":"script","script":["one","two"],"timeout":3600,"when":"on_success","allow_failure":false},
				{"name":"after_script","script":["three"],"when":"always","allow_failure":true}],
			"image":{"name":"alpine","entrypoint":[""]},"services":[{"name":"postgres","alias":"db"}],
			"artifacts":[{"paths":["out/"],"expire_in":"1 week","artifact_type":"archive","artifact_format":"zip"},
				{"paths":["build.env"],"artifact_type":"dotenv","artifact_format":"gzip","when":"always"},
				{"paths":["report.xml"],"artifact_type":"junit","artifact_format":"gzip","when":"always","name":"junit.xml"}],
			"dependencies":[],"credentials":[],"features":{"trace_sections":true}}`, b.project)})
		var j assigned
		answer.JSON(t, &j)
		if want := s.URL[:7] + "gitlab-ci-token:" + j.Token + "@" + s.URL[7:] + "/alice/code.git"; j.GitInfo.RepoURL != want {
			t.Errorf("repository is %q, want %q", j.GitInfo.RepoURL, want)
		}
		if want := "+refs/heads/main:refs/remotes/origin/main"; len(j.GitInfo.Refspecs) != 2 || j.GitInfo.Refspecs[1] != want {
			t.Errorf("refspecs are %q", j.GitInfo.Refspecs)
		}
		cache := decode(t, answer.Body)["cache"].([]any)[0].(map[string]any)
		if key := cache["key"].(string); !strings.HasPrefix(key, "p-") || !strings.HasSuffix(key, "-non_protected") && !strings.HasSuffix(key, "-protected") {
			t.Errorf("cache key is %q", key)
		}
		variables := map[string]string{}
		for _, v := range j.Variables {
			variables[v.Key] = v.Value
			if v.Key == "CI_JOB_TOKEN" && !v.Masked {
				t.Error("the job token is not masked")
			}
		}
		if variables["CI_JOB_TOKEN"] != j.Token || variables["GREETING"] != "hello" || variables["CI_RUNNER_TAGS"] != `["a", "b"]` {
			t.Errorf("variables: %v", variables)
		}
		if got := b.status(j.ID); got != "pending" {
			t.Errorf("the job is %s before its runner began", got)
		}
		b.take(b.runner, 204, twoPhase) // the second job depends on the first
		b.update(&j, 200, `{"state":"running"}`)
		if got := b.status(j.ID); got != "running" {
			t.Errorf("the job is %s after its runner began", got)
		}
		first := "\x1b[0KRunning\n"
		got := b.patch(&j, 0, first, 202)
		if got.Header.Get("Range") != fmt.Sprintf("0-%d", len(first)) || got.Header.Get("Job-Status") != "running" || got.Header.Get("X-GitLab-Trace-Update-Interval") != "60" {
			t.Errorf("headers of a patch: %v", got.Header)
		}
		b.upload(&j, "artifact_type=archive&artifact_format=zip&expire_in=1+week", zipped(t, map[string]string{"out/a.txt": "A", "out/deep/b.txt": "B"}), 201)
		b.upload(&j, "artifact_type=dotenv&artifact_format=gzip", gzipped(t, "FROM_BUILD=yes\n"), 201)
		if got := b.update(&j, 200, crc(first)); got.Header.Get("Job-Status") != "success" || string(got.Body) != "200" {
			t.Errorf("the end: %v %s", got.Header, got.Body)
		}
		b.update(&j, 200, crc(first)) // the runner did not get the response
		if got := b.patch(&j, len(first), "more", 403); got.Header.Get("Job-Status") != "success" {
			t.Errorf("after the end: %v", got.Header)
		}
		next := b.take(b.runner, 201, twoPhase)
		if next.JobInfo.Name != "test" || len(next.Dependencies) != 1 || next.Dependencies[0].ID != j.ID {
			t.Fatalf("the second job: %+v", next)
		}
		b.update(next, 200, `{"state":"running"}`)
		for _, v := range next.Variables {
			variables[v.Key] = v.Value
		}
		if variables["FROM_BUILD"] != "yes" {
			t.Error("the dotenv report did not become a variable")
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /jobs/%d/artifacts", j.ID), Header: map[string]string{"JOB-TOKEN": next.Dependencies[0].Token}, Status: 200,
			WantHeader: map[string]string{"Content-Type": "application/zip"}})
		b.update(next, 200, `{"state":"failed","failure_reason":"script_failure","exit_code":3}`)
		if got := b.status(next.ID); got != "failed" {
			t.Errorf("the second job is %s", got)
		}
		b.settled()
		log := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/trace", j.ID), As: b.owner, Status: 200})
		if string(log.Body) != first {
			t.Errorf("log is %q", log.Body)
		}
	})
}

func TestRunnerRefusals(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		b.pipeline(b.project)
		s.Table(t, []apptest.Call{
			{Name: "no token", Do: "POST /jobs/request", JSON: `{}`, Status: 403, Want: `{"message":"403 Forbidden"}`},
			{Name: "a wrong one", Do: "POST /jobs/request", JSON: `{"token":"glrt-x"}`, Status: 403},
			{Name: "a user's", Do: "POST /jobs/request", As: b.owner, JSON: `{}`, Status: 403},
			{Name: "the router", Do: "GET /runners/router/discovery", Status: 501},
			{Name: "unknown job", Do: "PUT /jobs/99999", JSON: `{"token":"x","state":"running"}`, Status: 403},
		})
		j := b.run()
		other := *j
		other.Token = "svccbt-other"
		b.update(&other, 403, `{"state":"success"}`)
		b.patch(&other, 0, "x", 403)
		b.upload(&other, "", []byte("x"), 403)
		if got := b.patch(j, -1, "x", 400); string(got.Body) != `{"error":"400 Missing header Content-Range"}` {
			t.Errorf("without Content-Range: %s", got.Body)
		}
		if got := b.patch(j, 5, "x", 416); got.Header.Get("Range") != "0-0" {
			t.Errorf("a gap: %v", got.Header)
		}
		b.patch(j, 0, "hello", 202)
		if got := b.patch(j, 0, "hello", 416); got.Header.Get("Range") != "0-5" {
			t.Errorf("again: %v", got.Header)
		}
		b.patch(j, 5, " world", 202)
		// The stored log has another size than the runner reports, then another
		// checksum.
		b.update(j, 412, crc("hello world!"))
		b.patch(j, 11, "!", 202)
		b.update(j, 412, crc("hallo world!"))
		if got := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/trace", j.ID), As: b.owner, Status: 200}); string(got.Body) != "hello world!" {
			t.Errorf("the log shrank to %q", got.Body)
		}
		b.patch(j, 0, "hallo world!", 202)
		b.update(j, 200, crc("hallo world!"))
		b.putAway()
		if got := s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/trace", j.ID), As: b.owner, Status: 200}); string(got.Body) != "hallo world!" {
			t.Errorf("the log is %q", got.Body)
		}
	})
}

// TestNoJobTwice requests jobs concurrently. The jobs stay pending until their
// runners start them, so that only the queue prevents duplicates.
func TestNoJobTwice(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x], parallel: 60}")
		b.pipeline(b.project)
		var mu sync.Mutex
		got := map[int64]int{}
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/api/v4/jobs/request", strings.NewReader(fmt.Sprintf(`{"token":%q,"system_id":"s_%d"%s}`, b.runner, i, twoPhase)))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Content-Type", "application/json")
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				switch res.StatusCode {
				case 201:
					var j assigned
					if err := jsonBody(res, &j); err != nil {
						t.Error(err)
					}
					got[j.ID]++
				case 204:
				default:
					t.Errorf("status %d", res.StatusCode)
				}
			})
		}
		wg.Wait()
		for id, n := range got {
			if n != 1 {
				t.Errorf("job %d was given %d times", id, n)
			}
		}
		if len(got) != 60 {
			t.Errorf("%d jobs were given, want 60", len(got))
		}
	})
}

func TestLongPolling(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		first := s.Check(t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q}`, b.runner), Status: 204})
		cursor := first.Header.Get("X-GitLab-Last-Update")
		if cursor == "" {
			t.Fatal("no cursor")
		}
		s.Check(t, apptest.Call{Name: "what is no cursor is not held", Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q,"last_update":"other"}`, b.runner), Status: 204})
		answers := make(chan *assigned)
		held := func() bool { return s.CI.JobQueue.Held() == 1 }
		go func() { answers <- b.take(b.runner, 201, fmt.Sprintf(`,"last_update":%q`, cursor)) }()
		waittest.For(t, "the request is held", held)
		b.pipeline(b.project)
		if j := waittest.Receive(t, "the runner gets the job", answers); j == nil || j.JobInfo.Name != "a" {
			t.Errorf("got %+v", j)
		}
		// If a runner is changed, its long poll ends, so that it requests again with
		// the new settings.
		go func() { answers <- b.take(b.runner, 204, fmt.Sprintf(`,"last_update":%q`, cursor)) }()
		waittest.For(t, "the second request is held", held)
		var runners []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /runners/all", As: root, Status: 200}).JSON(t, &runners)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /runners/%d", runners[0].ID), As: root, JSON: `{"paused":true}`, Status: 200})
		waittest.Receive(t, "the runner is answered", answers)
	})
}

// TestLongPollingOtherCursorAndNewTags checks long polls with a cursor of another
// node, because a load balancer sends the requests of a runner to any node. The
// first runner does not have the tag of the job, which the nodes have not seen
// before.
func TestLongPollingOtherCursorAndNewTags(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x], tags: [c]}")
		other := newRunner(t, s, root, `{"runner_type":"instance_type","tag_list":["c"]}`)
		first, second := make(chan *assigned), make(chan *assigned)
		held := func(n int) func() bool { return func() bool { return s.CI.JobQueue.Held() == n } }
		go func() { first <- b.take(b.runner, 204, `,"last_update":"Zq4_-x1y-1"`) }()
		waittest.For(t, "the request with the cursor of another node is held", held(1))
		go func() { second <- b.take(other, 201, `,"last_update":"svc-1"`) }()
		waittest.For(t, "the second request is held", held(2))
		b.pipeline(b.project)
		if j := waittest.Receive(t, "the second runner gets the job", second); j == nil || j.JobInfo.Name != "a" {
			t.Errorf("got %+v", j)
		}
		s.CI.JobQueue.Close()
		waittest.Receive(t, "the first runner is answered", first)
	})
}

// TestLongPollingPrefersWait checks that the long poll ends after the wait that the
// runner prefers.
func TestLongPollingPrefersWait(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		start := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/v4/jobs/request", strings.NewReader(fmt.Sprintf(`{"token":%q,"last_update":"svc-1"}`, b.runner)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Prefer", "respond-async, wait=1")
		if a := s.Exchange(t, r); a.Status != 204 || time.Since(start) < time.Second {
			t.Errorf("status %d after %s", a.Status, time.Since(start))
		}
	})
}

// TestRepeatedUpdates checks that a runner can repeat an update while the first one
// is not yet answered, for example through a proxy that has given up waiting.
func TestRepeatedUpdates(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x], parallel: 10}")
		b.pipeline(b.project)
		for range 10 {
			j := b.run()
			for _, state := range []string{"running", "success"} {
				answers := make([]apptest.Answer, 4)
				var group sync.WaitGroup
				for i := range answers {
					group.Go(func() {
						answers[i] = s.Send(t, apptest.Call{Do: fmt.Sprintf("PUT /jobs/%d", j.ID), Header: map[string]string{"JOB-TOKEN": j.Token}, JSON: fmt.Sprintf(`{"state":%q}`, state)})
					})
				}
				group.Wait()
				for _, a := range answers {
					if a.Status != http.StatusOK {
						t.Errorf("job %d: %s: %d %s", j.ID, state, a.Status, a.Body)
					}
				}
			}
		}
	})
}
