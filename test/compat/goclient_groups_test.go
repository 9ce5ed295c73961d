package compat

import (
	"bytes"
	"image/color"
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func goGroups(t *testing.T, h *hosting) {
	g := ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{
		Name: new("Engines"), Path: new("engines"), Description: new("of brass"), Visibility: new(gitlab.PublicVisibility), ProjectCreationLevel: new(gitlab.MaintainerProjectCreation),
	})).done(t, http.StatusCreated)
	same(t, "a new group", []any{g.Name, g.Path, g.FullPath, g.FullName, g.Description, g.Visibility, g.ParentID, g.WebURL, g.ProjectCreationLevel},
		[]any{"Engines", "engines", "engines", "Engines", "of brass", gitlab.PublicVisibility, int64(0), h.s.url + "/groups/engines", gitlab.MaintainerProjectCreation})
	recent(t, "created_at", g.CreatedAt)
	sub := ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Small"), Path: new("small"), ParentID: &g.ID})).done(t, http.StatusCreated)
	same(t, "a group below", []any{sub.FullPath, sub.FullName, sub.ParentID}, []any{"engines/small", "Engines / Small", g.ID})
	deep := ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Tiny"), Path: new("tiny"), ParentID: &sub.ID, Visibility: new(gitlab.PublicVisibility)})).done(t, http.StatusCreated)
	same(t, "by id", ask(h.ada.Groups.GetGroup(g.ID, nil)).ok(t).FullPath, "engines")
	same(t, "by path", ask(h.ada.Groups.GetGroup("engines/small/tiny", nil)).ok(t).ID, deep.ID)
	same(t, "directly below", mapped(ask(h.ada.Groups.ListSubGroups(g.ID, nil)).ok(t), groupPath), []string{"engines/small"})
	same(t, "all below", mapped(ask(h.ada.Groups.ListDescendantGroups(g.ID, nil)).ok(t), groupPath), []string{"engines/small", "engines/small/tiny"})
	ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Again"), Path: new("engines")})).
		refused(t, http.StatusBadRequest, "{message: {path: [has already been taken]}}")
	goGroupLists(t, h)

	p := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("loom"), NamespaceID: &sub.ID})).done(t, http.StatusCreated)
	same(t, "project in a group", []any{p.PathWithNamespace, p.Namespace.FullPath, p.Namespace.Kind, p.Namespace.ParentID}, []any{"engines/small/loom", "engines/small", "group", g.ID})
	same(t, "level by the group", int64(p.Permissions.GroupAccess.AccessLevel), 50)
	if list := ask(h.ada.Groups.ListGroupProjects(g.ID, nil)).ok(t); len(list) != 0 {
		t.Errorf("projects of the group itself: %+v", list)
	}
	same(t, "with those below", mapped(ask(h.ada.Groups.ListGroupProjects(g.ID, &gitlab.ListGroupProjectsOptions{IncludeSubGroups: new(true)})).ok(t), projectPath), []string{"engines/small/loom"})

	changed := ask(h.ada.Groups.UpdateGroup(g.ID, &gitlab.UpdateGroupOptions{
		Name: new("Machines"), Path: new("machines"), Description: new("of steel"), RequestAccessEnabled: new(false), MentionsDisabled: new(true),
		SubGroupCreationLevel: new(gitlab.OwnerSubGroupCreationLevelValue),
	})).done(t, http.StatusOK)
	same(t, "changed", []any{changed.Name, changed.FullPath, changed.Description, changed.RequestAccessEnabled, changed.MentionsDisabled, changed.SubGroupCreationLevel},
		[]any{"Machines", "machines", "of steel", false, true, gitlab.OwnerSubGroupCreationLevelValue})
	same(t, "project of the renamed group", ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t).PathWithNamespace, "machines/small/loom")
	same(t, "project by the old path", ask(h.ada.Projects.GetProject("engines/small/loom", nil)).ok(t).ID, p.ID)
	same(t, "group by the old path", ask(h.ada.Groups.GetGroup("engines/small", nil)).ok(t).FullPath, "machines/small")

	image := picture(t, color.Black)
	served(t, ask(h.ada.Groups.UploadAvatar(g.ID, bytes.NewReader(image), "engine.png")).done(t, http.StatusOK).AvatarURL, image)

	send(h.bob.Groups.DeleteGroup(g.ID, nil)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	send(h.ada.Groups.DeleteGroup(g.ID, nil)).done(t, http.StatusAccepted)
	if ask(h.ada.Groups.GetGroup(g.ID, nil)).ok(t).MarkedForDeletionOn == nil {
		t.Error("the group is not marked for deletion")
	}
	ask(h.ada.Groups.RestoreGroup(g.ID)).done(t, http.StatusCreated)
	ask(h.ada.Groups.GetGroup(deep.ID, nil)).ok(t)
	send(h.ada.Groups.DeleteGroup(g.ID, nil)).done(t, http.StatusAccepted)
	marked := ask(h.ada.Groups.GetGroup(g.ID, nil)).ok(t)
	send(h.ada.Groups.DeleteGroup(g.ID, &gitlab.DeleteGroupOptions{PermanentlyRemove: new(true), FullPath: &marked.FullPath})).done(t, http.StatusAccepted)
	ask(h.ada.Groups.GetGroup(g.ID, nil)).missing(t)
	ask(h.ada.Groups.GetGroup(deep.ID, nil)).missing(t)
	ask(h.ada.Projects.GetProject(p.ID, nil)).missing(t)
}

