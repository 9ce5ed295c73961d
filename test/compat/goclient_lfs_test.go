package compat

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// goLFS pushes and clones with git-lfs, and checks the result with the API.
func goLFS(t *testing.T, h *hosting) {
	p := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("large")})).done(t, http.StatusCreated)
	same(t, "LFS enabled", p.LFSEnabled, true)
	address := asUser(p.HTTPURLToRepo, "ada", h.adaToken)
	work := h.git(t)
	work.ok(t, "init", "-q", "-b", "main")
	work.ok(t, "lfs", "install", "--skip-repo")
	work.ok(t, "lfs", "install", "--local")
	work.ok(t, "lfs", "track", "*.bin")
	content := strings.Repeat("a large file\n", 10_000)
	work.write(t, "sound.bin", content)
	work.ok(t, "add", ".gitattributes", "sound.bin")
	work.ok(t, "commit", "-q", "-m", "add a sound")
	work.ok(t, "remote", "add", "origin", address)
	work.fails(t, "LFS objects are missing", "push", "-q", "--no-verify", "origin", "main")
	work.ok(t, "push", "-q", "origin", "main")

	raw := ask(h.ada.RepositoryFiles.GetRawFile(p.ID, "sound.bin", &gitlab.GetRawFileOptions{LFS: new(true)})).ok(t)
	same(t, "content", string(raw), content)
	pointer := ask(h.ada.RepositoryFiles.GetRawFile(p.ID, "sound.bin", nil)).ok(t)
	same(t, "pointer", strings.HasPrefix(string(pointer), "version https://git-lfs.github.com/spec/v1\n"), true)
	after := ask(h.ada.Projects.GetProject(p.ID, &gitlab.GetProjectOptions{Statistics: new(true)})).ok(t)
	same(t, "size", after.Statistics.LFSObjectsSize, int64(len(content)))

	top := h.git(t)
	top.ok(t, "lfs", "install", "--skip-repo")
	top.ok(t, "clone", "-q", address, "clone")
	cloned, err := os.ReadFile(filepath.Join(top.dir, "clone", "sound.bin"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "cloned content", string(cloned), content)
	clone := gitClient{filepath.Join(top.dir, "clone")}
	clone.ok(t, "lfs", "install", "--local") // it has its own home
	same(t, "locked", clone.last(t, "lfs", "lock", "sound.bin"), "Locked sound.bin")
	same(t, "locks", strings.Fields(clone.last(t, "lfs", "locks"))[0], "sound.bin")
	same(t, "unlocked", clone.last(t, "lfs", "unlock", "sound.bin"), "Unlocked sound.bin")

	ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{LFSEnabled: new(false)})).ok(t)
	clone.fails(t, "not enabled for this project", "lfs", "locks")
}
