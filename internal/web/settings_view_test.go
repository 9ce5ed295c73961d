package web

import (
	"time"

	"svc/internal/audit"
	"svc/internal/ci/runners"
	"svc/internal/ci/variable"
	"svc/internal/hook"
	"svc/internal/instance"
	"svc/internal/merge"
	"svc/internal/mirror"
	"svc/internal/pages"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/repo/storagemove"
	"svc/internal/setting"
	"svc/internal/user"
)

// settingsContents are the pages of the settings of projects and groups.
func settingsContents() []content {
	now := time.Unix(1e9, 0)
	u := &user.User{ID: 1, Username: "ada", Name: "Ada"}
	p := &project.Project{ID: 1, Name: "P", FullPath: "g/p", Namespace: project.Namespace{FullName: "G", FullPath: "g"}, DefaultBranch: "main", Avatar: "x.png"}
	g := &project.Namespace{ID: 1, Name: "G", FullPath: "g", FullName: "G", Visibility: project.Private, Avatar: "x.png"}
	in := setup{P: &head{Project: p, Tab: "settings", MaySet: true}, Base: "/g/p/-/settings/", Owner: true}
	of := setup{G: &groupHead{Group: g, Tab: "settings", MaySet: true}, Base: "/groups/g/-/settings/", Owner: true}
	bad := form{Errors: map[string][]string{"name": {"is wrong"}, "scopes": {"x"}, "expires_at": {"x"}, "visibility": {"x"}}, Error: "no"}
	some := []option{{"1", "One"}}
	member := &project.Member{UserID: 1, User: u, Level: project.Developer, ExpiresAt: "2027-01-01", CreatedAt: now, RequestedAt: &now}
	share := project.Share{GroupID: 2, GroupName: "H", GroupPath: "h", Level: project.Developer, ExpiresAt: "2027-01-01"}
	seconds := int64(600)
	runner := &runners.Runner{ID: 1, Description: "d", Tags: []string{"a"}, Paused: true, Busy: true, RunUntagged: true, ProtectedOnly: true, Locked: true,
		MaximumTimeout: &seconds, ContactedAt: &now, Manager: &runners.Manager{}, Projects: []*project.Project{p, p}}
	text := "d"
	shown := variable.Variable{Key: "K", Description: &text, Type: variable.File, Protected: true, Masked: true, Raw: true, Scope: "x"}
	hidden := variable.Variable{Key: "H", Masked: true, Hidden: true, Scope: "*"}
	token := user.Token{Name: "t", Scopes: []string{"api"}, CreatedAt: now, LastUsedAt: &now, ExpiresAt: "2027-01-01", Secret: "s"}
	rule := &repo.Protected{Name: "main", AllowForcePush: true, Access: []repo.RefAccess{{Action: repo.PushTo, Level: 40}, {Action: repo.PushTo, Level: 30}, {Action: repo.MergeInto}, {Action: repo.CreateRef}}}
	archived := *p
	archived.Archived = true
	old := in
	old.P = &head{Project: &archived}
	less := in
	less.Owner = false
	site := &pages.Overview{URL: "http://g.pages.test/p", Settings: pages.Settings{Failure: "no", FailedJobID: &seconds, FailedAt: &now, HTTPSOnly: true},
		Sites: []*pages.Site{{URL: "http://g.pages.test/p", Files: 2, Size: 3, JobID: 1, CreatedAt: now, ExpiresAt: &now}, {Prefix: "x"}}}
	domain := domainRow{&pages.Domain{Name: "a.example", Verification: true, AutoSSL: true, AutoSSLError: "no", Certificate: "x", ExpiresAt: &now, Expired: true}, "a.example", "_x", "y"}
	webhook := &hook.Hook{ID: 1, URL: "https://hooks.example.org/{x}", Name: "n", Triggers: []hook.Trigger{hook.Push}, Secrets: hook.Secrets{Token: "t"}, CreatedAt: now}
	delivery := &hook.Delivery{ID: 2, Trigger: hook.Push, Status: 500, Error: "no", CreatedAt: now, DeliveredAt: &now, ResponseBody: "x"}
	hooked, above, everywhere := hookPlace{setup: in, At: "/g/p/-/settings/hooks"}, hookPlace{setup: of, At: "/groups/g/-/settings/hooks"}, hookPlace{At: "/admin/hooks", Admin: true}
	row := hookRow{Hook: webhook, Labels: []string{"Push events"}, State: hook.TemporarilyDisabled, Tests: some}
	return []content{
		hooksPage{hookPlace: hooked, Form: bad, Hooks: []hookRow{row}, Triggers: hook.TriggersOf(hook.ProjectLevel), Strategies: some}, hooksPage{hookPlace: above},
		hooksPage{hookPlace: everywhere, Hooks: []hookRow{{Hook: webhook, State: hook.PermanentlyDisabled}}},
		hookPage{hookPlace: hooked, Hook: row, Form: bad, Triggers: hook.TriggersOf(hook.ProjectLevel), Strategies: some, Events: []*hook.Delivery{delivery}},
		hookPage{hookPlace: everywhere, Hook: hookRow{Hook: webhook, State: hook.PermanentlyDisabled}},
		hookEventPage{hookPlace: hooked, Hook: webhook, Event: delivery, Sent: []headerLine{{"A", "b"}}, Got: []headerLine{{"A", "b"}}, Body: "{}"},
		hookEventPage{hookPlace: everywhere, Hook: webhook, Event: &hook.Delivery{Trigger: hook.Push, CreatedAt: now}},
		integrationsPage{setup: in, Rows: []integrationRow{{Active: true}, {}}}, integrationsPage{setup: of},
		integrationPage{
			setup: in, Info: hook.Integrations()[3], Form: bad, Exists: true, State: hook.TemporarilyDisabled, Address: "x",
			Triggers: integrationTriggers(hook.Integrations()[3]), Branches: some, Labels: some,
		},
		integrationPage{setup: of, Info: hook.Integrations()[2]},
		sitesPage{setup: in, New: bad, Site: site, Domains: []domainRow{domain, {Domain: &pages.Domain{Name: "b.example", Verification: true, VerifiedAt: &now}}}, Access: some, Primary: some, Auto: true},
		sitesPage{setup: in, Site: &pages.Overview{}}, sitesPage{setup: in, Off: true},
		generalPage{setup: in, Form: bad, Branches: some, Access: some}, generalPage{setup: of, Creators: some, Nesters: some},
		advancedPage{setup: in, Form: bad, Places: some}, advancedPage{setup: of}, advancedPage{setup: old}, advancedPage{setup: less},
		membersPage{setup: in, Form: bad, Members: []memberRow{{member, false, true, true}, {member, true, false, false}}, Requests: []*project.Member{member}, Shares: []project.Share{share}},
		membersPage{setup: of},
		projectMembersPage{head: *in.P, Members: []*project.Member{member}}, projectMembersPage{head: *in.P, Search: "x"}, projectMembersPage{head: *in.P},
		placeTokensPage{setup: in, Form: bad, Tokens: []project.AccessToken{{Token: token, Level: project.Developer}}, Made: &project.AccessToken{Token: token}, Scopes: []scope{{"api", "t"}}},
		placeTokensPage{setup: of},
		deployTokensPage{setup: in, Form: bad, Tokens: []project.DeployToken{{Name: "n", Scopes: []string{"x"}, ExpiresAt: &now}}, Made: &project.DeployToken{Secret: "s"}, Scopes: []scope{{"api", "t"}}},
		deployTokensPage{setup: of},
		deployKeysPage{setup: in, Form: bad, Keys: []project.DeployKey{{Title: "t", CanPush: true, Public: true, LastUsedAt: &now, ExpiresAt: &now}, {}}, Public: []project.DeployKey{{Title: "p"}}}, deployKeysPage{setup: in},
		mirrorsPage{setup: in, Form: bad, CanAdd: true, Mirrors: []mirrorRow{
			{&mirror.Mirror{URL: "ssh://git@example.org/a", Direction: mirror.Push, Enabled: true, Status: mirror.StatusRetry, LastError: "e", PublicKey: "k", UpdatedAt: &now, BranchRegex: "x"}},
			{&mirror.Mirror{URL: "https://example.org/a", HasCredentials: true, Status: mirror.StatusStarted, KeepDiverged: true, SucceededAt: &now, OnlyProtected: true}},
			{&mirror.Mirror{URL: "https://example.org/a", Direction: mirror.Pull, Status: mirror.StatusFailed, Failures: 14, TriggerPipelines: true}},
		}}, mirrorsPage{setup: in},
		variablesPage{setup: in, Form: bad, Variables: []variableRow{{shown, "?key=K"}, {hidden, "?key=H"}}, Types: some, Edit: &hidden}, variablesPage{setup: of}, variablesPage{Admin: true, At: "/admin/variables"},
		runnersPage{setup: in, Form: bad, Runners: []runnerRow{{Runner: runner, Kept: true, Status: runners.Online}, {Runner: &runners.Runner{}}}, Available: []runnerRow{{Runner: runner}}, Made: &runners.Runner{Secret: "s"}, Commands: []string{"c", "d"}, Statuses: some},
		runnersPage{setup: of}, runnersPage{Admin: true, Status: "online"},
		protectedPage{setup: in, Form: bad, Branches: []*repo.Protected{rule, {Name: "x"}}, Tags: []*repo.Protected{rule}, Levels: some}, protectedPage{setup: in},
		protectedPage{setup: of, Form: bad, Branches: []*repo.Protected{rule}, Levels: some}, protectedPage{setup: of},
		protectedPage{setup: in, Branches: []*repo.Protected{{Name: "x", GroupID: 1}}},
		serviceAccountsPage{accountHead: accountHead{setup: of}, Form: bad, Accounts: []*user.User{{Name: "N", State: user.Blocked, Admin: true}}}, serviceAccountsPage{accountHead: accountHead{setup: of}, Refused: "no"},
		serviceAccountsPage{accountHead: accountHead{Admin: true, At: "/admin/service_accounts"}},
		serviceAccountPage{accountHead: accountHead{setup: of}, User: &user.User{Name: "N"}, Account: bad, Form: bad, Tokens: []user.Token{token}, Made: &token, Scopes: []scope{{"api", "t"}}},
		serviceAccountPage{accountHead: accountHead{Admin: true}, User: &user.User{Name: "N"}},
		pushRulesPage{in, bad, false}, pushRulesPage{of, bad, true}, pushRulesPage{setup: of},
		ciSettingsPage{setup: in, Form: bad, Limited: true, Projects: []*project.Project{p, {ID: 7}}, Groups: []*project.Namespace{g}, Strategies: some, Roles: some}, ciSettingsPage{setup: in},
		mergeSettingsPage{setup: in, ruleEditor: someRules(some), Settings: bad, Methods: some, Squash: some, OnPush: some}, mergeSettingsPage{setup: in},
		groupMergeSettingsPage{setup: of, Form: bad, Top: true, OnPush: some}, groupMergeSettingsPage{setup: of},
	}
}

