package compat

import (
	"net/http"
	"strings"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func goProjectTokens(t *testing.T, h *hosting) {
	p := h.project(t, "automatic")
	until := later()
	tok := ask(h.ada.ProjectAccessTokens.CreateProjectAccessToken(p.ID, &gitlab.CreateProjectAccessTokenOptions{
		Name: new("robot"), Description: new("writes"), Scopes: &[]string{"api", "write_repository"}, AccessLevel: new(gitlab.DeveloperPermissions), ExpiresAt: &until,
	})).done(t, http.StatusCreated)
	same(t, "a new token", []any{tok.Name, tok.Description, tok.Scopes, tok.AccessLevel, tok.ExpiresAt.String(), tok.Active, tok.Revoked},
		[]any{"robot", "writes", []string{"api", "write_repository"}, gitlab.DeveloperPermissions, until.String(), true, false})
	robot := h.s.client(t, tok.Token)
	self := ask(robot.Users.CurrentUser()).ok(t)
	if self.ID != tok.UserID || !self.Bot || self.Name != "robot" {
		t.Errorf("the user of the token: %+v", self)
	}
	made := ask(robot.RepositoryFiles.CreateFile(p.ID, "by-robot.txt", &gitlab.CreateFileOptions{Branch: new("auto"), StartBranch: new("main"), Content: new("beep"), CommitMessage: new("beep")})).done(t, http.StatusCreated)
	same(t, "branch of the file", made.Branch, "auto")
	same(t, "author of the commit", ask(h.ada.Commits.GetCommit(p.ID, "auto", nil)).ok(t).AuthorName, "robot")
	ask(robot.Projects.GetProject(h.project(t, "not-the-robots").ID, nil)).missing(t)
	same(t, "member", projectMember(ask(h.ada.ProjectMembers.GetProjectMember(p.ID, tok.UserID)).ok(t)), who{self.Username, 30})

	name := func(t *gitlab.ProjectAccessToken) string { return t.Name }
	same(t, "tokens", mapped(ask(h.ada.ProjectAccessTokens.ListProjectAccessTokens(p.ID, nil)).ok(t), name), []string{"robot"})
	read := ask(h.ada.ProjectAccessTokens.GetProjectAccessToken(p.ID, tok.ID)).ok(t)
	same(t, "read again", []any{read.ID, read.Name, read.Token}, []any{tok.ID, "robot", ""})
	rotated := ask(h.ada.ProjectAccessTokens.RotateProjectAccessToken(p.ID, tok.ID, &gitlab.RotateProjectAccessTokenOptions{ExpiresAt: &until})).done(t, http.StatusOK)
	if rotated.Token == tok.Token || rotated.ID == tok.ID || rotated.UserID != tok.UserID || rotated.AccessLevel != gitlab.DeveloperPermissions {
		t.Errorf("rotated %+v into %+v", tok, rotated)
	}
	ask(robot.Users.CurrentUser()).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")
	own := ask(h.s.client(t, rotated.Token).ProjectAccessTokens.RotateProjectAccessTokenSelf(p.ID, &gitlab.RotateProjectAccessTokenOptions{})).done(t, http.StatusOK)
	send(h.ada.ProjectAccessTokens.RevokeProjectAccessToken(p.ID, own.ID)).done(t, http.StatusNoContent)
	ask(h.s.client(t, own.Token).Users.CurrentUser()).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")
	if list := ask(h.ada.ProjectAccessTokens.ListProjectAccessTokens(p.ID, &gitlab.ListProjectAccessTokensOptions{State: new("active")})).ok(t); len(list) != 0 {
		t.Errorf("active tokens: %+v", list)
	}
}

func goGroupTokens(t *testing.T, h *hosting) {
	g := h.group(t, "robots")
	p := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("arm"), NamespaceID: &g.ID})).done(t, http.StatusCreated)
	until := later()
	tok := ask(h.ada.GroupAccessTokens.CreateGroupAccessToken(g.ID, &gitlab.CreateGroupAccessTokenOptions{
		Name: new("inspector"), Scopes: &[]string{"read_api"}, AccessLevel: new(gitlab.ReporterPermissions), ExpiresAt: &until,
	})).done(t, http.StatusCreated)
	inspector := h.s.client(t, tok.Token)
	same(t, "project by the token of its group", ask(inspector.Projects.GetProject(p.ID, nil)).ok(t).Permissions.GroupAccess.AccessLevel, gitlab.ReporterPermissions)
	ask(inspector.Projects.StarProject(p.ID)).refused(t, http.StatusForbidden, "{error: insufficient_scope}, {error_description: The request requires higher privileges than provided by the access token.}, {scope: api}")
	same(t, "tokens", mapped(ask(h.ada.GroupAccessTokens.ListGroupAccessTokens(g.ID, nil)).ok(t), func(t *gitlab.GroupAccessToken) int64 { return t.ID }), []int64{tok.ID})
	rotated := ask(h.ada.GroupAccessTokens.RotateGroupAccessToken(g.ID, tok.ID, nil)).done(t, http.StatusOK)
	same(t, "rotated", []any{rotated.Name, rotated.Scopes}, []any{"inspector", []string{"read_api"}})
	send(h.ada.GroupAccessTokens.RevokeGroupAccessToken(g.ID, rotated.ID)).done(t, http.StatusNoContent)
	ask(h.s.client(t, rotated.Token).Projects.GetProject(p.ID, nil)).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")
}

