package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/ci/deployment"
)

func (a *API) environmentRoutes() {
	a.tag("Environments")
	const all, one = "/projects/{id}/environments", "/projects/{id}/environments/{environment_id}"
	handle(a, "GET "+all, readAPI.orAnonymous(), a.listEnvironments, summary("List project environments"))
	handle(a, "GET "+one, readAPI.orAnonymous(), a.getEnvironment, summary("Get an environment"))
	handle(a, "POST "+all, writeAPI, a.createEnvironment, summary("Create an environment"))
	handle(a, "PUT "+one, writeAPI, a.updateEnvironment, summary("Update an environment"))
	handle(a, "DELETE "+one, writeAPI, a.deleteEnvironment, summary("Delete a stopped environment"))
	handle(a, "POST "+all+"/stop_stale", writeAPI, a.stopStaleEnvironments, status(200), summary("Stop stale environments"))
	handle(a, "POST "+one+"/stop", writeAPI, a.stopEnvironment, status(200), summary("Stop an environment"))
}

type stopStaleParams struct {
	projectParams
	Before time.Time `param:"before,required" doc:"Stop environments that were last changed before this date, between ten years and one week ago."`
}

// stopStaleEnvironments: https://docs.gitlab.com/api/environments/#stop-stale-environments
func (a *API) stopStaleEnvironments(c *call, p stopStaleParams) (successJSON, error) {
	return successJSON{"Successfully requested stop for all stale environments"}, a.CI.StopStale(c, c.actor, p.Project, p.Before)
}

type environmentsParams struct {
	projectParams
	Name   string   `param:"name"`
	Search string   `param:"search" max:"1024" doc:"Text in the name, at least 3 characters."`
	States []string `param:"states" enum:"available,stopping,stopped"`
	pageParams
}

func (environmentsParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.Exclusive("name", "search")}
}

// listEnvironments: https://docs.gitlab.com/api/environments/#list-environments
func (a *API) listEnvironments(c *call, p environmentsParams) (page[environmentJSON], error) {
	f := deployment.EnvironmentFilter{Name: p.Name, Search: p.Search}
	for _, s := range p.States {
		f.States = append(f.States, deployment.State(s))
	}
	return offsetList(p.pageParams, toEnvironment)(a.CI.Deployments.Environments(c, c.actor, p.Project, f, p.paging()))
}

type environmentParams struct {
	projectParams
	Environment int64 `param:"environment_id"`
}

// getEnvironment: https://docs.gitlab.com/api/environments/#get-a-specific-environment
func (a *API) getEnvironment(c *call, p environmentParams) (environmentDetailJSON, error) {
	e, err := a.CI.Deployments.Environment(c, c.actor, p.Project, p.Environment)
	if err != nil {
		return environmentDetailJSON{}, err
	}
	out := environmentDetailJSON{environmentJSON: toEnvironment(e)}
	if e.Last != nil {
		jobs, err := a.CI.DeploymentJobs(c, c.actor, e.Last)
		if err != nil {
			return environmentDetailJSON{}, err
		}
		last := a.toDeployment(c, e.Last, jobs)
		out.LastDeployment = &last
	}
	return out, nil
}

type environmentFieldParams struct {
	ExternalURL *string `param:"external_url"`
	Description *string `param:"description"`
	Tier        *string `param:"tier" enum:"production,staging,testing,development,other"`
}

func (p *environmentFieldParams) change() deployment.EnvironmentChange {
	return deployment.EnvironmentChange{ExternalURL: p.ExternalURL, Description: p.Description, Tier: p.Tier}
}

type createEnvironmentParams struct {
	projectParams
	Name string `param:"name,required"`
	environmentFieldParams
}

// createEnvironment: https://docs.gitlab.com/api/environments/#create-a-new-environment
func (a *API) createEnvironment(c *call, p createEnvironmentParams) (environmentJSON, error) {
	return presentAs(toEnvironment)(a.CI.Deployments.CreateEnvironment(c, c.actor, p.Project, p.Name, p.change()))
}

type updateEnvironmentParams struct {
	environmentParams
	environmentFieldParams
}

// updateEnvironment: https://docs.gitlab.com/api/environments/#update-an-existing-environment
func (a *API) updateEnvironment(c *call, p updateEnvironmentParams) (environmentJSON, error) {
	return presentAs(toEnvironment)(a.CI.Deployments.UpdateEnvironment(c, c.actor, p.Project, p.Environment, p.change()))
}

// deleteEnvironment: https://docs.gitlab.com/api/environments/#delete-an-environment
func (a *API) deleteEnvironment(c *call, p environmentParams) (none, error) {
	return none{}, a.CI.Deployments.DeleteEnvironment(c, c.actor, p.Project, p.Environment)
}

type stopEnvironmentParams struct {
	environmentParams
	Force bool `param:"force" doc:"Stop the environment without running its on_stop job."`
}

// stopEnvironment: https://docs.gitlab.com/api/environments/#stop-an-environment
func (a *API) stopEnvironment(c *call, p stopEnvironmentParams) (environmentJSON, error) {
	return presentAs(toEnvironment)(a.CI.StopEnvironment(c, c.actor, p.Project, p.Environment, p.Force))
}

type environmentJSON struct {
	ID              int64   `json:"id"`
	Name            string  `json:"name"`
	Slug            string  `json:"slug"`
	Description     *string `json:"description"`
	ExternalURL     *string `json:"external_url"`
	State           string  `json:"state"`
	Tier            string  `json:"tier"`
	CreatedAt       stamp   `json:"created_at"`
	UpdatedAt       stamp   `json:"updated_at"`
	AutoStopAt      *stamp  `json:"auto_stop_at"`
	AutoStopSetting string  `json:"auto_stop_setting"`
	// Environments are not connected to agents.
	ClusterAgent *struct{} `json:"cluster_agent"`
	Namespace    *string   `json:"kubernetes_namespace"`
	FluxPath     *string   `json:"flux_resource_path"`
}

type environmentDetailJSON struct {
	environmentJSON
	LastDeployment *deploymentJSON `json:"last_deployment"`
}

func toEnvironment(e *deployment.Environment) environmentJSON {
	return environmentJSON{
		e.ID, e.Name, e.Slug, textOrNull(e.Description), textOrNull(e.ExternalURL), string(e.State), e.Tier, toStamp(e.CreatedAt), toStamp(e.UpdatedAt),
		toStampOrNull(e.AutoStopAt), "always", nil, nil, nil,
	}
}
