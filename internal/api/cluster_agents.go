package api

import (
	"svc/internal/ci/deployment"
)

func (a *API) clusterAgentRoutes() {
	a.tag("Cluster agents")
	handle(a, "GET /projects/{id}/cluster_agents", readAPI, a.listAgents, summary("List project agents"))
	handle(a, "GET /projects/{id}/cluster_agents/{agent_id}", readAPI, a.getAgent, summary("Get an agent"))
	handle(a, "POST /projects/{id}/cluster_agents", writeAPI, a.createAgent, summary("Register an agent"))
	handle(a, "DELETE /projects/{id}/cluster_agents/{agent_id}", writeAPI, a.deleteAgent, summary("Delete an agent"))
	handle(a, "GET /job/allowed_agents", readAPI.orJob(), a.allowedAgents, tier(Premium), summary("List the agents that a job can use"))
}

type agentsParams struct {
	projectParams
	pageParams
}

// agentJSON is an agent.
type agentJSON struct {
	ID            int64           `json:"id"`
	Name          string          `json:"name"`
	ConfigProject projectNameJSON `json:"config_project"`
	CreatedAt     stamp           `json:"created_at"`
	CreatedBy     *int64          `json:"created_by_user_id"`
}

func toAgent(a *deployment.Agent) agentJSON {
	return agentJSON{a.ID, a.Name, toProjectName(a.Project), toStamp(a.CreatedAt), a.CreatedBy}
}

// listAgents: https://docs.gitlab.com/api/cluster_agents/#list-the-agents-for-a-project
func (a *API) listAgents(c *call, p agentsParams) (page[agentJSON], error) {
	return offsetList(p.pageParams, toAgent)(a.CI.Deployments.Agents(c, c.actor, p.Project, p.paging()))
}

type agentParams struct {
	projectParams
	AgentID int64 `param:"agent_id"`
}

// getAgent: https://docs.gitlab.com/api/cluster_agents/#get-details-about-an-agent
func (a *API) getAgent(c *call, p agentParams) (agentJSON, error) {
	found, err := a.CI.Deployments.Agent(c, c.actor, p.Project, p.AgentID)
	if err != nil {
		return agentJSON{}, err
	}
	return toAgent(found), nil
}

type createAgentParams struct {
	projectParams
	Name string `param:"name,required"`
}

// createAgent: https://docs.gitlab.com/api/cluster_agents/#register-an-agent-with-a-project
func (a *API) createAgent(c *call, p createAgentParams) (agentJSON, error) {
	made, err := a.CI.Deployments.CreateAgent(c, c.actor, p.Project, p.Name)
	if err != nil {
		return agentJSON{}, err
	}
	return toAgent(made), nil
}

// deleteAgent: https://docs.gitlab.com/api/cluster_agents/#delete-a-registered-agent
func (a *API) deleteAgent(c *call, p agentParams) (none, error) {
	return none{}, a.CI.Deployments.DeleteAgent(c, c.actor, p.Project, p.AgentID)
}

type (
	allowedAgentsJSON struct {
		AllowedAgents []allowedAgentJSON  `json:"allowed_agents"`
		Job           idJSON              `json:"job"`
		Pipeline      idJSON              `json:"pipeline"`
		Project       allowedProjectsJSON `json:"project"`
		User          agentUserJSON       `json:"user"`
	}
	allowedAgentJSON struct {
		ID            int64           `json:"id"`
		ConfigProject projectNameJSON `json:"config_project"`
	}
	idJSON struct {
		ID int64 `json:"id"`
	}
	allowedProjectsJSON struct {
		ID     int64    `json:"id"`
		Groups []idJSON `json:"groups"`
	}
	agentUserJSON struct {
		ID        int64   `json:"id"`
		Name      string  `json:"name"`
		Username  string  `json:"username"`
		State     string  `json:"state"`
		AvatarURL *string `json:"avatar_url"`
		WebURL    string  `json:"web_url"`
	}
)

// allowedAgents: https://docs.gitlab.com/api/jobs/#get-kubernetes-agents-by-ci_job_token
func (a *API) allowedAgents(c *call, _ jobTokenParam) (allowedAgentsJSON, error) {
	found, err := a.CI.AllowedAgents(c, c.actor)
	if err != nil {
		return allowedAgentsJSON{}, err
	}
	users, err := a.Users.FindAll(c, []int64{c.actor.ID})
	if err != nil {
		return allowedAgentsJSON{}, err
	}
	out := allowedAgentsJSON{
		AllowedAgents: mapped(found.Agents, func(g *deployment.Agent) allowedAgentJSON { return allowedAgentJSON{g.ID, toProjectName(g.Project)} }),
		Job:           idJSON{found.Job.ID}, Pipeline: idJSON{found.Job.PipelineID},
		Project: allowedProjectsJSON{found.Project.ID, mapped(found.Groups, func(id int64) idJSON { return idJSON{id} })},
	}
	if u := users[c.actor.ID]; u != nil {
		p := toUserPublic(c.site, u, a.Now())
		out.User = agentUserJSON{p.ID, p.Name, p.Username, p.State, p.AvatarURL, p.WebURL}
	}
	return out, nil
}
