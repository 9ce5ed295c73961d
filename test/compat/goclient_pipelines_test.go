package compat

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestGoClientPipelines manages pipelines, their jobs, runners, schedules, triggers
// and variables. All parts use one server in turn.
func TestGoClientPipelines(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		h := newHosting(t, s)
		for _, part := range []struct {
			name string
			run  func(*testing.T, *hosting)
		}{
			{"pipelines", goPipelines}, {"jobs", goJobs}, {"artifacts", goArtifacts}, {"downstream", goDownstream}, {"job_token", goJobToken},
			{"project_variables", goProjectVariables}, {"group_variables", goGroupVariables}, {"triggers", goTriggers}, {"schedules", goSchedules},
			{"runners", goRunners}, {"environments", goEnvironments}, {"deployments", goDeployments}, {"resource_groups", goResourceGroups},
			{"lint", goLint}, {"commit_statuses", goCommitStatuses},
		} {
			t.Run(part.name, func(t *testing.T) { part.run(t, h) })
		}
	})
}

// pipelined creates a project as Ada with a CI/CD configuration, and a runner for
// it.
func (h *hosting) pipelined(t *testing.T, path, yaml string) (*gitlab.Project, worker) {
	t.Helper()
	p := h.project(t, path)
	h.write(t, p, "main", ".gitlab-ci.yml", yaml, "CI [skip ci]")
	o := userRunner(p.ID)
	o.Description = new("of " + path)
	made := ask(h.ada.Users.CreateUserRunner(o)).done(t, http.StatusCreated)
	return p, worker{h.s.url, made.Token}
}

func userRunner(projectID int64) *gitlab.CreateUserRunnerOptions {
	return &gitlab.CreateUserRunnerOptions{RunnerType: new("project_type"), ProjectID: &projectID, TagList: &[]string{"shell"}, RunUntagged: new(true)}
}

// pipeline starts a pipeline for main.
func (h *hosting) pipeline(t *testing.T, p *gitlab.Project, variables ...*gitlab.PipelineVariableOptions) *gitlab.Pipeline {
	t.Helper()
	return ask(h.ada.Pipelines.CreatePipeline(p.ID, &gitlab.CreatePipelineOptions{Ref: new("main"), Variables: &variables})).done(t, http.StatusCreated)
}

func variable(key, value string) *gitlab.PipelineVariableOptions {
	return &gitlab.PipelineVariableOptions{Key: &key, Value: &value, VariableType: new(gitlab.EnvVariableType)}
}

// states returns the jobs of a pipeline with their statuses, in order.
func (h *hosting) states(t *testing.T, p *gitlab.Project, pipeline int64, retried bool) string {
	t.Helper()
	list := ask(h.ada.Jobs.ListPipelineJobs(p.ID, pipeline, &gitlab.ListJobsOptions{IncludeRetried: &retried})).ok(t)
	slices.SortFunc(list, func(a, b *gitlab.Job) int { return int(a.ID - b.ID) })
	return strings.Join(mapped(list, func(j *gitlab.Job) string { return j.Name + ":" + j.Status }), " ")
}

