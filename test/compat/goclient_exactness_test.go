package compat

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// goExactness checks details that public clients rely on.
func goExactness(t *testing.T, h *hosting) {
	g := h.group(t, "exact")
	p := h.project(t, "exactly")
	none := &gitlab.ListProjectsOptions{Search: new("no such project"), Statistics: new(true)}
	for name, list := range map[string]func() ([]*gitlab.Project, *gitlab.Response, error){
		"projects": func() ([]*gitlab.Project, *gitlab.Response, error) { return h.ada.Projects.ListProjects(none) },
		"of a user": func() ([]*gitlab.Project, *gitlab.Response, error) {
			return h.ada.Projects.ListUserProjects("ada", none)
		},
		"starred": func() ([]*gitlab.Project, *gitlab.Response, error) {
			return h.ada.Projects.ListUserStarredProjects("ada", none)
		},
		"contributed": func() ([]*gitlab.Project, *gitlab.Response, error) {
			return h.ada.Projects.ListUserContributedProjects("ada", none)
		},
		"forks": func() ([]*gitlab.Project, *gitlab.Response, error) {
			return h.ada.Projects.ListProjectForks(p.ID, none)
		},
		"of a group": func() ([]*gitlab.Project, *gitlab.Response, error) {
			return h.ada.Groups.ListGroupProjects(g.ID, &gitlab.ListGroupProjectsOptions{Search: none.Search}, withQuery("statistics=true"))
		},
	} {
		same(t, name+", with statistics", len(ask(list()).ok(t)), 0)
	}
	same(t, "subgroups, with statistics", len(ask(h.ada.Groups.ListSubGroups(g.ID, &gitlab.ListSubGroupsOptions{Statistics: new(true)})).ok(t)), 0)

	ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{MergeTrainsEnabled: new(true)})).refused(t, http.StatusBadRequest, "{error: merge_trains_enabled is not supported}")
	ask(h.ada.MergeRequests.ListMergeRequests(&gitlab.ListMergeRequestsOptions{State: new("all")}, withQuery("environment=production"))).
		refused(t, http.StatusBadRequest, "{error: environment is not supported}")
	slash, err := h.ada.NewRequest(http.MethodGet, "projects/ada%2Fexactly/", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	send(h.ada.Do(slash, nil)).ok(t)

	empty := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("exactly-empty")})).done(t, http.StatusCreated)
	ask(h.ada.Branches.CreateBranch(empty.ID, &gitlab.CreateBranchOptions{Branch: new("topic"), Ref: new("main")})).done(t, http.StatusCreated)
	same(t, "branches of an empty repository", mapped(ask(h.ada.Branches.ListBranches(empty.ID, nil)).ok(t), branchName), []string{"main", "topic"})
	same(t, "message", h.write(t, p, "main", "a.txt", "a\n", "no newline").Message, "no newline")
	today := gitlab.ISOTime(time.Now().UTC())
	ask(h.ada.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{UserID: h.bobUser.ID, AccessLevel: new(gitlab.DeveloperPermissions), ExpiresAt: new(today.String())})).done(t, http.StatusCreated)
	line, fingerprint := sshKey(t)
	ask(h.ada.DeployKeys.AddDeployKey(p.ID, &gitlab.AddDeployKeyOptions{Title: new("deploy"), Key: &line})).done(t, http.StatusCreated)
	same(t, "key", ask(h.root.Keys.GetKeyByFingerprint(&gitlab.GetKeyByFingerprintOptions{Fingerprint: fingerprint})).ok(t).Title, "deploy")
	for file, alt := range map[string]string{"notes.txt": "notes.txt", "picture.png": "picture"} {
		same(t, file, ask(h.ada.ProjectMarkdownUploads.UploadProjectMarkdown(p.ID, strings.NewReader("x"), file)).done(t, http.StatusCreated).Alt, alt)
	}
	same(t, "Pages", ask(h.ada.Pages.GetPages(p.ID)).ok(t).IsUniqueDomainEnabled, true)
	full := ask(h.ada.Projects.GetProject(p.ID, &gitlab.GetProjectOptions{License: new(true)})).ok(t)
	//lint:ignore SA1019 the deprecated field is the one to compare
	same(t, "project", []any{full.Permissions.ProjectAccess.NotificationLevel != 0, full.Links.ClusterAgents != "", full.PackagesEnabled, full.ContainerRegistryEnabled, full.License == nil},
		[]any{true, true, true, false, true})

	issue := ask(h.ada.Issues.CreateIssue(p.ID, &gitlab.CreateIssueOptions{Title: new("discussed")})).done(t, http.StatusCreated)
	d := ask(h.ada.Discussions.CreateIssueDiscussion(p.ID, issue.IID, &gitlab.CreateIssueDiscussionOptions{Body: new("first")})).done(t, http.StatusCreated)
	same(t, "discussion", ask(h.ada.Discussions.GetIssueDiscussion(p.ID, issue.IID, d.ID)).ok(t).Notes[0].Body, "first")

	h.write(t, p, "main", ".gitlab-ci.yml", "job: {script: echo}\n", "Add a pipeline")
	ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("work"), Ref: new("main")})).done(t, http.StatusCreated)
	h.write(t, p, "work", "b.txt", "b\n", "Add b")
	mr := ask(h.ada.MergeRequests.CreateMergeRequest(p.ID, &gitlab.CreateMergeRequestOptions{Title: new("b"), SourceBranch: new("work"), TargetBranch: new("main")})).done(t, http.StatusCreated)
	waitFor(t, "the pipeline of the merge request", func() bool {
		return ask(h.ada.MergeRequests.GetMergeRequest(p.ID, mr.IID, nil)).ok(t).HeadPipeline != nil
	})
	same(t, "auto-merge", ask(h.ada.MergeRequests.AcceptMergeRequest(p.ID, mr.IID, &gitlab.AcceptMergeRequestOptions{AutoMerge: new(true)})).ok(t).State, "opened")
	cancelled := ask(h.ada.MergeRequests.CancelMergeWhenPipelineSucceeds(p.ID, mr.IID)).done(t, http.StatusCreated)
	same(t, "the answer is a status, not the merge request", cancelled.IID, int64(0))

	//lint:ignore SA1019 the deprecated field is the one to compare
	ask(h.ada.Groups.UpdateGroup(g.ID, &gitlab.UpdateGroupOptions{DefaultBranchProtection: new(int64(1))})).ok(t)
	//lint:ignore SA1019 the deprecated field is the one to compare
	same(t, "protection", ask(h.ada.Groups.GetGroup(g.ID, nil)).ok(t).DefaultBranchProtection, int64(1))
	inside := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("inside"), NamespaceID: &g.ID, InitializeWithReadme: new(true)})).done(t, http.StatusCreated)
	rule := ask(h.ada.ProtectedBranches.ListProtectedBranches(inside.ID, nil)).ok(t)[0]
	same(t, "rule", []any{rule.PushAccessLevels[0].AccessLevel, rule.MergeAccessLevels[0].AccessLevel}, []any{gitlab.DeveloperPermissions, gitlab.MaintainerPermissions})
}

