package web

import (
	"time"

	"svc/internal/oauth"
	"svc/internal/user"
)

// oauthContents are the pages about applications, with data.
func oauthContents() []content {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	u := &user.User{ID: 1, Username: "ada", Name: "Ada"}
	app := &oauth.Application{ID: 1, UID: "uid", Name: "App", Scopes: []string{"api"}, Trusted: true, Disabled: true, CreatedAt: now}
	bad := form{Errors: map[string][]string{"name": {"is wrong"}, "redirect_uri": {"is wrong"}, "scopes": {"is wrong"}}, Error: "no"}
	scopes := applicationScopes()
	return []content{
		consentPage{App: app, Owner: u, User: u, Scopes: oauth.Scopes(), To: "app.example", Fields: []hidden{{"state", "x"}}}, consentPage{App: app, User: u},
		leavingPage{To: "com.example.app:/cb?code=x", Place: "there"},
		applicationsPage{Base: ownApplications, Form: bad, Scopes: scopes, Apps: []*oauth.Application{app}, Pager: pager{"a", "b"},
			Authorized: []oauth.Authorization{{Application: app, Scopes: app.Scopes, AuthorizedAt: now}, {AuthorizedAt: now}}},
		applicationsPage{Base: adminApplications, Admin: true}, applicationsPage{Base: ownApplications},
		applicationPage{Base: ownApplications, App: app, Form: bad, Scopes: scopes},
		applicationPage{Base: adminApplications, Admin: true, App: &oauth.Application{Name: "App", Secret: "s"}, Form: formOf(app), Scopes: scopes},
	}
}
