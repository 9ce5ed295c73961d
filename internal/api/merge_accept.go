package api

import (
	"net/http"

	"svc/internal/ci"
	"svc/internal/merge"
)

func (a *API) mergeAcceptRoutes() {
	const one = "/projects/{id}/merge_requests/{merge_request_iid}"
	handle(a, "PUT "+one+"/merge", writeAPI, a.acceptMergeRequest, unready, does("Merge a merge request"))
	handle(a, "POST "+one+"/cancel_merge_when_pipeline_succeeds", writeAPI, a.cancelAutoMerge, unready, does("Do not merge a merge request when its pipeline succeeds"))
	handle(a, "PUT "+one+"/rebase", writeAPI, a.rebaseMergeRequest, status(http.StatusAccepted), unready, does("Rebase the source branch of a merge request"))
	handle(a, "GET "+one+"/pipelines", readAPI.orNobody(), a.listMergePipelines, does("List the pipelines of a merge request"))
	handle(a, "POST "+one+"/pipelines", writeAPI, a.createMergePipeline, does("Create a pipeline of a merge request"))
	handle(a, "GET "+one+"/merge_ref", readAPI.orNobody(), a.getMergeRef, does("Merge a merge request into a ref of its own"))
}

// unready is what the endpoints answer that need an open request.
var unready = also(http.StatusMethodNotAllowed, "The merge request is in no state for this.", sayingsJSON{})

type acceptMergeParams struct {
	mergeParams
	MergeMessage  string `param:"merge_commit_message"`
	SquashMessage string `param:"squash_commit_message"`
	RemoveSource  *bool  `param:"should_remove_source_branch"`
	WhenSucceeds  bool   `param:"merge_when_pipeline_succeeds" doc:"Deprecated: auto_merge."`
	Auto          bool   `param:"auto_merge" doc:"Merge when the pipeline has succeeded."`
	SHA           string `param:"sha" doc:"Which the head of the source must be."`
	Squash        *bool  `param:"squash"`
}

// acceptMergeRequest: https://docs.gitlab.com/api/merge_requests/#merge-a-merge-request
func (a *API) acceptMergeRequest(c *call, p acceptMergeParams) (mergeDetailJSON, error) {
	m, err := a.Merges.Merge(c, c.actor, p.Project, p.Request, merge.Acceptance{
		SHA: p.SHA, MergeMessage: p.MergeMessage, SquashMessage: p.SquashMessage, Squash: p.Squash, RemoveSource: p.RemoveSource, Auto: p.Auto || p.WhenSucceeds,
	})
	return a.presentMerge(c, m, err)
}

// cancelAutoMerge: https://docs.gitlab.com/api/merge_requests/#cancel-merge-when-pipeline-succeeds
func (a *API) cancelAutoMerge(c *call, p mergeParams) (mergeDetailJSON, error) {
	m, err := a.Merges.CancelAuto(c, c.actor, p.Project, p.Request)
	return a.presentMerge(c, m, err)
}

type rebaseMergeParams struct {
	mergeParams
	SkipCI bool `param:"skip_ci" doc:"Make no pipeline of what is pushed."`
}

type rebaseJSON struct {
	InProgress bool `json:"rebase_in_progress"`
}

// rebaseMergeRequest: https://docs.gitlab.com/api/merge_requests/#rebase-a-merge-request
func (a *API) rebaseMergeRequest(c *call, p rebaseMergeParams) (rebaseJSON, error) {
	return rebaseJSON{true}, a.Merges.Rebase(c, c.actor, p.Project, p.Request, p.SkipCI)
}

type mergeRefJSON struct {
	Commit string `json:"commit_id"`
}

// getMergeRef: https://docs.gitlab.com/api/merge_requests/#merge-to-default-merge-ref-path
func (a *API) getMergeRef(c *call, p mergeParams) (mergeRefJSON, error) {
	id, err := a.Merges.MergeRef(c, c.actor, p.Project, p.Request)
	return mergeRefJSON{id}, err
}

// listMergePipelines: https://docs.gitlab.com/api/merge_requests/#list-merge-request-pipelines
func (a *API) listMergePipelines(c *call, p mergePageParams) (page[pipelineJSON], error) {
	in, list, err := a.CI.RequestPipelines(c, c.actor, p.Project, p.Request, p.paging())
	if err != nil {
		return page[pipelineJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(of *ci.Pipeline) pipelineJSON { return a.toPipeline(in[of.ProjectID].FullPath, of) }), nil
}

// createMergePipeline: https://docs.gitlab.com/api/merge_requests/#create-merge-request-pipeline
func (a *API) createMergePipeline(c *call, p mergeParams) (pipelineDetailJSON, error) {
	in, made, err := a.CI.CreateRequestPipeline(c, c.actor, p.Project, p.Request)
	return a.presentPipeline(c, in, made, err)
}
