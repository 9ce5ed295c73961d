package compat

import (
	"net/http"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func goDownstream(t *testing.T, h *hosting) {
	below, w := h.pipelined(t, "below", "work: {script: [x]}\n")
	p, _ := h.pipelined(t, "above", "hand on: {trigger: {project: ada/below, strategy: depend}}\n")
	made := h.pipeline(t, p)
	bridge := func() *gitlab.Bridge {
		list := ask(h.ada.Jobs.ListPipelineBridges(p.ID, made.ID, nil)).ok(t)
		if len(list) != 1 {
			t.Fatalf("bridges: %v", list)
		}
		return list[0]
	}
	waitFor(t, "the pipeline below is made", func() bool { return bridge().DownstreamPipeline != nil })
	down := bridge().DownstreamPipeline
	same(t, "pipeline below", []any{down.ProjectID, down.Source, down.Ref, down.Status}, []any{below.ID, "pipeline", "main", "pending"})
	waitFor(t, "the trigger job follows it", func() bool { return bridge().Status == "running" })
	same(t, "upstream", w.run(t, "work", "success").value("CI_PIPELINE_SOURCE"), "pipeline")
	waitFor(t, "the trigger job has ended", func() bool { return bridge().Status == "success" })
	same(t, "upper pipeline", ask(h.ada.Pipelines.GetPipeline(p.ID, made.ID)).ok(t).Status, "success")
}

func goJobToken(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "tokens", "job: {script: [x]}\n")
	other := h.project(t, "token-target")
	h.pipeline(t, p)
	j := w.take(t, "job")
	c, err := gitlab.NewJobClient(j.Token, gitlab.WithBaseURL(h.s.url))
	if err != nil {
		t.Fatal(err)
	}
	own := ask(c.Jobs.GetJobTokensJob(&gitlab.GetJobTokensJobOptions{})).ok(t)
	same(t, "own job", []any{own.ID, own.Name, own.Status}, []any{j.ID, "job", "running"})
	ask(c.Users.CurrentUser()).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")

	scope := ask(h.ada.JobTokenScope.GetProjectJobTokenAccessSettings(other.ID)).ok(t)
	same(t, "job tokens of others are kept out", scope.InboundEnabled, true)
	run := func() answer[*gitlab.Pipeline] {
		return ask(c.PipelineTriggers.RunPipelineTrigger(other.ID, &gitlab.RunPipelineTriggerOptions{Ref: new("main"), Token: &j.Token}))
	}
	h.write(t, other, "main", ".gitlab-ci.yml", "it: {script: [x]}\n", "CI [skip ci]")
	if refused := run(); refused.err == nil {
		t.Error("a job token opens a project that does not let it in")
	}
	item := ask(h.ada.JobTokenScope.AddProjectToJobScopeAllowList(other.ID, &gitlab.JobTokenInboundAllowOptions{TargetProjectID: &p.ID})).done(t, http.StatusCreated)
	same(t, "allowed", []int64{item.SourceProjectID, item.TargetProjectID}, []int64{other.ID, p.ID})
	allowed := ask(h.ada.JobTokenScope.GetProjectJobTokenInboundAllowList(other.ID, nil)).ok(t)
	same(t, "list", mapped(allowed, projectPath), []string{"ada/token-target", "ada/tokens"})
	made := run().done(t, http.StatusCreated)
	same(t, "pipeline by a job", []any{made.Source, made.User.Username}, []any{gitlab.PipelineSource("pipeline"), "ada"})
	send(h.ada.JobTokenScope.RemoveProjectFromJobScopeAllowList(other.ID, p.ID)).done(t, http.StatusNoContent)

	w.end(t, j, "success", "")
	ask(c.Jobs.GetJobTokensJob(&gitlab.GetJobTokensJobOptions{})).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")
}

