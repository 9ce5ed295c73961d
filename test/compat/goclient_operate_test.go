package compat

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	unleash "github.com/Unleash/unleash-client-go/v4"
	unleashcontext "github.com/Unleash/unleash-client-go/v4/context"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// TestGoClientOperate uses Terraform states, feature flags, protected environments,
// secure files, invitations, templates, custom attributes and broadcast messages.
func TestGoClientOperate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		root := s.client(t, rootToken)
		owner := newUser(t, root, "olga")
		ada := s.client(t, newToken(t, root, owner.ID, "api").Token)
		p := ask(ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("operate"), InitializeWithReadme: new(true)})).ok(t)
		for _, part := range []struct {
			name string
			do   func(*testing.T, *server, *gitlab.Client, *gitlab.Client, *gitlab.Project)
		}{
			{"terraform", goTerraform}, {"feature flags", goFeatureFlags}, {"protected environments", goProtectedEnvironments}, {"secure files", goSecureFiles},
			{"invitations", goInvitations}, {"instance", goInstanceAreas}, {"service accounts", goServiceAccounts},
			{"group protected branches", goGroupProtectedBranches},
		} {
			t.Run(part.name, func(t *testing.T) { part.do(t, s, root, ada, p) })
		}
	})
}

// goTerraform saves a state like the http backend of OpenTofu: lock, save with the
// lock ID, unlock.
func goTerraform(t *testing.T, s *server, _, ada *gitlab.Client, p *gitlab.Project) {
	at := fmt.Sprintf("projects/%d/terraform/state/production", p.ID)
	call := func(method, path, body string, want int) {
		t.Helper()
		path, query, _ := strings.Cut(path, "?")
		r, err := ada.NewRequest(method, path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.RawQuery = query
		if body != "" {
			if err := r.SetBody(strings.NewReader(body)); err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
		}
		res, _ := ada.Do(r, io.Discard)
		if res == nil || res.StatusCode != want {
			t.Errorf("%s %s: %v, want %d", method, path, res, want)
		}
	}
	call(http.MethodPost, at+"/lock", `{"ID":"one","Operation":"apply","Who":"ada"}`, http.StatusOK)
	call(http.MethodPost, at+"/lock", `{"ID":"two","Operation":"apply","Who":"bob"}`, http.StatusConflict)
	call(http.MethodPost, at+"?ID=two", `{"version":4,"serial":1}`, http.StatusConflict)
	call(http.MethodPost, at+"?ID=one", `{"version":4,"serial":1}`, http.StatusOK)
	call(http.MethodPost, at+"?ID=one", `{"version":4,"serial":2}`, http.StatusOK)
	call(http.MethodDelete, at+"/lock", `{"ID":"one"}`, http.StatusOK)
	read := func(from io.Reader, _ *gitlab.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	same(t, "latest", read(ada.TerraformStates.DownloadLatest(p.ID, "production")), `{"version":4,"serial":2}`)
	same(t, "first", read(ada.TerraformStates.Download(p.ID, "production", 1)), `{"version":4,"serial":1}`)
	send(ada.TerraformStates.DeleteVersion(p.ID, "production", 1)).done(t, http.StatusNoContent)
	send(ada.TerraformStates.Unlock(p.ID, "production")).done(t, http.StatusOK)
	send(ada.TerraformStates.Delete(p.ID, "production")).done(t, http.StatusOK)
}

var instanceID = regexp.MustCompile(`<code id="flagid"[^>]*>([^<]+)</code>`)

// goFeatureFlags creates flags and reads them with the Unleash SDK.
func goFeatureFlags(t *testing.T, s *server, _, ada *gitlab.Client, p *gitlab.Project) {
	list := ask(ada.FeatureFlagUserLists.CreateFeatureFlagUserList(p.ID, &gitlab.CreateFeatureFlagUserListOptions{Name: "beta", UserXIDs: "7,8"})).done(t, http.StatusCreated)
	same(t, "list", ask(ada.FeatureFlagUserLists.GetFeatureFlagUserList(p.ID, list.IID)).ok(t).UserXIDs, "7,8")
	flag := ask(ada.ProjectFeatureFlags.CreateProjectFeatureFlag(p.ID, &gitlab.CreateProjectFeatureFlagOptions{
		Name: new("checkout"), Version: new("new_version_flag"), Strategies: &[]*gitlab.FeatureFlagStrategyOptions{{
			Name: new("userWithId"), Parameters: &gitlab.ProjectFeatureFlagStrategyParameter{UserIDs: "7"},
			Scopes: &[]*gitlab.ProjectFeatureFlagScope{{EnvironmentScope: "production"}},
		}},
	})).done(t, http.StatusCreated)
	same(t, "flag", []any{flag.Active, len(flag.Strategies), flag.Strategies[0].Scopes[0].EnvironmentScope}, []any{true, 1, "production"})
	b := newBrowser(t, s)
	b.signIn(t, "olga")
	page, _ := b.open(t, s.url+"/olga/operate/-/feature_flags", nil)
	found := instanceID.FindStringSubmatch(page)
	if found == nil {
		t.Fatal("the page has no instance ID")
	}
	client, err := unleash.NewClient(unleash.WithUrl(fmt.Sprintf("%s/api/v4/feature_flags/unleash/%d", s.url, p.ID)), unleash.WithInstanceId(found[1]),
		unleash.WithAppName("production"), unleash.WithRefreshInterval(50*time.Millisecond), unleash.WithListener(&unleash.NoopListener{}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.WaitForReady()
	on := func(user string) bool {
		return client.IsEnabled("checkout", unleash.WithContext(unleashcontext.Context{UserId: user}))
	}
	same(t, "for users", []bool{on("7"), on("8")}, []bool{true, false})
	ask(ada.ProjectFeatureFlags.UpdateProjectFeatureFlag(p.ID, "checkout", &gitlab.UpdateProjectFeatureFlagOptions{Active: new(false)})).ok(t)
	waitFor(t, "the flag is off", func() bool { return !on("7") })
	same(t, "disabled", len(ask(ada.ProjectFeatureFlags.ListProjectFeatureFlags(p.ID, &gitlab.ListProjectFeatureFlagOptions{Scope: new("disabled")})).ok(t)), 1)
	send(ada.ProjectFeatureFlags.DeleteProjectFeatureFlag(p.ID, "checkout")).done(t, http.StatusOK)
	send(ada.FeatureFlagUserLists.DeleteFeatureFlagUserList(p.ID, list.IID)).done(t, http.StatusNoContent)
}

func goProtectedEnvironments(t *testing.T, _ *server, _, ada *gitlab.Client, p *gitlab.Project) {
	made := ask(ada.ProtectedEnvironments.ProtectRepositoryEnvironments(p.ID, &gitlab.ProtectRepositoryEnvironmentsOptions{
		Name: new("production"), DeployAccessLevels: &[]*gitlab.EnvironmentAccessOptions{{AccessLevel: new(gitlab.MaintainerPermissions)}},
		ApprovalRules: &[]*gitlab.EnvironmentApprovalRuleOptions{{AccessLevel: new(gitlab.DeveloperPermissions), RequiredApprovalCount: new(int64(2))}},
	})).done(t, http.StatusCreated)
	same(t, "rules", []any{made.DeployAccessLevels[0].AccessLevel, made.ApprovalRules[0].RequiredApprovalCount}, []any{gitlab.MaintainerPermissions, int64(2)})
	changed := ask(ada.ProtectedEnvironments.UpdateProtectedEnvironments(p.ID, "production", &gitlab.UpdateProtectedEnvironmentsOptions{
		ApprovalRules: &[]*gitlab.UpdateEnvironmentApprovalRuleOptions{{ID: new(made.ApprovalRules[0].ID), Destroy: new(true)}}, RequiredApprovalCount: new(int64(1)),
	})).ok(t)
	same(t, "changed", []any{len(changed.ApprovalRules), changed.RequiredApprovalCount}, []any{0, int64(1)})
	same(t, "listed", len(ask(ada.ProtectedEnvironments.ListProtectedEnvironments(p.ID, nil)).ok(t)), 1)
	send(ada.ProtectedEnvironments.UnprotectEnvironment(p.ID, "production")).done(t, http.StatusNoContent)

	f := ask(ada.FreezePeriods.CreateFreezePeriodOptions(p.ID, &gitlab.CreateFreezePeriodOptions{
		FreezeStart: new("0 23 * * 5"), FreezeEnd: new("0 8 * * 1"), CronTimezone: new("Europe/Berlin"),
	})).done(t, http.StatusCreated)
	same(t, "freeze", ask(ada.FreezePeriods.GetFreezePeriod(p.ID, f.ID)).ok(t).CronTimezone, "Europe/Berlin")
	send(ada.FreezePeriods.DeleteFreezePeriod(p.ID, f.ID)).done(t, http.StatusNoContent)
}

func goSecureFiles(t *testing.T, _ *server, _, ada *gitlab.Client, p *gitlab.Project) {
	f := ask(ada.SecureFiles.CreateSecureFile(p.ID, strings.NewReader("key"), &gitlab.CreateSecureFileOptions{Name: new("release.jks")})).done(t, http.StatusCreated)
	same(t, "file", []any{f.Name, f.ChecksumAlgorithm}, []any{"release.jks", "sha256"})
	content := ask(ada.SecureFiles.DownloadSecureFile(p.ID, f.ID)).ok(t)
	var text bytes.Buffer
	if _, err := io.Copy(&text, content); err != nil {
		t.Fatal(err)
	}
	same(t, "content", text.String(), "key")
	send(ada.SecureFiles.RemoveSecureFile(p.ID, f.ID)).done(t, http.StatusNoContent)
}

func goInvitations(t *testing.T, _ *server, _, ada *gitlab.Client, p *gitlab.Project) {
	result := ask(ada.Invites.ProjectInvites(p.ID, &gitlab.InvitesOptions{Email: new("guest@example.com"), AccessLevel: new(gitlab.DeveloperPermissions)})).done(t, http.StatusCreated)
	same(t, "result", result.Status, "success")
	list := ask(ada.Invites.ListPendingProjectInvitations(p.ID, nil)).ok(t)
	same(t, "pending", []any{len(list), list[0].InviteEmail, list[0].AccessLevel}, []any{1, "guest@example.com", gitlab.DeveloperPermissions})
}

func goInstanceAreas(t *testing.T, _ *server, root, _ *gitlab.Client, p *gitlab.Project) {
	m := ask(root.BroadcastMessage.CreateBroadcastMessage(&gitlab.CreateBroadcastMessageOptions{Message: new("Maintenance"), Theme: new("red"), BroadcastType: new("banner")})).
		done(t, http.StatusCreated)
	same(t, "message", []any{m.Active, m.Theme}, []any{true, "red"})
	same(t, "changed", ask(root.BroadcastMessage.UpdateBroadcastMessage(m.ID, &gitlab.UpdateBroadcastMessageOptions{Dismissable: new(true)})).ok(t).Dismissable, true)
	send(root.BroadcastMessage.DeleteBroadcastMessage(m.ID)).done(t, http.StatusNoContent)
	same(t, "license", ask(root.LicenseTemplates.GetLicenseTemplate("mit", nil)).ok(t).Name, "MIT License")
	same(t, "gitignore", ask(root.GitIgnoreTemplates.GetTemplate("Go")).ok(t).Name, "Go")
	same(t, "dockerfile", ask(root.DockerfileTemplate.GetTemplate("Golang")).ok(t).Name, "Golang")
	attribute := ask(root.CustomAttribute.SetCustomProjectAttribute(p.ID, gitlab.CustomAttribute{Key: "cost", Value: "7"})).ok(t)
	same(t, "attribute", attribute.Value, "7")
	same(t, "attributes", len(ask(root.CustomAttribute.ListCustomProjectAttributes(p.ID)).ok(t)), 1)
	send(root.CustomAttribute.DeleteCustomProjectAttribute(p.ID, "cost")).done(t, http.StatusNoContent)
}

// goServiceAccounts creates service accounts of the instance and of a group, and
// uses one of them.
func goServiceAccounts(t *testing.T, s *server, root, ada *gitlab.Client, _ *gitlab.Project) {
	made := ask(root.Users.CreateServiceAccountUser(&gitlab.CreateServiceAccountUserOptions{Name: new("Robot")})).ok(t)
	if list := ask(root.Users.ListServiceAccounts(&gitlab.ListServiceAccountsOptions{})).ok(t); len(list) == 0 || list[0].ID != made.ID {
		t.Errorf("service accounts: %v", list)
	}
	g := ask(ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Robots"), Path: new("robots")})).ok(t)
	account := ask(root.Groups.CreateServiceAccount(g.ID, &gitlab.CreateServiceAccountOptions{Name: new("Deployer"), Username: new("deployer")})).ok(t)
	token := ask(ada.Groups.CreateServiceAccountPersonalAccessToken(g.ID, account.ID, &gitlab.CreateServiceAccountPersonalAccessTokenOptions{
		Name: new("t"), Scopes: &[]string{"api"},
	})).ok(t)
	if self := ask(s.client(t, token.Token).Users.CurrentUser()).ok(t); self.Username != "deployer" || !self.Bot {
		t.Errorf("the account is %q, bot %t", self.Username, self.Bot)
	}
	ask(ada.Groups.UpdateServiceAccount(g.ID, account.ID, &gitlab.UpdateServiceAccountOptions{Name: new("Other")})).ok(t)
	rotated := ask(ada.Groups.RotateServiceAccountPersonalAccessToken(g.ID, account.ID, token.ID, nil)).ok(t)
	send(ada.Groups.RevokeServiceAccountPersonalAccessToken(g.ID, account.ID, rotated.ID)).done(t, http.StatusNoContent)
	if list := ask(ada.Groups.ListServiceAccountPersonalAccessTokens(g.ID, account.ID, nil)).ok(t); len(list) != 2 || list[1].Active {
		t.Errorf("tokens: %v", list)
	}
	send(ada.Groups.DeleteServiceAccount(g.ID, account.ID, nil)).done(t, http.StatusNoContent)
}

// goGroupProtectedBranches protects a branch in a group.
func goGroupProtectedBranches(t *testing.T, _ *server, _, ada *gitlab.Client, _ *gitlab.Project) {
	g := ask(ada.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: new("Guarded"), Path: new("guarded")})).ok(t)
	p := ask(ada.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: new("p"), NamespaceID: &g.ID, InitializeWithReadme: new(true)})).ok(t)
	ask(ada.GroupProtectedBranches.ProtectRepositoryBranches(g.ID, &gitlab.ProtectGroupRepositoryBranchesOptions{
		Name: new("stable"), PushAccessLevel: new(gitlab.NoPermissions),
	})).ok(t)
	ask(ada.GroupProtectedBranches.UpdateProtectedBranch(g.ID, "stable", &gitlab.UpdateGroupProtectedBranchOptions{AllowForcePush: new(true)})).ok(t)
	if one := ask(ada.GroupProtectedBranches.GetProtectedBranch(g.ID, "stable")).ok(t); !one.AllowForcePush || one.PushAccessLevels[0].AccessLevel != gitlab.NoPermissions {
		t.Errorf("protected branch: %+v", one)
	}
	if list := ask(ada.ProtectedBranches.ListProtectedBranches(p.ID, nil)).ok(t); len(list) != 2 || list[1].Name != "stable" {
		t.Errorf("protected branches of the project: %v", list)
	}
	send(ada.GroupProtectedBranches.UnprotectRepositoryBranches(g.ID, "stable")).done(t, http.StatusNoContent)
}
