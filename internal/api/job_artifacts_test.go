package api_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/blob"
	"svc/internal/git/gittest"
)

const withArtifacts = `
build: {script: [x], artifacts: {paths: [out/], reports: {junit: j.xml}}, coverage: '/cov: \d+\.\d+/'}
`

// sizes compares the size of the artifacts of a job with the statistics of the
// project, which has no other artifacts, and of its group.
func (b *bench) sizes(t *testing.T, job int64) {
	t.Helper()
	var one struct{ Artifacts []struct{ Size int64 } }
	b.s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d", job), As: b.owner, Status: 200}).JSON(t, &one)
	sum := int64(0)
	for _, a := range one.Artifacts {
		sum += a.Size
	}
	group := group(t, b.s, b.owner, "sizes", "")
	b.s.Table(t, []apptest.Call{
		{Name: "statistics", Do: "GET " + b.at("") + "?statistics=true", As: b.owner, Status: 200, Want: fmt.Sprintf(`{"statistics":{"job_artifacts_size":%d}}`, sum)},
		{Name: "in a list", Do: "GET /projects?statistics=true", As: b.owner, Status: 200, Want: fmt.Sprintf(`[{"statistics":{"job_artifacts_size":%d}}]`, sum)},
		{Name: "of an empty group", Do: "GET /groups?statistics=true", As: apptest.RootToken, Status: 200, Want: `[{"statistics":{"job_artifacts_size":0,"storage_size":0}}]`},
		{Do: "PUT " + b.at("/transfer"), As: b.owner, JSON: fmt.Sprintf(`{"namespace":%d}`, group), Status: 200},
		{Name: "of a group", Do: "GET /groups?statistics=true", As: apptest.RootToken, Status: 200, Want: fmt.Sprintf(`[{"statistics":{"job_artifacts_size":%d}}]`, sum)},
	})
	if own := b.s.Check(t, apptest.Call{Do: "GET /groups?statistics=true", As: b.owner, Status: 200, Want: `[{"full_path":"sizes"}]`}); bytes.Contains(own.Body, []byte("statistics")) {
		t.Errorf("the owner is told: %s", own.Body)
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, withArtifacts)
		_, bob := s.User(t, "bob")
		pipeline := b.pipeline(b.project)
		j := b.run()
		b.patch(j, 0, "cov: 12.5\ncov: 80.25\n", 202)
		archive := zipped(t, map[string]string{"out/a.txt": "A", "out/page.html": "<script>", "out/deep/b.json": "{}"})
		b.upload(j, "artifact_type=nothing", archive, 400)
		b.upload(j, "artifact_type=trace&artifact_format=raw", archive, 400)
		b.upload(j, "artifact_type=metadata&artifact_format=gzip", gzipped(t, "x"), 400)
		b.upload(j, "artifact_type=archive&artifact_format=gzip", archive, 400)
		b.upload(j, "artifact_type=archive&expire_in=whenever", archive, 400)
		b.upload(j, "artifact_type=archive&artifact_format=zip&expire_in=2+days", archive, 201)
		b.upload(j, "artifact_type=archive&artifact_format=zip", archive, 201)
		b.upload(j, "artifact_type=archive&artifact_format=zip", []byte("other"), 400)
		b.upload(j, "artifact_type=dotenv&artifact_format=gzip", gzipped(t, "no equals sign"), 400)
		b.upload(j, "artifact_type=dotenv&artifact_format=gzip", gzipped(t, strings.Repeat("A=b\n", 2000)), 400)
		b.upload(j, "artifact_type=junit&artifact_format=gzip", gzipped(t, `<testsuite><testcase name="a" classname="c" time="1.5"/><testcase name="b"><failure>why</failure></testcase></testsuite>`), 201)
		at := b.at("/jobs/%d/artifacts", j.ID)
		s.Check(t, apptest.Call{Name: "before the end", Do: "GET " + b.at("/jobs/artifacts/main/download?job=build"), As: b.owner, Status: 404})
		b.update(j, 200, `{"state":"success"}`)
		b.upload(j, "artifact_type=metadata&artifact_format=gzip", gzipped(t, "x"), 403)
		b.putAway()
		got := s.Check(t, apptest.Call{Do: "GET " + at, As: b.owner, Status: 200, WantHeader: map[string]string{"Content-Disposition": "attachment; filename=artifacts.zip", "Content-Type": "application/zip"}})
		if !bytes.Equal(got.Body, archive) {
			t.Error("the archive is another one")
		}
		part := s.Check(t, apptest.Call{Do: "GET " + at, As: b.owner, Header: map[string]string{"Range": "bytes=0-0"}, Status: 206})
		if want := fmt.Sprintf("bytes 0-0/%d", len(archive)); part.Header.Get("Content-Range") != want {
			t.Errorf("Content-Range is %q, want %q", part.Header.Get("Content-Range"), want)
		}
		b.sizes(t, j.ID)
		s.Table(t, []apptest.Call{
			{Do: "GET " + b.at("/jobs/%d", j.ID), As: b.owner, Status: 200, Want: fmt.Sprintf(`{"coverage":80.25,"artifacts_file":{"filename":"artifacts.zip","size":%d},
				"artifacts":[{"file_type":"archive","file_format":"zip"},{"file_type":"metadata","file_format":"gzip","filename":"metadata.gz"},{"file_type":"junit","file_format":"gzip"},{"file_type":"trace","filename":"job.log","size":21}],"artifacts_expire_at":"<any>"}`, len(archive))},
			{Name: "not changed", Do: "GET " + at, As: b.owner, Header: map[string]string{"If-None-Match": got.Header.Get("ETag")}, Status: 304},
			{Name: "others", Do: "GET " + at, As: bob, Status: 404},
			{Name: "one file", Do: "GET " + at + "/out%2Fdeep%2Fb.json", As: b.owner, Status: 200, Want: `{}`, WantHeader: map[string]string{"Content-Disposition": "attachment; filename=b.json", "Content-Length": "2"}},
			{Name: "never a page", Do: "GET " + at + "/out%2Fpage.html", As: b.owner, Status: 200, WantHeader: map[string]string{"Content-Type": "application/octet-stream"}},
			{Name: "a directory", Do: "GET " + at + "/out", As: b.owner, Status: 404},
			{Name: "no such file", Do: "GET " + at + "/out%2Fc", As: b.owner, Status: 404},
			{Name: "out of it", Do: "GET " + at + "/..%2Fx", As: b.owner, Status: 400},
			{Name: "by ref", Do: "GET " + b.at("/jobs/artifacts/main/download?job=build"), As: b.owner, Status: 200},
			{Name: "by ref, no job", Do: "GET " + b.at("/jobs/artifacts/main/download"), As: b.owner, Status: 400, Want: `{"error":"job is missing"}`},
			{Name: "by ref, another job", Do: "GET " + b.at("/jobs/artifacts/main/download?job=x"), As: b.owner, Status: 404},
			{Name: "a file by ref", Do: "GET " + b.at("/jobs/artifacts/main/raw/out%%2Fdeep%%2Fb.json?job=build"), As: b.owner, Status: 200, Want: `{}`},
			{Name: "tests", Do: "GET " + b.at("/pipelines/%d/test_report", pipeline), As: b.owner, Status: 200, Want: `{"total_count":2,"success_count":1,"failed_count":1,"total_time":1.5,
				"test_suites":[{"name":"build","total_count":2,"test_cases":[{"name":"a","classname":"c","status":"success","execution_time":1.5},{"name":"b","status":"failed","system_output":"why"}]}]}`},
			{Name: "their numbers", Do: "GET " + b.at("/pipelines/%d/test_report_summary", pipeline), As: b.owner, Status: 200, Want: fmt.Sprintf(`{"total":{"count":2,"failed":1},"test_suites":[{"name":"build","build_ids":[%d]}]}`, j.ID)},
			{Name: "keep", Do: "POST " + at + "/keep", As: b.owner, Status: 200, Want: `{"artifacts_expire_at":null}`},
		})
		for _, path := range []string{at + "/out/deep/b.json", b.at("/jobs/artifacts/main/raw/out/deep/b.json?job=build")} {
			if got := b.plain(path); got != "{}" {
				t.Errorf("%s: %s", path, got)
			}
		}
		s.Clock.Move(60 * 24 * time.Hour)
		if err := s.CI.Retain(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Name: "kept", Do: "GET " + at, As: b.owner, Status: 200})
		blobs := b.blobs()
		s.Check(t, apptest.Call{Do: "DELETE " + at, As: b.owner, Status: 204})
		s.Check(t, apptest.Call{Name: "once", Do: "DELETE " + at, As: b.owner, Status: 404})
		b.settled()
		s.Check(t, apptest.Call{Do: "GET " + at, As: b.owner, Status: 404})
		s.Check(t, apptest.Call{Name: "the log stays", Do: "GET " + b.at("/jobs/%d/trace", j.ID), As: b.owner, Status: 200})
		if now := b.blobs(); now != blobs-4 {
			t.Errorf("%d files in the store, had %d: the space was not freed", now, blobs)
		}
	})
}

