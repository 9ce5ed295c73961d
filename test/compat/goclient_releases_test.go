package compat

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestGoClientReleases creates releases with the client, with the keyword release of
// a job, with semantic-release in a job, and with release-it.
func TestGoClientReleases(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		h := newHosting(t, s)
		t.Run("client", func(t *testing.T) { goReleases(t, h) })
		t.Run("job", func(t *testing.T) { releaseJob(t, h) })
		t.Run("semantic-release", func(t *testing.T) { semanticRelease(t, h) })
		t.Run("release-it", func(t *testing.T) { releaseIt(t, h) })
	})
}

func goReleases(t *testing.T, h *hosting) {
	p := h.project(t, "released")
	ask(h.ada.Milestones.CreateMilestone(p.ID, &gitlab.CreateMilestoneOptions{Title: new("m1")})).ok(t)
	at := time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)
	made := ask(h.ada.Releases.CreateRelease(p.ID, &gitlab.CreateReleaseOptions{
		Name: new("First"), TagName: new("v1.0.0"), TagMessage: new("One"), Description: new("**notes**"), Ref: new("main"),
		Milestones: &[]string{"m1"}, ReleasedAt: &at, Assets: &gitlab.ReleaseAssetsOptions{Links: []*gitlab.ReleaseAssetLinkOptions{
			{Name: new("bin"), URL: new("https://example.org/bin"), DirectAssetPath: new("/bin/app"), LinkType: new(gitlab.PackageLinkType)},
		}},
	})).done(t, http.StatusCreated)
	same(t, "release", []any{made.Name, made.TagName, made.Description, made.Author.Username, len(made.Milestones), made.Assets.Count, len(made.Assets.Sources), made.UpcomingRelease, made.ReleasedAt.UTC()},
		[]any{"First", "v1.0.0", "**notes**", "ada", 1, int64(5), 4, false, at})
	same(t, "link", []any{made.Assets.Links[0].Name, made.Assets.Links[0].DirectAssetURL, made.Assets.Links[0].LinkType},
		[]any{"bin", h.s.url + "/ada/released/-/releases/v1.0.0/downloads/bin/app", gitlab.PackageLinkType})
	ask(h.ada.Releases.CreateRelease(p.ID, &gitlab.CreateReleaseOptions{TagName: new("v1.0.0")})).refused(t, http.StatusConflict, "{message: Release already exists}")
	same(t, "tag", ask(h.ada.Tags.GetTag(p.ID, "v1.0.0")).ok(t).Release.Description, "**notes**")
	same(t, "one", ask(h.ada.Releases.GetRelease(p.ID, "v1.0.0")).ok(t).Commit.ID, made.Commit.ID)
	same(t, "latest", ask(h.ada.Releases.GetLatestRelease(p.ID)).ok(t).TagName, "v1.0.0")
	same(t, "changed", ask(h.ada.Releases.UpdateRelease(p.ID, "v1.0.0", &gitlab.UpdateReleaseOptions{Description: new("more")})).ok(t).Description, "more")
	same(t, "list", len(ask(h.ada.Releases.ListReleases(p.ID, &gitlab.ListReleasesOptions{OrderBy: new("created_at"), Sort: new("asc")})).ok(t)), 1)

	link := ask(h.ada.ReleaseLinks.CreateReleaseLink(p.ID, "v1.0.0", &gitlab.CreateReleaseLinkOptions{Name: new("doc"), URL: new("https://example.org/doc")})).done(t, http.StatusCreated)
	same(t, "link", ask(h.ada.ReleaseLinks.GetReleaseLink(p.ID, "v1.0.0", link.ID)).ok(t).Name, "doc")
	same(t, "changed link", ask(h.ada.ReleaseLinks.UpdateReleaseLink(p.ID, "v1.0.0", link.ID, &gitlab.UpdateReleaseLinkOptions{Name: new("docs")})).ok(t).Name, "docs")
	same(t, "links", len(ask(h.ada.ReleaseLinks.ListReleaseLinks(p.ID, "v1.0.0", nil)).ok(t)), 2)
	same(t, "deleted link", ask(h.ada.ReleaseLinks.DeleteReleaseLink(p.ID, "v1.0.0", link.ID)).ok(t).Name, "docs")

	same(t, "deleted", ask(h.ada.Releases.DeleteRelease(p.ID, "v1.0.0")).ok(t).TagName, "v1.0.0")
	ask(h.ada.Releases.GetRelease(p.ID, "v1.0.0")).missing(t)
}

