package api

import (
	"net/http"

	"svc/internal/ci"
	"svc/internal/merge"
)

func (a *API) mergeAcceptRoutes() {
	a.tag("Merge requests")
	const one = "/projects/{id}/merge_requests/{merge_request_iid}"
	handle(a, "PUT "+one+"/merge", writeAPI, a.acceptMergeRequest, notMergeable, summary("Merge a merge request"))
	handle(a, "POST "+one+"/cancel_merge_when_pipeline_succeeds", writeAPI, a.cancelAutoMerge, notMergeable, notAutoMerged, summary("Cancel auto-merge of a merge request"))
	handle(a, "PUT "+one+"/rebase", writeAPI, a.rebaseMergeRequest, status(http.StatusAccepted), notMergeable, summary("Rebase a merge request"))
	handle(a, "GET "+one+"/pipelines", readAPI.orAnonymous(), a.listMergePipelines, summary("List merge request pipelines"))
	handle(a, "POST "+one+"/pipelines", writeAPI, a.createMergePipeline, summary("Create a merge request pipeline"))
	handle(a, "GET "+one+"/merge_ref", readAPI.orAnonymous(), a.getMergeRef, summary("Merge to the default merge ref path"))
}

// notMergeable is the response if the merge request is not open or not mergeable.
var notMergeable = response(http.StatusMethodNotAllowed, "The state of the merge request does not allow this.", messagesJSON{})

// notAutoMerged is the response if the merge request is not set to auto-merge.
var notAutoMerged = response(http.StatusNotAcceptable, "The merge request is not set to auto-merge.", messagesJSON{})

type acceptMergeParams struct {
	mergeParams
	MergeMessage  string `param:"merge_commit_message"`
	SquashMessage string `param:"squash_commit_message"`
	RemoveSource  *bool  `param:"should_remove_source_branch"`
	WhenSucceeds  bool   `param:"merge_when_pipeline_succeeds" doc:"Deprecated: use auto_merge."`
	Auto          bool   `param:"auto_merge" doc:"Merge when the pipeline succeeds."`
	SHA           string `param:"sha" doc:"Required HEAD SHA of the source branch; the merge fails if it differs."`
	Squash        *bool  `param:"squash"`
}

// acceptMergeRequest: https://docs.gitlab.com/api/merge_requests/#merge-a-merge-request
func (a *API) acceptMergeRequest(c *call, p acceptMergeParams) (mergeDetailJSON, error) {
	m, err := a.Merges.Merge(c, c.actor, p.Project, p.Request, merge.Acceptance{
		SHA: p.SHA, MergeMessage: p.MergeMessage, SquashMessage: p.SquashMessage, Squash: p.Squash, RemoveSource: p.RemoveSource, Auto: p.Auto || p.WhenSucceeds,
	})
	return a.presentMerge(c, m, err)
}

type autoMergeJSON struct {
	Status string `json:"status"`
}

// cancelAutoMerge: https://docs.gitlab.com/api/merge_requests/#cancel-merge-when-pipeline-succeeds
func (a *API) cancelAutoMerge(c *call, p mergeParams) (autoMergeJSON, error) {
	_, err := a.Merges.CancelAuto(c, c.actor, p.Project, p.Request)
	return autoMergeJSON{"success"}, err
}

type rebaseMergeParams struct {
	mergeParams
	SkipCI bool `param:"skip_ci" doc:"Skip the creation of a pipeline."`
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
