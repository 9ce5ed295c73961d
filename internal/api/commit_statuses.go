package api

import (
	"strconv"

	"svc/internal/ci"
	"svc/internal/ci/flow"
)

func (a *API) commitStatusRoutes() {
	a.tag("Commit statuses")
	handle(a, "GET /projects/{id}/repository/commits/{sha}/statuses", readAPI.orAnonymous(), a.listCommitStatuses, summary("List commit statuses"))
	handle(a, "POST /projects/{id}/statuses/{sha}", writeAPI, a.setCommitStatus, summary("Set the pipeline status of a commit"))
}

type commitStatusJSON struct {
	ID           int64           `json:"id"`
	SHA          string          `json:"sha"`
	Ref          string          `json:"ref"`
	Status       string          `json:"status"`
	Name         string          `json:"name"`
	TargetURL    *string         `json:"target_url"`
	Description  *string         `json:"description"`
	CreatedAt    stamp           `json:"created_at"`
	StartedAt    *stamp          `json:"started_at"`
	FinishedAt   *stamp          `json:"finished_at"`
	AllowFailure bool            `json:"allow_failure"`
	Coverage     *float64        `json:"coverage"`
	PipelineID   int64           `json:"pipeline_id"`
	Author       *userPublicJSON `json:"author"`
}

func (a *API) toCommitStatus(c *call, path string, of *ci.CommitStatus) commitStatusJSON {
	target := of.TargetURL
	if of.Job {
		target = a.Site.URL + "/" + path + "/-/jobs/" + strconv.FormatInt(of.ID, 10)
	}
	out := commitStatusJSON{
		ID: of.ID, SHA: of.SHA, Ref: of.Ref, Status: string(of.State), PipelineID: of.PipelineID, Name: of.Name, TargetURL: textOrNull(target), Description: textOrNull(of.Description),
		CreatedAt: toStamp(of.CreatedAt), StartedAt: toStampOrNull(of.StartedAt), FinishedAt: toStampOrNull(of.FinishedAt),
		AllowFailure: of.AllowFailure, Coverage: of.Coverage,
	}
	if of.Author != nil {
		author := toUserPublic(c.site, of.Author, a.Now())
		out.Author = &author
	}
	return out
}

type commitStatusesParams struct {
	commitParams
	Ref     string `param:"ref" doc:"Branch or tag to filter by."`
	Name    string `param:"name" doc:"Job name to filter by."`
	Stage   string `param:"stage" doc:"Stage to filter by; external for statuses that external services set."`
	All     bool   `param:"all" doc:"Include statuses that were replaced by newer ones."`
	Of      int64  `param:"pipeline_id" doc:"Pipeline ID to filter by."`
	OrderBy string `param:"order_by" enum:"id,pipeline_id" default:"id"`
	Sort    string `param:"sort" enum:"asc,desc" default:"asc"`
	pageParams
}

// listCommitStatuses: https://docs.gitlab.com/api/commits/#list-all-commit-statuses
func (a *API) listCommitStatuses(c *call, p commitStatusesParams) (page[commitStatusJSON], error) {
	f := ci.StatusFilter{
		Ref: p.Ref, Stage: p.Stage, Name: p.Name, PipelineID: p.Of, All: p.All, ByPipeline: p.OrderBy == "pipeline_id", Desc: p.Sort == "desc",
	}
	in, list, err := a.CI.Statuses(c, c.actor, p.Project, p.SHA, f, p.paging())
	if err != nil {
		return page[commitStatusJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(one *ci.CommitStatus) commitStatusJSON { return a.toCommitStatus(c, in.FullPath, one) }), nil
}

type setCommitStatusParams struct {
	commitParams
	State       string   `param:"state,required" enum:"pending,running,success,failed,canceled,skipped"`
	Ref         string   `param:"ref" max:"255" doc:"Branch or tag of the status. Default is the first branch that contains the commit."`
	Name        string   `param:"name" aliases:"context" max:"255" doc:"Name that distinguishes this status from others. Default is default."`
	TargetURL   *string  `param:"target_url" max:"255"`
	Description *string  `param:"description" max:"255"`
	Coverage    *float64 `param:"coverage"`
	Pipeline    int64    `param:"pipeline_id" doc:"ID of the pipeline. Default is the latest pipeline of the commit."`
}

// setCommitStatus: https://docs.gitlab.com/api/commits/#set-commit-pipeline-status
func (a *API) setCommitStatus(c *call, p setCommitStatusParams) (commitStatusJSON, error) {
	set, err := a.CI.SetStatus(c, c.actor, p.Project, p.SHA, ci.NewStatus{
		State: flow.Status(p.State), Ref: p.Ref, Name: p.Name, PipelineID: p.Pipeline, TargetURL: p.TargetURL, Description: p.Description, Coverage: p.Coverage,
	})
	if err != nil {
		return commitStatusJSON{}, err
	}
	return a.toCommitStatus(c, "", set), nil
}
