package api

import (
	"html"
	"strconv"

	"svc/internal/bind"
	"svc/internal/user"
)

func (a *API) userStatusRoutes() {
	a.tag("User status")
	handle(a, "GET /user/status", readUser, a.getOwnStatus, summary("Get the status of the current user"))
	handle(a, "PUT /user/status", writeAPI, a.setStatus, summary("Set the status of the current user"))
	handle(a, "PATCH /user/status", writeAPI, a.updateStatus, summary("Update the status of the current user"))
	handle(a, "GET /users/{id}/status", readUser.orAnonymous(), a.getStatus, summary("Get the status of a user"))
}

// getOwnStatus: https://docs.gitlab.com/api/users/#retrieve-your-user-status
func (a *API) getOwnStatus(c *call, _ struct{}) (statusJSON, error) {
	return presentStatus(a.Users.StatusOf(c, c.actor, user.Ref(strconv.FormatInt(c.actor.ID, 10))))
}

// getStatus: https://docs.gitlab.com/api/users/#retrieve-the-status-of-a-user
func (a *API) getStatus(c *call, p userRefParams) (statusJSON, error) {
	return presentStatus(a.Users.StatusOf(c, c.actor, p.User))
}

type statusParams struct {
	Emoji        bind.Opt[string]            `param:"emoji" doc:"Emoji name. Default is speech_balloon."`
	Message      bind.Opt[string]            `param:"message" doc:"Status message, at most 100 characters."`
	Availability bind.Opt[user.Availability] `param:"availability" enum:"not_set,busy"`
	ClearAfter   bind.Opt[user.ClearAfter]   `param:"clear_status_after" enum:"30_minutes,3_hours,8_hours,1_day,3_days,7_days,30_days" doc:"Time after which the status is cleared; null means never."`
}

// change returns a change with the values that were sent. A null value resets the
// field.
func (p *statusParams) change() user.StatusChange {
	if p.Availability.Null {
		p.Availability.Value = user.NotSet
	}
	return user.StatusChange{
		Emoji: sent(&p.Emoji), Message: sent(&p.Message), Availability: sent(&p.Availability), ClearAfter: sent(&p.ClearAfter),
	}
}

// sent returns the value of a parameter, or nil if it was not sent.
func sent[T any](o *bind.Opt[T]) *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

// setStatus: https://docs.gitlab.com/api/users/#set-your-user-status
func (a *API) setStatus(c *call, p statusParams) (statusJSON, error) {
	return presentStatus(a.Users.SetStatus(c, c.actor, p.change()))
}

// updateStatus: https://docs.gitlab.com/api/users/#set-your-user-status
func (a *API) updateStatus(c *call, p statusParams) (statusJSON, error) {
	return presentStatus(a.Users.UpdateStatus(c, c.actor, p.change()))
}

type statusJSON struct {
	Emoji         *string `json:"emoji"`
	Availability  *string `json:"availability"`
	Message       *string `json:"message"`
	MessageHTML   string  `json:"message_html"`
	ClearStatusAt *stamp  `json:"clear_status_at"`
}

func presentStatus(st user.Status, err error) (statusJSON, error) {
	if err != nil {
		return statusJSON{}, err
	}
	out := statusJSON{
		Emoji: textOrNull(st.Emoji), Message: textOrNull(st.Message), MessageHTML: html.EscapeString(st.Message),
		ClearStatusAt: toStampOrNull(st.ClearAt),
	}
	// A status that is set always has an emoji.
	if st.Emoji != "" {
		out.Availability = textOrNull(string(st.Availability))
	}
	return out, nil
}