func goPipelines(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "pipelines", `
workflow: {name: "Build of $COLOR"}
stages: [build, test]
build: {stage: build, script: [x]}
test: {stage: test, script: [x]}
`)
	waitFor(t, "the push has left its mark", func() bool {
		list := ask(h.ada.Pipelines.ListProjectPipelines(p.ID, nil)).ok(t)
		return len(list) == 1 && list[0].Status == "skipped"
	})
	head := h.head(t, p, "main")
	made := h.pipeline(t, p, variable("COLOR", "red"))
	same(t, "pipeline", []any{made.Status, made.Source, made.Ref, made.SHA, made.Tag, made.IID, made.ProjectID, made.User.Username, made.Name, made.StartedAt == nil},
		[]any{"pending", gitlab.PipelineSource("api"), "main", head, false, int64(2), p.ID, "ada", "Build of red", true})
	same(t, "address", made.WebURL, p.WebURL+"/-/pipelines/"+strings.TrimPrefix(made.WebURL, p.WebURL+"/-/pipelines/"))
	recent(t, "created_at", made.CreatedAt)
	same(t, "variables", ask(h.ada.Pipelines.GetPipelineVariables(p.ID, made.ID)).ok(t),
		[]*gitlab.PipelineVariable{{Key: "COLOR", Value: "red", VariableType: gitlab.EnvVariableType}})

	w.run(t, "build", "success")
	w.run(t, "test", "failed")
	got := ask(h.ada.Pipelines.GetPipeline(p.ID, made.ID)).ok(t)
	same(t, "when it has failed", []any{got.Status, got.DetailedStatus.Label, got.StartedAt != nil, got.FinishedAt != nil}, []any{"failed", "failed", true, true})
	same(t, "retried", ask(h.ada.Pipelines.RetryPipelineBuild(p.ID, made.ID)).done(t, http.StatusCreated).Status, "running")
	w.run(t, "test", "success")
	same(t, "jobs", h.states(t, p, made.ID, false), "build:success test:success")
	same(t, "all tries", h.states(t, p, made.ID, true), "build:success test:failed test:success")
	same(t, "latest", ask(h.ada.Pipelines.GetLatestPipeline(p.ID, &gitlab.GetLatestPipelineOptions{Ref: new("main")})).ok(t).Status, "success")

	other := h.pipeline(t, p)
	same(t, "canceled", ask(h.ada.Pipelines.CancelPipelineBuild(p.ID, other.ID)).done(t, http.StatusOK).Status, "canceled")
	same(t, "renamed", ask(h.ada.Pipelines.UpdatePipelineMetadata(p.ID, other.ID, &gitlab.UpdatePipelineMetadataOptions{Name: new("the other")})).ok(t).Name, "the other")
	list := func(o gitlab.ListProjectPipelinesOptions) []int64 {
		return mapped(ask(h.ada.Pipelines.ListProjectPipelines(p.ID, &o)).ok(t), func(p *gitlab.PipelineInfo) int64 { return p.IID })
	}
	same(t, "all", list(gitlab.ListProjectPipelinesOptions{}), []int64{3, 2, 1})
	same(t, "upwards", list(gitlab.ListProjectPipelinesOptions{OrderBy: new("id"), Sort: new("asc")}), []int64{1, 2, 3})
	same(t, "by state", list(gitlab.ListProjectPipelinesOptions{Status: new(gitlab.Canceled)}), []int64{3})
	same(t, "by source", list(gitlab.ListProjectPipelinesOptions{Source: new("push")}), []int64{1})
	same(t, "by name", list(gitlab.ListProjectPipelinesOptions{Name: new("the other")}), []int64{3})
	same(t, "by user", list(gitlab.ListProjectPipelinesOptions{Username: new("bob")}), []int64{})
	same(t, "finished", list(gitlab.ListProjectPipelinesOptions{Scope: new("finished"), SHA: &head, Ref: new("main")}), []int64{3, 2})
	send(h.ada.Pipelines.DeletePipeline(p.ID, other.ID)).done(t, http.StatusNoContent)
	ask(h.ada.Pipelines.GetPipeline(p.ID, other.ID)).missing(t)
	ask(h.ada.Pipelines.CreatePipeline(p.ID, &gitlab.CreatePipelineOptions{Ref: new("nowhere")})).refused(t, http.StatusBadRequest, "{message: {base: [Reference not found]}}")
	ask(h.bob.Pipelines.GetPipeline(p.ID, made.ID)).missing(t)
}

