package compat

import (
	"net/http"
	"testing"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func branchName(b *gitlab.Branch) string { return b.Name }
func tagName(t *gitlab.Tag) string       { return t.Name }

func goBranches(t *testing.T, h *hosting) {
	p := h.project(t, "branches")
	head := h.head(t, p, "main")
	made := ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("feature/über.1"), Ref: &head})).done(t, http.StatusCreated)
	same(t, "a new branch", []any{made.Name, made.Commit.ID, made.Default, made.Protected, made.Merged, made.CanPush},
		[]any{"feature/über.1", head, false, false, false, true})
	same(t, "one", ask(h.ada.Branches.GetBranch(p.ID, "feature/über.1")).ok(t).Commit.ID, head)
	first := ask(h.ada.Branches.GetBranch(p.ID, "main")).ok(t)
	same(t, "default branch", []any{first.Default, first.Protected, first.CanPush, first.DevelopersCanPush}, []any{true, true, true, false})
	ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("main"), Ref: &head})).refused(t, http.StatusBadRequest, "{message: Branch already exists}")
	ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("x"), Ref: new("nowhere")})).refused(t, http.StatusBadRequest, "{message: Invalid reference name: nowhere}")
	ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("a..b"), Ref: new("main")})).refused(t, http.StatusBadRequest, "{message: Branch name is invalid}")

	ask(h.ada.Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: new("ahead"), Ref: new("main")})).ok(t)
	h.write(t, p, "ahead", "ahead.txt", "1\n", "go ahead")
	h.write(t, p, "main", "main.txt", "1\n", "leave the feature behind")
	same(t, "merged", ask(h.ada.Branches.GetBranch(p.ID, "feature/über.1")).ok(t).Merged, true)
	same(t, "branches", mapped(ask(h.ada.Branches.ListBranches(p.ID, nil)).ok(t), branchName), []string{"ahead", "feature/über.1", "main"})
	same(t, "found", mapped(ask(h.ada.Branches.ListBranches(p.ID, &gitlab.ListBranchesOptions{Search: new("^fea")})).ok(t), branchName), []string{"feature/über.1"})
	same(t, "by pattern", mapped(ask(h.ada.Branches.ListBranches(p.ID, &gitlab.ListBranchesOptions{Regex: new("^(main|ahead)$")})).ok(t), branchName), []string{"ahead", "main"})
	same(t, "pages", mapped(scanned(t, func(page gitlab.PaginationOptionFunc) ([]*gitlab.Branch, *gitlab.Response, error) {
		return h.ada.Branches.ListBranches(p.ID, &gitlab.ListBranchesOptions{ListOptions: gitlab.ListOptions{PerPage: 2}}, page)
	}), branchName), []string{"ahead", "feature/über.1", "main"})

	send(h.ada.Branches.DeleteMergedBranches(p.ID)).done(t, http.StatusAccepted)
	waitFor(t, "merged branches are gone", func() bool { return len(ask(h.ada.Branches.ListBranches(p.ID, nil)).ok(t)) == 2 })
	send(h.ada.Branches.DeleteBranch(p.ID, "ahead")).done(t, http.StatusNoContent)
	ask(h.ada.Branches.GetBranch(p.ID, "ahead")).missing(t)
	send(h.ada.Branches.DeleteBranch(p.ID, "main")).refused(t, http.StatusForbidden, "{message: 403 Forbidden - The default branch of a project cannot be deleted.}")
}