// adminContents are the pages of the Admin area.
func adminContents() []content {
	now := time.Unix(1e9, 0)
	p := &project.Project{ID: 1, Name: "P", FullPath: "g/p", Archived: true, ReadOnly: true}
	g := &project.Namespace{ID: 1, Name: "G", FullPath: "g", FullName: "G"}
	bad := form{Errors: map[string][]string{"name": {"is wrong"}}, Error: "no"}
	var users []content
	for _, state := range []user.State{user.Active, user.Blocked, user.Banned, user.Deactivated, user.PendingApproval} {
		u := &user.User{ID: 1, Username: "ada", Name: "Ada", State: state, Admin: state == user.Active, External: true, TwoFactorEnabled: true, Creator: &user.User{}, CurrentSignInAt: &now}
		users = append(users, userPage{User: u, Form: bad, Locked: true, Impersonate: true, Memberships: []project.Membership{{Project: true, Name: "p"}, {Name: "g"}}}, usersPage{Users: []*user.User{u}, Filters: userFilters()})
	}
	return append(users,
		userPage{User: &user.User{ConfirmedAt: &now}, Self: true}, usersPage{}, newUserPage{bad},
		overviewPage{Counts: &instance.Counts{Users: instance.Count{N: 10_000, Over: true}, Pending: instance.Count{N: 1}}, Work: map[queue.State]int64{queue.Failed: 1}, Plots: plots([]Sample{{At: now, Requests: 1, Latency: .01}, {At: now}})},
		overviewPage{Counts: &instance.Counts{}}, overviewPage{Counts: &instance.Counts{}, Plots: plots(nil)},
		adminListPage{Projects: []*project.Project{p}, Archived: "no"}, adminListPage{OfGroups: true, Groups: []*project.Namespace{g}}, adminListPage{},
		pendingPage{Admin: true, At: "/x/", Groups: []pendingRow{{ID: 1, Kind: "groups", Name: "G", MarkedAt: now, DeletedOn: now}}, Projects: []pendingRow{{ID: 1, Kind: "projects", Name: "P"}}}, pendingPage{},
		domainsPage{Domains: []domainRow{{Domain: &pages.Domain{Name: "a.example", Certificate: "x", ExpiresAt: &now, Verification: true, AutoSSL: true}}}}, domainsPage{},
		storagesPage{Storages: []instance.Storage{{Name: "default", Disk: instance.Disk{Size: 2, Free: 1}, ReadOnly: 1}, {Disk: instance.Disk{Missing: true}}, {Disk: instance.Disk{Locked: true}}},
			Progress: storagemove.Progress{Waiting: 2, Copying: 1, Leaving: 1},
			Moves:    []*storagemove.Move{{Kind: storagemove.Project, State: storagemove.Finished, StartedAt: &now, EndedAt: &now}, {Kind: storagemove.Group, State: storagemove.Started}, {Kind: storagemove.Snippet, State: storagemove.Failed, Error: "a\nb"}}},
		storagesPage{},
		setupPage{Checks: []instance.Check{{ID: "mail", Name: "Email", State: instance.Done, Result: "a"}, {ID: "url", State: instance.Open, Advice: "b"}, {ID: "runner", State: instance.Failed, Page: "/admin/runners"}}},
		nodesPage{Nodes: []instance.Node{{Name: "a-1", Version: "1.0", Revision: "abc", Schema: 1, StartedAt: now, SeenAt: now, Self: true}, {Name: "b-1", Schema: 2, Lost: true}, {Name: "c", Stopping: true}}}, nodesPage{},
		workPage{States: []workState{{"", "All", 1}}, Items: []queue.Item{{Kind: "k", State: queue.Failed, Error: "a\nb"}, {State: queue.Running}}}, workPage{},
		auditPage{Form: bad, Events: []audit.Event{{Type: "user_blocked", Details: audit.Details{Change: "c", From: "f", To: "t", Message: "m", Impersonator: "root"}, Target: audit.Target{Type: "T", Details: "x"}, IP: "::1"}}}, auditPage{},
		adminSettingsPage{bad, settingSections(&setting.Settings{})},
		applicationsPage{Admin: true},
	)
}

// someRules returns an editor with approval rules of all types.
func someRules(branches []option) ruleEditor {
	users, groups := []*user.User{{Username: "ada", Name: "Ada"}}, []*project.Namespace{{FullPath: "g"}}
	return ruleEditor{RuleBase: "/x", RuleBranches: branches, Rules: []*ruleRow{
		{ApprovalRule: &merge.ApprovalRule{ID: 1, Type: merge.Regular, Name: "r", Required: 1, Users: users, Groups: groups, HiddenGroups: true}, Branch: "1"},
		{ApprovalRule: &merge.ApprovalRule{ID: 2, Type: merge.AnyApprover, Name: "a"}, Foreign: true},
		{ApprovalRule: &merge.ApprovalRule{ID: 3, Type: merge.CodeOwner, Name: "*.go", Section: "S"}},
	}}
}
