package api

import (
	"svc/internal/bind"
	"svc/internal/git"
	"svc/internal/repo"
)

func (a *API) submoduleRoutes() {
	a.tag("Repository submodules")
	handle(a, "PUT /projects/{id}/repository/submodules/{submodule}", writeAPI, a.updateSubmodule, summary("Update a submodule reference"))
}

type updateSubmoduleParams struct {
	projectParams
	Submodule string `param:"submodule" doc:"Path of the submodule."`
	Branch    string `param:"branch,required"`
	CommitSHA string `param:"commit_sha,required" doc:"Full commit ID."`
	Message   string `param:"commit_message" doc:"Commit message. By default it names the submodule and the commit."`
}

// updateSubmodule: https://docs.gitlab.com/api/repository_submodules/#update-a-submodule-reference
func (a *API) updateSubmodule(c *call, p updateSubmoduleParams) (commitDetailJSON, error) {
	commit, ok := git.ParseOID(p.CommitSHA)
	if !ok || commit == git.ZeroOID {
		return commitDetailJSON{}, bind.Invalid("commit_sha is invalid")
	}
	in, made, err := a.Repos.UpdateSubmodule(c, c.actor, p.Project, repo.SubmoduleUpdate{
		Branch: p.Branch, Path: p.Submodule, Commit: commit, Message: p.Message,
	})
	return a.presentCommit(c, in, made, err)
}
