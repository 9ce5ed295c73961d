package compat

import (
	"net/http"
	"strings"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// goMirrors manages push mirrors and a pull mirror, whose remote servers do not
// exist.
func goMirrors(t *testing.T, h *hosting) {
	p := h.project(t, "mirrored")
	made := ask(h.ada.ProjectMirrors.AddProjectMirror(p.ID, &gitlab.AddProjectMirrorOptions{
		URL: new("https://me:secret@git.invalid/a.git"), KeepDivergentRefs: new(true), MirrorBranchRegex: new("^main$"),
	})).done(t, http.StatusCreated)
	same(t, "mirror", []any{made.URL, made.Enabled, made.UpdateStatus, made.KeepDivergentRefs, made.MirrorBranchRegex, made.AuthMethod},
		[]any{"https://*****:*****@git.invalid/a.git", false, "none", true, "^main$", "password"})
	same(t, "list", ask(h.ada.ProjectMirrors.ListProjectMirror(p.ID, nil)).ok(t), []*gitlab.ProjectMirror{made})
	same(t, "get", ask(h.ada.ProjectMirrors.GetProjectMirror(p.ID, made.ID)).ok(t), made)
	ask(h.ada.ProjectMirrors.GetProjectMirrorPublicKey(p.ID, made.ID)).missing(t)
	edited := ask(h.ada.ProjectMirrors.EditProjectMirror(p.ID, made.ID, &gitlab.EditProjectMirrorOptions{Enabled: new(true), OnlyProtectedBranches: new(true)})).ok(t)
	same(t, "edited", []any{edited.Enabled, edited.OnlyProtectedBranches, edited.MirrorBranchRegex}, []any{true, true, ""})
	send(h.ada.ProjectMirrors.ForcePushMirrorUpdate(p.ID, made.ID)).done(t, http.StatusNoContent)
	waitFor(t, "the update to fail", func() bool {
		return ask(h.ada.ProjectMirrors.GetProjectMirror(p.ID, made.ID)).ok(t).LastError != ""
	})
	send(h.ada.ProjectMirrors.DeleteProjectMirror(p.ID, made.ID)).done(t, http.StatusNoContent)
	ask(h.ada.ProjectMirrors.GetProjectMirror(p.ID, made.ID)).missing(t)

	keyed := ask(h.ada.ProjectMirrors.AddProjectMirror(p.ID, &gitlab.AddProjectMirrorOptions{URL: new("ssh://git@git.invalid/a.git"), AuthMethod: new("ssh_public_key")})).done(t, http.StatusCreated)
	if key := ask(h.ada.ProjectMirrors.GetProjectMirrorPublicKey(p.ID, keyed.ID)).ok(t); !strings.HasPrefix(key.PublicKey, "ssh-ed25519 ") {
		t.Errorf("the public key is %s", key.PublicKey)
	}

	ask(h.ada.Projects.GetProjectPullMirrorDetails(p.ID)).missing(t)
	pull := ask(h.ada.Projects.ConfigureProjectPullMirror(p.ID, &gitlab.ConfigureProjectPullMirrorOptions{
		Enabled: new(true), URL: new("https://git.invalid/a.git"), AuthUser: new("me"), AuthPassword: new("secret"), MirrorTriggerBuilds: new(true),
	})).ok(t)
	same(t, "pull mirror", []any{pull.URL, pull.Enabled, pull.MirrorTriggerBuilds, pull.MirrorOverwritesDivergedBranches}, []any{"https://*****:*****@git.invalid/a.git", true, true, false})
	waitFor(t, "the update to fail", func() bool {
		return ask(h.ada.Projects.GetProjectPullMirrorDetails(p.ID)).ok(t).LastError != ""
	})
	send(h.ada.Projects.StartMirroringProject(p.ID)).done(t, http.StatusAccepted)
	same(t, "project", ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t).Mirror, true)
	off := ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{Mirror: new(false)})).ok(t)
	same(t, "off", off.Mirror, false)
}
