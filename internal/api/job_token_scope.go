package api

import (
	"svc/internal/ci/jobtoken"
	"svc/internal/project"
)

func (a *API) jobTokenScopeRoutes() {
	a.tag("Job token scope")
	const at = "/projects/{id}/job_token_scope"
	handle(a, "GET "+at, readAPI, a.getTokenScope, summary("Get the CI/CD job token access settings of a project"))
	handle(a, "PATCH "+at, writeAPI, a.updateTokenScope, summary("Update the CI/CD job token access settings of a project"))
	handle(a, "GET "+at+"/allowlist", readAPI, a.listAllowedProjects, summary("List the CI/CD job token allowlist of a project"))
	handle(a, "POST "+at+"/allowlist", writeAPI, a.allowProject, summary("Add a project to a CI/CD job token allowlist"))
	handle(a, "DELETE "+at+"/allowlist/{target_project_id}", writeAPI, a.disallowProject, summary("Remove a project from a CI/CD job token allowlist"))
	handle(a, "GET "+at+"/groups_allowlist", readAPI, a.listAllowedGroups, summary("List the CI/CD job token allowlist of groups"))
	handle(a, "POST "+at+"/groups_allowlist", writeAPI, a.allowGroup, summary("Add a group to a CI/CD job token allowlist"))
	handle(a, "DELETE "+at+"/groups_allowlist/{target_group_id}", writeAPI, a.disallowGroup, summary("Remove a group from a CI/CD job token allowlist"))
}

type tokenScopeJSON struct {
	InboundEnabled  bool `json:"inbound_enabled"`
	OutboundEnabled bool `json:"outbound_enabled"`
}

// getTokenScope: https://docs.gitlab.com/api/project_job_token_scopes/#get-a-projects-cicd-job-token-access-settings
func (a *API) getTokenScope(c *call, p projectParams) (tokenScopeJSON, error) {
	s, err := a.CI.JobTokens.Scope(c, c.actor, p.Project)
	return tokenScopeJSON{s.Inbound, s.Outbound}, err
}

type tokenScopeParams struct {
	projectParams
	Enabled bool `param:"enabled,required" doc:"Whether access is limited to the projects and groups on the allowlist."`
}

// updateTokenScope: https://docs.gitlab.com/api/project_job_token_scopes/#patch-a-projects-cicd-job-token-access-settings
func (a *API) updateTokenScope(c *call, p tokenScopeParams) (none, error) {
	return none{}, a.CI.JobTokens.Limit(c, c.actor, p.Project, p.Enabled)
}

type allowlistParams struct {
	projectParams
	pageParams
}

// listAllowedProjects: https://docs.gitlab.com/api/project_job_token_scopes/#get-a-projects-cicd-job-token-inbound-allowlist
func (a *API) listAllowedProjects(c *call, p allowlistParams) (page[projectBasicJSON], error) {
	list, err := a.CI.JobTokens.AllowedProjects(c, c.actor, p.Project, p.paging())
	if err != nil {
		return page[projectBasicJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(p *project.Project) projectBasicJSON { return toProjectBasic(c.site, p) }), nil
}

type allowProjectParams struct {
	projectParams
	Target int64 `param:"target_project_id,required"`
}

type allowedProjectJSON struct {
	Source int64 `json:"source_project_id"`
	Target int64 `json:"target_project_id"`
}

// allowProject: https://docs.gitlab.com/api/project_job_token_scopes/#add-a-project-to-a-cicd-job-token-inbound-allowlist
func (a *API) allowProject(c *call, p allowProjectParams) (allowedProjectJSON, error) {
	source, err := a.CI.JobTokens.Allow(c, c.actor, p.Project, jobtoken.Allowed{ProjectID: p.Target})
	if err != nil {
		return allowedProjectJSON{}, err
	}
	return allowedProjectJSON{source.ID, p.Target}, nil
}

type disallowProjectParams struct {
	projectParams
	Target int64 `param:"target_project_id"`
}

// disallowProject: https://docs.gitlab.com/api/project_job_token_scopes/#remove-a-project-from-a-cicd-job-token-inbound-allowlist
func (a *API) disallowProject(c *call, p disallowProjectParams) (none, error) {
	return none{}, a.CI.JobTokens.Disallow(c, c.actor, p.Project, jobtoken.Allowed{ProjectID: p.Target})
}

// listAllowedGroups: https://docs.gitlab.com/api/project_job_token_scopes/#get-a-projects-cicd-job-token-allowlist-of-groups
func (a *API) listAllowedGroups(c *call, p allowlistParams) (page[runnerGroupJSON], error) {
	list, err := a.CI.JobTokens.AllowedGroups(c, c.actor, p.Project, p.paging())
	if err != nil {
		return page[runnerGroupJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(n *project.Namespace) runnerGroupJSON {
		return runnerGroupJSON{n.ID, namespaceURL(c.site, n), n.Name}
	}), nil
}

type allowGroupParams struct {
	projectParams
	Target int64 `param:"target_group_id,required"`
}

type allowedGroupJSON struct {
	Source int64 `json:"source_project_id"`
	Target int64 `json:"target_group_id"`
}

// allowGroup: https://docs.gitlab.com/api/project_job_token_scopes/#add-a-group-to-a-cicd-job-token-allowlist
func (a *API) allowGroup(c *call, p allowGroupParams) (allowedGroupJSON, error) {
	source, err := a.CI.JobTokens.Allow(c, c.actor, p.Project, jobtoken.Allowed{GroupID: p.Target})
	if err != nil {
		return allowedGroupJSON{}, err
	}
	return allowedGroupJSON{source.ID, p.Target}, nil
}

type disallowGroupParams struct {
	projectParams
	Target int64 `param:"target_group_id"`
}

// disallowGroup: https://docs.gitlab.com/api/project_job_token_scopes/#remove-a-group-from-a-cicd-job-token-allowlist
func (a *API) disallowGroup(c *call, p disallowGroupParams) (none, error) {
	return none{}, a.CI.JobTokens.Disallow(c, c.actor, p.Project, jobtoken.Allowed{GroupID: p.Target})
}
