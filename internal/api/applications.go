package api

import (
	"strings"

	"svc/internal/oauth"
)

func (a *API) applicationRoutes() {
	a.tag("Applications")
	handle(a, "POST /applications", writeAPI, a.createApplication, summary("Create an application"))
	handle(a, "GET /applications", readAPI, a.listApplications, summary("List applications"))
	handle(a, "DELETE /applications/{id}", writeAPI, a.deleteApplication, summary("Delete an application"))
	handle(a, "POST /applications/{id}/renew-secret", writeAPI, a.renewApplicationSecret, summary("Renew an application secret"))
}

type createApplicationParams struct {
	Name         string `param:"name,required"`
	RedirectURI  string `param:"redirect_uri,required" doc:"Redirect URIs, one per line."`
	Scopes       string `param:"scopes,required" doc:"Scopes, separated by spaces."`
	Confidential bool   `param:"confidential" default:"true" doc:"Whether the application can keep its secret confidential."`
	Trusted      bool   `param:"trusted" doc:"Skip the authorization page for users."`
}

// createApplication: https://docs.gitlab.com/api/applications/#create-an-application
func (a *API) createApplication(c *call, p createApplicationParams) (newApplicationJSON, error) {
	app, err := a.OAuth.Create(c, c.actor, oauth.NewApplication{
		Name: p.Name, RedirectURIs: p.RedirectURI, Scopes: strings.Fields(p.Scopes), Confidential: p.Confidential, Trusted: p.Trusted,
	})
	if err != nil {
		return newApplicationJSON{}, err
	}
	return newApplicationJSON{toApplication(app), app.Secret}, nil
}

// listApplications: https://docs.gitlab.com/api/applications/#list-all-applications
func (a *API) listApplications(c *call, p pageParams) (page[applicationJSON], error) {
	return offsetList(p, toApplication)(a.OAuth.Applications(c, c.actor, p.paging()))
}

type applicationParams struct {
	ID int64 `param:"id"`
}

// deleteApplication: https://docs.gitlab.com/api/applications/#delete-an-application
func (a *API) deleteApplication(c *call, p applicationParams) (none, error) {
	if err := c.actor.RequireAdmin(); err != nil {
		return none{}, err
	}
	return none{}, a.OAuth.Delete(c, c.actor, p.ID)
}

// renewApplicationSecret: https://docs.gitlab.com/api/applications/#renew-an-application-secret
func (a *API) renewApplicationSecret(c *call, p applicationParams) (newApplicationJSON, error) {
	if err := c.actor.RequireAdmin(); err != nil {
		return newApplicationJSON{}, err
	}
	app, err := a.OAuth.RenewSecret(c, c.actor, p.ID)
	if err != nil {
		return newApplicationJSON{}, err
	}
	return newApplicationJSON{toApplication(app), app.Secret}, nil
}

type applicationJSON struct {
	ID            int64  `json:"id"`
	ApplicationID string `json:"application_id"`
	Name          string `json:"application_name"`
	CallbackURL   string `json:"callback_url"`
	Confidential  bool   `json:"confidential"`
}

// newApplicationJSON includes the secret, which is shown once.
type newApplicationJSON struct {
	applicationJSON
	Secret string `json:"secret"`
}

func toApplication(app *oauth.Application) applicationJSON {
	return applicationJSON{app.ID, app.UID, app.Name, strings.Join(app.RedirectURIs, "\n"), app.Confidential}
}
