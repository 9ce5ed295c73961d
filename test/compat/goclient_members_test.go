package compat

import (
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// who formats a member as name and level.
type who struct {
	Name  string
	Level gitlab.AccessLevelValue
}

func projectMember(m *gitlab.ProjectMember) who { return who{m.Username, m.AccessLevel} }
func groupMember(m *gitlab.GroupMember) who     { return who{m.Username, m.AccessLevel} }

func goProjectMembers(t *testing.T, h *hosting) {
	p := h.project(t, "crew")
	until := later()
	m := ask(h.ada.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{
		UserID: h.bobUser.ID, AccessLevel: new(gitlab.ReporterPermissions), ExpiresAt: new(until.String()),
	})).done(t, http.StatusCreated)
	same(t, "a new member", []any{m.ID, m.Username, m.AccessLevel, m.ExpiresAt.String(), m.State, m.CreatedBy.Username},
		[]any{h.bobUser.ID, "bob", gitlab.ReporterPermissions, until.String(), "active", "ada"})
	recent(t, "created_at", m.CreatedAt)
	same(t, "direct member", ask(h.ada.ProjectMembers.GetProjectMember(p.ID, h.bobUser.ID)).ok(t), m)
	same(t, "members", mapped(ask(h.ada.ProjectMembers.ListProjectMembers(p.ID, nil)).ok(t), projectMember), []who{{"ada", 50}, {"bob", 20}})
	same(t, "members found", mapped(ask(h.ada.ProjectMembers.ListProjectMembers(p.ID, &gitlab.ListProjectMembersOptions{Query: new("bo")})).ok(t), projectMember), []who{{"bob", 20}})
	same(t, "members by id", mapped(ask(h.ada.ProjectMembers.ListProjectMembers(p.ID, &gitlab.ListProjectMembersOptions{UserIDs: &[]int64{h.adaUser.ID}})).ok(t), projectMember), []who{{"ada", 50}})
	same(t, "what he sees", level(ask(h.bob.Projects.GetProject(p.ID, nil)).ok(t).Permissions.ProjectAccess), "20")

	changed := ask(h.ada.ProjectMembers.EditProjectMember(p.ID, h.bobUser.ID, &gitlab.EditProjectMemberOptions{AccessLevel: new(gitlab.MaintainerPermissions), ExpiresAt: new("")})).done(t, http.StatusOK)
	if changed.AccessLevel != gitlab.MaintainerPermissions || changed.ExpiresAt != nil {
		t.Errorf("changed member: %+v", changed)
	}
	ask(h.ada.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{UserID: h.bobUser.ID, AccessLevel: new(gitlab.GuestPermissions)})).
		refused(t, http.StatusConflict, "{message: Member already exists}")
	ask(h.ada.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{UserID: int64(1), AccessLevel: new(gitlab.AccessLevelValue(31))})).
		refused(t, http.StatusBadRequest, "{message: {access_level: [is not included in the list]}}")
	ask(h.ada.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{UserID: int64(987654321), AccessLevel: new(gitlab.GuestPermissions)})).missing(t)
	ask(h.bob.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{UserID: int64(1), AccessLevel: new(gitlab.OwnerPermissions)})).
		refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	root := ask(h.bob.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{Username: new("root"), AccessLevel: new(gitlab.PlannerPermissions)})).done(t, http.StatusCreated)
	same(t, "a member by username", projectMember(root), who{"root", 15})

	send(h.ada.ProjectMembers.DeleteProjectMember(p.ID, h.bobUser.ID)).done(t, http.StatusNoContent)
	ask(h.ada.ProjectMembers.GetProjectMember(p.ID, h.bobUser.ID)).missing(t)
	ask(h.bob.Projects.GetProject(p.ID, nil)).missing(t)
}

