package api

import (
	"net/http"

	"svc/internal/bind"
	"svc/internal/project"
	"svc/internal/user"
)

func (a *API) projectTokenRoutes() {
	for _, in := range []struct {
		path, kind, tag string
		group           bool
	}{{"/projects/{id}", "project", "Project access tokens", false}, {"/groups/{id}", "group", "Group access tokens", true}} {
		a.tag(in.tag)
		d := tokenEndpoints{a, in.group}
		handle(a, "GET "+in.path+"/access_tokens", readAPI, d.list, summary("List "+in.kind+" access tokens"))
		handle(a, "POST "+in.path+"/access_tokens", writeAPI, d.create, summary("Create a "+in.kind+" access token"))
		handle(a, "GET "+in.path+"/access_tokens/{token_id}", readAPI, d.get, summary("Get a "+in.kind+" access token"))
		handle(a, "DELETE "+in.path+"/access_tokens/{token_id}", writeAPI, d.revoke, summary("Revoke a "+in.kind+" access token"))
		handle(a, "POST "+in.path+"/access_tokens/{token_id}/rotate", writeAPI, d.rotate, status(http.StatusOK), summary("Rotate a "+in.kind+" access token"))
		handle(a, "POST "+in.path+"/access_tokens/self/rotate", writeAPI, d.rotateSelf, status(http.StatusOK), summary("Self-rotate a "+in.kind+" access token"))
	}
}

// tokenEndpoints serves the access tokens of projects or of groups.
type tokenEndpoints struct {
	api   *API
	group bool
}

func (d tokenEndpoints) at(ref project.Ref) project.Place {
	return project.Place{Ref: ref, Group: d.group}
}

type listAccessTokensParams struct {
	placeParams
	tokenFilterParams
	pageParams
}

// list: https://docs.gitlab.com/api/project_access_tokens/#list-all-project-access-tokens
func (d tokenEndpoints) list(c *call, p listAccessTokensParams) (page[accessTokenJSON], error) {
	list, err := d.api.Projects.AccessTokens(c, c.actor, d.at(p.Ref), p.filter(), p.paging())
	if err != nil {
		return page[accessTokenJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(t project.AccessToken) accessTokenJSON { return d.toAccessToken(&t) }), nil
}

type createAccessTokenParams struct {
	placeParams
	Name        string     `param:"name,required"`
	Description string     `param:"description"`
	Scopes      []string   `param:"scopes,required,csv" enum:"api,read_api,create_runner,manage_runner,k8s_proxy,read_repository,write_repository"`
	AccessLevel int64      `param:"access_level" enum:"10,15,20,30,40,50" default:"40"`
	ExpiresAt   *bind.Date `param:"expires_at" doc:"Expiration date in the format YYYY-MM-DD, at midnight UTC. Default is the maximum lifetime."`
}

// create: https://docs.gitlab.com/api/project_access_tokens/#create-a-project-access-token
func (d tokenEndpoints) create(c *call, p createAccessTokenParams) (newAccessTokenJSON, error) {
	t, err := d.api.Projects.CreateAccessToken(c, c.actor, d.at(p.Ref), project.NewAccessToken{
		NewToken: user.NewToken{Name: p.Name, Description: p.Description, Scopes: p.Scopes, ExpiresAt: dayOf(p.ExpiresAt)},
		Level:    project.Level(p.AccessLevel),
	})
	return d.presentNew(t, err)
}

type accessTokenParams struct {
	placeParams
	TokenID int64 `param:"token_id"`
}

// get: https://docs.gitlab.com/api/project_access_tokens/#get-details-on-a-project-access-token
func (d tokenEndpoints) get(c *call, p accessTokenParams) (accessTokenJSON, error) {
	t, err := d.api.Projects.AccessToken(c, c.actor, d.at(p.Ref), p.TokenID)
	if err != nil {
		return accessTokenJSON{}, err
	}
	return d.toAccessToken(t), nil
}

// revoke: https://docs.gitlab.com/api/project_access_tokens/#revoke-a-project-access-token
func (d tokenEndpoints) revoke(c *call, p accessTokenParams) (none, error) {
	return none{}, d.api.Projects.RevokeAccessToken(c, c.actor, d.at(p.Ref), p.TokenID, c.unmodifiedSince())
}

type rotateAccessTokenParams struct {
	accessTokenParams
	expiryParams
}

// rotate: https://docs.gitlab.com/api/project_access_tokens/#rotate-a-project-access-token
func (d tokenEndpoints) rotate(c *call, p rotateAccessTokenParams) (newAccessTokenJSON, error) {
	t, err := d.api.Projects.RotateAccessToken(c, c.actor, d.at(p.Ref), p.TokenID, dayOf(p.ExpiresAt))
	return d.presentNew(t, err)
}

type rotateSelfAccessTokenParams struct {
	placeParams
	expiryParams
}

// rotateSelf: https://docs.gitlab.com/api/project_access_tokens/#self-rotate
func (d tokenEndpoints) rotateSelf(c *call, p rotateSelfAccessTokenParams) (newAccessTokenJSON, error) {
	t, err := d.api.Projects.RotateSelfAccessToken(c, c.actor, d.at(p.Ref), dayOf(p.ExpiresAt))
	return d.presentNew(t, err)
}

type accessTokenJSON struct {
	tokenJSON
	AccessLevel int64 `json:"access_level"`
}

// newAccessTokenJSON includes the secret, which is shown once.
type newAccessTokenJSON struct {
	accessTokenJSON
	Token string `json:"token"`
}

func (d tokenEndpoints) toAccessToken(t *project.AccessToken) accessTokenJSON {
	return accessTokenJSON{d.api.toToken(&t.Token), int64(t.Level)}
}

func (d tokenEndpoints) presentNew(t *project.AccessToken, err error) (newAccessTokenJSON, error) {
	if err != nil {
		return newAccessTokenJSON{}, err
	}
	return newAccessTokenJSON{d.toAccessToken(t), t.Secret}, nil
}
