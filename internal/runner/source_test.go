package runner_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
)

const sourceFile = `
modules:
  hooks: {pre_get_sources_script: ["echo hooked"]}
  variables: {GIT_SUBMODULE_STRATEGY: recursive, GIT_DEPTH: "1"}
  script: ["cat near/file far/file", "echo commits $(git rev-list --count HEAD)", "git remote get-url origin"]
plain: {script: ["ls -A near", "echo commits $(git rev-list --count HEAD)", "git fetch -q origin main && echo fetched"]}
unchecked: {variables: {GIT_CHECKOUT: "false"}, script: ["test ! -e README.md", "git cat-file -e $CI_COMMIT_SHA"]}
wrong: {variables: {GIT_STRATEGY: odd}, script: ["echo never"]}
`

// testSources fetches repositories with different Git settings of a job.
func testSources(t *testing.T, s *apptest.Server) {
	var lib struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "POST /projects", As: apptest.RootToken, JSON: `{"name":"lib","visibility":"private"}`, Status: 201}).JSON(t, &lib)
	tip := s.Repository(t, lib.ID).Commit(gittest.Commit{Changes: []gittest.Change{{Path: "file", Content: "of the library\n"}}})
	modules := fmt.Sprintf("[submodule \"near\"]\n\tpath = near\n\turl = ../lib.git\n[submodule \"far\"]\n\tpath = far\n\turl = %s/root/lib.git\n", s.URL)
	g := newFixture(t, s, "code", gittest.Change{Path: "README.md", Content: "first"})
	s.Check(t, apptest.Call{
		Do: fmt.Sprintf("POST /projects/%d/job_token_scope/allowlist", lib.ID), As: apptest.RootToken,
		JSON: fmt.Sprintf(`{"target_project_id":%d}`, g.project), Status: 201,
	})
	repo := s.Repository(t, g.project, gittest.Commit{Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: sourceFile}, {Path: ".gitmodules", Content: modules}}})
	repo.Git("read-tree", "main")
	for _, name := range []string{"near", "far"} {
		repo.Git("update-index", "--add", "--cacheinfo", "160000,"+tip+","+name)
	}
	repo.Git("update-ref", "refs/heads/main", repo.Git("commit-tree", "-p", "main", "-m", "modules", repo.Git("write-tree")))

	jobs := g.await(g.pipeline(nil), "failed")
	for name, want := range map[string]string{"modules": "success", "plain": "success", "unchecked": "success", "wrong": "failed"} {
		if jobs[name].Status != want {
			t.Errorf("%s is %s:\n%s", name, jobs[name].Status, g.log(jobs[name].ID))
		}
	}
	g.wants(jobs["modules"], "hooked\n", "of the library\nof the library\n", "commits 1\n", "[MASKED]")
	g.wants(jobs["plain"], "$ ls -A near\x1b[0;m\n\x1b[32;1m$ echo", "commits 3\n", "fetched\n")
	g.wants(jobs["wrong"], `GIT_STRATEGY "odd" is none of`, "!never")
	if reason := jobs["wrong"].FailureReason; reason != "runner_system_failure" {
		t.Errorf("wrong failed for %s", reason)
	}
}
