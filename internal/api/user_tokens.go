package api

import (
	"net/http"
	"strings"
	"time"

	"svc/internal/bind"
	"svc/internal/user"
)

func (a *API) userTokenRoutes() {
	a.tag("User tokens")
	handle(a, "POST /users/{user_id}/personal_access_tokens", writeAPI, a.createToken, summary("Create a personal access token for a user"))
	handle(a, "POST /user/personal_access_tokens", writeAPI, a.createOwnToken, onlySelfManaged, summary("Create a personal access token with limited scopes for the current user"))

	a.tag("Personal access tokens")
	handle(a, "GET /personal_access_tokens", readAPI, a.listTokens, summary("List personal access tokens"))
	handle(a, "GET /personal_access_tokens/self", anyToken, a.getSelfToken, summary("Get the current personal access token"))
	handle(a, "DELETE /personal_access_tokens/self", anyToken, a.revokeSelfToken, summary("Self-revoke a personal access token"))
	handle(a, "POST /personal_access_tokens/self/rotate", writeAPI, a.rotateSelfToken, status(http.StatusOK), summary("Self-rotate a personal access token"))
	handle(a, "GET /personal_access_tokens/{id}", readAPI, a.getToken, summary("Get a personal access token"))
	handle(a, "DELETE /personal_access_tokens/{id}", writeAPI, a.revokeToken, summary("Revoke a personal access token"))
	handle(a, "POST /personal_access_tokens/{id}/rotate", writeAPI, a.rotateToken, status(http.StatusOK), summary("Rotate a personal access token"))

	a.tag("User tokens")
	handle(a, "GET /users/{user_id}/impersonation_tokens", readAPI, a.listImpersonationTokens, summary("List impersonation tokens of a user"))
	handle(a, "POST /users/{user_id}/impersonation_tokens", writeAPI, a.createImpersonationToken, summary("Create an impersonation token"))
	handle(a, "GET /users/{user_id}/impersonation_tokens/{id}", readAPI, a.getImpersonationToken, summary("Get an impersonation token"))
	handle(a, "DELETE /users/{user_id}/impersonation_tokens/{id}", writeAPI, a.revokeImpersonationToken, summary("Revoke an impersonation token"))
}

type newTokenParams struct {
	Name        string     `param:"name,required"`
	Description string     `param:"description"`
	Scopes      []string   `param:"scopes,required,csv" enum:"api,read_api,read_user,create_runner,manage_runner,k8s_proxy,read_repository,write_repository,sudo,admin_mode,openid,profile,email"`
	ExpiresAt   *bind.Date `param:"expires_at" doc:"Expiration date in the format YYYY-MM-DD, at midnight UTC."`
}

func (p *newTokenParams) token() user.NewToken {
	return user.NewToken{Name: p.Name, Description: p.Description, Scopes: p.Scopes, ExpiresAt: dayOf(p.ExpiresAt)}
}

func dayOf(d *bind.Date) string {
	if d == nil {
		return ""
	}
	return d.String()
}

type tokenOwnerParams struct {
	UserID int64 `param:"user_id"`
}

type createTokenParams struct {
	tokenOwnerParams
	newTokenParams
}

// createToken: https://docs.gitlab.com/api/user_tokens/#create-a-personal-access-token-for-a-user
func (a *API) createToken(c *call, p createTokenParams) (newTokenJSON, error) {
	t, err := a.Users.CreateToken(c, c.actor, p.UserID, p.token())
	if err != nil {
		return newTokenJSON{}, err
	}
	return a.toNewToken(t), nil
}

type ownTokenParams struct {
	Name        string     `param:"name,required"`
	Description string     `param:"description"`
	Scopes      []string   `param:"scopes,required,csv" enum:"k8s_proxy"`
	ExpiresAt   *bind.Date `param:"expires_at" doc:"Expiration date in the format YYYY-MM-DD. Default is the end of the day."`
}

// createOwnToken: https://docs.gitlab.com/api/user_tokens/#create-a-personal-access-token
func (a *API) createOwnToken(c *call, p ownTokenParams) (newTokenJSON, error) {
	t, err := a.Users.CreateOwnToken(c, c.actor, user.NewToken{
		Name: p.Name, Description: p.Description, Scopes: p.Scopes, ExpiresAt: dayOf(p.ExpiresAt),
	})
	if err != nil {
		return newTokenJSON{}, err
	}
	return a.toNewToken(t), nil
}