func goTags(t *testing.T, h *hosting) {
	p := h.project(t, "tags")
	head := h.head(t, p, "main")
	light := ask(h.ada.Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: new("v1.9"), Ref: new("main")})).done(t, http.StatusCreated)
	same(t, "lightweight", []any{light.Name, light.Message, light.Target, light.Commit.ID, light.Protected, light.CreatedAt == nil}, []any{"v1.9", "", head, head, false, true})
	next := h.write(t, p, "main", "next.txt", "next\n", "next")
	noted := ask(h.ada.Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: new("v1.10"), Ref: &next.ID, Message: new("the tenth")})).done(t, http.StatusCreated)
	same(t, "annotated", []any{noted.Name, noted.Message, noted.Commit.ID, noted.Target == next.ID}, []any{"v1.10", "the tenth", next.ID, false})
	recent(t, "created_at", noted.CreatedAt)
	same(t, "one", ask(h.ada.Tags.GetTag(p.ID, "v1.10")).ok(t), noted)
	ask(h.ada.Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: new("v1.9"), Ref: new("main")})).refused(t, http.StatusBadRequest, "{message: Tag v1.9 already exists}")
	ask(h.ada.Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: new("v3"), Ref: new("nowhere")})).refused(t, http.StatusBadRequest, "{message: Target nowhere is invalid}")

	list := func(o gitlab.ListTagsOptions) []string {
		return mapped(ask(h.ada.Tags.ListTags(p.ID, &o)).ok(t), tagName)
	}
	same(t, "by version", list(gitlab.ListTagsOptions{OrderBy: new("version"), Sort: new("desc")}), []string{"v1.10", "v1.9"})
	same(t, "by name", list(gitlab.ListTagsOptions{OrderBy: new("name"), Sort: new("desc")}), []string{"v1.9", "v1.10"})
	same(t, "found", list(gitlab.ListTagsOptions{Search: new("10$")}), []string{"v1.10"})
	send(h.ada.Tags.DeleteTag(p.ID, "v1.9")).done(t, http.StatusNoContent)
	ask(h.ada.Tags.GetTag(p.ID, "v1.9")).missing(t)
	same(t, "those left", list(gitlab.ListTagsOptions{}), []string{"v1.10"})
}

func goProjectAudit(t *testing.T, h *hosting) {
	g := h.group(t, "audited")
	p := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("ledger"), NamespaceID: &g.ID})).done(t, http.StatusCreated)
	grant(t, h, p, gitlab.DeveloperPermissions)
	ask(h.ada.Projects.EditProject(p.ID, &gitlab.EditProjectOptions{Name: new("Ledger of all")})).ok(t)
	ask(h.ada.GroupMembers.AddGroupMember(g.ID, &gitlab.AddGroupMemberOptions{UserID: &h.bobUser.ID, AccessLevel: new(gitlab.GuestPermissions)})).done(t, http.StatusCreated)

	events := ask(h.ada.AuditEvents.ListProjectAuditEvents(p.ID, &gitlab.ListAuditEventsOptions{})).ok(t)
	kinds := func(list []*gitlab.AuditEvent) []string {
		return mapped(list, func(e *gitlab.AuditEvent) string { return e.EventType })
	}
	same(t, "events of the project", kinds(events), []string{"project_name_updated", "member_created", "project_created"})
	same(t, "one", ask(h.ada.AuditEvents.GetProjectAuditEvent(p.ID, events[1].ID)).ok(t), events[1])
	same(t, "of what and by whom", []any{events[1].AuthorID, events[1].EntityID, events[1].EntityType, events[1].Details.EntityPath, events[1].Details.TargetDetails, events[1].Details.As},
		[]any{h.adaUser.ID, p.ID, "Project", "audited/ledger", "bob", ""})
	recent(t, "created_at", events[0].CreatedAt)
	groupEvents := ask(h.ada.AuditEvents.ListGroupAuditEvents(g.ID, &gitlab.ListAuditEventsOptions{})).ok(t)
	same(t, "events of the group", kinds(groupEvents), []string{"member_created", "group_created"})
	same(t, "one of the group", ask(h.ada.AuditEvents.GetGroupAuditEvent(g.ID, groupEvents[0].ID)).ok(t).EntityType, "Group")
	ask(h.bob.AuditEvents.ListGroupAuditEvents(g.ID, &gitlab.ListAuditEventsOptions{})).refused(t, http.StatusForbidden, "{message: 403 Forbidden}")
	if own := ask(h.bob.AuditEvents.ListProjectAuditEvents(p.ID, &gitlab.ListAuditEventsOptions{})).ok(t); len(own) != 0 {
		t.Errorf("a developer sees events of others: %v", kinds(own))
	}
}
