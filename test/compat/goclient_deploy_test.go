package compat

import (
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func goEnvironments(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "environments", `
up: {script: [x], environment: {name: review/$CI_COMMIT_BRANCH, url: "https://$CI_ENVIRONMENT_SLUG.example.org", on_stop: down}}
down: {stage: deploy, script: [x], when: manual, allow_failure: true, environment: {name: review/$CI_COMMIT_BRANCH, action: stop}}
`)
	made := ask(h.ada.Environments.CreateEnvironment(p.ID, &gitlab.CreateEnvironmentOptions{
		Name: new("production"), ExternalURL: new("https://example.org"), Description: new("the real one"),
	})).done(t, http.StatusCreated)
	same(t, "environment", []any{made.Name, made.Slug, made.ExternalURL, made.State, made.Tier, made.Description, made.AutoStopSetting},
		[]any{"production", "production", "https://example.org", "available", "production", "the real one", "always"})
	same(t, "changed", ask(h.ada.Environments.EditEnvironment(p.ID, made.ID, &gitlab.EditEnvironmentOptions{Tier: new("other"), ExternalURL: new("https://example.com")})).ok(t).Tier, "other")
	ask(h.ada.Environments.CreateEnvironment(p.ID, &gitlab.CreateEnvironmentOptions{Name: new("production")})).
		refused(t, http.StatusBadRequest, "{message: {name: [has already been taken]}}")

	pipeline := h.pipeline(t, p)
	up := w.run(t, "up", "success")
	var review *gitlab.Environment
	waitFor(t, "the environment is there", func() bool {
		list := ask(h.ada.Environments.ListEnvironments(p.ID, &gitlab.ListEnvironmentsOptions{Search: new("review")})).ok(t)
		if len(list) == 1 {
			review = ask(h.ada.Environments.GetEnvironment(p.ID, list[0].ID)).ok(t)
		}
		return review != nil && review.ExternalURL != ""
	})
	same(t, "of the job", []any{review.Name, review.State, review.ExternalURL, review.LastDeployment.Status, review.LastDeployment.Deployable.ID},
		[]any{"review/main", "available", "https://" + review.Slug + ".example.org", "success", up.ID})
	same(t, "being stopped", ask(h.ada.Environments.StopEnvironment(p.ID, review.ID, nil)).done(t, http.StatusOK).State, "stopping")
	w.run(t, "down", "success")
	waitFor(t, "it is stopped", func() bool { return ask(h.ada.Environments.GetEnvironment(p.ID, review.ID)).ok(t).State == "stopped" })
	same(t, "stopped ones", mapped(ask(h.ada.Environments.ListEnvironments(p.ID, &gitlab.ListEnvironmentsOptions{States: new("stopped")})).ok(t), func(e *gitlab.Environment) int64 { return e.ID }), []int64{review.ID})
	same(t, "its pipeline", h.states(t, p, pipeline.ID, false), "up:success down:success")
	send(h.ada.Environments.DeleteEnvironment(p.ID, review.ID)).done(t, http.StatusNoContent)
	ask(h.ada.Environments.GetEnvironment(p.ID, review.ID)).missing(t)
	if a := send(h.ada.Environments.DeleteEnvironment(p.ID, made.ID)); a.err == nil || a.res.StatusCode != http.StatusForbidden {
		t.Errorf("an environment that is in use: %v", a.err)
	}
}

func goDeployments(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "deployments", "job: {script: [x], environment: production}\n")
	h.pipeline(t, p)
	j := w.run(t, "job", "success")
	head := h.head(t, p, "main")
	list := ask(h.ada.Deployments.ListProjectDeployments(p.ID, &gitlab.ListProjectDeploymentsOptions{Environment: new("production"), Status: new("success")})).ok(t)
	if len(list) != 1 {
		t.Fatalf("deployments: %v", list)
	}
	same(t, "of the job", []any{list[0].Ref, list[0].SHA, list[0].Environment.Name, list[0].Deployable.ID, list[0].User.Username, list[0].Status},
		[]any{"main", head, "production", j.ID, "ada", "success"})
	same(t, "one", ask(h.ada.Deployments.GetProjectDeployment(p.ID, list[0].ID)).ok(t).IID, list[0].IID)
	created := ask(h.ada.Deployments.CreateProjectDeployment(p.ID, &gitlab.CreateProjectDeploymentOptions{
		Environment: new("elsewhere"), Ref: new("main"), SHA: &head, Tag: new(false), Status: new(gitlab.DeploymentStatusRunning),
	})).done(t, http.StatusCreated)
	same(t, "told of", []any{created.Status, created.Environment.Name, created.Deployable.ID}, []any{"running", "elsewhere", int64(0)})
	same(t, "ended", ask(h.ada.Deployments.UpdateProjectDeployment(p.ID, created.ID, &gitlab.UpdateProjectDeploymentOptions{Status: new(gitlab.DeploymentStatusFailed)})).ok(t).Status, "failed")
	send(h.ada.Deployments.DeleteProjectDeployment(p.ID, created.ID)).done(t, http.StatusNoContent)
	ask(h.ada.Deployments.GetProjectDeployment(p.ID, created.ID)).missing(t)
}

