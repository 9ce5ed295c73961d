package web

import (
	"strings"
	"testing"
	"time"

	"svc/internal/ci"
	"svc/internal/ci/artifact"
	"svc/internal/ci/config"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/ci/report"
	"svc/internal/ci/runners"
	"svc/internal/ci/schedule"
	"svc/internal/ci/variable"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/user"
	"svc/internal/web/joblog"
)

// ciContents are the pages of pipelines, with data.
func ciContents() []content {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	id, share := int64(1), 12.5
	u := &user.User{ID: 1, Username: "ada", Name: "Ada"}
	p := &project.Project{ID: 1, Name: "P", Path: "p", FullPath: "g/p", Visibility: project.Public, DefaultBranch: "main", Namespace: project.Namespace{FullPath: "g", FullName: "G"}}
	h := ciHead{head: head{Project: p, Parents: crumbs("g", "G"), Tab: "pipelines", SignedIn: true, Builds: true}, Base: "/g/p/-", May: true, at: now, runs: map[ci.RunRef]bool{{Name: "main"}: true, {Name: "main", Tag: true}: true}}
	commit := &git.Commit{ID: "0123456789", Title: "t"}
	pipeline := &ci.Pipeline{ID: 1, Ref: "main", SHA: "0123456789", Source: ci.FromPush, Status: flow.Failed, User: u, UserID: &id, CreatedAt: now, StartedAt: &now, FinishedAt: &now, Coverage: &share, YAMLErrors: "e", Archived: true}
	row := &ci.PipelineRow{Pipeline: pipeline, Commit: commit, StageRow: []ci.Stage{{Name: "test", Status: flow.Manual, Jobs: 1}}}
	job := func(name string, status flow.Status, needs ...flow.Need) *ci.Job {
		return &ci.Job{JobState: ci.JobState{ID: 1, PipelineID: 1, Status: status, EnvironmentID: &id}, Name: name, Stage: "test", Ref: "main", Tag: true, Needs: needs, User: u, Commit: commit, Project: p, Pipeline: &ci.Pipeline{}, CreatedAt: now,
			StartedAt: &now, QueuedAt: &now, Coverage: &share, AllowFailure: true, Retried: true, Timeout: time.Hour, ScheduledAt: &now, ErasedAt: &now, ExitCode: &id,
			FailureReason: ci.ScriptFailure, Runner: &runners.Runner{ID: 1}, Options: config.Job{Tags: []string{"x", "y"}, ResourceGroup: "r", Environment: &config.Environment{Name: "production"}}}
	}
	failed, manual, bridge, running := job("a", flow.Failed), job("b", flow.Manual, flow.Need{Name: "a"}), job("c", flow.Success), job("d", flow.Running)
	bridge.Bridge, bridge.Downstream, bridge.DownstreamPath = true, pipeline, "g/other"
	graph := &ci.Graph{PipelineRow: row, Jobs: []*ci.Job{failed, manual, bridge, running, job("e 1/2", flow.Success, flow.Need{Name: "a"}), job("e 2/2", flow.Failed, flow.Need{Name: "a"})}, More: true, Upstream: pipeline, UpstreamPath: "g/above"}
	page := func(tab string) pipelinePage {
		return pipelinePage{ciHead: h, Graph: graph, Shows: tab, MayRun: true, MayRetry: true, MaySee: true, MayDelete: true, Failed: 1, Allowed: 1}
	}
	whole, failures, tests, variables, list := page("graph"), page("failures"), page("tests"), page("variables"), page("jobs")
	whole.Columns = columns(graph.Jobs)
	whole.Lines = drawNeeds(whole.Columns)
	failures.Failures = []failure{{Job: failed}, {Job: manual, Log: nil}}
	tests.Report = &report.TestReport{Counts: report.TestCounts{Total: 1}, Suites: []*report.TestSuite{{Name: "s", Fault: "f", Cases: []report.TestCase{{Status: report.TestFailed, Output: "o", File: "f"}, {Status: report.TestSkipped}}}}}
	tests.Suites = suites(tests.Report)
	variables.Variables, list.List = []variable.Given{{Key: "K", Value: "v", Type: variable.File}}, graph.Jobs
	done := *pipeline
	done.Status = flow.Canceled
	environment := &deployment.Environment{ID: 1, Name: "production", State: deployment.Stopping, ExternalURL: "https://example.org", AutoStopAt: &now, Description: "d",
		Last: &deployment.Deployment{Ref: "main", SHA: "0123456789", User: u, JobID: &failed.ID, JobName: failed.Name}}
	archive := &artifact.File{Kind: artifact.Archive, Size: 1, ExpiresAt: &now}
	full := logPart{Window: joblog.Window{Total: 400, From: 100, Lines: []string{"x", "y"}}, Query: "x", Found: joblog.Found{Lines: []int{1}, More: true}}
	full.fit(true)
	blocked := job("x", flow.Manual)
	blocked.Blocked, blocked.EnvironmentID = true, &id
	own := jobPage{ciHead: h, Job: failed, Log: full, Attempts: graph.Jobs, Archive: archive, Reports: []*artifact.File{archive}, MayRun: true, MayErase: true, MayKeep: true, MayDelete: true, MayRead: true}
	scheduled := scheduleRow{Schedule: &schedule.Schedule{ID: 1, Active: true, NextRunAt: &now, Owner: u, LastPipeline: &schedule.Pipeline{ID: 1, Status: flow.Success}}, Can: schedule.Can{Play: true, Edit: true, Take: true, Delete: true}}
	wrong := form{Values: map[string][]string{"ref": {"gone"}}, Errors: map[string][]string{"cron": {"x"}}, Error: "no"}
	stats := []ci.DayStats{{Day: now, Success: 3, Failed: 2, Other: 1, Took: time.Minute}, {Day: now}}
	lintErrors := config.Errors{{Message: "m"}}
	return []content{
		pipelinesPage{ciHead: h, Rows: []*ci.PipelineRow{row, {Pipeline: &ci.Pipeline{}}, {Pipeline: &done}}, Statuses: []flow.Status{flow.Running}, Sources: []ci.Source{ci.FromAPI}}, pipelinesPage{ciHead: h}, pipelinesPage{ciHead: h, Filtered: true},
		whole, failures, tests, variables, list, page("jobs"), page("variables"), pipelinePage{ciHead: h, Graph: &ci.Graph{PipelineRow: &ci.PipelineRow{Pipeline: &done}}, Shows: "graph", MayRun: true},
		pipelinePage{ciHead: h, Graph: graph, Shows: "tests", Report: &report.TestReport{}},
		jobsPage{ciHead: h, Jobs: graph.Jobs, Statuses: []flow.Status{flow.Running}, Status: "running"}, jobsPage{ciHead: h},
		own, jobPage{ciHead: h, Job: manual, MayRun: true, SetsVars: true, Rows: []variable.Given{{}}, MayRead: true, Gate: deployment.Gate{Allowed: true}},
		jobPage{ciHead: h, Job: manual, MayRun: true}, jobPage{ciHead: h, Job: blocked, MayRun: true, Gate: deployment.Gate{Allowed: true, Waiting: true}}, jobPage{ciHead: h, Job: job("x", flow.Scheduled), MayRun: true},
		jobPage{ciHead: h, Job: job("x", flow.Pending)}, jobPage{ciHead: h, Job: job("x", flow.Created)},
		artifactsPage{ciHead: h, ArtifactDir: &ci.ArtifactDir{Job: failed, Dir: &artifact.Dir{Archive: archive, Entries: []artifact.Item{{Name: "d", Dir: true}, {Name: "f"}}, More: true}}, Path: "a/b", Steps: steps("a/b")},
		artifactsPage{ciHead: h, ArtifactDir: &ci.ArtifactDir{Job: failed, Dir: &artifact.Dir{Archive: archive}}},
		artifactPage{ciHead: h, Path: "a/b", Steps: steps("a/b"), Source: "x", Size: 1}, artifactPage{ciHead: h, Image: true}, artifactPage{ciHead: h, Binary: true}, artifactPage{ciHead: h, TooLarge: true}, artifactPage{ciHead: h},
		runPage{ciHead: h, Form: wrong, Fault: "f", Ref: "gone", Branches: []string{"main"}, Tags: []string{"v1"}, Rows: []variable.Given{{}}, Asks: &ci.PipelineForm{MaySet: true,
			Variables: []config.DefaultVariable{{Description: "d", Options: []string{"x"}}, {Description: "d"}}, Inputs: []config.FormInput{{Name: "n", Needed: true}, {Name: "o", Options: []string{"x"}}}}},
		schedulesPage{ciHead: h, Schedules: []scheduleRow{scheduled, {Schedule: &schedule.Schedule{}}}}, schedulesPage{ciHead: h},
		schedulePage{ciHead: h, Form: wrong, Branches: []string{"main"}, SetsVars: true, Rows: []variable.Given{{Type: variable.File}}}, schedulePage{ciHead: h, ID: 1},
		environmentsPage{ciHead: h, Environments: []*deployment.Environment{environment, {State: deployment.Stopped}}}, environmentsPage{ciHead: h, Stopped: true},
		environmentPage{ciHead: h, Environment: environment, Deployments: []deploymentRow{{Deployment: environment.Last, Again: "Rollback"}, {Deployment: &deployment.Deployment{User: u, SHA: "x"}, Decides: true,
			Review: &deployment.Review{Approvals: []*deployment.Approval{{Approved: true, User: u}}}}}}, environmentPage{ciHead: h, Environment: environment},
		chartsPage{ciHead: h, Days: 7, Total: 1, Counts: drawBars(stats, func(d ci.DayStats) []piece { return []piece{{"ok", float64(d.Success), "passed"}} }, func(float64) string { return "x" })}, chartsPage{ciHead: h},
		lintPage{ciHead: h, Ref: "main", Own: true, Result: &config.LintResult{Jobs: []config.LintJob{{Name: "j", Script: []string{"x"}, Tags: []string{"t"}, Environment: "e"}}, Warnings: lintErrors}},
		lintPage{ciHead: h, Result: &config.LintResult{Errors: lintErrors}}, lintPage{ciHead: h},
	}
}

