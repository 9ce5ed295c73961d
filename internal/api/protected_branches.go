package api

import (
	"svc/internal/bind"
	"svc/internal/project"
	"svc/internal/repo"
)

func (a *API) protectedBranchRoutes() {
	a.tag("Protected branches")
	handle(a, "GET /projects/{id}/protected_branches", readAPI, a.listProtectedBranches, summary("List protected branches"))
	handle(a, "POST /projects/{id}/protected_branches", writeAPI, a.protectBranch, summary("Protect repository branches"))
	handle(a, "GET /projects/{id}/protected_branches/{name}", readAPI, a.getProtectedBranch, summary("Get a protected branch or wildcard protected branch"))
	handle(a, "PATCH /projects/{id}/protected_branches/{name}", writeAPI, a.changeProtectedBranch, summary("Update a protected branch"))
	handle(a, "DELETE /projects/{id}/protected_branches/{name}", writeAPI, a.unprotectBranch, summary("Unprotect repository branches"))
}

type protectedBranchJSON struct {
	ID                    int64           `json:"id"`
	Name                  string          `json:"name"`
	PushAccessLevels      []refAccessJSON `json:"push_access_levels"`
	MergeAccessLevels     []refAccessJSON `json:"merge_access_levels"`
	AllowForcePush        bool            `json:"allow_force_push"`
	UnprotectAccessLevels []refAccessJSON `json:"unprotect_access_levels"`
	CodeOwnerApproval     bool            `json:"code_owner_approval_required"`
	Inherited             bool            `json:"inherited"`
}

// refAccessJSON is an access level of a protected branch or tag.
type refAccessJSON struct {
	ID          int64  `json:"id"`
	AccessLevel int64  `json:"access_level"`
	Description string `json:"access_level_description"`
	DeployKeyID *int64 `json:"deploy_key_id"`
	UserID      *int64 `json:"user_id"`
	GroupID     *int64 `json:"group_id"`
}

func toRefAccess(a repo.RefAccess) refAccessJSON {
	return refAccessJSON{a.ID, int64(a.Level), a.Description(), a.DeployKeyID, a.UserID, a.GroupID}
}

func toProtectedBranch(p *repo.Protected) protectedBranchJSON {
	return protectedBranchJSON{
		ID: p.ID, Name: p.Name, AllowForcePush: p.AllowForcePush, CodeOwnerApproval: p.CodeOwnerApproval,
		PushAccessLevels: mapped(p.Of(repo.PushTo), toRefAccess), MergeAccessLevels: mapped(p.Of(repo.MergeInto), toRefAccess),
		UnprotectAccessLevels: mapped(p.Of(repo.Unprotect), toRefAccess), Inherited: p.GroupID != 0,
	}
}

type protectedRefsParams struct {
	projectParams
	Search string `param:"search" max:"1024" doc:"Text in the name."`
	pageParams
}

// listProtectedBranches: https://docs.gitlab.com/api/protected_branches/#list-protected-branches
func (a *API) listProtectedBranches(c *call, p protectedRefsParams) (page[protectedBranchJSON], error) {
	return offsetList(p.pageParams, toProtectedBranch)(a.Repos.ProtectedRefs(c, c.actor, p.Project, repo.BranchRef, p.Search, p.paging()))
}

type protectedRefParams struct {
	projectParams
	Name string `param:"name" doc:"Name of the branch or wildcard."`
}

// getProtectedBranch: https://docs.gitlab.com/api/protected_branches/#get-a-single-protected-branch-or-wildcard-protected-branch
func (a *API) getProtectedBranch(c *call, p protectedRefParams) (protectedBranchJSON, error) {
	return presentAs(toProtectedBranch)(a.Repos.ProtectedRef(c, c.actor, p.Project, repo.BranchRef, p.Name))
}

// refAccessParams add an access level, or change or remove an existing one by its
// ID.
type refAccessParams struct {
	ID          int64  `param:"id"`
	AccessLevel *int64 `param:"access_level" enum:"0,30,40,60"`
	UserID      *int64 `param:"user_id" tier:"premium"`
	GroupID     *int64 `param:"group_id" tier:"premium"`
	DeployKeyID *int64 `param:"deploy_key_id"`
	Destroy     bool   `param:"_destroy"`
}

func (refAccessParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.Exclusive("access_level", "user_id", "group_id", "deploy_key_id")}
}

