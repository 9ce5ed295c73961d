package compat

import (
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// goProjectMoves renames, stars, archives, transfers and shares a project.
func goProjectMoves(t *testing.T, h *hosting) {
	p := h.project(t, "before")
	renamed := ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{Path: new("after")})).done(t, http.StatusOK)
	same(t, "path, address of git", []string{renamed.PathWithNamespace, renamed.HTTPURLToRepo}, []string{"ada/after", h.s.url + "/ada/after.git"})
	// The client follows the redirect from the old path to the new one.
	same(t, "by the old path", ask(h.ada.Projects.GetProject("ada/before", nil)).ok(t), renamed)
	same(t, "branch by the old path", ask(h.ada.Branches.GetBranch("ada/before", "main")).ok(t).Name, "main")
	ask(h.ada.Projects.StarProject("ada/before")).missing(t)

	same(t, "stars", ask(h.bob.Projects.StarProject(grant(t, h, p, gitlab.ReporterPermissions))).done(t, http.StatusCreated).StarCount, int64(1))
	if again := statusOf(h.bob.Projects.StarProject(p.ID)); again != http.StatusNotModified {
		t.Errorf("the second star has status %d, want 304", again)
	}
	same(t, "stars without it", ask(h.bob.Projects.UnstarProject(p.ID)).done(t, http.StatusCreated).StarCount, int64(0))

	same(t, "archived", ask(h.ada.Projects.ArchiveProject(p.ID)).done(t, http.StatusCreated).Archived, true)
	ask(h.ada.RepositoryFiles.CreateFile(p.ID, "late.txt", &gitlab.CreateFileOptions{Branch: new("main"), Content: new("late"), CommitMessage: new("late")})).
		refused(t, http.StatusForbidden, "{message: 403 Forbidden - The project is archived: nothing in it can be changed.}")
	same(t, "not archived", ask(h.ada.Projects.UnarchiveProject(p.ID)).done(t, http.StatusCreated).Archived, false)

	g := h.group(t, "movers")
	moved := ask(h.ada.Projects.TransferProject(p.ID, &gitlab.TransferProjectOptions{Namespace: g.ID})).done(t, http.StatusOK)
	same(t, "moved", []any{moved.PathWithNamespace, moved.Namespace.ID, moved.Namespace.Kind}, []any{"movers/after", g.ID, "group"})
	if moved.Owner != nil {
		t.Errorf("a project of a group has the owner %+v", moved.Owner)
	}
	same(t, "by the first path", ask(h.ada.Projects.GetProject("ada/before", nil)).ok(t).ID, p.ID)
	same(t, "file of the moved project", string(ask(h.ada.RepositoryFiles.GetRawFile("movers/after", "README.md", nil)).ok(t)), "# before\n\n")
	same(t, "groups above", mapped(ask(h.ada.Projects.ListProjectsGroups(p.ID, nil)).ok(t), func(g *gitlab.ProjectGroup) string { return g.FullPath }), []string{"movers"})

	grown := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("grown-up"), NamespaceID: &g.ID})).done(t, http.StatusCreated)
	home := ask(h.ada.Projects.TransferProject(grown.ID, &gitlab.TransferProjectOptions{Namespace: "ada"})).done(t, http.StatusOK)
	same(t, "taken home", []string{home.PathWithNamespace, home.Owner.Username, level(home.Permissions.ProjectAccess)}, []string{"ada/grown-up", "ada", "50"})

	guests := h.group(t, "invited")
	ask(h.ada.GroupMembers.AddGroupMember(guests.ID, &gitlab.AddGroupMemberOptions{UserID: &h.bobUser.ID, AccessLevel: new(gitlab.MaintainerPermissions)})).done(t, http.StatusCreated)
	until := later()
	send(h.ada.Projects.ShareProjectWithGroup(p.ID, &gitlab.ShareWithGroupOptions{GroupID: &guests.ID, GroupAccess: new(gitlab.DeveloperPermissions), ExpiresAt: new(until.String())})).
		done(t, http.StatusCreated)
	shared := ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t).SharedWithGroups
	same(t, "shares", shared, []gitlab.ProjectSharedWithGroup{
		{GroupID: guests.ID, GroupName: "Group invited", GroupFullPath: "invited", GroupAccessLevel: 30, ExpiresAt: &until},
	})
	same(t, "invited groups", mapped(ask(h.ada.Projects.ListProjectsInvitedGroups(p.ID, nil)).ok(t), func(g *gitlab.ProjectGroup) int64 { return g.ID }), []int64{guests.ID})
	same(t, "shared projects", mapped(ask(h.ada.Groups.ListGroupSharedProjects(guests.ID, nil)).ok(t), projectPath), []string{"movers/after"})
	same(t, "level by the share", int64(ask(h.ada.ProjectMembers.GetInheritedProjectMember(p.ID, h.bobUser.ID)).ok(t).AccessLevel), 30)
	same(t, "users", mapped(ask(h.ada.Projects.ListProjectsUsers(p.ID, nil)).ok(t), func(u *gitlab.ProjectUser) string { return u.Username }), []string{"ada", "bob"})
	send(h.ada.Projects.DeleteSharedProjectFromGroup(p.ID, guests.ID)).done(t, http.StatusNoContent)
	same(t, "shares, one ended", len(ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t).SharedWithGroups), 0)
}