// startRunner starts the runner of the binary for a project.
func startRunner(t *testing.T, h *hosting, p *gitlab.Project) {
	t.Helper()
	made := ask(h.root.Users.CreateUserRunner(userRunner(p.ID))).ok(t)
	cmd := exec.Command(binary(t), "runner")
	out := &output{}
	cmd.Env = append(environment(), "SVC_RUNNER_URL="+h.s.url, "SVC_RUNNER_TOKEN="+made.Token, "SVC_RUNNER_DIR="+t.TempDir())
	cmd.Stdout, cmd.Stderr = out, out
	r := run(t, cmd)
	t.Cleanup(func() {
		_ = r.Process.Signal(os.Interrupt)
		<-r.ended
	})
}

// finished waits for the pipeline of a commit; if it fails, the test fails with the
// logs of its jobs.
func (h *hosting) finished(t *testing.T, p *gitlab.Project) {
	t.Helper()
	var last *gitlab.PipelineInfo
	waitFor(t, "the pipeline ends", func() bool {
		list := ask(h.ada.Pipelines.ListProjectPipelines(p.ID, nil)).ok(t)
		if len(list) > 0 {
			last = list[0]
		}
		return last != nil && (last.Status == "success" || last.Status == "failed")
	})
	if last.Status == "success" {
		return
	}
	for _, j := range ask(h.ada.Jobs.ListPipelineJobs(p.ID, last.ID, nil)).ok(t) {
		t.Errorf("job %s: %s\n%s", j.Name, j.Status, h.trace(t, p, j))
	}
	t.FailNow()
}