func goJobs(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "jobs", `
stages: [build, deploy]
build: {stage: build, script: [x], tags: [shell], coverage: '/(\d+)% covered/'}
slow: {stage: build, script: [x]}
deploy: {stage: deploy, script: [x], when: manual}
`)
	made := h.pipeline(t, p)
	build := w.take(t, "build")
	log := "one\n\x1b[0Ksection_start:1:a\r\x1b[0Ktwo 42% covered\n"
	w.write(t, build, 0, log[:10])
	running := ask(h.ada.Jobs.GetJob(p.ID, build.ID)).ok(t)
	same(t, "job that runs", []any{running.Status, running.Stage, running.Ref, running.TagList, running.User.Username, running.Pipeline.ID, running.Runner.Description, running.Commit.ID},
		[]any{"running", "build", "main", []string{"shell"}, "ada", made.ID, "of jobs", made.SHA})
	recent(t, "started_at", running.StartedAt)
	trace := func(id int64) string {
		text, err := io.ReadAll(ask(h.ada.Jobs.GetTraceFile(p.ID, id)).ok(t))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	same(t, "log so far", trace(build.ID), log[:10])
	w.write(t, build, 10, log[10:])
	w.end(t, build, "success", log)
	same(t, "whole log", trace(build.ID), log)
	ended := ask(h.ada.Jobs.GetJob(p.ID, build.ID)).ok(t)
	same(t, "job that has ended", []any{ended.Status, ended.Coverage, ended.FinishedAt != nil, ended.Duration > 0, ended.FailureReason}, []any{"success", 42.0, true, true, ""})

	slow := w.take(t, "slow")
	same(t, "canceled", ask(h.ada.Jobs.CancelJob(p.ID, slow.ID)).done(t, http.StatusCreated).Status, "canceled")
	again := ask(h.ada.Jobs.RetryJob(p.ID, slow.ID)).done(t, http.StatusCreated)
	same(t, "another try", []any{again.ID != slow.ID, again.Name, again.Status}, []any{true, "slow", "pending"})
	ask(h.ada.Jobs.RetryJob(p.ID, again.ID)).refused(t, http.StatusForbidden, "{message: 403 Forbidden - Job is not retryable}")
	same(t, "jobs", h.states(t, p, made.ID, false), "build:success deploy:created slow:pending")
	failed := w.run(t, "slow", "failed")
	same(t, "reason", ask(h.ada.Jobs.GetJob(p.ID, failed.ID)).ok(t).FailureReason, "script_failure")
	ask(h.ada.Jobs.RetryJob(p.ID, failed.ID)).done(t, http.StatusCreated)
	w.run(t, "slow", "success")

	list := ask(h.ada.Jobs.ListPipelineJobs(p.ID, made.ID, &gitlab.ListJobsOptions{Scope: &[]gitlab.BuildStateValue{gitlab.Manual}})).ok(t)
	same(t, "manual", mapped(list, func(j *gitlab.Job) string { return j.Name }), []string{"deploy"})
	played := ask(h.ada.Jobs.PlayJob(p.ID, list[0].ID, &gitlab.PlayJobOptions{JobVariablesAttributes: &[]*gitlab.JobVariableOptions{{Key: new("TO"), Value: new("moon")}}})).done(t, http.StatusOK)
	same(t, "played", []any{played.ID, played.Status}, []any{list[0].ID, "pending"})
	same(t, "its variable", w.run(t, "deploy", "success").value("TO"), "moon")
	ask(h.ada.Jobs.PlayJob(p.ID, list[0].ID, &gitlab.PlayJobOptions{})).refused(t, http.StatusBadRequest, "{message: 400 Bad request - Unplayable Job}")

	erased := ask(h.ada.Jobs.EraseJob(p.ID, build.ID)).done(t, http.StatusCreated)
	recent(t, "erased_at", erased.ErasedAt)
	ask(h.ada.Jobs.GetTraceFile(p.ID, build.ID)).missing(t)
	all := scanned(t, func(page gitlab.PaginationOptionFunc) ([]*gitlab.Job, *gitlab.Response, error) {
		return h.ada.Jobs.ListProjectJobs(p.ID, &gitlab.ListJobsOptions{ListOptions: gitlab.ListOptions{PerPage: 2, Pagination: "keyset", OrderBy: "id", Sort: "desc"}}, page)
	})
	if !slices.IsSortedFunc(all, func(a, b *gitlab.Job) int { return int(b.ID - a.ID) }) || len(all) != 5 {
		t.Errorf("jobs of the project: %v", mapped(all, func(j *gitlab.Job) int64 { return j.ID }))
	}
	ask(h.bob.Jobs.GetJob(p.ID, build.ID)).missing(t)
}

