package api

import "svc/internal/user"

func (a *API) userEmailRoutes() {
	a.tag("User emails")
	handle(a, "GET /user/emails", readUser, a.listOwnEmails, summary("List email addresses of the current user"))
	handle(a, "GET /user/emails/{email_id}", readUser, a.getOwnEmail, summary("Get an email address of the current user"))
	handle(a, "POST /user/emails", writeAPI, a.addOwnEmail, summary("Add an email address for the current user"))
	handle(a, "DELETE /user/emails/{email_id}", writeAPI, a.deleteOwnEmail, summary("Delete an email address of the current user"))
	handle(a, "GET /users/{id}/emails", readAPI, a.listEmails, summary("List email addresses of a user"))
	handle(a, "POST /users/{id}/emails", writeAPI, a.addEmail, summary("Add an email address for a user"))
	handle(a, "DELETE /users/{id}/emails/{email_id}", writeAPI, a.deleteEmail, summary("Delete an email address of a user"))
}

// listOwnEmails: https://docs.gitlab.com/api/user_email_addresses/#list-all-email-addresses
func (a *API) listOwnEmails(c *call, p pageParams) (page[emailJSON], error) {
	return offsetList(p, toEmail)(a.Users.OwnEmails(c, c.actor, p.paging()))
}

type ownEmailParams struct {
	EmailID int64 `param:"email_id"`
}

// getOwnEmail: https://docs.gitlab.com/api/user_email_addresses/#get-details-on-an-email-address
func (a *API) getOwnEmail(c *call, p ownEmailParams) (emailJSON, error) {
	e, err := a.Users.OwnEmail(c, c.actor, p.EmailID)
	if err != nil {
		return emailJSON{}, err
	}
	return toEmail(*e), nil
}

type newEmailParams struct {
	Email string `param:"email,required"`
}

// addOwnEmail: https://docs.gitlab.com/api/user_email_addresses/#add-an-email-address
func (a *API) addOwnEmail(c *call, p newEmailParams) (emailJSON, error) {
	e, err := a.Users.AddOwnEmail(c, c.actor, p.Email)
	if err != nil {
		return emailJSON{}, err
	}
	return toEmail(*e), nil
}

// deleteOwnEmail: https://docs.gitlab.com/api/user_email_addresses/#delete-an-email-address
func (a *API) deleteOwnEmail(c *call, p ownEmailParams) (none, error) {
	return none{}, a.Users.DeleteOwnEmail(c, c.actor, p.EmailID)
}

type listEmailsParams struct {
	userParams
	pageParams
}

// listEmails: https://docs.gitlab.com/api/user_email_addresses/#list-all-email-addresses-for-a-user
func (a *API) listEmails(c *call, p listEmailsParams) (page[emailJSON], error) {
	return offsetList(p.pageParams, toEmail)(a.Users.Emails(c, c.actor, p.ID, p.paging()))
}

type addEmailParams struct {
	userParams
	newEmailParams
	SkipConfirmation bool `param:"skip_confirmation" doc:"Skip confirmation and mark the email as verified."`
}

// addEmail: https://docs.gitlab.com/api/user_email_addresses/#add-an-email-address-for-a-user
func (a *API) addEmail(c *call, p addEmailParams) (emailJSON, error) {
	e, err := a.Users.AddEmail(c, c.actor, p.ID, user.NewEmail{Address: p.Email, SkipConfirmation: p.SkipConfirmation})
	if err != nil {
		return emailJSON{}, err
	}
	return toEmail(*e), nil
}

type deleteEmailParams struct {
	userParams
	ownEmailParams
}

// deleteEmail: https://docs.gitlab.com/api/user_email_addresses/#delete-an-email-address-for-a-user
func (a *API) deleteEmail(c *call, p deleteEmailParams) (none, error) {
	return none{}, a.Users.DeleteEmail(c, c.actor, p.ID, p.EmailID)
}

type emailJSON struct {
	ID          int64  `json:"id"`
	Email       string `json:"email"`
	ConfirmedAt *stamp `json:"confirmed_at"`
}

func toEmail(e user.Email) emailJSON {
	return emailJSON{ID: e.ID, Email: e.Address, ConfirmedAt: toStampOrNull(e.ConfirmedAt)}
}
