package api

import (
	"svc/internal/project"
)

func (a *API) projectUserRoutes() {
	a.tag("Projects")
	handle(a, "GET /projects/{id}/users", readAPI, a.listProjectUsers, summary("List users of a project"))
	handle(a, "GET /projects/{id}/groups", readAPI.orAnonymous(), a.listProjectGroups, summary("List groups of a project"))
	handle(a, "GET /projects/{id}/invited_groups", readAPI.orAnonymous(), a.listProjectInvited, summary("List invited groups of a project"))
	a.tag("Groups")
	handle(a, "GET /groups/{id}/invited_groups", readAPI.orAnonymous(), a.listGroupInvited, summary("List invited groups of a group"))
}

type projectUsersParams struct {
	projectParams
	Search    string  `param:"search" max:"1024" doc:"Text in the name or username."`
	SkipUsers []int64 `param:"skip_users,csv"`
	pageParams
}

// listProjectUsers: https://docs.gitlab.com/api/projects/#list-users
func (a *API) listProjectUsers(c *call, p projectUsersParams) (page[userPublicJSON], error) {
	f := project.MemberFilter{All: true, Query: p.Search, Skip: p.SkipUsers}
	list, err := a.Projects.Members(c, c.actor, project.Place{Ref: p.Project}, f, p.paging())
	if err != nil {
		return page[userPublicJSON]{}, err
	}
	now := a.Now()
	return offsetPage(p.pageParams, list, func(m *project.Member) userPublicJSON { return toMember(c, m, now).userPublicJSON }), nil
}

type projectGroupsParams struct {
	projectParams
	Search    string  `param:"search" max:"1024" doc:"Text in the name or path."`
	Skip      []int64 `param:"skip_groups,csv"`
	Shared    bool    `param:"with_shared" doc:"Include groups the project is shared with."`
	SharedMin int64   `param:"shared_min_access_level" enum:"5,10,15,20,30,40,50"`
	pageParams
}

// listProjectGroups: https://docs.gitlab.com/api/projects/#list-groups
func (a *API) listProjectGroups(c *call, p projectGroupsParams) (page[groupNameJSON], error) {
	f := project.RelatedFilter{Search: p.Search, Skip: p.Skip, Shared: p.Shared, SharedMin: project.Level(p.SharedMin)}
	list, err := a.Projects.RelatedGroups(c, c.actor, p.Project, f, p.paging())
	if err != nil {
		return page[groupNameJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(n *project.Namespace) groupNameJSON { return toGroupName(c.site, n) }), nil
}

type invitedFilterParams struct {
	Search   string   `param:"search" max:"1024" doc:"Text in the name or path."`
	MinLevel int64    `param:"min_access_level" enum:"5,10,15,20,30,40,50"`
	Relation []string `param:"relation,csv" enum:"direct,inherited"`
	pageParams
}

type projectInvitedParams struct {
	projectParams
	invitedFilterParams
}

// listProjectInvited: https://docs.gitlab.com/api/projects/#list-a-projects-invited-groups
func (a *API) listProjectInvited(c *call, p projectInvitedParams) (page[groupNameJSON], error) {
	return a.invited(c, project.Place{Ref: p.Project}, &p.invitedFilterParams)
}

type groupInvitedParams struct {
	inGroupParams
	invitedFilterParams
}

// listGroupInvited: https://docs.gitlab.com/api/groups/#list-invited-groups
func (a *API) listGroupInvited(c *call, p groupInvitedParams) (page[groupNameJSON], error) {
	return a.invited(c, project.Place{Ref: p.Group, Group: true}, &p.invitedFilterParams)
}

func (a *API) invited(c *call, at project.Place, p *invitedFilterParams) (page[groupNameJSON], error) {
	f := project.InvitedFilter{Search: p.Search, MinLevel: project.Level(p.MinLevel), Relation: p.Relation}
	list, err := a.Projects.InvitedGroups(c, c.actor, at, f, p.paging())
	if err != nil {
		return page[groupNameJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(n *project.Namespace) groupNameJSON { return toGroupName(c.site, n) }), nil
}

// groupNameJSON identifies a group within another object.
type groupNameJSON struct {
	ID        int64   `json:"id"`
	WebURL    string  `json:"web_url"`
	Name      string  `json:"name"`
	AvatarURL *string `json:"avatar_url"`
	FullName  string  `json:"full_name"`
	FullPath  string  `json:"full_path"`
}

func toGroupName(site *Site, n *project.Namespace) groupNameJSON {
	return groupNameJSON{n.ID, namespaceURL(site, n), n.Name, namespacePicture(site, n), n.FullName, n.FullPath}
}