// TestColumns groups the jobs of a parallel job, and draws one line between two
// nodes.
func TestColumns(t *testing.T) {
	t.Parallel()
	job := func(stage, name string, status flow.Status, needs ...string) *ci.Job {
		j := &ci.Job{JobState: ci.JobState{Status: status}, Stage: stage, Name: name}
		for _, n := range needs {
			j.Needs = append(j.Needs, flow.Need{Name: n})
		}
		return j
	}
	allowed := job("build", "unit 2/2", flow.Failed)
	allowed.AllowFailure = true
	list := columns([]*ci.Job{
		job("build", "unit 1/2", flow.Success), job("build", "unit", flow.Manual), job("build", "deploy: [a b, 1]", flow.Running), allowed, job("build", "deploy: [c, 2]", flow.Success),
		job("test", "unit 3/3", flow.Failed), job("test", "[x]", flow.Success), job("last", "end", flow.Created, "unit 1/2", "unit 2/2", "unit 3/3", "gone"),
	})
	var got []string
	for _, c := range list {
		for _, n := range c.Nodes {
			text := c.Name + " " + n.Name + " " + n.State.Word()
			for _, j := range n.Jobs {
				text += "|" + j.Label
			}
			got = append(got, text)
		}
	}
	want := "build unit Passed with warnings|1/2|2/2; build unit Manual|unit; build deploy Running|[a b, 1]|[c, 2]; test unit 3/3 Failed|unit 3/3; test [x] Passed|[x]; last end Created|end"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("nodes %s", text)
	}
	// A line across a stage runs between the rows of that stage.
	if lines := string(drawNeeds(list)); strings.Count(lines, "<path") != 2 || !strings.Contains(lines, " 84H504C") {
		t.Errorf("lines %s", lines)
	}
}