func TestArtifactsExpire(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, withArtifacts)
		var jobs []*assigned
		for range 2 {
			b.pipeline(b.project)
			j := b.run()
			b.patch(j, 0, "log", 202)
			b.upload(j, "artifact_type=archive&artifact_format=zip&expire_in=1+day", zipped(t, map[string]string{"a": "A"}), 201)
			b.update(j, 200, `{"state":"success"}`)
			jobs = append(jobs, j)
		}
		b.putAway()
		retain := func() {
			t.Helper()
			if err := s.CI.Retain(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.settled()
		}
		has := func(path string, j *assigned, status int) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/%s", j.ID, path), As: b.owner, Status: status})
		}
		// A crash during an upload leaves a file that no row refers to.
		const cut = "ci/00/1/1/archive-cut"
		if _, err := s.Blobs.Put(t.Context(), cut, strings.NewReader("half"), blob.Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DB.ExecContext(t.Context(), `INSERT INTO job_uploads (blob, created_at) VALUES (?, ?)`, cut, s.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		files := b.blobs()
		s.Clock.Move(12 * time.Hour)
		retain()
		has("artifacts", jobs[0], 200)
		if n := b.blobs(); n != files {
			t.Errorf("%d files of %d are left: what may still come was removed", n, files)
		}
		s.Clock.Move(24 * time.Hour)
		retain()
		if o, err := s.Blobs.Get(t.Context(), cut); err == nil {
			o.Close()
			t.Error("the half file is still there")
		}
		has("artifacts", jobs[0], 404)
		has("artifacts", jobs[1], 200) // of the latest successful pipeline
		has("trace", jobs[0], 200)
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"ci_log_retention_days":1,"ci_pipeline_retention_days":30}`, Status: 200})
		retain()
		has("trace", jobs[0], 404)
		if n := b.blobs(); n != 2 { // the archive and its metadata
			t.Errorf("%d files in the store, want 2", n)
		}
		s.Clock.Move(31 * 24 * time.Hour)
		retain()
		s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs"), As: b.owner, Status: 200, Want: `[]`})
		if n := b.blobs(); n != 0 {
			t.Errorf("%d files in the store, want none", n)
		}
	})
}

// plain returns the response for a path with slashes in a parameter, which OpenAPI
// cannot describe.
func (b *bench) plain(path string) string {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", b.s.URL+"/api/v4"+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("PRIVATE-TOKEN", b.owner)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// blobs returns the number of stored files of jobs.
func (b *bench) blobs() int {
	b.t.Helper()
	n := 0
	for _, err := range b.s.Blobs.List(b.t.Context(), "ci/") {
		if err != nil {
			b.t.Fatal(err)
		}
		n++
	}
	return n
}

// TestLargeArtifact uploads more than the server may hold in memory. A file above
// the size limit is refused before all of it is sent.
func TestLargeArtifact(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, withArtifacts)
		b.pipeline(b.project)
		j := b.run()
		const size = 24 << 20
		if status := b.stream(j, size); status != 201 {
			t.Fatalf("status %d", status)
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: root, JSON: `{"max_artifacts_size":1}`, Status: 200})
		b.update(j, 200, `{"state":"success"}`)
		b.pipeline(b.project)
		if status := b.stream(b.run(), size); status != 413 {
			t.Errorf("status %d over the limit", status)
		}
		res, err := http.Get(fmt.Sprintf("%s/api/v4%s?private_token=%s", s.URL, b.at("/jobs/%d/artifacts", j.ID), b.owner))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
			t.Errorf("%d bytes came back: %v", n, err)
		}
	})
}

// stream uploads random bytes without holding them in memory.
func (b *bench) stream(j *assigned, size int64) int {
	b.t.Helper()
	out, in := io.Pipe()
	form := multipart.NewWriter(in)
	go func() {
		w, err := form.CreateFormFile("file", "artifacts.zip")
		if err == nil {
			_, err = io.Copy(w, io.LimitReader(rand.Reader, size))
		}
		if err == nil {
			err = form.Close()
		}
		in.CloseWithError(err)
	}()
	r, err := http.NewRequestWithContext(b.t.Context(), "POST", fmt.Sprintf("%s/api/v4/jobs/%d/artifacts?artifact_format=zip", b.s.URL, j.ID), out)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("JOB-TOKEN", j.Token)
	r.Header.Set("Content-Type", form.FormDataContentType())
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// TestArtifactAccess checks the access to artifacts that the CI configuration sets.
func TestArtifactAccess(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, `
all: {script: [x], artifacts: {paths: [a]}}
developer: {script: [x], artifacts: {paths: [a], access: developer}}
none: {script: [x], artifacts: {paths: [a], access: none}}
`)
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		member(t, s, b.owner, b.project, bobID, 20)
		member(t, s, b.owner, b.project, carolID, 30)
		pipeline := b.pipeline(b.project)
		jobs := map[string]int64{}
		for range 3 {
			j := b.run()
			b.upload(j, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"a": "A"}), 201)
			b.update(j, 200, `{"state":"success"}`)
			jobs[j.JobInfo.Name] = j.ID
		}
		get := func(job, as string, status int) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "GET " + b.at("/jobs/%d/artifacts", jobs[job]), As: as, Status: status})
		}
		for as, want := range map[string]map[string]int{
			bob:   {"all": 200, "developer": 403, "none": 403},
			carol: {"all": 200, "developer": 200, "none": 403},
			"":    {"all": 404, "developer": 404, "none": 404},
		} {
			for job, status := range want {
				get(job, as, status)
			}
		}
		s.Check(t, apptest.Call{Do: "PUT " + b.at(""), As: b.owner, JSON: `{"visibility":"public"}`, Status: 200})
		get("all", "", 200)
		get("developer", "", 401)
		s.Check(t, apptest.Call{Do: "PUT " + b.at(""), As: b.owner, JSON: `{"public_jobs":false}`, Status: 200})
		get("all", "", 401)
		// Nor can a job of a user who is not a member download them.
		_, dave := s.User(t, "dave")
		away := newProject(t, s, dave, "away", "")
		s.Repository(t, away, gittest.Commit{Changes: file(".gitlab-ci.yml", "x: {script: [x]}")})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pipeline?ref=main", away), As: dave, Status: 201})
		foreign := b.run()
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /jobs/%d/artifacts?token=%s", jobs["all"], foreign.Token), Status: 403})
		s.Check(t, apptest.Call{Do: "PUT " + b.at(""), As: b.owner, JSON: `{"public_jobs":true}`, Status: 200})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /jobs/%d/artifacts?token=%s", jobs["all"], foreign.Token), Status: 200})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /jobs/%d/artifacts?token=%s", jobs["developer"], foreign.Token), Status: 403})
		s.Check(t, apptest.Call{Do: "PUT " + b.at(""), As: b.owner, JSON: `{"public_jobs":false}`, Status: 200})
		b.update(foreign, 200, `{"state":"success"}`)
		s.Check(t, apptest.Call{Name: "nor the tests", Do: "GET " + b.at("/pipelines/%d/test_report", pipeline), Status: 401})
		var runners []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /runners/all", As: root, Status: 200}).JSON(t, &runners)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /runners/%d/jobs?sort=asc", runners[0].ID), As: root, Status: 200, Want: fmt.Sprintf(`[{"id":%d},{"id":%d},{"id":%d},{"id":%d}]`, jobs["all"], jobs["developer"], jobs["none"], foreign.ID)})

		s.Check(t, apptest.Call{Name: "all of the project", Do: "DELETE " + b.at("/artifacts"), As: b.owner, Status: 202})
		b.settled()
		get("all", b.owner, 404)
		if n := b.blobs(); n != 0 {
			t.Errorf("%d files are left", n)
		}
	})
}

// TestProjectDeletesFiles checks that the files of a deleted project are deleted.
func TestProjectDeletesFiles(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, withArtifacts)
		b.pipeline(b.project)
		j := b.run()
		b.patch(j, 0, "log", 202)
		b.upload(j, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"a": "A"}), 201)
		b.update(j, 200, `{"state":"success"}`)
		b.putAway()
		if n := b.blobs(); n != 3 {
			t.Fatalf("%d files, want the log, the archive and what is in it", n)
		}
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200})
		s.Check(t, apptest.Call{Do: "DELETE " + b.at(""), As: b.owner, Status: 202})
		b.settled()
		if n := b.blobs(); n != 0 {
			t.Errorf("%d files are left", n)
		}
	})
}

// TestArtifactsOfLatestPipeline checks that artifacts by ref and name are those of the
// newest successful pipeline, and not found if its job has none.
func TestArtifactsOfLatestPipeline(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "build: {script: [x], artifacts: {paths: [a]}}\n")
		download := "GET " + b.at("/jobs/artifacts/main/download?job=build")
		end := func(state string, archived bool) {
			t.Helper()
			b.pipeline(b.project)
			j := b.run()
			if archived {
				b.upload(j, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"a": "A"}), 201)
			}
			b.update(j, 200, fmt.Sprintf(`{"state":%q}`, state))
			b.settled()
		}
		end("success", true)
		s.Check(t, apptest.Call{Do: download, As: b.owner, Status: 200})
		end("failed", true)
		s.Check(t, apptest.Call{Name: "a failed pipeline does not count", Do: download, As: b.owner, Status: 200})
		end("success", false)
		s.Check(t, apptest.Call{Name: "older pipelines do not count", Do: download, As: b.owner, Status: 404})
	})
}
