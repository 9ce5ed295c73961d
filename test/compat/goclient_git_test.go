package compat

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// gitClient runs git in a separate directory, without any configuration of the
// machine.
type gitClient struct{ dir string }

func (h *hosting) git(t *testing.T) gitClient {
	t.Helper()
	return gitClient{t.TempDir()}
}

func (g gitClient) run(args []string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = g.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada Author", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada Author", "GIT_COMMITTER_EMAIL=ada@example.org",
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// ok returns the output of a command, which must succeed.
func (g gitClient) ok(t *testing.T, args ...string) string {
	t.Helper()
	out, err := g.run(args)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// last returns the last line of the output: git prints a warning about a redirect
// first.
func (g gitClient) last(t *testing.T, args ...string) string {
	t.Helper()
	lines := strings.Split(g.ok(t, args...), "\n")
	return lines[len(lines)-1]
}

// fails runs a command that must fail with a text in its output.
func (g gitClient) fails(t *testing.T, text string, args ...string) {
	t.Helper()
	out, err := g.run(args)
	if err == nil || !strings.Contains(out, text) {
		t.Errorf("git %s: %v\n%s\nwant it to fail with %q", strings.Join(args, " "), err, out, text)
	}
}

func (g gitClient) write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// asUser adds credentials to a URL.
func asUser(address, name, secret string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // git reports the invalid URL
	}
	u.User = url.UserPassword(name, secret)
	return u.String()
}

// goGit clones with the URL from the API, pushes, and checks the result with the
// API.
func goGit(t *testing.T, h *hosting) {
	p := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("pushed")})).done(t, http.StatusCreated)
	same(t, "empty, default branch", []any{p.EmptyRepo, p.DefaultBranch}, []any{true, "main"})
	address := asUser(p.HTTPURLToRepo, "ada", h.adaToken)
	top := h.git(t)
	top.ok(t, "clone", "-q", address, "work")
	work := gitClient{filepath.Join(top.dir, "work")}
	work.ok(t, "checkout", "-q", "-b", "trunk")
	work.write(t, "hello.txt", "hello\n")
	work.ok(t, "add", ".")
	work.ok(t, "commit", "-q", "-m", "say hello")
	work.ok(t, "tag", "-a", "v1.0.0", "-m", "the first")
	work.ok(t, "push", "-q", "origin", "trunk", "v1.0.0")

	// The first branch is the default branch from now on, which the API returns
	// immediately.
	first := work.ok(t, "rev-parse", "HEAD")
	after := ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t)
	same(t, "empty, default branch after the push", []any{after.EmptyRepo, after.DefaultBranch}, []any{false, "trunk"})
	branch := ask(h.ada.Branches.GetBranch(p.ID, "trunk")).ok(t)
	same(t, "commit", []any{branch.Commit.ID, branch.Commit.Title, branch.Commit.AuthorName, branch.Protected}, []any{first, "say hello", "Ada Author", true})
	tag := ask(h.ada.Tags.GetTag(p.ID, "v1.0.0")).ok(t)
	same(t, "tag", []string{tag.Message, tag.Commit.ID, tag.Target}, []string{"the first", first, work.ok(t, "rev-parse", "v1.0.0")})
	same(t, "file", string(ask(h.ada.RepositoryFiles.GetRawFile(p.ID, "hello.txt", nil)).ok(t)), "hello\n")

	// Commits that are created with the API are fetched by git.
	h.write(t, p, "trunk", "more.txt", "more\n", "more")
	work.ok(t, "pull", "-q", "--ff-only", "origin", "trunk")
	same(t, "pulled commit", work.ok(t, "rev-parse", "HEAD"), h.head(t, p, "trunk"))

	work.ok(t, "commit", "-q", "--amend", "-m", "changed afterwards")
	work.fails(t, "You are not allowed to force push code to a protected branch on this project.", "push", "-q", "--force", "origin", "trunk")
	work.ok(t, "push", "-q", "origin", "trunk:side")
	same(t, "side branch", ask(h.ada.Branches.GetBranch(p.ID, "side")).ok(t).Commit.Title, "changed afterwards")
	work.ok(t, "push", "-q", "origin", ":side")
	ask(h.ada.Branches.GetBranch(p.ID, "side")).missing(t)

	// The old URL of a renamed project still works.
	ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{Path: new("pushed-on")})).ok(t)
	same(t, "branch at the old address", work.last(t, "ls-remote", "-q", "origin", "refs/heads/trunk"), h.head(t, p, "trunk")+"\trefs/heads/trunk")
	top.fails(t, "not found", "clone", "-q", asUser(h.s.url+"/ada/never.git", "ada", h.adaToken), "never")
}