func TestTook(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1: "0 ms", 50 * time.Millisecond: "50 ms", 1500 * time.Millisecond: "1.5 s", 42 * time.Second: "42 s", 61 * time.Second: "1 min 1 s", 3*time.Hour + 5*time.Minute: "3 h 5 min",
	} {
		if got := tookText(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// TestFit limits the size of the lines of a page, whatever they contain.
func TestFit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		lines       []string
		from, total int
		tail        bool
		first, n    int
		before, aft int
	}{
		{[]string{"a", "b"}, 1, 2, true, 1, 2, 0, 0},
		{[]string{"a", "b"}, 401, 402, true, 401, 2, 251, 0},
		{[]string{"a", "b"}, 1, 402, false, 1, 2, 0, 3},
		{[]string{long, long, long, long, long, long}, 1, 6, true, 3, 4, 1, 0},
		{[]string{long, long, long, long, long, long}, 1, 6, false, 1, 4, 0, 5},
		{[]string{strings.Repeat("x", pageHTML)}, 9, 9, true, 9, 1, 1, 0},
		{nil, 1, 0, true, 1, 0, 0, 0},
	} {
		p := logPart{Window: joblog.Window{From: c.from, Total: c.total, Lines: c.lines}}
		p.fit(c.tail)
		if p.From != c.first || len(p.Rows) != c.n || p.Before != c.before || p.After != c.aft {
			t.Errorf("%d lines from %d: %d from %d, before %d, after %d", len(c.lines), c.from, len(p.Rows), p.From, p.Before, p.After)
		}
	}
}