// grant makes Bob a member of a project and returns Bob's ID.
func grant(t *testing.T, h *hosting, p *gitlab.Project, level gitlab.AccessLevelValue) int64 {
	t.Helper()
	ask(h.ada.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{UserID: h.bobUser.ID, AccessLevel: &level})).done(t, http.StatusCreated)
	return p.ID
}

// statusOf returns the status of a call whose response has no body to decode.
func statusOf[T any](_ T, res *gitlab.Response, _ error) int { return res.StatusCode }

func goForks(t *testing.T, h *hosting) {
	p := h.project(t, "origin")
	ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{Visibility: new(gitlab.PublicVisibility)})).ok(t)
	h.write(t, p, "main", "notes.txt", "one\n", "notes")

	fork := ask(h.bob.Projects.ForkProject(p.ID, &gitlab.ForkProjectOptions{Path: new("copy"), Name: new("A copy")})).done(t, http.StatusCreated)
	same(t, "fork", []any{fork.PathWithNamespace, fork.Name, fork.ForkedFromProject.ID, fork.ForkedFromProject.PathWithNamespace, fork.ForkedFromProject.HTTPURLToRepo},
		[]any{"bob/copy", "A copy", p.ID, "ada/origin", p.HTTPURLToRepo})
	waitFor(t, "the fork is made", func() bool { return ask(h.bob.Projects.GetProject(fork.ID, nil)).ok(t).ImportStatus == "finished" })
	same(t, "default branch of the fork", ask(h.bob.Projects.GetProject(fork.ID, nil)).ok(t).DefaultBranch, "main")
	same(t, "file of the fork", string(ask(h.bob.RepositoryFiles.GetRawFile(fork.ID, "notes.txt", nil)).ok(t)), "one\n")
	same(t, "forks", mapped(ask(h.ada.Projects.ListProjectForks(p.ID, nil)).ok(t), projectPath), []string{"bob/copy"})
	same(t, "number of forks", ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t).ForksCount, int64(1))
	ask(h.bob.Projects.ForkProject(p.ID, &gitlab.ForkProjectOptions{Path: new("copy"), Name: new("A copy")})).
		refused(t, http.StatusConflict, "{message: {path: [has already been taken]}}")

	// Commits to the fork do not change the source project.
	ask(h.bob.RepositoryFiles.CreateFile(fork.ID, "own.txt", &gitlab.CreateFileOptions{Branch: new("main"), Content: new("own"), CommitMessage: new("own")})).done(t, http.StatusCreated)
	ask(h.ada.RepositoryFiles.GetFile(p.ID, "own.txt", &gitlab.GetFileOptions{Ref: new("main")})).missing(t)

	send(h.bob.Projects.DeleteProjectForkRelation(fork.ID)).done(t, http.StatusNoContent)
	if alone := ask(h.bob.Projects.GetProject(fork.ID, nil)).ok(t); alone.ForkedFromProject != nil {
		t.Errorf("a project of its own is a fork of %+v", alone.ForkedFromProject)
	}
	ask(h.root.Projects.CreateProjectForkRelation(fork.ID, p.ID)).done(t, http.StatusCreated)
	same(t, "fork again", ask(h.bob.Projects.GetProject(fork.ID, nil)).ok(t).ForkedFromProject.ID, p.ID)
}
