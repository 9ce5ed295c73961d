package api

import (
	"time"

	"svc/internal/ci"
	"svc/internal/ci/deployment"
	"svc/internal/db"
	"svc/internal/git"
	"svc/internal/merge"
)

func (a *API) deploymentRoutes() {
	a.tag("Deployments")
	const all, one = "/projects/{id}/deployments", "/projects/{id}/deployments/{deployment_id}"
	handle(a, "GET "+all, readAPI.orAnonymous(), a.listDeployments, summary("List project deployments"))
	handle(a, "GET "+one, readAPI.orAnonymous(), a.getDeployment, summary("Get a deployment"))
	handle(a, "POST "+all, writeAPI, a.createDeployment, summary("Create a deployment"))
	handle(a, "PUT "+one, writeAPI, a.updateDeployment, summary("Update a deployment"))
	handle(a, "DELETE "+one, writeAPI, a.deleteDeployment, summary("Delete a deployment"))
	handle(a, "GET "+one+"/merge_requests", readAPI.orAnonymous(), a.listDeploymentMerges, returns([]mergeRequestJSON{}, []mergeSimpleJSON{}), summary("List merge requests associated with a deployment"))
	handle(a, "POST "+one+"/approval", writeAPI, a.decideDeployment, summary("Approve or reject a blocked deployment"))
}

type deploymentsParams struct {
	projectParams
	Environment    string     `param:"environment" doc:"Name of the environment to filter by."`
	Status         string     `param:"status" enum:"created,running,success,failed,canceled,skipped,blocked"`
	UpdatedAfter   *time.Time `param:"updated_after"`
	UpdatedBefore  *time.Time `param:"updated_before"`
	FinishedAfter  *time.Time `param:"finished_after"`
	FinishedBefore *time.Time `param:"finished_before"`
	OrderBy        string     `param:"order_by" enum:"id,iid,created_at,updated_at,finished_at,ref" default:"id"`
	Sort           string     `param:"sort" enum:"asc,desc" default:"asc"`
	pageParams
}

