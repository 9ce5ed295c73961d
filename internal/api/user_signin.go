package api

func (a *API) userSignInRoutes() {
	a.tag("Users")
	handle(a, "DELETE /users/{id}/identities/{provider}", writeAPI, a.deleteIdentity, summary("Delete an authentication identity of a user"))
	handle(a, "PATCH /users/{id}/disable_two_factor", writeAPI, a.disableTwoFactor, summary("Disable two-factor authentication for a user"))
}

type identityParams struct {
	userParams
	Provider string `param:"provider"`
}

// deleteIdentity: https://docs.gitlab.com/api/users/#delete-authentication-identity-from-a-user
func (a *API) deleteIdentity(c *call, p identityParams) (none, error) {
	return none{}, a.SignIn.DeleteIdentity(c, c.actor, p.ID, p.Provider)
}

// disableTwoFactor: https://docs.gitlab.com/api/users/#disable-two-factor-authentication-for-a-user
func (a *API) disableTwoFactor(c *call, p userParams) (none, error) {
	return none{}, a.Users.DisableTwoFactor(c, c.actor, p.ID)
}