// trace returns the log of a job.
func (h *hosting) trace(t *testing.T, p *gitlab.Project, j *gitlab.Job) string {
	t.Helper()
	log, _, err := h.ada.Jobs.GetTraceFile(p.ID, j.ID)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// releaseJob creates a release with the keyword of a job.
func releaseJob(t *testing.T, h *hosting) {
	p := h.project(t, "by-job")
	startRunner(t, h, p)
	h.commit(t, p, &gitlab.CreateCommitOptions{Branch: new("main"), CommitMessage: new("CI"), Actions: []*gitlab.CommitActionOptions{
		{Action: new(gitlab.FileCreate), FilePath: new("NOTES.md"), Content: new("# Notes of `$HOME`\n")},
		{Action: new(gitlab.FileCreate), FilePath: new(".gitlab-ci.yml"), Content: new(`
release:
  rules: [{if: $CI_COMMIT_BRANCH}] # not for the tag that it creates
  script:
    - echo "cloned from $CI_REPOSITORY_URL, default $CI_DEFAULT_BRANCH_SLUG, features $GITLAB_FEATURES"
  variables: {WHERE: "https://example.org/$CI_COMMIT_BRANCH"}
  release:
    tag_name: v$CI_PIPELINE_IID.0
    name: 'Release "$CI_COMMIT_BRANCH" $(echo no)'
    description: ./NOTES.md
    released_at: '2022-01-02T03:04:05Z'
    assets:
      links:
        - {name: app, url: "$WHERE/app.tar.gz", filepath: /app.tar.gz, link_type: package}
`)},
	}})
	h.finished(t, p)
	r := ask(h.ada.Releases.GetRelease(p.ID, "v1.0")).ok(t)
	log := h.trace(t, p, ask(h.ada.Jobs.ListProjectJobs(p.ID, nil)).ok(t)[0])
	// The token is masked in the URL.
	if want := "cloned from " + asUser(p.HTTPURLToRepo, "gitlab-ci-token", "") + ", default main, features audit_events,"; !strings.Contains(strings.ReplaceAll(log, "[MASKED]", ""), want) || !strings.Contains(log, "gitlab-ci-token:[MASKED]@") {
		t.Errorf("the job has not printed %q: %s", want, log)
	}
	same(t, "release", []any{r.Name, r.Description, r.Author.Username, r.ReleasedAt.UTC().Format(time.RFC3339), r.Assets.Links[0].URL, r.Assets.Links[0].DirectAssetURL},
		[]any{`Release "main" $(echo no)`, "# Notes of `$HOME`\n", "ada", "2022-01-02T03:04:05Z", "https://example.org/main/app.tar.gz", h.s.url + "/ada/by-job/-/releases/v1.0/downloads/app.tar.gz"})
}

// releaseTools installs semantic-release with its plugin, and release-it.
var releaseTools = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs(filepath.Join("node", "release"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "release-it", "package.json")); err == nil {
		return dir, nil
	}
	fetch := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// semanticRelease creates a release with an asset in a job on the runner.
func semanticRelease(t *testing.T, h *hosting) {
	dir, err := releaseTools()
	if err != nil {
		t.Fatalf("semantic-release is missing, run scripts/setup: %v", err)
	}
	p := h.project(t, "semantic")
	startRunner(t, h, p)
	ask(h.ada.ProjectVariables.CreateVariable(p.ID, &gitlab.CreateProjectVariableOptions{Key: new("GITLAB_TOKEN"), Value: new(h.adaToken), Masked: new(true)})).done(t, http.StatusCreated)
	h.commit(t, p, &gitlab.CreateCommitOptions{Branch: new("main"), CommitMessage: new("feat: add a thing"), Actions: []*gitlab.CommitActionOptions{
		{Action: new(gitlab.FileCreate), FilePath: new("app.txt"), Content: new("the app\n")},
		{Action: new(gitlab.FileCreate), FilePath: new(".releaserc.json"), Content: new(`{"branches":["main"],"plugins":["` +
			strings.Join([]string{dir + "/node_modules/@semantic-release/commit-analyzer", dir + "/node_modules/@semantic-release/release-notes-generator"}, `","`) +
			`",["` + dir + `/node_modules/@semantic-release/gitlab",{"assets":[{"path":"app.txt","label":"App"}],"successComment":false,"failComment":false}]]}`)},
		{Action: new(gitlab.FileCreate), FilePath: new(".gitlab-ci.yml"), Content: new(`
publish:
  variables: {GIT_DEPTH: "0", GITLAB_URL: $CI_SERVER_URL}
  rules: [{if: $CI_COMMIT_BRANCH}]
  script:
    - node ` + dir + `/node_modules/semantic-release/bin/semantic-release.js
`)},
	}})
	h.finished(t, p)
	r := ask(h.ada.Releases.GetRelease(p.ID, "v1.0.0")).ok(t)
	if !strings.Contains(r.Description, "add a thing") || len(r.Assets.Links) != 1 || r.Assets.Links[0].Name != "App" {
		t.Errorf("the release: %+v", r)
	}
}

// releaseIt creates two releases from a clone: the asset of the first is an upload
// of the project, that of the second a generic package.
func releaseIt(t *testing.T, h *hosting) {
	dir, err := releaseTools()
	if err != nil {
		t.Fatalf("release-it is missing, run scripts/setup: %v", err)
	}
	p := h.project(t, "released-it")
	ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{Visibility: new(gitlab.PublicVisibility)})).ok(t)
	ask(h.ada.Milestones.CreateMilestone(p.ID, &gitlab.CreateMilestoneOptions{Title: new("m1")})).ok(t)
	top := h.git(t)
	top.ok(t, "clone", "-q", asUser(p.HTTPURLToRepo, "ada", h.adaToken), "work")
	work := gitClient{filepath.Join(top.dir, "work")}
	for _, one := range []struct{ version, assets string }{
		{"1.0.0", `"useGenericPackageRepositoryForAssets":false`},
		{"1.1.0", `"useGenericPackageRepositoryForAssets":true,"genericPackageRepositoryName":"app"`},
	} {
		content := "the app " + one.version + "\n"
		work.write(t, "app.txt", content)
		work.write(t, "package.json", `{"name":"app","version":"0.0.0"}`)
		work.write(t, ".release-it.json", `{"npm":false,"git":{"requireCleanWorkingDir":false,"addUntrackedFiles":true,"commitMessage":"Release ${version}","tagAnnotation":"Tag ${version}"},`+
			`"gitlab":{"release":true,"origin":"`+h.s.url+`","releaseName":"App ${version}","releaseNotes":"echo Notes of ${version}","milestones":["m1"],"assets":["app.txt"],`+one.assets+`}}`)
		cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "node_modules", "release-it", "bin", "release-it.js"), "--ci", one.version)
		cmd.Dir = work.dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + top.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GITLAB_TOKEN=" + h.adaToken,
			"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("release-it %s: %v: %s", one.version, err, out)
		}
		r := ask(h.ada.Releases.GetRelease(p.ID, one.version)).ok(t)
		same(t, "release", []any{r.Name, r.Description, r.Author.Username, r.Commit.ID, r.Commit.Title, r.Milestones[0].Title, r.Assets.Links[0].Name},
			[]any{"App " + one.version, "Notes of " + one.version, "ada", work.ok(t, "rev-parse", "HEAD"), "Release " + one.version, "m1", "app.txt"})
		same(t, "tag", ask(h.ada.Tags.GetTag(p.ID, one.version)).ok(t).Message, "Tag "+one.version)
		same(t, "asset", download(t, r.Assets.Links[0].URL), content)
	}
	same(t, "packages", mapped(ask(h.ada.Packages.ListProjectPackages(p.ID, nil)).ok(t), func(k *gitlab.Package) string { return k.Name + " " + k.Version }), []string{"app 1.1.0"})
}

// download returns the response to an anonymous request for a URL.
func download(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, res.Status, err)
	}
	return string(text)
}
