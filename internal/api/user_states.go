package api

import "net/http"

func (a *API) userStateRoutes() {
	a.tag("User moderation")
	handle(a, "POST /users/{id}/block", writeAPI, a.blockUser, summary("Block a user"))
	handle(a, "POST /users/{id}/unblock", writeAPI, a.unblockUser, summary("Unblock a user"))
	handle(a, "POST /users/{id}/activate", writeAPI, a.activateUser, summary("Activate a user"))
	handle(a, "POST /users/{id}/deactivate", writeAPI, a.deactivateUser, summary("Deactivate a user"))
	handle(a, "POST /users/{id}/ban", writeAPI, a.banUser, summary("Ban a user"))
	handle(a, "POST /users/{id}/unban", writeAPI, a.unbanUser, summary("Unban a user"))
	handle(a, "POST /users/{id}/approve", writeAPI, a.approveUser, summary("Approve a user"))
	handle(a, "POST /users/{id}/reject", writeAPI, a.rejectUser, status(http.StatusOK), summary("Reject a user"))
}

// blockUser: https://docs.gitlab.com/api/user_moderation/#block-access-to-a-user
// The response is null if the user was already blocked.
func (a *API) blockUser(c *call, p userParams) (*bool, error) {
	changed, err := a.Users.Block(c, c.actor, p.ID)
	if !changed {
		return nil, err
	}
	return &changed, nil
}

// unblockUser: https://docs.gitlab.com/api/user_moderation/#unblock-access-to-a-user
func (a *API) unblockUser(c *call, p userParams) (bool, error) {
	return true, a.Users.Unblock(c, c.actor, p.ID)
}

// activateUser: https://docs.gitlab.com/api/user_moderation/#reactivate-a-user
func (a *API) activateUser(c *call, p userParams) (bool, error) {
	return true, a.Users.Activate(c, c.actor, p.ID)
}

// deactivateUser: https://docs.gitlab.com/api/user_moderation/#deactivate-a-user
func (a *API) deactivateUser(c *call, p userParams) (bool, error) {
	return true, a.Users.Deactivate(c, c.actor, p.ID)
}

// banUser: https://docs.gitlab.com/api/user_moderation/#ban-a-user
func (a *API) banUser(c *call, p userParams) (bool, error) {
	return true, a.Users.Ban(c, c.actor, p.ID)
}

// unbanUser: https://docs.gitlab.com/api/user_moderation/#unban-a-user
func (a *API) unbanUser(c *call, p userParams) (bool, error) {
	return true, a.Users.Unban(c, c.actor, p.ID)
}

type successJSON struct {
	Message string `json:"message"`
}

// approveUser: https://docs.gitlab.com/api/user_moderation/#approve-access-to-a-user
func (a *API) approveUser(c *call, p userParams) (successJSON, error) {
	return successJSON{"Success"}, a.Users.Approve(c, c.actor, p.ID)
}

// rejectUser: https://docs.gitlab.com/api/user_moderation/#reject-access-to-a-user
func (a *API) rejectUser(c *call, p userParams) (successJSON, error) {
	return successJSON{"Success"}, a.Users.Reject(c, c.actor, p.ID)
}
