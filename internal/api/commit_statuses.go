package api

import (
	"strconv"

	"svc/internal/ci"
	"svc/internal/ci/flow"
)

func (a *API) commitStatusRoutes() {
	handle(a, "GET /projects/{id}/repository/commits/{sha}/statuses", readAPI.orNobody(), a.listCommitStatuses, does("List the statuses of a commit"))
	handle(a, "POST /projects/{id}/statuses/{sha}", writeAPI, a.setCommitStatus, does("Set a status of a commit"))
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
	form := commitStatusJSON{
		ID: of.ID, SHA: of.SHA, Ref: of.Ref, Status: string(of.State), PipelineID: of.PipelineID, Name: of.Name, TargetURL: textOrNull(target), Description: textOrNull(of.Description),
		CreatedAt: toStamp(of.CreatedAt), StartedAt: toStampOrNull(of.StartedAt), FinishedAt: toStampOrNull(of.FinishedAt),
		AllowFailure: of.AllowFailure, Coverage: of.Coverage,
	}
	if of.Author != nil {
		author := toUserPublic(c.site, of.Author, a.Now())
		form.Author = &author
	}
	return form
}

type commitStatusesParams struct {
	commitParams
	Ref     string `param:"ref" doc:"Only those of this branch or tag."`
	Name    string `param:"name" doc:"Only those of this name."`
	Stage   string `param:"stage" doc:"Only those of this stage; external is that of programs from outside."`
	All     bool   `param:"all" doc:"Also those that were replaced."`
	Of      int64  `param:"pipeline_id" doc:"Only those of this pipeline."`
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
	Ref         string   `param:"ref" max:"255" doc:"The branch or tag that it is about; the first branch that has the commit unless given."`
	Name        string   `param:"name" aliases:"context" max:"255" doc:"What tells it from others; default unless given."`
	TargetURL   *string  `param:"target_url" max:"255"`
	Description *string  `param:"description" max:"255"`
	Coverage    *float64 `param:"coverage"`
	Pipeline    int64    `param:"pipeline_id" doc:"The pipeline that it belongs to; the newest of the commit unless given."`
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
