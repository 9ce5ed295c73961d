package api

import (
	"svc/internal/repo"
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
	PipelineID   *int64          `json:"pipeline_id"` // there are no pipelines
	Author       *userPublicJSON `json:"author"`
}

func (a *API) toCommitStatus(c *call, of *repo.Status) commitStatusJSON {
	form := commitStatusJSON{
		ID: of.ID, SHA: of.SHA, Ref: of.Ref, Status: of.State, Name: of.Name, TargetURL: textOrNull(of.TargetURL), Description: textOrNull(of.Description),
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
	All     bool   `param:"all" doc:"Also those that were replaced."`
	OrderBy string `param:"order_by" enum:"id,pipeline_id" default:"id"`
	Sort    string `param:"sort" enum:"asc,desc" default:"asc"`
	pageParams
}

// listCommitStatuses: https://docs.gitlab.com/api/commits/#list-all-commit-statuses
func (a *API) listCommitStatuses(c *call, p commitStatusesParams) (page[commitStatusJSON], error) {
	f := repo.StatusFilter{Ref: p.Ref, Name: p.Name, All: p.All, Desc: p.Sort == "desc"}
	list, err := a.Repos.Statuses(c, c.actor, p.Project, p.SHA, f, p.paging())
	if err != nil {
		return page[commitStatusJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(one *repo.Status) commitStatusJSON { return a.toCommitStatus(c, one) }), nil
}

type setCommitStatusParams struct {
	commitParams
	State       string   `param:"state,required" enum:"pending,running,success,failed,canceled,skipped"`
	Ref         string   `param:"ref" max:"255" doc:"The branch or tag that it is about; the first branch that has the commit unless given."`
	Name        string   `param:"name" aliases:"context" max:"255" doc:"What tells it from others; default unless given."`
	TargetURL   *string  `param:"target_url" max:"255"`
	Description *string  `param:"description" max:"255"`
	Coverage    *float64 `param:"coverage"`
}

// setCommitStatus: https://docs.gitlab.com/api/commits/#set-commit-pipeline-status
func (a *API) setCommitStatus(c *call, p setCommitStatusParams) (commitStatusJSON, error) {
	set, err := a.Repos.SetStatus(c, c.actor, p.Project, p.SHA, repo.NewStatus{
		State: p.State, Ref: p.Ref, Name: p.Name, TargetURL: p.TargetURL, Description: p.Description, Coverage: p.Coverage,
	})
	if err != nil {
		return commitStatusJSON{}, err
	}
	return a.toCommitStatus(c, set), nil
}