func goArtifacts(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "artifacts", `
build: {script: [x], artifacts: {paths: [out], reports: {junit: j.xml}, expire_in: 1 hour}}
use: {stage: deploy, script: [x]}
`)
	made := h.pipeline(t, p)
	build := w.take(t, "build")
	content := zipped(t, "out/a.txt", "one\n", "out/b c.txt", "two\n")
	w.upload(t, build, "archive", "zip", content)
	var junit bytes.Buffer
	z := gzip.NewWriter(&junit)
	_, _ = io.WriteString(z, `<testsuite name="s"><testcase classname="c" name="good" time="0.5"/><testcase classname="c" name="bad"><failure>no</failure></testcase></testsuite>`)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	w.upload(t, build, "junit", "gzip", junit.Bytes())
	w.end(t, build, "success", "")
	same(t, "what the next job is told of", w.run(t, "use", "success").Dependencies, []struct{ Name string }{{"build"}})

	j := ask(h.ada.Jobs.GetJob(p.ID, build.ID)).ok(t)
	same(t, "archive", j.ArtifactsFile, gitlab.JobArtifactsFile{Filename: "artifacts.zip", Size: int64(len(content))})
	kinds := mapped(j.Artifacts, func(a gitlab.JobArtifact) string { return a.FileType + "." + a.FileFormat })
	slices.Sort(kinds)
	same(t, "files", kinds, []string{"archive.zip", "junit.gzip", "metadata.gzip"})
	read := func(r *bytes.Reader) string {
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	same(t, "download", read(ask(h.ada.Jobs.GetJobArtifacts(p.ID, build.ID)).ok(t)), string(content))
	same(t, "one file", read(ask(h.ada.Jobs.DownloadSingleArtifactsFile(p.ID, build.ID, "out/b c.txt")).ok(t)), "two\n")
	same(t, "of the branch", read(ask(h.ada.Jobs.DownloadArtifactsFile(p.ID, "main", &gitlab.DownloadArtifactsFileOptions{Job: new("build")})).ok(t)), string(content))
	same(t, "one file of the branch", read(ask(h.ada.Jobs.DownloadSingleArtifactsFileByTagOrBranch(p.ID, "main", "out/a.txt", &gitlab.DownloadArtifactsFileOptions{Job: new("build")})).ok(t)), "one\n")
	ask(h.ada.Jobs.DownloadSingleArtifactsFile(p.ID, build.ID, "out/none")).missing(t)

	report := ask(h.ada.Pipelines.GetPipelineTestReport(p.ID, made.ID)).ok(t)
	same(t, "tests", []any{report.TotalCount, report.SuccessCount, report.FailedCount, report.TotalTime, report.TestSuites[0].Name, report.TestSuites[0].TestCases[1].SystemOutput},
		[]any{int64(2), int64(1), int64(1), 0.5, "build", "no"})
	summary := ask(h.ada.Pipelines.GetPipelineTestReportSummary(p.ID, made.ID)).ok(t)
	same(t, "numbers of tests", []any{summary.Total.Count, summary.Total.Failed, summary.TestSuites[0].BuildIDs}, []any{int64(2), int64(1), []int64{build.ID}})

	if j.ArtifactsExpireAt == nil {
		t.Error("the artifacts do not expire")
	}
	if kept := ask(h.ada.Jobs.KeepArtifacts(p.ID, build.ID)).done(t, http.StatusOK); kept.ArtifactsExpireAt != nil {
		t.Errorf("artifacts that are kept expire at %v", kept.ArtifactsExpireAt)
	}
	send(h.ada.Jobs.DeleteArtifacts(p.ID, build.ID)).done(t, http.StatusNoContent)
	ask(h.ada.Jobs.GetJobArtifacts(p.ID, build.ID)).missing(t)
	send(h.ada.Jobs.DeleteProjectArtifacts(p.ID)).done(t, http.StatusAccepted)
}