func goGroupMembers(t *testing.T, h *hosting) {
	g := h.group(t, "people")
	sub := ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Sub"), Path: new("sub"), ParentID: &g.ID})).done(t, http.StatusCreated)
	p := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("shared"), NamespaceID: &sub.ID})).done(t, http.StatusCreated)
	until := later()
	m := ask(h.ada.GroupMembers.AddGroupMember(g.ID, &gitlab.AddGroupMemberOptions{
		UserID: &h.bobUser.ID, AccessLevel: new(gitlab.GuestPermissions), ExpiresAt: new(until.String()),
	})).done(t, http.StatusCreated)
	same(t, "a new member", []any{groupMember(m), m.ExpiresAt.String(), m.CreatedBy.Username}, []any{who{"bob", 10}, until.String(), "ada"})
	same(t, "direct members", mapped(ask(h.ada.Groups.ListGroupMembers(g.ID, nil)).ok(t), groupMember), []who{{"ada", 50}, {"bob", 10}})
	if list := ask(h.ada.Groups.ListGroupMembers(sub.ID, &gitlab.ListGroupMembersOptions{Query: new("bob")})).ok(t); len(list) != 0 {
		t.Errorf("direct members below: %+v", list)
	}
	same(t, "all members below", mapped(ask(h.ada.Groups.ListAllGroupMembers(sub.ID, &gitlab.ListGroupMembersOptions{Query: new("bob")})).ok(t), groupMember), []who{{"bob", 10}})
	ask(h.ada.GroupMembers.GetGroupMember(sub.ID, h.bobUser.ID)).missing(t)
	same(t, "inherited", groupMember(ask(h.ada.GroupMembers.GetInheritedGroupMember(sub.ID, h.bobUser.ID)).ok(t)), who{"bob", 10})

	// A second, higher role in a subgroup is only valid there.
	ask(h.ada.GroupMembers.AddGroupMember(sub.ID, &gitlab.AddGroupMemberOptions{UserID: &h.bobUser.ID, AccessLevel: new(gitlab.DeveloperPermissions)})).done(t, http.StatusCreated)
	same(t, "level in the project", projectMember(ask(h.ada.ProjectMembers.GetInheritedProjectMember(p.ID, h.bobUser.ID)).ok(t)), who{"bob", 30})
	same(t, "all of the project", mapped(ask(h.ada.ProjectMembers.ListAllProjectMembers(p.ID, nil)).ok(t), projectMember), []who{{"ada", 50}, {"bob", 30}})
	if list := ask(h.ada.ProjectMembers.ListProjectMembers(p.ID, nil)).ok(t); len(list) != 0 {
		t.Errorf("direct members of the project: %+v", list)
	}
	ask(h.ada.GroupMembers.AddGroupMember(sub.ID, &gitlab.AddGroupMemberOptions{UserID: new(int64(1)), AccessLevel: new(gitlab.GuestPermissions)})).done(t, http.StatusCreated)
	ask(h.ada.GroupMembers.EditGroupMember(sub.ID, h.bobUser.ID, &gitlab.EditGroupMemberOptions{AccessLevel: new(gitlab.NoPermissions)})).
		refused(t, http.StatusBadRequest, "{message: {access_level: [is not included in the list]}}")

	changed := ask(h.ada.GroupMembers.EditGroupMember(g.ID, h.bobUser.ID, &gitlab.EditGroupMemberOptions{AccessLevel: new(gitlab.OwnerPermissions)})).done(t, http.StatusOK)
	same(t, "changed member", groupMember(changed), who{"bob", 50})
	send(h.ada.GroupMembers.RemoveGroupMember(g.ID, h.bobUser.ID, nil)).done(t, http.StatusNoContent)
	ask(h.bob.Projects.GetProject(p.ID, nil)).missing(t)
	send(h.ada.GroupMembers.RemoveGroupMember(g.ID, h.adaUser.ID, nil)).refused(t, http.StatusForbidden, "{message: 403 Forbidden - A group must have an owner.}")
}

func goAccessRequests(t *testing.T, h *hosting) {
	g := ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Club"), Path: new("club"), Visibility: new(gitlab.PublicVisibility)})).done(t, http.StatusCreated)
	asked := ask(h.bob.AccessRequests.RequestGroupAccess(g.ID)).done(t, http.StatusCreated)
	same(t, "who asks", []any{asked.ID, asked.Username}, []any{h.bobUser.ID, "bob"})
	recent(t, "requested_at", asked.RequestedAt)
	same(t, "those who ask", mapped(ask(h.ada.AccessRequests.ListGroupAccessRequests(g.ID, nil)).ok(t), func(r *gitlab.AccessRequest) string { return r.Username }), []string{"bob"})
	ask(h.bob.AccessRequests.ListGroupAccessRequests(g.ID, nil)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	let := ask(h.ada.AccessRequests.ApproveGroupAccessRequest(g.ID, h.bobUser.ID, &gitlab.ApproveAccessRequestOptions{AccessLevel: new(gitlab.ReporterPermissions)})).done(t, http.StatusCreated)
	same(t, "level", let.AccessLevel, gitlab.ReporterPermissions)
	same(t, "member now", groupMember(ask(h.ada.GroupMembers.GetGroupMember(g.ID, h.bobUser.ID)).ok(t)), who{"bob", 20})

	p := h.project(t, "open-house")
	ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{Visibility: new(gitlab.PublicVisibility)})).ok(t)
	ask(h.bob.AccessRequests.RequestProjectAccess(p.ID)).done(t, http.StatusCreated)
	send(h.ada.AccessRequests.DenyProjectAccessRequest(p.ID, h.bobUser.ID)).done(t, http.StatusNoContent)
	if list := ask(h.ada.AccessRequests.ListProjectAccessRequests(p.ID, nil)).ok(t); len(list) != 0 {
		t.Errorf("requests after one was denied: %+v", list)
	}
	ask(h.bob.AccessRequests.RequestProjectAccess(p.ID)).done(t, http.StatusCreated)
	ask(h.ada.AccessRequests.ApproveProjectAccessRequest(p.ID, h.bobUser.ID, nil)).done(t, http.StatusCreated)
	same(t, "level unless given", projectMember(ask(h.ada.ProjectMembers.GetProjectMember(p.ID, h.bobUser.ID)).ok(t)), who{"bob", 30})
}
