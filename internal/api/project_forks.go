package api

import (
	"svc/internal/project"
	"svc/internal/repo"
)

func (a *API) projectForkRoutes() {
	a.tag("Project forks")
	shape := returns(projectJSON{})
	handle(a, "POST /projects/{id}/fork", writeAPI, a.forkProject, shape, summary("Fork a project"))
	handle(a, "POST /projects/{id}/fork/{forked_from_id}", writeAPI, a.relateFork, shape, summary("Create a fork relationship"))
	handle(a, "DELETE /projects/{id}/fork", writeAPI, a.unrelateFork, summary("Delete a fork relationship"))
}

type forkProjectParams struct {
	projectParams
	Name          string              `param:"name" doc:"Default is the value of the forked project."`
	Path          string              `param:"path" doc:"Default is the value of the forked project."`
	Description   *string             `param:"description"`
	Namespace     project.Ref         `param:"namespace" doc:"Namespace ID or path. Default is the namespace of the current user."`
	NamespaceID   int64               `param:"namespace_id"`
	NamespacePath project.Ref         `param:"namespace_path"`
	Visibility    *project.Visibility `param:"visibility" enum:"private,internal,public"`
	Branches      string              `param:"branches" doc:"Branches to fork: the name of the default branch, or empty for all."`
}

// forkProject: https://docs.gitlab.com/api/project_forks/#fork-a-project
func (a *API) forkProject(c *call, p forkProjectParams) (any, error) {
	into := p.Namespace
	if p.NamespacePath != "" {
		into = p.NamespacePath
	}
	if p.NamespaceID != 0 {
		into = project.RefTo(p.NamespaceID)
	}
	made, err := a.Repos.Fork(c, c.actor, p.Project, repo.NewFork{
		Name: p.Name, Path: p.Path, Description: p.Description, Namespace: into, Visibility: p.Visibility, OnlyBranch: p.Branches,
	})
	return a.presentProject(c, made, err)
}

type relateForkParams struct {
	projectParams
	From project.Ref `param:"forked_from_id"`
}

// relateFork: https://docs.gitlab.com/api/project_forks/#create-a-fork-relationship-between-projects
func (a *API) relateFork(c *call, p relateForkParams) (any, error) {
	made, _, err := a.Projects.SetOrigin(c, c.actor, p.Project, &p.From)
	return a.presentProject(c, made, err)
}

// unrelateFork: https://docs.gitlab.com/api/project_forks/#delete-a-fork-relationship-between-projects
func (a *API) unrelateFork(c *call, p projectParams) (none, error) {
	_, _, err := a.Projects.SetOrigin(c, c.actor, p.Project, nil)
	return none{}, err
}