func goDeployTokens(t *testing.T, h *hosting) {
	p, g := h.project(t, "deployed"), h.group(t, "deployers")
	until := time.Now().UTC().AddDate(0, 1, 0).Truncate(time.Second)
	tok := ask(h.ada.DeployTokens.CreateProjectDeployToken(p.ID, &gitlab.CreateProjectDeployTokenOptions{
		Name: new("puller"), Username: new("pull"), Scopes: &[]string{"read_repository"}, ExpiresAt: &until,
	})).done(t, http.StatusCreated)
	same(t, "a new token", []any{tok.Name, tok.Username, tok.Scopes, tok.Revoked, tok.Expired}, []any{"puller", "pull", []string{"read_repository"}, false, false})
	if tok.ExpiresAt == nil || !tok.ExpiresAt.Equal(until) {
		t.Errorf("expires at %v, want %v", tok.ExpiresAt, until)
	}
	id := func(t *gitlab.DeployToken) int64 { return t.ID }
	same(t, "tokens", mapped(ask(h.ada.DeployTokens.ListProjectDeployTokens(p.ID, nil)).ok(t), id), []int64{tok.ID})
	same(t, "read again", ask(h.ada.DeployTokens.GetProjectDeployToken(p.ID, tok.ID)).ok(t).Token, "")
	other := ask(h.ada.DeployTokens.CreateGroupDeployToken(g.ID, &gitlab.CreateGroupDeployTokenOptions{Name: new("all"), Scopes: &[]string{"read_repository"}})).done(t, http.StatusCreated)
	if other.Username == "" || other.Token == "" {
		t.Errorf("a token of a group: %+v", other)
	}
	same(t, "tokens of all", mapped(ask(h.root.DeployTokens.ListAllDeployTokens()).ok(t), id), []int64{tok.ID, other.ID})

	git := h.git(t)
	git.ok(t, "clone", "-q", asUser(p.HTTPURLToRepo, tok.Username, tok.Token), "with-token")
	ask(h.s.client(t, tok.Token).Projects.GetProject(p.ID, nil)).refused(t, http.StatusUnauthorized, "{message: 401 Unauthorized}")
	send(h.ada.DeployTokens.DeleteProjectDeployToken(p.ID, tok.ID)).done(t, http.StatusNoContent)
	git.fails(t, "Authentication failed", "clone", "-q", asUser(p.HTTPURLToRepo, tok.Username, tok.Token), "without")
	send(h.ada.DeployTokens.DeleteGroupDeployToken(g.ID, other.ID)).done(t, http.StatusNoContent)
	ask(h.ada.DeployTokens.GetGroupDeployToken(g.ID, other.ID)).missing(t)
}

