package api

import "svc/internal/git"

func (a *API) mergeContextRoutes() {
	a.tag("Merge request context commits")
	const at = "/projects/{id}/merge_requests/{merge_request_iid}/context_commits"
	handle(a, "GET "+at, readAPI.orAnonymous(), a.listContextCommits, summary("List merge request context commits"))
	handle(a, "POST "+at, writeAPI, a.createContextCommits, summary("Create merge request context commits"))
	handle(a, "DELETE "+at, writeAPI, a.deleteContextCommits, summary("Delete merge request context commits"))
}

// listContextCommits: https://docs.gitlab.com/api/merge_request_context_commits/#list-mr-context-commits
func (a *API) listContextCommits(c *call, p mergeParams) ([]commitJSON, error) {
	in, list, err := a.Merges.ContextCommits(c, c.actor, p.Project, p.Request)
	if err != nil {
		return nil, err
	}
	return mapped(list, func(of *git.Commit) commitJSON { return toCommit(c, in, of) }), nil
}

type contextCommitParams struct {
	mergeParams
	Commits []string `param:"commits,required,csv" max:"100" doc:"Commit SHAs."`
}

// createContextCommits: https://docs.gitlab.com/api/merge_request_context_commits/#create-mr-context-commits
func (a *API) createContextCommits(c *call, p contextCommitParams) ([]commitJSON, error) {
	in, list, err := a.Merges.AddContextCommits(c, c.actor, p.Project, p.Request, p.Commits)
	if err != nil {
		return nil, err
	}
	return mapped(list, func(of *git.Commit) commitJSON { return toCommit(c, in, of) }), nil
}

// deleteContextCommits: https://docs.gitlab.com/api/merge_request_context_commits/#delete-mr-context-commits
func (a *API) deleteContextCommits(c *call, p contextCommitParams) (none, error) {
	return none{}, a.Merges.DeleteContextCommits(c, c.actor, p.Project, p.Request, p.Commits)
}
