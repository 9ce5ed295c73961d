package api

import (
	"svc/internal/ci/deployment"
)

func (a *API) resourceGroupRoutes() {
	a.tag("Resource groups")
	handle(a, "GET /projects/{id}/resource_groups", readAPI, a.listResourceGroups, summary("List resource groups"))
	handle(a, "GET /projects/{id}/resource_groups/{key}", readAPI, a.getResourceGroup, summary("Get a resource group"))
	handle(a, "GET /projects/{id}/resource_groups/{key}/upcoming_jobs", readAPI, a.listUpcomingJobs, summary("List upcoming jobs of a resource group"))
	handle(a, "GET /projects/{id}/resource_groups/{key}/current_job", readAPI, a.getCurrentJob, summary("Get the current job of a resource group"))
	handle(a, "PUT /projects/{id}/resource_groups/{key}", writeAPI, a.updateResourceGroup, summary("Update a resource group"))
}

type resourceGroupsParams struct {
	projectParams
	pageParams
}

// listResourceGroups: https://docs.gitlab.com/api/resource_groups/#get-all-resource-groups-for-a-project
func (a *API) listResourceGroups(c *call, p resourceGroupsParams) (page[resourceGroupJSON], error) {
	return offsetList(p.pageParams, toResourceGroup)(a.CI.Deployments.ResourceGroups(c, c.actor, p.Project, p.paging()))
}

type resourceGroupParams struct {
	projectParams
	Key string `param:"key"`
}

// getResourceGroup: https://docs.gitlab.com/api/resource_groups/#get-a-specific-resource-group
func (a *API) getResourceGroup(c *call, p resourceGroupParams) (resourceGroupJSON, error) {
	return presentAs(toResourceGroup)(a.CI.Deployments.ResourceGroup(c, c.actor, p.Project, p.Key))
}

type upcomingJobsParams struct {
	resourceGroupParams
	pageParams
}

// listUpcomingJobs: https://docs.gitlab.com/api/resource_groups/#list-upcoming-jobs-for-a-specific-resource-group
func (a *API) listUpcomingJobs(c *call, p upcomingJobsParams) (page[jobJSON], error) {
	return offsetList(p.pageParams, a.jobForm(c))(a.CI.UpcomingJobs(c, c.actor, p.Project, p.Key, p.paging()))
}

// getCurrentJob: https://docs.gitlab.com/api/resource_groups/#get-the-current-job-for-a-specific-resource-group
func (a *API) getCurrentJob(c *call, p resourceGroupParams) (jobJSON, error) {
	return a.presentJob(c)(a.CI.GroupJob(c, c.actor, p.Project, p.Key))
}

type updateResourceGroupParams struct {
	resourceGroupParams
	Mode string `param:"process_mode,required" enum:"unordered,oldest_first,newest_first,newest_ready_first"`
}

// updateResourceGroup: https://docs.gitlab.com/api/resource_groups/#edit-an-existing-resource-group
func (a *API) updateResourceGroup(c *call, p updateResourceGroupParams) (resourceGroupJSON, error) {
	return presentAs(toResourceGroup)(a.CI.Deployments.SetProcessMode(c, c.actor, p.Project, p.Key, deployment.ProcessMode(p.Mode)))
}

type resourceGroupJSON struct {
	ID          int64  `json:"id"`
	Key         string `json:"key"`
	ProcessMode string `json:"process_mode"`
	CreatedAt   stamp  `json:"created_at"`
	UpdatedAt   stamp  `json:"updated_at"`
}

func toResourceGroup(g *deployment.ResourceGroup) resourceGroupJSON {
	return resourceGroupJSON{g.ID, g.Key, string(g.Mode), toStamp(g.CreatedAt), toStamp(g.UpdatedAt)}
}