func goProjectVariables(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "variables", "job: {script: [x], environment: {name: production, action: prepare}}\n")
	made := ask(h.ada.ProjectVariables.CreateVariable(p.ID, &gitlab.CreateProjectVariableOptions{
		Key: new("KEY"), Value: new(hidden), Description: new("opens"), Masked: new(true), Protected: new(true), Raw: new(true), EnvironmentScope: new("prod*"),
	})).done(t, http.StatusCreated)
	want := &gitlab.ProjectVariable{
		Key: "KEY", Value: hidden, Description: "opens", VariableType: gitlab.EnvVariableType, Masked: true, Protected: true, Raw: true, EnvironmentScope: "prod*",
	}
	same(t, "variable", made, want)
	only := &gitlab.VariableFilter{EnvironmentScope: "prod*"}
	ask(h.ada.ProjectVariables.CreateVariable(p.ID, &gitlab.CreateProjectVariableOptions{Key: new("KEY"), Value: new("everywhere")})).done(t, http.StatusCreated)
	same(t, "one of two", ask(h.ada.ProjectVariables.GetVariable(p.ID, "KEY", &gitlab.GetProjectVariableOptions{Filter: only})).ok(t), want)
	if a := ask(h.ada.ProjectVariables.GetVariable(p.ID, "KEY", nil)); a.err == nil || a.res.StatusCode != http.StatusConflict {
		t.Errorf("one of two without a scope: %v", a.err)
	}
	h.pipeline(t, p)
	j := w.run(t, "job", "success")
	same(t, "what a job sees", j.value("KEY"), hidden)
	for _, v := range j.Variables {
		if v.Key == "KEY" && !v.Masked {
			t.Error("the runner is not told to mask it")
		}
	}
	same(t, "changed", ask(h.ada.ProjectVariables.UpdateVariable(p.ID, "KEY", &gitlab.UpdateProjectVariableOptions{Value: new("2"), Masked: new(false), Filter: only})).ok(t).Value, "2")
	shut := ask(h.ada.ProjectVariables.CreateVariable(p.ID, &gitlab.CreateProjectVariableOptions{Key: new("SHUT"), Value: new(hidden), MaskedAndHidden: new(true)})).ok(t)
	same(t, "hidden", []any{shut.Hidden, shut.Masked, shut.Value}, []any{true, true, ""})
	list := ask(h.ada.ProjectVariables.ListVariables(p.ID, nil)).ok(t)
	same(t, "list", mapped(list, func(v *gitlab.ProjectVariable) string { return v.Key + " " + v.EnvironmentScope }), []string{"KEY prod*", "KEY *", "SHUT *"})
	send(h.ada.ProjectVariables.RemoveVariable(p.ID, "KEY", &gitlab.RemoveProjectVariableOptions{Filter: only})).done(t, http.StatusNoContent)
	same(t, "the other one", ask(h.ada.ProjectVariables.GetVariable(p.ID, "KEY", nil)).ok(t).Value, "everywhere")
	ask(h.ada.ProjectVariables.GetVariable(p.ID, "NONE", nil)).missing(t)
	ask(h.bob.ProjectVariables.ListVariables(p.ID, nil)).missing(t)
}

func goGroupVariables(t *testing.T, h *hosting) {
	g := h.group(t, "variables-group")
	made := ask(h.ada.GroupVariables.CreateVariable(g.ID, &gitlab.CreateGroupVariableOptions{
		Key: new("FILE"), Value: new(hidden), VariableType: new(gitlab.FileVariableType), Description: new("a file"),
	})).done(t, http.StatusCreated)
	want := &gitlab.GroupVariable{Key: "FILE", Value: hidden, VariableType: gitlab.FileVariableType, EnvironmentScope: "*", Description: "a file"}
	same(t, "variable", made, want)
	same(t, "one", ask(h.ada.GroupVariables.GetVariable(g.ID, "FILE", nil)).ok(t), want)
	want.Value, want.Protected = "2", true
	same(t, "changed", ask(h.ada.GroupVariables.UpdateVariable(g.ID, "FILE", &gitlab.UpdateGroupVariableOptions{Value: new("2"), Protected: new(true)})).ok(t), want)
	same(t, "list", ask(h.ada.GroupVariables.ListVariables(g.ID, nil)).ok(t), []*gitlab.GroupVariable{want})
	ask(h.ada.GroupVariables.CreateVariable(g.ID, &gitlab.CreateGroupVariableOptions{Key: new("FILE"), Value: new("x")})).
		refused(t, http.StatusBadRequest, "{message: {key: [(FILE) has already been taken]}}")
	send(h.ada.GroupVariables.RemoveVariable(g.ID, "FILE", nil)).done(t, http.StatusNoContent)
	ask(h.ada.GroupVariables.GetVariable(g.ID, "FILE", nil)).missing(t)
}