// tokenFilterParams are the filters of lists of tokens.
type tokenFilterParams struct {
	State          string     `param:"state" enum:"active,inactive"`
	Revoked        *bool      `param:"revoked"`
	Search         string     `param:"search" max:"1024"`
	CreatedAfter   *time.Time `param:"created_after"`
	CreatedBefore  *time.Time `param:"created_before"`
	LastUsedAfter  *time.Time `param:"last_used_after"`
	LastUsedBefore *time.Time `param:"last_used_before"`
	ExpiresAfter   *bind.Date `param:"expires_after"`
	ExpiresBefore  *bind.Date `param:"expires_before"`
	Sort           string     `param:"sort" enum:"created_asc,created_desc,expires_asc,expires_desc,last_used_asc,last_used_desc,name_asc,name_desc" default:"created_asc"`
}

func (p *tokenFilterParams) filter() user.TokenFilter {
	by, desc := strings.CutSuffix(p.Sort, "_desc")
	return user.TokenFilter{
		State: p.State, Revoked: p.Revoked, Search: p.Search,
		CreatedAfter: p.CreatedAfter, CreatedBefore: p.CreatedBefore, LastUsedAfter: p.LastUsedAfter, LastUsedBefore: p.LastUsedBefore,
		ExpiresAfter: dayOf(p.ExpiresAfter), ExpiresBefore: dayOf(p.ExpiresBefore),
		Sort: user.TokenSort{By: strings.TrimSuffix(by, "_asc"), Desc: desc},
	}
}

type listTokensParams struct {
	UserID int64 `param:"user_id"`
	tokenFilterParams
	pageParams
}