// listDeployments: https://docs.gitlab.com/api/deployments/#list-project-deployments
func (a *API) listDeployments(c *call, p deploymentsParams) (page[deploymentJSON], error) {
	list, err := a.CI.Deployments.List(c, c.actor, p.Project, deployment.Filter{
		Environment: p.Environment, Status: deployment.Status(p.Status), UpdatedAfter: p.UpdatedAfter, UpdatedBefore: p.UpdatedBefore,
		FinishedAfter: p.FinishedAfter, FinishedBefore: p.FinishedBefore, OrderBy: p.OrderBy, Desc: p.Sort == "desc",
	}, p.paging())
	if err != nil {
		return page[deploymentJSON]{}, err
	}
	jobs, err := a.CI.DeploymentJobs(c, c.actor, list.Items...)
	if err != nil {
		return page[deploymentJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(d *deployment.Deployment) deploymentJSON { return a.toDeployment(c, d, jobs) }), nil
}

type deploymentParams struct {
	projectParams
	Deployment int64 `param:"deployment_id"`
}

// getDeployment: https://docs.gitlab.com/api/deployments/#get-a-specific-deployment
func (a *API) getDeployment(c *call, p deploymentParams) (deploymentDetailJSON, error) {
	d, r, err := a.CI.Deployments.GetWithReview(c, c.actor, p.Project, p.Deployment)
	if err != nil {
		return deploymentDetailJSON{}, err
	}
	jobs, err := a.CI.DeploymentJobs(c, c.actor, d)
	out := deploymentDetailJSON{
		deploymentJSON: a.toDeployment(c, d, jobs), Pending: r.Pending(), Summary: approvalSummaryJSON{Rules: []deploymentRuleJSON{}},
		Approvals: mapped(r.Approvals, func(x *deployment.Approval) deploymentApprovalJSON { return a.toDeploymentApproval(c, x) }),
	}
	for _, rule := range r.Rules {
		one := deploymentRuleJSON{Required: rule.Required, Approvals: mapped(rule.Approvals, func(x *deployment.Approval) deploymentApprovalJSON { return a.toDeploymentApproval(c, x) })}
		if rule.EnvironmentRule != nil {
			one.deployRuleJSON = toDeployRule(rule.EnvironmentRule)
		}
		out.Summary.Rules = append(out.Summary.Rules, one)
	}
	return out, err
}

type deploymentMergeParams struct {
	deploymentParams
	listMergeParams
}

// listDeploymentMerges: https://docs.gitlab.com/api/deployments/#list-of-merge-requests-associated-with-a-deployment
func (a *API) listDeploymentMerges(c *call, p deploymentMergeParams) (any, error) {
	changes, err := a.CI.Deployments.Changes(c, c.actor, p.Project, p.Deployment)
	if err != nil {
		return nil, err
	}
	if changes == nil {
		return a.presentMerges(c, &p.listMergeParams, db.Page[*merge.MergeRequest]{}, nil)
	}
	list, err := a.Merges.Deployed(c, c.actor, p.Project, changes.Ref, git.OID(changes.Before), git.OID(changes.SHA), p.filter(""), p.order(), p.paging())
	return a.presentMerges(c, &p.listMergeParams, list, err)
}

// deploymentDetailJSON is a deployment with its approvals.
type deploymentDetailJSON struct {
	deploymentJSON
	Pending   int64                    `json:"pending_approval_count"`
	Approvals []deploymentApprovalJSON `json:"approvals"`
	Summary   approvalSummaryJSON      `json:"approval_summary"`
}

type approvalSummaryJSON struct {
	Rules []deploymentRuleJSON `json:"rules"`
}

// deploymentRuleJSON is an approval rule with its approvals.
type deploymentRuleJSON struct {
	deployRuleJSON
	Required  int64                    `json:"required_approvals"`
	Approvals []deploymentApprovalJSON `json:"deployment_approvals"`
}

type createDeploymentParams struct {
	projectParams
	Environment string `param:"environment,required" doc:"Name of the environment. It is created if it does not exist."`
	SHA         string `param:"sha,required" doc:"SHA of the deployed commit."`
	Ref         string `param:"ref,required" doc:"Branch or tag of the deployment."`
	Tag         bool   `param:"tag,required" doc:"Whether the ref is a tag."`
	Status      string `param:"status,required" enum:"running,success,failed,canceled"`
}

// createDeployment: https://docs.gitlab.com/api/deployments/#create-a-deployment
func (a *API) createDeployment(c *call, p createDeploymentParams) (deploymentJSON, error) {
	return a.presentDeployment(c)(a.CI.Deployments.Create(c, c.actor, p.Project, deployment.NewDeployment{
		Environment: p.Environment, SHA: p.SHA, Ref: p.Ref, Tag: p.Tag, Status: deployment.Status(p.Status),
	}))
}

type updateDeploymentParams struct {
	deploymentParams
	Status string `param:"status,required" enum:"running,success,failed,canceled"`
}

// updateDeployment: https://docs.gitlab.com/api/deployments/#update-a-deployment
func (a *API) updateDeployment(c *call, p updateDeploymentParams) (deploymentJSON, error) {
	return a.presentDeployment(c)(a.CI.Deployments.Update(c, c.actor, p.Project, p.Deployment, deployment.Status(p.Status)))
}

// deleteDeployment: https://docs.gitlab.com/api/deployments/#delete-a-specific-deployment
func (a *API) deleteDeployment(c *call, p deploymentParams) (none, error) {
	return none{}, a.CI.Deployments.Delete(c, c.actor, p.Project, p.Deployment)
}

type deploymentJSON struct {
	ID          int64           `json:"id"`
	IID         int64           `json:"iid"`
	Ref         string          `json:"ref"`
	SHA         string          `json:"sha"`
	CreatedAt   stamp           `json:"created_at"`
	UpdatedAt   stamp           `json:"updated_at"`
	Status      string          `json:"status"`
	User        *userPublicJSON `json:"user"`
	Environment environmentJSON `json:"environment"`
	Deployable  *jobJSON        `json:"deployable"`
}

// presentDeployment returns the representation of a deployment that was created with
// the API. Such a deployment has no job.
func (a *API) presentDeployment(c *call) func(*deployment.Deployment, error) (deploymentJSON, error) {
	return func(d *deployment.Deployment, err error) (deploymentJSON, error) {
		if err != nil {
			return deploymentJSON{}, err
		}
		return a.toDeployment(c, d, nil), nil
	}
}

func (a *API) toDeployment(c *call, d *deployment.Deployment, jobs map[int64]*ci.Job) deploymentJSON {
	out := deploymentJSON{
		ID: d.ID, IID: d.IID, Ref: d.Ref, SHA: d.SHA, CreatedAt: toStamp(d.CreatedAt), UpdatedAt: toStamp(d.UpdatedAt), Status: string(d.Status),
		Environment: toEnvironment(d.Environment),
	}
	if d.User != nil {
		u := toUserPublic(c.site, d.User, a.Now())
		out.User = &u
	}
	if d.JobID != nil && jobs[*d.JobID] != nil {
		job := a.toJob(c, jobs[*d.JobID])
		out.Deployable = &job
	}
	return out
}