// change returns the change of an access level. ok is false if the parameters are
// empty or not available in this tier.
func (p refAccessParams) change(site *Site, action repo.RefAction) (c repo.AccessChange, ok bool) {
	c = repo.AccessChange{Remove: p.Destroy, RefAccess: repo.RefAccess{ID: p.ID, Action: action, Level: project.Maintainer, DeployKeyID: p.DeployKeyID}}
	if site.Tier >= Premium {
		c.UserID, c.GroupID = p.UserID, p.GroupID
	}
	if p.AccessLevel != nil {
		c.Level = project.Level(*p.AccessLevel)
	}
	named := p.AccessLevel != nil || c.UserID != nil || c.GroupID != nil || c.DeployKeyID != nil
	return c, named || p.ID != 0 && p.Destroy
}

type allowedParams struct {
	AllowedToPush      []refAccessParams `param:"allowed_to_push" max:"100"`
	AllowedToMerge     []refAccessParams `param:"allowed_to_merge" max:"100"`
	AllowedToUnprotect []refAccessParams `param:"allowed_to_unprotect" max:"100" tier:"premium"`
}

func (p *allowedParams) changes(site *Site) []repo.AccessChange {
	var list []repo.AccessChange
	for _, part := range []struct {
		action repo.RefAction
		given  []refAccessParams
	}{{repo.PushTo, p.AllowedToPush}, {repo.MergeInto, p.AllowedToMerge}, {repo.Unprotect, p.AllowedToUnprotect}} {
		if part.action == repo.Unprotect && site.Tier < Premium {
			continue
		}
		for _, one := range part.given {
			if c, ok := one.change(site, part.action); ok {
				list = append(list, c)
			}
		}
	}
	return list
}

type protectBranchParams struct {
	projectParams
	protectBranchFields
}

// protectBranchFields are the fields of a new rule of a project or group.
type protectBranchFields struct {
	Name              string `param:"name,required" doc:"Name, or a wildcard with *."`
	PushLevel         *int64 `param:"push_access_level" enum:"0,30,40,60" doc:"Access level allowed to push. Default is Maintainer."`
	MergeLevel        *int64 `param:"merge_access_level" enum:"0,30,40,60" doc:"Access level allowed to merge. Default is Maintainer."`
	UnprotectLevel    *int64 `param:"unprotect_access_level" enum:"30,40,60" tier:"premium"`
	AllowForcePush    bool   `param:"allow_force_push"`
	CodeOwnerApproval bool   `param:"code_owner_approval_required" tier:"premium"`
	allowedParams
}

func (p *protectBranchFields) protected(site *Site) repo.NewProtected {
	n := repo.NewProtected{Name: p.Name, AllowForcePush: p.AllowForcePush, CodeOwnerApproval: p.CodeOwnerApproval && site.Tier >= Premium}
	for _, one := range []struct {
		action repo.RefAction
		level  *int64
	}{{repo.PushTo, p.PushLevel}, {repo.MergeInto, p.MergeLevel}, {repo.Unprotect, p.UnprotectLevel}} {
		if one.level != nil && (one.action != repo.Unprotect || site.Tier >= Premium) {
			n.Access = append(n.Access, repo.RefAccess{Action: one.action, Level: project.Level(*one.level)})
		}
	}
	for _, c := range p.changes(site) {
		n.Access = append(n.Access, c.RefAccess)
	}
	return n
}

// protectBranch: https://docs.gitlab.com/api/protected_branches/#protect-repository-branches
func (a *API) protectBranch(c *call, p protectBranchParams) (protectedBranchJSON, error) {
	return presentAs(toProtectedBranch)(a.Repos.Protect(c, c.actor, p.Project, repo.BranchRef, p.protected(c.site)))
}

type changeProtectedBranchParams struct {
	protectedRefParams
	changeBranchFields
}

// changeBranchFields are the changes of a rule of a project or group.
type changeBranchFields struct {
	AllowForcePush    *bool `param:"allow_force_push"`
	CodeOwnerApproval *bool `param:"code_owner_approval_required" tier:"premium"`
	allowedParams
}

func (p *changeBranchFields) change(site *Site) repo.ProtectedChange {
	change := repo.ProtectedChange{AllowForcePush: p.AllowForcePush, Access: p.changes(site)}
	if site.Tier >= Premium {
		change.CodeOwnerApproval = p.CodeOwnerApproval
	}
	return change
}

// changeProtectedBranch: https://docs.gitlab.com/api/protected_branches/#update-a-protected-branch
func (a *API) changeProtectedBranch(c *call, p changeProtectedBranchParams) (protectedBranchJSON, error) {
	return presentAs(toProtectedBranch)(a.Repos.ChangeProtected(c, c.actor, p.Project, repo.BranchRef, p.Name, p.change(c.site)))
}

// unprotectBranch: https://docs.gitlab.com/api/protected_branches/#unprotect-repository-branches
func (a *API) unprotectBranch(c *call, p protectedRefParams) (none, error) {
	return none{}, a.Repos.Unprotect(c, c.actor, p.Project, repo.BranchRef, p.Name)
}
