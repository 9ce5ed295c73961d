package web

import (
	"time"

	"svc/internal/broadcast"
	"svc/internal/ci/deployment"
	"svc/internal/featureflag"
	"svc/internal/lfs"
	"svc/internal/project"
	"svc/internal/securefile"
	"svc/internal/terraform"
)

// operateContents are the pages of Terraform states, feature flags, protected
// environments, secure files and broadcast messages, with data and empty.
func operateContents() []content {
	now, job := time.Unix(1e9, 0), int64(7)
	in := &project.Project{ID: 1, Path: "p", FullPath: "g/p", Name: "P", DefaultBranch: "main", Namespace: project.Namespace{Name: "G", FullPath: "g"}}
	h := head{Project: in, Tab: "terraform", SignedIn: true, Terraform: true, MaySet: true}
	version := &terraform.Version{ID: 1, Serial: 3, Size: 4000, Author: "ada", JobID: &job, CreatedAt: now}
	states := []*terraform.State{
		{Name: "a b&c", Current: version, Lock: &terraform.Lock{ID: "x", User: "ada", At: now, Info: terraform.LockInfo{Operation: "plan"}}},
		{Name: "free", Current: version}, {Name: "new"},
	}
	level := project.Maintainer
	s := setup{P: &h, Base: "/g/p/-/settings/", Part: "environments"}
	list := &featureflag.UserList{IID: 1, Name: "l", UserIDs: "a,b", UpdatedAt: now}
	flags := []*featureflag.Flag{
		{IID: 1, Name: "a", Description: "d", Active: true, Strategies: []*featureflag.Strategy{
			{Name: featureflag.FlexibleRollout, Parameters: map[string]string{"rollout": "5", "stickiness": "random"}, Scopes: []*featureflag.Scope{{Environment: "*"}}},
			{Name: featureflag.InUserList, UserList: list, Scopes: []*featureflag.Scope{{Environment: "production"}}}, {Name: featureflag.UserIDs, Parameters: map[string]string{"userIds": "x"}},
		}},
		{IID: 2, Name: "b"},
	}
	lock := &lfs.Lock{ID: 1, Path: "a b#c.psd", Owner: "ada", LockedAt: now}
	return []content{
		pathLocksPage{head: h, Locks: []lockRow{{Lock: lock, Page: "/g/p/-/blob/main/a", Unlocks: true}, {Lock: lock, Unlocks: true, Own: true}, {Lock: lock}}},
		pathLocksPage{head: h, Adds: true, Pager: pager{Before: "?", After: "?from=2"}},
		terraformPage{head: h, States: states, MayChange: true, Address: "https://h/"}, terraformPage{head: h, States: states}, terraformPage{head: h},
		terraformVersionsPage{head: h, State: states[0], Versions: []*terraform.Version{version, {ID: 2}}, MayChange: true},
		terraformVersionsPage{head: h, State: states[2]},
		featureFlagsPage{head: h, Rows: flags, MayChange: true, Address: "https://h", InstanceID: "x"}, featureFlagsPage{head: h, Rows: flags}, featureFlagsPage{head: h},
		featureFlagPage{head: h, Form: form{Error: "no"}, Strategies: []strategyRow{{Name: "default", Scopes: "*"}, {N: 1}}, Lists: []option{{"1", "l"}}, MayChange: true},
		featureFlagPage{head: h, IID: 3, Form: filled("name", "x"), Strategies: []strategyRow{{ID: 7, Name: "userWithId", ListID: "1"}}},
		flagUserListsPage{head: h, Lists: []*featureflag.UserList{list}, MayChange: true}, flagUserListsPage{head: h},
		broadcastsPage{Messages: []*broadcast.Message{{ID: 1, Text: "t", StartsAt: now, EndsAt: now, Type: broadcast.Banner, Path: "/x"}}, ID: 1, Form: form{Error: "no"}}, broadcastsPage{Form: filled()},
		environmentSettingsPage{setup: s, Form: form{Error: "no"}, Freeze: filled(), Names: []string{"production"}, Self: true,
			Protected: []*deployment.ProtectedEnvironment{{Name: "production", Deploy: []*deployment.EnvironmentRule{{Level: &level}}, Approve: []*deployment.EnvironmentRule{{Name: "ada", Required: 2}}}, {Name: "x", RequiredApprovals: 1}},
			Freezes:   []*deployment.FreezePeriod{{ID: 1, Start: "0 0 * * *", End: "1 0 * * *", Timezone: "UTC"}}},
		environmentSettingsPage{setup: s, Form: filled(), Freeze: filled()},
		secureFilesPage{setup: s, Form: form{Error: "no"}, Files: []*securefile.File{{ID: 1, Name: "k.jks", Size: 9, SHA256: "ab", CreatedAt: now}}}, secureFilesPage{setup: s, Form: filled()},
		flagUserListPage{head: h, Form: form{Errors: map[string][]string{"name": {"is wrong"}}}, MayChange: true}, flagUserListPage{head: h, IID: 1, Form: filled()},
	}
}