// listTokens: https://docs.gitlab.com/api/personal_access_tokens/#list-all-personal-access-tokens
func (a *API) listTokens(c *call, p listTokensParams) (page[tokenJSON], error) {
	f := p.filter()
	f.UserID = p.UserID
	list, err := a.Users.Tokens(c, c.actor, f, p.paging())
	if err != nil {
		return page[tokenJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(t user.Token) tokenJSON { return a.toToken(&t) }), nil
}

type tokenParams struct {
	ID int64 `param:"id"`
}

// getToken: https://docs.gitlab.com/api/personal_access_tokens/#get-details-on-a-personal-access-token
func (a *API) getToken(c *call, p tokenParams) (tokenJSON, error) {
	return a.presentToken(a.Users.Token(c, c.actor, p.ID))
}

// getSelfToken: https://docs.gitlab.com/api/personal_access_tokens/#self-inform
func (a *API) getSelfToken(c *call, _ struct{}) (tokenJSON, error) {
	return a.presentToken(a.Users.SelfToken(c, c.actor))
}

// revokeToken: https://docs.gitlab.com/api/personal_access_tokens/#revoke-a-personal-access-token
func (a *API) revokeToken(c *call, p tokenParams) (none, error) {
	return none{}, a.Users.RevokeToken(c, c.actor, p.ID, c.unmodifiedSince())
}

// revokeSelfToken: https://docs.gitlab.com/api/personal_access_tokens/#self-revoke
func (a *API) revokeSelfToken(c *call, _ struct{}) (none, error) {
	return none{}, a.Users.RevokeSelfToken(c, c.actor)
}

type expiryParams struct {
	ExpiresAt *bind.Date `param:"expires_at" doc:"Expiration date in the format YYYY-MM-DD. Default is one week from now."`
}

type rotateParams struct {
	tokenParams
	expiryParams
}

// rotateToken: https://docs.gitlab.com/api/personal_access_tokens/#rotate-a-personal-access-token
func (a *API) rotateToken(c *call, p rotateParams) (newTokenJSON, error) {
	t, err := a.Users.RotateToken(c, c.actor, p.ID, dayOf(p.ExpiresAt))
	if err != nil {
		return newTokenJSON{}, err
	}
	return a.toNewToken(t), nil
}

// rotateSelfToken: https://docs.gitlab.com/api/personal_access_tokens/#self-rotate
func (a *API) rotateSelfToken(c *call, p expiryParams) (newTokenJSON, error) {
	t, err := a.Users.RotateSelfToken(c, c.actor, dayOf(p.ExpiresAt))
	if err != nil {
		return newTokenJSON{}, err
	}
	return a.toNewToken(t), nil
}

type listImpersonationParams struct {
	tokenOwnerParams
	State string `param:"state" enum:"all,active,inactive" default:"all"`
	pageParams
}

// listImpersonationTokens: https://docs.gitlab.com/api/user_tokens/#list-all-impersonation-tokens-for-a-user
func (a *API) listImpersonationTokens(c *call, p listImpersonationParams) (page[impersonationTokenJSON], error) {
	list, err := a.Users.ImpersonationTokens(c, c.actor, p.UserID, p.State, p.paging())
	if err != nil {
		return page[impersonationTokenJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(t user.Token) impersonationTokenJSON { return a.toImpersonationToken(&t) }), nil
}

// createImpersonationToken: https://docs.gitlab.com/api/user_tokens/#create-an-impersonation-token
func (a *API) createImpersonationToken(c *call, p createTokenParams) (newImpersonationTokenJSON, error) {
	t, err := a.Users.CreateImpersonationToken(c, c.actor, p.UserID, p.token())
	if err != nil {
		return newImpersonationTokenJSON{}, err
	}
	return newImpersonationTokenJSON{a.toImpersonationToken(t), t.Secret}, nil
}

type impersonationParams struct {
	tokenOwnerParams
	tokenParams
}

// getImpersonationToken: https://docs.gitlab.com/api/user_tokens/#retrieve-an-impersonation-token-for-a-user
func (a *API) getImpersonationToken(c *call, p impersonationParams) (impersonationTokenJSON, error) {
	t, err := a.Users.ImpersonationToken(c, c.actor, p.UserID, p.ID)
	if err != nil {
		return impersonationTokenJSON{}, err
	}
	return a.toImpersonationToken(t), nil
}

// revokeImpersonationToken: https://docs.gitlab.com/api/user_tokens/#revoke-an-impersonation-token
func (a *API) revokeImpersonationToken(c *call, p impersonationParams) (none, error) {
	return none{}, a.Users.RevokeImpersonationToken(c, c.actor, p.UserID, p.ID, c.unmodifiedSince())
}

type tokenJSON struct {
	ID          int64    `json:"id"`
	Name        string   `json:"name"`
	Revoked     bool     `json:"revoked"`
	CreatedAt   stamp    `json:"created_at"`
	Description *string  `json:"description"`
	Scopes      []string `json:"scopes"`
	UserID      int64    `json:"user_id"`
	LastUsedAt  *stamp   `json:"last_used_at"`
	Active      bool     `json:"active"`
	ExpiresAt   *day     `json:"expires_at"`
}

// newTokenJSON includes the secret, which is shown once.
type newTokenJSON struct {
	tokenJSON
	Token string `json:"token"`
}

type impersonationTokenJSON struct {
	tokenJSON
	Impersonation bool `json:"impersonation"`
}

type newImpersonationTokenJSON struct {
	impersonationTokenJSON
	Token string `json:"token"`
}

func (a *API) presentToken(t *user.Token, err error) (tokenJSON, error) {
	if err != nil {
		return tokenJSON{}, err
	}
	return a.toToken(t), nil
}

func (a *API) toToken(t *user.Token) tokenJSON {
	return tokenJSON{
		ID: t.ID, Name: t.Name, Revoked: t.RevokedAt != nil, CreatedAt: toStamp(t.CreatedAt), Description: textOrNull(t.Description),
		Scopes: t.Scopes, UserID: t.UserID, LastUsedAt: toStampOrNull(t.LastUsedAt), Active: t.Active(a.Now()), ExpiresAt: toDayOrNull(t.ExpiresAt),
	}
}

func (a *API) toNewToken(t *user.Token) newTokenJSON { return newTokenJSON{a.toToken(t), t.Secret} }

func (a *API) toImpersonationToken(t *user.Token) impersonationTokenJSON {
	return impersonationTokenJSON{a.toToken(t), true}
}