// goGroupLists requires the groups engines, engines/small and engines/small/tiny,
// besides those of other parts.
func goGroupLists(t *testing.T, h *hosting) {
	hidden := ask(h.bob.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Engines of Bob"), Path: new("bobs-engines")})).done(t, http.StatusCreated)
	search := new("engines")
	for _, test := range []struct {
		name string
		by   *gitlab.Client
		opt  gitlab.ListGroupsOptions
		want []string
	}{
		{"found", h.ada, gitlab.ListGroupsOptions{Search: search}, []string{"engines"}},
		{"owned", h.bob, gitlab.ListGroupsOptions{Owned: new(true)}, []string{"bobs-engines"}},
		{"one is a member of", h.bob, gitlab.ListGroupsOptions{AllAvailable: new(false), Search: search}, []string{"bobs-engines"}},
		{"that can be seen", h.bob, gitlab.ListGroupsOptions{AllAvailable: new(true), Search: search}, []string{"engines", "bobs-engines"}},
		{"at the top", h.root, gitlab.ListGroupsOptions{TopLevelOnly: new(true), Search: search}, []string{"engines", "bobs-engines"}},
		{"in another order", h.root, gitlab.ListGroupsOptions{OrderBy: new("path"), Search: search}, []string{"bobs-engines", "engines"}},
		{"without one", h.root, gitlab.ListGroupsOptions{SkipGroups: &[]int64{hidden.ID}, Search: search}, []string{"engines"}},
		{"public ones", h.root, gitlab.ListGroupsOptions{Visibility: new(gitlab.PublicVisibility), Search: search}, []string{"engines"}},
	} {
		same(t, "groups "+test.name, mapped(ask(test.by.Groups.ListGroups(&test.opt)).ok(t), groupPath), test.want)
	}
	all := mapped(scanned(t, func(p gitlab.PaginationOptionFunc) ([]*gitlab.Group, *gitlab.Response, error) {
		return h.root.Groups.ListGroups(&gitlab.ListGroupsOptions{ListOptions: gitlab.ListOptions{PerPage: 100}}, p)
	}), groupPath)
	keyset := mapped(scanned(t, func(p gitlab.PaginationOptionFunc) ([]*gitlab.Group, *gitlab.Response, error) {
		return h.root.Groups.ListGroups(&gitlab.ListGroupsOptions{ListOptions: gitlab.ListOptions{Pagination: "keyset", PerPage: 2}, OrderBy: new("name"), Sort: new("asc")}, p)
	}), groupPath)
	if len(all) < 4 {
		t.Errorf("all groups: %v", all)
	}
	same(t, "groups by keyset", keyset, all)
	ask(h.ada.Groups.GetGroup(hidden.ID, nil)).missing(t)
}

// goGroupMoves transfers and shares groups.
func goGroupMoves(t *testing.T, h *hosting) {
	from, into, sub := h.group(t, "from"), h.group(t, "into"), h.group(t, "wanderer")
	p := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("luggage"), NamespaceID: &sub.ID})).done(t, http.StatusCreated)
	moved := ask(h.ada.Groups.TransferSubGroup(sub.ID, &gitlab.TransferSubGroupOptions{GroupID: &into.ID})).done(t, http.StatusCreated)
	same(t, "moved below another", []any{moved.FullPath, moved.ParentID}, []any{"into/wanderer", into.ID})
	same(t, "its project", ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t).PathWithNamespace, "into/wanderer/luggage")
	moved = ask(h.ada.Groups.TransferSubGroup(sub.ID, nil)).done(t, http.StatusCreated)
	same(t, "moved to the top", []any{moved.FullPath, moved.ParentID}, []any{"wanderer", int64(0)})
	ask(h.ada.Groups.TransferGroup(from.ID, p.ID)).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	ask(h.root.Groups.TransferGroup(from.ID, p.ID)).done(t, http.StatusCreated)
	same(t, "a project that a group took", ask(h.ada.Projects.GetProject(p.ID, nil)).ok(t).PathWithNamespace, "from/luggage")

	ask(h.ada.GroupMembers.AddGroupMember(sub.ID, &gitlab.AddGroupMemberOptions{UserID: &h.bobUser.ID, AccessLevel: new(gitlab.OwnerPermissions)})).done(t, http.StatusCreated)
	ask(h.bob.Projects.GetProject(p.ID, nil)).missing(t)
	shared := ask(h.ada.Groups.ShareGroupWithGroup(from.ID, &gitlab.ShareGroupWithGroupOptions{GroupID: &sub.ID, GroupAccess: new(gitlab.ReporterPermissions)})).done(t, http.StatusCreated)
	if len(shared.SharedWithGroups) != 1 || shared.SharedWithGroups[0].GroupID != sub.ID || shared.SharedWithGroups[0].GroupAccessLevel != 20 {
		t.Errorf("shares: %+v", shared.SharedWithGroups)
	}
	same(t, "level by the share", int64(ask(h.bob.Projects.GetProject(p.ID, nil)).ok(t).Permissions.GroupAccess.AccessLevel), 20)
	send(h.ada.Groups.UnshareGroupFromGroup(from.ID, sub.ID)).done(t, http.StatusNoContent)
	ask(h.bob.Projects.GetProject(p.ID, nil)).missing(t)
}

func goNamespaces(t *testing.T, h *hosting) {
	g := h.group(t, "spaces")
	name := func(n *gitlab.Namespace) string { return n.Kind + " " + n.FullPath }
	same(t, "found", mapped(ask(h.ada.Namespaces.SearchNamespace("spaces")).ok(t), name), []string{"group spaces"})
	own := ask(h.ada.Namespaces.GetNamespace("ada")).ok(t)
	same(t, "one's own", []string{name(own), own.WebURL}, []string{"user ada", h.s.url + "/ada"})
	same(t, "by id", name(ask(h.ada.Namespaces.GetNamespace(g.ID)).ok(t)), "group spaces")
	ask(h.bob.Namespaces.GetNamespace(g.ID)).missing(t)
	taken := ask(h.ada.Namespaces.NamespaceExists("spaces", &gitlab.NamespaceExistsOptions{})).ok(t)
	same(t, "a taken path", []any{taken.Exists, taken.Suggests}, []any{true, []string{"spaces1"}})
	same(t, "a free path", ask(h.ada.Namespaces.NamespaceExists("nobody-has-it", &gitlab.NamespaceExistsOptions{})).ok(t).Exists, false)
}