func goDeployKeys(t *testing.T, h *hosting) {
	p, second := h.project(t, "keyed"), h.project(t, "keyed-too")
	line, fingerprint := sshKey(t)
	key := ask(h.ada.DeployKeys.AddDeployKey(p.ID, &gitlab.AddDeployKeyOptions{Title: new("host"), Key: new(line + " host"), CanPush: new(true)})).done(t, http.StatusCreated)
	same(t, "a new key", []any{key.Title, key.Key, key.CanPush, key.FingerprintSHA256}, []any{"host", line + " host", true, fingerprint})
	same(t, "keys", ask(h.ada.DeployKeys.ListProjectDeployKeys(p.ID, nil)).ok(t), []*gitlab.ProjectDeployKey{key})
	again := ask(h.ada.DeployKeys.AddDeployKey(p.ID, &gitlab.AddDeployKeyOptions{Title: new("again"), Key: &line})).done(t, http.StatusCreated)
	same(t, "the same key once more", []any{again.ID, again.Title}, []any{key.ID, "host"})
	enabled := ask(h.ada.DeployKeys.EnableDeployKey(second.ID, key.ID)).done(t, http.StatusCreated)
	same(t, "enabled", []any{enabled.ID, enabled.CanPush}, []any{key.ID, false})
	changed := ask(h.ada.DeployKeys.UpdateDeployKey(second.ID, key.ID, &gitlab.UpdateDeployKeyOptions{CanPush: new(true), Title: new("the host")})).done(t, http.StatusOK)
	same(t, "changed", []any{changed.Title, changed.CanPush}, []any{"the host", true})
	same(t, "title elsewhere", ask(h.ada.DeployKeys.GetDeployKey(p.ID, key.ID)).ok(t).Title, "the host")
	all := ask(h.root.DeployKeys.ListAllDeployKeys(&gitlab.ListInstanceDeployKeysOptions{})).ok(t)
	same(t, "keys of all", mapped(all, func(k *gitlab.InstanceDeployKey) int { return len(k.ProjectsWithWriteAccess) }), []int{2})
	send(h.ada.DeployKeys.DeleteDeployKey(p.ID, key.ID)).done(t, http.StatusNoContent)
	ask(h.ada.DeployKeys.GetDeployKey(p.ID, key.ID)).missing(t)
	same(t, "it stays elsewhere", ask(h.ada.DeployKeys.GetDeployKey(second.ID, key.ID)).ok(t).ID, key.ID)
}

