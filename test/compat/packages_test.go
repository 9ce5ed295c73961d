package compat

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestNPM runs npm; TestTwine runs twine and pip of Debian.
func TestNPM(t *testing.T) {
	t.Parallel()
	runPackages(t, "packages/npm.sh")
}

func TestTwine(t *testing.T) {
	t.Parallel()
	runPackages(t, "packages/pypi.sh")
}

func runPackages(t *testing.T, script string) {
	t.Helper()
	each(t, func(t *testing.T, s *server) {
		out, err := s.command(t, "/bin/sh", script)
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		t.Logf("%s", out)
	})
}

// TestGoPackages publishes generic packages with client-go and from a job of the
// built-in runner, and protects them.
func TestGoPackages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root, err := gitlab.NewClient(rootToken, gitlab.WithBaseURL(s.url))
		if err != nil {
			t.Fatal(err)
		}
		p := ask(root.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("tools")})).done(t, http.StatusCreated)
		content := strings.Repeat("content ", 1000)
		file := ask(root.GenericPackages.PublishPackageFile(p.ID, "tool", "1.0.0", "dir/tool.bin", strings.NewReader(content), &gitlab.PublishPackageFileOptions{
			Select: new(gitlab.SelectPackageFile),
		})).done(t, http.StatusCreated)
		same(t, "file", []any{file.FileName, file.Size}, []any{"dir/tool.bin", int64(len(content))})
		got := ask(root.GenericPackages.DownloadPackageFile(p.ID, "tool", "1.0.0", "dir/tool.bin")).ok(t)
		if !bytes.Equal(got, []byte(content)) {
			t.Errorf("downloaded %d bytes", len(got))
		}
		list := ask(root.Packages.ListProjectPackages(p.ID, &gitlab.ListProjectPackagesOptions{PackageType: new("generic")})).ok(t)
		if len(list) != 1 {
			t.Fatalf("packages: %v", list)
		}
		same(t, "package", []any{list[0].Name, list[0].Version, list[0].Status, list[0].Links.WebPath != ""}, []any{"tool", "1.0.0", "default", true})
		files := ask(root.Packages.ListPackageFiles(p.ID, list[0].ID, nil)).ok(t)
		same(t, "digest", []any{len(files), files[0].FileSHA256}, []any{1, file.FileSHA256})
		rule := ask(root.ProtectedPackages.CreatePackageProtectionRules(p.ID, &gitlab.CreatePackageProtectionRulesOptions{
			PackageNamePattern: new("tool*"), PackageType: new("generic"), MinimumAccessLevelForPush: new(int64(40)), MinimumAccessLevelForDelete: new(int64(50)),
		})).done(t, http.StatusCreated)
		same(t, "rule", []any{rule.PackageNamePattern, rule.MinimumAccessLevelForPush, rule.MinimumAccessLevelForDelete}, []any{"tool*", "maintainer", "owner"})
		same(t, "rules", len(ask(root.ProtectedPackages.ListPackageProtectionRules(p.ID, nil)).ok(t)), 1)
		send(root.ProtectedPackages.DeletePackageProtectionRules(p.ID, rule.ID)).done(t, http.StatusNoContent)
		send(root.Packages.DeletePackageFile(p.ID, list[0].ID, files[0].ID)).done(t, http.StatusNoContent)
		send(root.Packages.DeleteProjectPackage(p.ID, list[0].ID)).done(t, http.StatusNoContent)

		ask(root.RepositoryFiles.CreateFile(p.ID, ".gitlab-ci.yml", &gitlab.CreateFileOptions{
			Branch: new("main"), CommitMessage: new("ci"), Content: new(packageJobs),
		})).done(t, http.StatusCreated)
		waitFor(t, "the jobs end", func() bool {
			pipelines := ask(root.Pipelines.ListProjectPipelines(p.ID, nil)).ok(t)
			if len(pipelines) == 0 {
				return false
			}
			if status := pipelines[0].Status; status == "failed" || status == "canceled" {
				t.Fatalf("the pipeline %s: %s", status, s.log.String())
			}
			return pipelines[0].Status == "success"
		})
		same(t, "published by jobs", mapped(ask(root.Packages.ListProjectPackages(p.ID, &gitlab.ListProjectPackagesOptions{OrderBy: new("name")})).ok(t),
			func(k *gitlab.Package) string { return k.PackageType + " " + k.Name }), []string{"npm @root/lib", "generic tool"})
	}, "SVC_RUNNER=builtin", "SVC_RUNNER_OPEN_SIGNUP=true")
}

// packageJobs publish and install packages with the job token.
const packageJobs = `
stages: [publish, install]
generic:
  stage: publish
  script:
    - echo hello > tool.txt
    - 'curl --fail --header "JOB-TOKEN: $CI_JOB_TOKEN" --upload-file tool.txt "$CI_API_V4_URL/projects/$CI_PROJECT_ID/packages/generic/tool/2.0.0/tool.txt"'
npm:
  stage: publish
  script:
    - printf '//%s/projects/%s/packages/npm/:_authToken=%s\n' "${CI_API_V4_URL#*://}" "$CI_PROJECT_ID" "$CI_JOB_TOKEN" > .npmrc
    - printf '{"name":"@root/lib","version":"1.0.0","main":"index.js"}' > package.json
    - echo 'module.exports = "hello"' > index.js
    - npm publish --cache "$PWD/cache" --registry "$CI_API_V4_URL/projects/$CI_PROJECT_ID/packages/npm/"
install:
  stage: install
  script:
    - 'curl --fail --user "gitlab-ci-token:$CI_JOB_TOKEN" "$CI_API_V4_URL/projects/$CI_PROJECT_ID/packages/generic/tool/2.0.0/tool.txt" | grep hello'
    - mkdir use && cd use && echo '{"name":"use","version":"1.0.0"}' > package.json
    - printf '//%s/projects/%s/packages/npm/:_authToken=%s\n' "${CI_API_V4_URL#*://}" "$CI_PROJECT_ID" "$CI_JOB_TOKEN" > .npmrc
    - npm install --cache "$PWD/cache" --registry "$CI_API_V4_URL/projects/$CI_PROJECT_ID/packages/npm/" @root/lib
    - test "$(node -e 'console.log(require("@root/lib"))')" = hello
`