func goTriggers(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "triggers", "job: {script: [x], only: [triggers]}\n")
	made := ask(h.ada.PipelineTriggers.AddPipelineTrigger(p.ID, &gitlab.AddPipelineTriggerOptions{Description: new("nightly")})).done(t, http.StatusCreated)
	same(t, "trigger", []any{made.Description, made.Owner.Username, made.LastUsed == nil, len(made.Token) > 20}, []any{"nightly", "ada", true, true})
	anonymous := h.s.client(t, "")
	run := ask(anonymous.PipelineTriggers.RunPipelineTrigger(p.ID, &gitlab.RunPipelineTriggerOptions{
		Ref: new("main"), Token: &made.Token, Variables: map[string]string{"COLOR": "red"},
	})).done(t, http.StatusCreated)
	same(t, "pipeline", []any{run.Source, run.User.Username, run.Status}, []any{gitlab.PipelineSource("trigger"), "ada", "pending"})
	same(t, "variable", w.run(t, "job", "success").value("COLOR"), "red")
	same(t, "changed", ask(h.ada.PipelineTriggers.EditPipelineTrigger(p.ID, made.ID, &gitlab.EditPipelineTriggerOptions{Description: new("daily")})).ok(t).Description, "daily")
	recent(t, "last_used", ask(h.ada.PipelineTriggers.GetPipelineTrigger(p.ID, made.ID)).ok(t).LastUsed)
	same(t, "list", mapped(ask(h.ada.PipelineTriggers.ListPipelineTriggers(p.ID, nil)).ok(t), func(p *gitlab.PipelineTrigger) int64 { return p.ID }), []int64{made.ID})
	send(h.ada.PipelineTriggers.DeletePipelineTrigger(p.ID, made.ID)).done(t, http.StatusNoContent)
	ask(anonymous.PipelineTriggers.RunPipelineTrigger(p.ID, &gitlab.RunPipelineTriggerOptions{Ref: new("main"), Token: &made.Token})).missing(t)
}

func goSchedules(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "schedules", "job: {script: [x]}\n")
	made := ask(h.ada.PipelineSchedules.CreatePipelineSchedule(p.ID, &gitlab.CreatePipelineScheduleOptions{
		Description: new("nightly"), Ref: new("main"), Cron: new("30 1 * * *"), CronTimezone: new("Europe/Berlin"),
	})).done(t, http.StatusCreated)
	same(t, "schedule", []any{made.Description, strings.TrimPrefix(made.Ref, "refs/heads/"), made.Cron, made.CronTimezone, made.Active, made.Owner.Username, made.NextRunAt.Minute()},
		[]any{"nightly", "main", "30 1 * * *", "Europe/Berlin", true, "ada", 30})
	v := ask(h.ada.PipelineSchedules.CreatePipelineScheduleVariable(p.ID, made.ID, &gitlab.CreatePipelineScheduleVariableOptions{Key: new("COLOR"), Value: new("red")})).done(t, http.StatusCreated)
	same(t, "variable", v, &gitlab.PipelineVariable{Key: "COLOR", Value: "red", VariableType: gitlab.EnvVariableType})
	same(t, "changed", ask(h.ada.PipelineSchedules.EditPipelineScheduleVariable(p.ID, made.ID, "COLOR", &gitlab.EditPipelineScheduleVariableOptions{Value: new("blue")})).ok(t).Value, "blue")
	send(h.ada.PipelineSchedules.RunPipelineSchedule(p.ID, made.ID)).done(t, http.StatusCreated)
	var runs []*gitlab.Pipeline
	waitFor(t, "the schedule has run", func() bool {
		runs = ask(h.ada.PipelineSchedules.ListPipelinesTriggeredBySchedule(p.ID, made.ID, nil)).ok(t)
		return len(runs) == 1
	})
	same(t, "pipeline", []any{runs[0].Source, runs[0].Ref}, []any{gitlab.PipelineSource("schedule"), "main"})
	same(t, "what its job sees", w.run(t, "job", "success").value("COLOR"), "blue")
	got := ask(h.ada.PipelineSchedules.GetPipelineSchedule(p.ID, made.ID)).ok(t)
	same(t, "last pipeline", []any{got.LastPipeline.ID, got.LastPipeline.Status, got.Variables[0].Value}, []any{runs[0].ID, "success", "blue"})
	same(t, "switched off", ask(h.ada.PipelineSchedules.EditPipelineSchedule(p.ID, made.ID, &gitlab.EditPipelineScheduleOptions{Active: new(false), Cron: new("0 0 1 * *")})).ok(t).Active, false)
	ask(h.ada.PipelineSchedules.DeletePipelineScheduleVariable(p.ID, made.ID, "COLOR")).done(t, http.StatusAccepted)
	same(t, "list", mapped(ask(h.ada.PipelineSchedules.ListPipelineSchedules(p.ID, nil)).ok(t), func(p *gitlab.PipelineSchedule) string { return p.Cron }), []string{"0 0 1 * *"})
	send(h.ada.PipelineSchedules.DeletePipelineSchedule(p.ID, made.ID)).done(t, http.StatusNoContent)
	ask(h.ada.PipelineSchedules.GetPipelineSchedule(p.ID, made.ID)).missing(t)
}