func goProtectedBranches(t *testing.T, h *hosting) {
	p := h.project(t, "guarded")
	grant(t, h, p, gitlab.DeveloperPermissions)
	name := func(b *gitlab.ProtectedBranch) string { return b.Name }
	same(t, "protected from the start", mapped(ask(h.ada.ProtectedBranches.ListProtectedBranches(p.ID, nil)).ok(t), name), []string{"main"})
	levels := func(list []*gitlab.BranchAccessDescription) []gitlab.AccessLevelValue {
		return mapped(list, func(d *gitlab.BranchAccessDescription) gitlab.AccessLevelValue { return d.AccessLevel })
	}
	made := ask(h.ada.ProtectedBranches.ProtectRepositoryBranches(p.ID, &gitlab.ProtectRepositoryBranchesOptions{
		Name: new("release/*"), PushAccessLevel: new(gitlab.MaintainerPermissions), MergeAccessLevel: new(gitlab.DeveloperPermissions), AllowForcePush: new(true),
	})).done(t, http.StatusCreated)
	same(t, "protected", []any{made.Name, levels(made.PushAccessLevels), levels(made.MergeAccessLevels), made.AllowForcePush},
		[]any{"release/*", []gitlab.AccessLevelValue{40}, []gitlab.AccessLevelValue{30}, true})
	same(t, "description", made.PushAccessLevels[0].AccessLevelDescription, "Maintainers")
	same(t, "one", ask(h.ada.ProtectedBranches.GetProtectedBranch(p.ID, "release/*")).ok(t), made)
	ask(h.ada.ProtectedBranches.ProtectRepositoryBranches(p.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: new("main")})).
		refused(t, http.StatusConflict, "{message: Protected branch 'main' already exists}")
	write := &gitlab.CreateFileOptions{Branch: new("main"), Content: new("x"), CommitMessage: new("x")}
	ask(h.bob.RepositoryFiles.CreateFile(p.ID, "x.txt", write)).refused(t, http.StatusForbidden, "{message: 403 Forbidden - You are not allowed to push code to protected branches on this project.}")

	changed := ask(h.ada.ProtectedBranches.UpdateProtectedBranch(p.ID, "main", &gitlab.UpdateProtectedBranchOptions{
		AllowForcePush: new(true), AllowedToPush: &[]*gitlab.BranchPermissionOptions{{UserID: &h.bobUser.ID}},
	})).done(t, http.StatusOK)
	same(t, "changed", []any{changed.AllowForcePush, len(changed.PushAccessLevels), changed.PushAccessLevels[1].UserID}, []any{true, 2, h.bobUser.ID})
	ask(h.bob.RepositoryFiles.CreateFile(p.ID, "x.txt", write)).done(t, http.StatusCreated)
	send(h.ada.ProtectedBranches.UnprotectRepositoryBranches(p.ID, "release/*")).done(t, http.StatusNoContent)
	same(t, "those left", mapped(ask(h.ada.ProtectedBranches.ListProtectedBranches(p.ID, nil)).ok(t), name), []string{"main"})
}

func goProtectedTags(t *testing.T, h *hosting) {
	p := h.project(t, "guarded-tags")
	grant(t, h, p, gitlab.DeveloperPermissions)
	made := ask(h.ada.ProtectedTags.ProtectRepositoryTags(p.ID, &gitlab.ProtectRepositoryTagsOptions{Name: new("v*"), CreateAccessLevel: new(gitlab.MaintainerPermissions)})).done(t, http.StatusCreated)
	same(t, "protected", []any{made.Name, made.CreateAccessLevels[0].AccessLevel, made.CreateAccessLevels[0].AccessLevelDescription}, []any{"v*", gitlab.MaintainerPermissions, "Maintainers"})
	same(t, "one", ask(h.ada.ProtectedTags.GetProtectedTag(p.ID, "v*")).ok(t), made)
	tag := &gitlab.CreateTagOptions{TagName: new("v1"), Ref: new("main")}
	ask(h.bob.Tags.CreateTag(p.ID, tag)).refused(t, http.StatusForbidden, "{message: 403 Forbidden - You are not allowed to create this tag as it is protected.}")
	same(t, "tag", ask(h.ada.Tags.CreateTag(p.ID, tag)).done(t, http.StatusCreated).Protected, true)
	send(h.ada.ProtectedTags.UnprotectRepositoryTags(p.ID, "v*")).done(t, http.StatusNoContent)
	if list := ask(h.ada.ProtectedTags.ListProtectedTags(p.ID, nil)).ok(t); len(list) != 0 {
		t.Errorf("protected tags: %+v", list)
	}
	same(t, "tag, no more protected", ask(h.ada.Tags.GetTag(p.ID, "v1")).ok(t).Protected, false)
}