// withQuery adds a parameter that the client does not support.
func withQuery(parameter string) gitlab.RequestOptionFunc {
	return func(r *retryablehttp.Request) error {
		r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&"+parameter, "&")
		return nil
	}
}

// goConfiguration checks the CI/CD configuration, push options and refs that tools
// use.
func goConfiguration(t *testing.T, h *hosting) {
	tools := h.project(t, "tools")
	h.write(t, tools, "main", "templates/greet.yml", "spec:\n  inputs: {who: {default: all}}\n---\ngreet:\n  script:\n    - echo hello $[[ inputs.who ]]\n", "Add a component")
	ask(h.ada.Releases.CreateRelease(tools.ID, &gitlab.CreateReleaseOptions{TagName: new("1.2.0"), Ref: new("main"), Description: new("first")})).done(t, http.StatusCreated)
	p := h.project(t, "configured")
	for name, c := range map[string]struct{ content, want string }{
		"component": {"include:\n  - {component: $CI_SERVER_FQDN/ada/tools/greet@1, inputs: {who: ada}}\n", ""},
		"template":  {"include: {template: Go.gitlab-ci.yml}\n", ""},
		"symbols":   {"job:\n  :script: [echo]\n", ""},
		"release":   {"job:\n  script: echo\n  release: {tag_name: v1, description: d}\n", ""},
		"secrets":   {"job:\n  script: echo\n  id_tokens: {TOKEN: {aud: x}}\n  secrets: {KEY: {vault: a/b/c@d}}\n", ""},
		"run":       {"job:\n  run: [{name: x, script: echo}]\n", "run is not supported"},
	} {
		result := ask(h.ada.Validate.ProjectNamespaceLint(p.ID, &gitlab.ProjectNamespaceLintOptions{Content: &c.content})).ok(t)
		if errs := strings.Join(result.Errors, ", "); result.Valid != (c.want == "") || !strings.Contains(errs, c.want) {
			t.Errorf("%s: %t, %s", name, result.Valid, errs)
		}
		if name == "component" && !strings.Contains(result.MergedYaml, "echo hello ada") {
			t.Errorf("merged: %s", result.MergedYaml)
		}
	}

	// Tools sign in as gitlab-ci-token with any token.
	top := h.git(t)
	top.ok(t, "clone", "-q", asUser(p.HTTPURLToRepo, "gitlab-ci-token", h.adaToken), "work")
	work := gitClient{filepath.Join(top.dir, "work")}
	work.ok(t, "checkout", "-q", "-b", "pushed")
	work.ok(t, "commit", "-q", "--allow-empty", "-m", "Work")
	work.ok(t, "push", "-q", "-o", "merge_request.create", "-o", "merge_request.title=Pushed", "-o", "merge_request.label=bug", "-o", "merge_request.draft",
		"-o", "merge_request.remove_source_branch", "origin", "pushed")
	mr := ask(h.ada.MergeRequests.ListProjectMergeRequests(p.ID, &gitlab.ListProjectMergeRequestsOptions{SourceBranch: new("pushed")})).ok(t)
	if len(mr) != 1 {
		t.Fatalf("merge requests: %v", mr)
	}
	same(t, "merge request", []any{mr[0].Title, mr[0].Labels, mr[0].Draft, mr[0].ForceRemoveSourceBranch}, []any{"Draft: Pushed", gitlab.Labels{"bug"}, true, true})
	work.ok(t, "notes", "add", "-m", "a note")
	work.ok(t, "push", "-q", "origin", "refs/notes/commits")
	work.ok(t, "fetch", "-q", "origin", "refs/notes/commits:refs/notes/fetched")
	same(t, "note", work.ok(t, "notes", "--ref=fetched", "show"), "a note")
}
