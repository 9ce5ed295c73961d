package api

import "svc/internal/project"

func (a *API) projectAliasRoutes() {
	a.tag("Project aliases")
	const all, one = "/project_aliases", "/project_aliases/{name}"
	handle(a, "GET "+all, readAPI, a.listProjectAliases, tier(Premium), summary("List all project aliases"))
	handle(a, "GET "+one, readAPI, a.getProjectAlias, tier(Premium), summary("Get a project alias"))
	handle(a, "POST "+all, writeAPI, a.createProjectAlias, tier(Premium), summary("Create a project alias"))
	handle(a, "DELETE "+one, writeAPI, a.deleteProjectAlias, tier(Premium), summary("Delete a project alias"))
}

type projectAliasJSON struct {
	ID        int64  `json:"id"`
	ProjectID int64  `json:"project_id"`
	Name      string `json:"name"`
}

func toProjectAlias(a *project.Alias) projectAliasJSON {
	return projectAliasJSON{a.ID, a.ProjectID, a.Name}
}

// listProjectAliases: https://docs.gitlab.com/api/project_aliases/#list-all-project-aliases
func (a *API) listProjectAliases(c *call, p pageParams) (page[projectAliasJSON], error) {
	list, err := a.Projects.Aliases(c, c.actor, p.paging())
	if err != nil {
		return page[projectAliasJSON]{}, err
	}
	return offsetPage(p, list, toProjectAlias), nil
}

type projectAliasParams struct {
	Name string `param:"name" doc:"Name of the alias."`
}

// getProjectAlias: https://docs.gitlab.com/api/project_aliases/#get-project-alias-details
func (a *API) getProjectAlias(c *call, p projectAliasParams) (projectAliasJSON, error) {
	found, err := a.Projects.Alias(c, c.actor, p.Name)
	if err != nil {
		return projectAliasJSON{}, err
	}
	return toProjectAlias(found), nil
}

type createProjectAliasParams struct {
	Project project.Ref `param:"project_id,required" doc:"ID or full path of the project."`
	Name    string      `param:"name,required" doc:"Name of the alias; unique in the instance."`
}

// createProjectAlias: https://docs.gitlab.com/api/project_aliases/#create-a-project-alias
func (a *API) createProjectAlias(c *call, p createProjectAliasParams) (projectAliasJSON, error) {
	made, err := a.Projects.CreateAlias(c, c.actor, p.Project, p.Name)
	if err != nil {
		return projectAliasJSON{}, err
	}
	return toProjectAlias(made), nil
}

// deleteProjectAlias: https://docs.gitlab.com/api/project_aliases/#delete-a-project-alias
func (a *API) deleteProjectAlias(c *call, p projectAliasParams) (none, error) {
	return none{}, a.Projects.DeleteAlias(c, c.actor, p.Name)
}
