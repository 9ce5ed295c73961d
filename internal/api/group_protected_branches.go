package api

import (
	"svc/internal/repo"
)

func (a *API) groupProtectedBranchRoutes() {
	a.tag("Group-level protected branches")
	const all, one = "/groups/{id}/protected_branches", "/groups/{id}/protected_branches/{name}"
	handle(a, "GET "+all, readAPI, a.listGroupProtectedBranches, summary("List group-level protected branches"))
	handle(a, "POST "+all, writeAPI, a.protectGroupBranch, summary("Protect branches of all projects of a group"))
	handle(a, "GET "+one, readAPI, a.getGroupProtectedBranch, summary("Get a group-level protected branch or wildcard protected branch"))
	handle(a, "PATCH "+one, writeAPI, a.changeGroupProtectedBranch, summary("Update a group-level protected branch"))
	handle(a, "DELETE "+one, writeAPI, a.unprotectGroupBranch, summary("Unprotect branches of all projects of a group"))
}

// groupProtectedBranchJSON is a protected branch of a group. The projects of the
// group list it with inherited set to true.
type groupProtectedBranchJSON struct {
	ID                    int64           `json:"id"`
	Name                  string          `json:"name"`
	PushAccessLevels      []refAccessJSON `json:"push_access_levels"`
	MergeAccessLevels     []refAccessJSON `json:"merge_access_levels"`
	AllowForcePush        bool            `json:"allow_force_push"`
	UnprotectAccessLevels []refAccessJSON `json:"unprotect_access_levels"`
	CodeOwnerApproval     bool            `json:"code_owner_approval_required"`
}

func toGroupProtectedBranch(p *repo.Protected) groupProtectedBranchJSON {
	b := toProtectedBranch(p)
	return groupProtectedBranchJSON{
		b.ID, b.Name, b.PushAccessLevels, b.MergeAccessLevels, b.AllowForcePush, b.UnprotectAccessLevels, b.CodeOwnerApproval,
	}
}

type groupProtectedBranchesParams struct {
	placeParams
	Search string `param:"search" max:"1024" doc:"Text in the name."`
	pageParams
}

// listGroupProtectedBranches: https://docs.gitlab.com/api/group_protected_branches/#list-protected-branches
func (a *API) listGroupProtectedBranches(c *call, p groupProtectedBranchesParams) (page[groupProtectedBranchJSON], error) {
	return offsetList(p.pageParams, toGroupProtectedBranch)(a.Repos.GroupProtectedBranches(c, c.actor, p.Ref, p.Search, p.paging()))
}

type groupProtectedBranchParams struct {
	placeParams
	Name string `param:"name" doc:"Name of the branch or wildcard."`
}

// getGroupProtectedBranch: https://docs.gitlab.com/api/group_protected_branches/#get-a-single-protected-branch-or-wildcard-protected-branch
func (a *API) getGroupProtectedBranch(c *call, p groupProtectedBranchParams) (groupProtectedBranchJSON, error) {
	return presentAs(toGroupProtectedBranch)(a.Repos.GroupProtectedBranch(c, c.actor, p.Ref, p.Name))
}

type protectGroupBranchParams struct {
	placeParams
	protectBranchFields
}

// protectGroupBranch: https://docs.gitlab.com/api/group_protected_branches/#protect-repository-branches
func (a *API) protectGroupBranch(c *call, p protectGroupBranchParams) (groupProtectedBranchJSON, error) {
	return presentAs(toGroupProtectedBranch)(a.Repos.ProtectInGroup(c, c.actor, p.Ref, p.protected(c.site)))
}

type changeGroupProtectedBranchParams struct {
	groupProtectedBranchParams
	changeBranchFields
}

// changeGroupProtectedBranch: https://docs.gitlab.com/api/group_protected_branches/#update-a-protected-branch
func (a *API) changeGroupProtectedBranch(c *call, p changeGroupProtectedBranchParams) (groupProtectedBranchJSON, error) {
	return presentAs(toGroupProtectedBranch)(a.Repos.ChangeProtectedInGroup(c, c.actor, p.Ref, p.Name, p.change(c.site)))
}

// unprotectGroupBranch: https://docs.gitlab.com/api/group_protected_branches/#unprotect-repository-branches
func (a *API) unprotectGroupBranch(c *call, p groupProtectedBranchParams) (none, error) {
	return none{}, a.Repos.UnprotectInGroup(c, c.actor, p.Ref, p.Name)
}
