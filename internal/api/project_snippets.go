package api

import "svc/internal/project"

func (a *API) projectSnippetRoutes() {
	a.tag("Project snippets")
	read := readAPI.orAnonymous()
	const list, one = "/projects/{id}/snippets", "/projects/{id}/snippets/{snippet_id}"
	handle(a, "GET "+list, read, a.listProjectSnippets, summary("List project snippets"))
	handle(a, "POST "+list, writeAPI, a.createProjectSnippet, large, summary("Create a project snippet"))
	handle(a, "GET "+one, read, getSnippet[projectSnippetParams](a), summary("Get a project snippet"))
	handle(a, "PUT "+one, writeAPI, a.updateProjectSnippet, large, summary("Update a project snippet"))
	handle(a, "DELETE "+one, writeAPI, deleteSnippet[projectSnippetParams](a), summary("Delete a project snippet"))
	handle(a, "GET "+one+"/raw", read, getRawSnippet[projectSnippetParams](a), summary("Get project snippet content"))
	handle(a, "GET "+one+"/files/{ref}/{file_path}/raw", read, getSnippetFile[projectSnippetFileParams](a), summary("Get project snippet file content"))
	handle(a, "GET "+one+"/user_agent_detail", readAPI, getSnippetAgent[projectSnippetParams](a), summary("Get user agent details of a project snippet"))
}

type projectSnippetParams struct {
	projectParams
	Snippet int64 `param:"snippet_id"`
}

func (p projectSnippetParams) at() (*project.Ref, int64) { return &p.Project, p.Snippet }

type projectSnippetFileParams struct {
	projectSnippetParams
	snippetVersionParams
}

type projectSnippetsParams struct {
	projectParams
	snippetsParams
}

// listProjectSnippets: https://docs.gitlab.com/api/project_snippets/#list-snippets
func (a *API) listProjectSnippets(c *call, p projectSnippetsParams) (page[snippetJSON], error) {
	list, err := a.Snippets.OfProject(c, c.actor, p.Project, p.filter(), p.paging())
	return a.presentSnippets(c, p.pageParams, list, err)
}

type createProjectSnippetParams struct {
	projectParams
	newSnippetParams
}

// createProjectSnippet: https://docs.gitlab.com/api/project_snippets/#create-new-snippet
func (a *API) createProjectSnippet(c *call, p createProjectSnippetParams) (snippetJSON, error) {
	s, err := a.Snippets.Create(c, c.actor, &p.Project, p.fields(c))
	return a.presentSnippet(c, s, err)
}

type updateProjectSnippetParams struct {
	projectSnippetParams
	changeSnippetParams
}

// updateProjectSnippet: https://docs.gitlab.com/api/project_snippets/#update-snippet
func (a *API) updateProjectSnippet(c *call, p updateProjectSnippetParams) (snippetJSON, error) {
	s, err := a.Snippets.Update(c, c.actor, &p.Project, p.Snippet, p.fields(), c.unmodifiedSince())
	return a.presentSnippet(c, s, err)
}