func goResourceGroups(t *testing.T, h *hosting) {
	p, w := h.pipelined(t, "resources", "job: {script: [x], resource_group: the-one}\n")
	first, second := h.pipeline(t, p), h.pipeline(t, p)
	same(t, "first", h.states(t, p, first.ID, false), "job:pending")
	same(t, "second", h.states(t, p, second.ID, false), "job:waiting_for_resource")
	waiting := ask(h.ada.ResourceGroup.ListUpcomingJobsForASpecificResourceGroup(p.ID, "the-one")).ok(t)
	same(t, "upcoming", mapped(waiting, func(j *gitlab.Job) int64 { return j.Pipeline.ID }), []int64{second.ID})
	same(t, "groups", mapped(ask(h.ada.ResourceGroup.GetAllResourceGroupsForAProject(p.ID)).ok(t), func(g *gitlab.ResourceGroup) string { return g.Key + " " + g.ProcessMode }), []string{"the-one unordered"})
	same(t, "changed", ask(h.ada.ResourceGroup.EditAnExistingResourceGroup(p.ID, "the-one", &gitlab.EditAnExistingResourceGroupOptions{ProcessMode: new(gitlab.NewestFirst)})).ok(t).ProcessMode, "newest_first")
	w.run(t, "job", "success")
	waitFor(t, "the second has its turn", func() bool { return h.states(t, p, second.ID, false) == "job:pending" })
	w.run(t, "job", "success")
	same(t, "one", ask(h.ada.ResourceGroup.GetASpecificResourceGroup(p.ID, "the-one")).ok(t).ProcessMode, "newest_first")
	ask(h.ada.ResourceGroup.GetASpecificResourceGroup(p.ID, "none")).missing(t)
}

func goLint(t *testing.T, h *hosting) {
	p, _ := h.pipelined(t, "lint", "include: other.yml\njob: {script: [x]}\n")
	h.write(t, p, "main", "other.yml", "stages: [build, test]\n", "more [skip ci]")
	good := ask(h.ada.Validate.ProjectLint(p.ID, &gitlab.ProjectLintOptions{DryRun: new(true)})).ok(t)
	same(t, "of the project", []any{good.Valid, good.Errors, good.Includes[0].Location, good.Includes[0].Type}, []any{true, []string{}, "other.yml", "local"})
	bad := ask(h.ada.Validate.ProjectNamespaceLint(p.ID, &gitlab.ProjectNamespaceLintOptions{Content: new("job: {stage: nowhere, script: [x]}\n")})).done(t, http.StatusOK)
	same(t, "of a text", []any{bad.Valid, bad.Errors}, []any{false, []string{"job job: chosen stage nowhere does not exist; available stages are .pre, build, test, deploy, .post"}})
	fine := ask(h.ada.Validate.ProjectNamespaceLint(p.ID, &gitlab.ProjectNamespaceLintOptions{Content: new("job: {script: [x]}\n")})).ok(t)
	same(t, "merged", []any{fine.Valid, fine.MergedYaml}, []any{true, "---\njob:\n  script:\n    - x\n"})
}

func goCommitStatuses(t *testing.T, h *hosting) {
	p := h.project(t, "statuses")
	head := h.head(t, p, "main")
	made := ask(h.ada.Commits.SetCommitStatus(p.ID, head, &gitlab.SetCommitStatusOptions{
		State: gitlab.Running, Name: new("outside"), Description: new("it runs"), TargetURL: new("https://ci.example.org/1"), Ref: new("main"),
	})).done(t, http.StatusCreated)
	same(t, "status", []any{made.Status, made.Name, made.Description, made.TargetURL, made.SHA, made.Ref, made.Author.Username},
		[]any{"running", "outside", "it runs", "https://ci.example.org/1", head, "main", "ada"})
	ended := ask(h.ada.Commits.SetCommitStatus(p.ID, head, &gitlab.SetCommitStatusOptions{State: gitlab.Success, Name: new("outside"), Coverage: new(81.5), Ref: new("main")})).ok(t)
	same(t, "the same one", []any{ended.ID, ended.Status, ended.Coverage}, []any{made.ID, "success", 81.5})
	list := ask(h.ada.Commits.GetCommitStatuses(p.ID, head, &gitlab.GetCommitStatusesOptions{Name: new("outside")})).ok(t)
	same(t, "list", mapped(list, func(s *gitlab.CommitStatus) string { return s.Name + ":" + s.Status }), []string{"outside:success"})
	same(t, "status of the commit", string(*ask(h.ada.Commits.GetCommit(p.ID, head, nil)).ok(t).Status), "success")
}