func goRunners(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "runners", "job: {script: [x], tags: [shell]}\n")
	other := h.project(t, "runners-other")
	own := ask(h.ada.Runners.ListProjectRunners(p.ID, &gitlab.ListProjectRunnersOptions{Type: new("project_type")})).ok(t)
	same(t, "of the project", mapped(own, func(r *gitlab.Runner) string { return r.Description }), []string{"of runners"})
	id := own[0].ID
	h.pipeline(t, p)
	w.run(t, "job", "success")
	r := ask(h.ada.Runners.GetRunnerDetails(id)).ok(t)
	same(t, "runner", []any{r.RunnerType, r.IsShared, r.Paused, r.TagList, r.RunUntagged, r.AccessLevel, r.Online, r.Status, r.Projects[0].PathWithNamespace},
		[]any{"project_type", false, false, []string{"shell"}, true, "not_protected", true, "online", "ada/runners"})
	recent(t, "contacted_at", r.ContactedAt)
	jobs := ask(h.ada.Runners.ListRunnerJobs(id, &gitlab.ListRunnerJobsOptions{Status: new("success")})).ok(t)
	same(t, "jobs", mapped(jobs, func(j *gitlab.Job) string { return j.Name + ":" + j.Status }), []string{"job:success"})
	changed := ask(h.ada.Runners.UpdateRunnerDetails(id, &gitlab.UpdateRunnerDetailsOptions{
		Description: new("tired"), Paused: new(true), TagList: &[]string{"a", "b"}, RunUntagged: new(false), AccessLevel: new("ref_protected"), MaximumTimeout: new(int64(1200)),
	})).ok(t)
	same(t, "changed", []any{changed.Description, changed.Paused, changed.TagList, changed.RunUntagged, changed.AccessLevel, changed.MaximumTimeout},
		[]any{"tired", true, []string{"a", "b"}, false, "ref_protected", int64(1200)})
	enabled := ask(h.ada.Runners.EnableProjectRunner(other.ID, &gitlab.EnableProjectRunnerOptions{RunnerID: id})).done(t, http.StatusCreated)
	same(t, "enabled", enabled.ID, id)
	send(h.ada.Runners.DisableProjectRunner(other.ID, id)).done(t, http.StatusNoContent)
	fresh := ask(h.ada.Runners.ResetRunnerAuthenticationToken(id)).done(t, http.StatusCreated)
	send(h.ada.Runners.VerifyRegisteredRunner(&gitlab.VerifyRegisteredRunnerOptions{Token: fresh.Token})).done(t, http.StatusOK)
	send(h.ada.Runners.VerifyRegisteredRunner(&gitlab.VerifyRegisteredRunnerOptions{Token: &w.token})).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	ask(h.bob.Runners.GetRunnerDetails(id)).refused(t, http.StatusForbidden, "{message: 403 Forbidden - No access granted}")
	shared := ask(h.root.Users.CreateUserRunner(&gitlab.CreateUserRunnerOptions{RunnerType: new("instance_type"), Description: new("for all"), Paused: new(true)})).done(t, http.StatusCreated)
	all := ask(h.root.Runners.ListAllRunners(&gitlab.ListRunnersOptions{Type: new("instance_type"), Paused: new(true)})).ok(t)
	same(t, "for all", mapped(all, func(r *gitlab.Runner) int64 { return r.ID }), []int64{shared.ID})
	send(h.ada.Runners.RemoveRunner(id)).done(t, http.StatusNoContent)
	ask(h.ada.Runners.GetRunnerDetails(id)).missing(t)
	send(h.root.Runners.RemoveRunner(shared.ID)).done(t, http.StatusNoContent)
}