func goPushRules(t *testing.T, h *hosting) {
	g := ask(h.ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Ruled"), Path: new("ruled")})).done(t, http.StatusCreated)
	ask(h.ada.Groups.GetGroupPushRules(g.ID)).missing(t)
	above := ask(h.ada.Groups.AddGroupPushRule(g.ID, &gitlab.AddGroupPushRuleOptions{CommitMessageRegex: new("^Rule"), MaxFileSize: new(int64(3))})).done(t, http.StatusCreated)
	same(t, "of a group", ask(h.ada.Groups.GetGroupPushRules(g.ID)).ok(t), above)
	same(t, "edited", ask(h.ada.Groups.EditGroupPushRule(g.ID, &gitlab.EditGroupPushRuleOptions{DenyDeleteTag: new(true)})).ok(t).DenyDeleteTag, true)
	ruled := ask(h.ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Path: new("rules"), NamespaceID: &g.ID})).done(t, http.StatusCreated)
	copied := ask(h.ada.Projects.GetProjectPushRules(ruled.ID)).ok(t)
	same(t, "of a new project", []any{copied.CommitMessageRegex, copied.MaxFileSize, copied.DenyDeleteTag}, []any{"^Rule", int64(3), true})
	send(h.ada.Groups.DeleteGroupPushRule(g.ID)).done(t, http.StatusNoContent)
	for name, got := range map[string]int64{
		"issues":         ask(h.ada.GroupActivityAnalytics.GetRecentlyCreatedIssuesCount(&gitlab.GetRecentlyCreatedIssuesCountOptions{GroupPath: "ruled"})).ok(t).IssuesCount,
		"merge requests": ask(h.ada.GroupActivityAnalytics.GetRecentlyCreatedMergeRequestsCount(&gitlab.GetRecentlyCreatedMergeRequestsCountOptions{GroupPath: "ruled"})).ok(t).MergeRequestsCount,
	} {
		same(t, "new "+name, got, int64(0))
	}
	same(t, "new members", ask(h.ada.GroupActivityAnalytics.GetRecentlyAddedMembersCount(&gitlab.GetRecentlyAddedMembersCountOptions{GroupPath: "ruled"})).ok(t).NewMembersCount, int64(1))

	p := h.project(t, "ruled")
	made := ask(h.ada.Projects.AddProjectPushRule(p.ID, &gitlab.AddProjectPushRuleOptions{
		CommitMessageRegex: new(`^[a-z]+: `), BranchNameRegex: new(`^(main|wip/.*)$`), MaxFileSize: new(int64(1)), DenyDeleteTag: new(true),
	})).done(t, http.StatusCreated)
	same(t, "rules", []any{made.ProjectID, made.CommitMessageRegex, made.BranchNameRegex, made.MaxFileSize, made.DenyDeleteTag}, []any{p.ID, `^[a-z]+: `, `^(main|wip/.*)$`, int64(1), true})
	same(t, "read again", ask(h.ada.Projects.GetProjectPushRules(p.ID)).ok(t), made)

	write := gitlab.CreateFileOptions{Branch: new("main"), Content: new("x"), CommitMessage: new("no colon")}
	refusal := ask(h.ada.RepositoryFiles.CreateFile(p.ID, "x.txt", &write))
	if refusal.err == nil || !strings.Contains(refusal.err.Error(), "Commit message does not follow the pattern") {
		t.Errorf("a message against the rule: %v", refusal.err)
	}
	changed := ask(h.ada.Projects.EditProjectPushRule(p.ID, &gitlab.EditProjectPushRuleOptions{CommitMessageRegex: new("")})).done(t, http.StatusOK)
	same(t, "changed", []any{changed.CommitMessageRegex, changed.MaxFileSize}, []any{"", int64(1)})
	ask(h.ada.RepositoryFiles.CreateFile(p.ID, "x.txt", &write)).done(t, http.StatusCreated)
	send(h.ada.Projects.DeleteProjectPushRule(p.ID)).done(t, http.StatusNoContent)
}
