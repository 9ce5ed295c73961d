package api

import (
	"net/http"

	"svc/internal/db"
	"svc/internal/merge"
)

func (a *API) mergeDependencyRoutes() {
	a.tag("Merge requests")
	const one = "/projects/{id}/merge_requests/{merge_request_iid}"
	handle(a, "GET "+one+"/blocks", readAPI.orAnonymous(), a.listMergeDependencies, summary("List merge request dependencies"))
	handle(a, "POST "+one+"/blocks", writeAPI, a.createMergeDependency, dependencyExists, summary("Create a merge request dependency"))
	handle(a, "GET "+one+"/blocks/{block_id}", readAPI.orAnonymous(), a.getMergeDependency, summary("Get a merge request dependency"))
	handle(a, "DELETE "+one+"/blocks/{block_id}", writeAPI, a.deleteMergeDependency, summary("Delete a merge request dependency"))
	handle(a, "GET "+one+"/blockees", readAPI.orAnonymous(), a.listMergeDependents, summary("List merge requests blocked by a merge request"))
}

var dependencyExists = response(http.StatusConflict, "The merge request has this dependency already.", messagesJSON{})

// dependencyJSON is a dependency of a merge request. Merge requests that the
// caller cannot see are left out.
type dependencyJSON struct {
	ID       int64                `json:"id"`
	Blocking *dependencyMergeJSON `json:"blocking_merge_request,omitempty"`
	Blocked  *dependencyMergeJSON `json:"blocked_merge_request,omitempty"`
	// ProjectID is the project of the blocking merge request.
	ProjectID *int64 `json:"project_id"`
}

// dependencyMergeJSON is one of the merge requests of a dependency.
type dependencyMergeJSON struct {
	mergeRequestJSON
	AutoMerge bool `json:"auto_merge"`
}

func (a *API) toDependency(c *call, d *merge.Dependency) dependencyJSON {
	out := dependencyJSON{ID: d.ID, Blocking: a.toDependencyMerge(c, d.Blocking), Blocked: a.toDependencyMerge(c, d.Blocked)}
	if d.Blocking != nil {
		out.ProjectID = &d.Blocking.ProjectID
	}
	return out
}

func (a *API) toDependencyMerge(c *call, m *merge.MergeRequest) *dependencyMergeJSON {
	if m == nil {
		return nil
	}
	return &dependencyMergeJSON{toMergeRequest(c.site, m, false, a.Now()), m.AutoMergeByID != nil}
}

func (a *API) presentDependencies(c *call, p mergePageParams, list []*merge.Dependency, err error) (page[dependencyJSON], error) {
	if err != nil {
		return page[dependencyJSON]{}, err
	}
	return offsetPage(p.pageParams, db.SlicePage(list, p.paging()), func(d *merge.Dependency) dependencyJSON { return a.toDependency(c, d) }), nil
}

// listMergeDependencies: https://docs.gitlab.com/api/merge_requests/#get-merge-request-dependencies
func (a *API) listMergeDependencies(c *call, p mergePageParams) (page[dependencyJSON], error) {
	list, err := a.Merges.Dependencies(c, c.actor, p.Project, p.Request)
	return a.presentDependencies(c, p, list, err)
}

// listMergeDependents: https://docs.gitlab.com/api/merge_requests/#get-merge-request-blocked-mrs
func (a *API) listMergeDependents(c *call, p mergePageParams) (page[dependencyJSON], error) {
	list, err := a.Merges.Dependents(c, c.actor, p.Project, p.Request)
	return a.presentDependencies(c, p, list, err)
}

type createDependencyParams struct {
	mergeParams
	Blocking int64 `param:"blocking_merge_request_id,required" doc:"ID of the merge request that must be merged first; not its IID."`
}

// createMergeDependency: https://docs.gitlab.com/api/merge_requests/#create-a-merge-request-dependency
func (a *API) createMergeDependency(c *call, p createDependencyParams) (dependencyJSON, error) {
	d, err := a.Merges.AddDependency(c, c.actor, p.Project, p.Request, p.Blocking)
	if err != nil {
		return dependencyJSON{}, err
	}
	return a.toDependency(c, d), nil
}

type dependencyParams struct {
	mergeParams
	Block int64 `param:"block_id" doc:"ID of the dependency."`
}

// getMergeDependency: https://docs.gitlab.com/api/merge_requests/#get-merge-request-dependencies
func (a *API) getMergeDependency(c *call, p dependencyParams) (dependencyJSON, error) {
	d, err := a.Merges.Dependency(c, c.actor, p.Project, p.Request, p.Block)
	if err != nil {
		return dependencyJSON{}, err
	}
	return a.toDependency(c, d), nil
}

// deleteMergeDependency: https://docs.gitlab.com/api/merge_requests/#delete-a-merge-request-dependency
func (a *API) deleteMergeDependency(c *call, p dependencyParams) (none, error) {
	return none{}, a.Merges.DeleteDependency(c, c.actor, p.Project, p.Request, p.Block)
}
