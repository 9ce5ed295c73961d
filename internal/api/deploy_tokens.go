package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/project"
)

func (a *API) deployTokenRoutes() {
	a.tag("Deploy tokens")
	handle(a, "GET /deploy_tokens", readAPI, a.listAllDeployTokens, summary("List all deploy tokens"))
	for _, in := range []struct {
		path, kind string
		group      bool
	}{{"/projects/{id}", "project", false}, {"/groups/{id}", "group", true}} {
		d := deployTokenEndpoints{a, in.group}
		handle(a, "GET "+in.path+"/deploy_tokens", readAPI, d.list, summary("List "+in.kind+" deploy tokens"))
		handle(a, "POST "+in.path+"/deploy_tokens", writeAPI, d.create, summary("Create a "+in.kind+" deploy token"))
		handle(a, "GET "+in.path+"/deploy_tokens/{token_id}", readAPI, d.get, summary("Get a "+in.kind+" deploy token"))
		handle(a, "DELETE "+in.path+"/deploy_tokens/{token_id}", writeAPI, d.delete, summary("Delete a "+in.kind+" deploy token"))
	}
}

// deployTokenEndpoints serves the deploy tokens of projects or of groups.
type deployTokenEndpoints struct {
	api   *API
	group bool
}

func (d deployTokenEndpoints) at(ref project.Ref) project.Place {
	return project.Place{Ref: ref, Group: d.group}
}

type allDeployTokensParams struct {
	Active *bool `param:"active" doc:"Limit by active status."`
	pageParams
}

// listAllDeployTokens: https://docs.gitlab.com/api/deploy_tokens/#list-all-deploy-tokens
func (a *API) listAllDeployTokens(c *call, p allDeployTokensParams) (page[deployTokenJSON], error) {
	return offsetList(p.pageParams, a.toDeployToken)(a.Projects.AllDeployTokens(c, c.actor, p.Active, p.paging()))
}

type listDeployTokensParams struct {
	placeParams
	allDeployTokensParams
}

// list: https://docs.gitlab.com/api/deploy_tokens/#list-project-deploy-tokens
func (d deployTokenEndpoints) list(c *call, p listDeployTokensParams) (page[deployTokenJSON], error) {
	return offsetList(p.pageParams, d.api.toDeployToken)(d.api.Projects.DeployTokens(c, c.actor, d.at(p.Ref), p.Active, p.paging()))
}

type createDeployTokenParams struct {
	placeParams
	Name      string              `param:"name,required"`
	Username  string              `param:"username" doc:"Username. Default is derived from the ID."`
	Scopes    []string            `param:"scopes,required,csv" enum:"read_repository,read_registry,write_registry,read_package_registry,write_package_registry,read_virtual_registry,write_virtual_registry"`
	ExpiresAt bind.Opt[time.Time] `param:"expires_at" doc:"Expiration date. Default is never."`
}

// create: https://docs.gitlab.com/api/deploy_tokens/#create-a-project-deploy-token
func (d deployTokenEndpoints) create(c *call, p createDeployTokenParams) (newDeployTokenJSON, error) {
	n := project.NewDeployToken{Name: p.Name, Username: p.Username, Scopes: p.Scopes}
	if p.ExpiresAt.Set && !p.ExpiresAt.Null {
		n.ExpiresAt = &p.ExpiresAt.Value
	}
	t, err := d.api.Projects.CreateDeployToken(c, c.actor, d.at(p.Ref), n)
	if err != nil {
		return newDeployTokenJSON{}, err
	}
	return newDeployTokenJSON{d.api.toDeployToken(*t), t.Secret}, nil
}

type deployTokenParams struct {
	placeParams
	TokenID int64 `param:"token_id"`
}

// get: https://docs.gitlab.com/api/deploy_tokens/#get-a-project-deploy-token
func (d deployTokenEndpoints) get(c *call, p deployTokenParams) (deployTokenJSON, error) {
	t, err := d.api.Projects.DeployToken(c, c.actor, d.at(p.Ref), p.TokenID)
	if err != nil {
		return deployTokenJSON{}, err
	}
	return d.api.toDeployToken(*t), nil
}

// delete: https://docs.gitlab.com/api/deploy_tokens/#delete-a-project-deploy-token
func (d deployTokenEndpoints) delete(c *call, p deployTokenParams) (none, error) {
	return none{}, d.api.Projects.DeleteDeployToken(c, c.actor, d.at(p.Ref), p.TokenID)
}

type deployTokenJSON struct {
	ID        int64    `json:"id"`
	Name      string   `json:"name"`
	Username  string   `json:"username"`
	ExpiresAt *stamp   `json:"expires_at"`
	Revoked   bool     `json:"revoked"` // always false: revoked tokens are deleted
	Expired   bool     `json:"expired"`
	Scopes    []string `json:"scopes"`
}

// newDeployTokenJSON includes the secret, which is shown once.
type newDeployTokenJSON struct {
	deployTokenJSON
	Token string `json:"token"`
}

func (a *API) toDeployToken(t project.DeployToken) deployTokenJSON {
	return deployTokenJSON{
		ID: t.ID, Name: t.Name, Username: t.Username, ExpiresAt: toStampOrNull(t.ExpiresAt), Expired: t.Expired(a.Now()), Scopes: t.Scopes,
	}
}
