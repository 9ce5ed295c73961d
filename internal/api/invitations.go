package api

import (
	"strconv"
	"strings"

	"svc/internal/bind"
	"svc/internal/invite"
	"svc/internal/project"
)

func (a *API) invitationRoutes() {
	a.tag("Invitations")
	for _, k := range []struct {
		base, what string
		group      bool
	}{{"/projects/{id}", "project", false}, {"/groups/{id}", "group", true}} {
		t := invitations{a, k.group}
		all, one := k.base+"/invitations", k.base+"/invitations/{email}"
		handle(a, "GET "+all, readAPI, t.list, summary("List all invitations pending for a "+k.what))
		handle(a, "POST "+all, writeAPI, t.invite, summary("Add a member to a "+k.what+" by email"))
		handle(a, "PUT "+one, writeAPI, t.update, summary("Update an invitation to a "+k.what))
		handle(a, "DELETE "+one, writeAPI, t.revoke, summary("Delete an invitation to a "+k.what))
	}
}

// invitations are the endpoints of projects or of groups.
type invitations struct {
	*API
	group bool
}

type invitationPlaceParams struct {
	Place project.Ref `param:"id" doc:"ID or URL-encoded path of the project or group."`
}

func (t invitations) at(p invitationPlaceParams) project.Place {
	return project.Place{Ref: p.Place, Group: t.group}
}

type invitationJSON struct {
	ID        int64   `json:"id"`
	Email     string  `json:"invite_email"`
	CreatedAt stamp   `json:"created_at"`
	Level     int64   `json:"access_level"`
	ExpiresAt *stamp  `json:"expires_at"`
	UserName  *string `json:"user_name"`
	Inviter   string  `json:"created_by_name"`
}

func toInvitation(i *invite.Invitation) invitationJSON {
	j := invitationJSON{ID: i.ID, Email: i.Email, CreatedAt: toStamp(i.CreatedAt), Level: int64(i.Level), Inviter: i.Inviter}
	if i.ExpiresAt != "" {
		at := stamp(i.ExpiresAt + "T00:00:00.000Z")
		j.ExpiresAt = &at
	}
	return j
}

type listInvitationsParams struct {
	invitationPlaceParams
	pageParams
	Query string `param:"query" max:"255" doc:"Text in the email address."`
}

// list: https://docs.gitlab.com/api/invitations/#list-all-invitations-pending-for-a-group-or-project
func (t invitations) list(c *call, p listInvitationsParams) (page[invitationJSON], error) {
	return offsetList(p.pageParams, toInvitation)(t.Invites.List(c, c.actor, t.at(p.invitationPlaceParams), p.Query, p.paging()))
}

type inviteParams struct {
	invitationPlaceParams
	Email     string     `param:"email" doc:"Email addresses, separated by commas."`
	UserID    string     `param:"user_id" doc:"IDs of users, separated by commas."`
	Level     int64      `param:"access_level,required" doc:"Access level of the members."`
	ExpiresAt *bind.Date `param:"expires_at" doc:"Date when the membership expires."`
	Source    string     `param:"invite_source" doc:"No effect."`
	Role      *int64     `param:"member_role_id" doc:"Not supported: there are no custom roles."`
}

func (p *inviteParams) check() error {
	switch {
	case p.Role != nil:
		return bind.Invalid("member_role_id is not supported")
	case p.Email == "" && p.UserID == "":
		return bind.Invalid("email, user_id are missing, at least one parameter must be provided")
	}
	return nil
}

type invitedJSON struct {
	Status  string            `json:"status"`
	Message map[string]string `json:"message,omitempty"`
}

// invite: https://docs.gitlab.com/api/invitations/#add-a-member-to-a-group-or-project
func (t invitations) invite(c *call, p inviteParams) (invitedJSON, error) {
	var emails []string
	for part := range strings.SplitSeq(p.Email, ",") {
		if part = strings.TrimSpace(part); part != "" {
			emails = append(emails, part)
		}
	}
	var ids []int64
	for part := range strings.SplitSeq(p.UserID, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		id, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return invitedJSON{}, bind.Invalid("user_id is invalid")
		}
		ids = append(ids, id)
	}
	failed, err := t.Invites.Invite(c, c.actor, t.at(p.invitationPlaceParams), emails, ids, project.Level(p.Level), dateText(p.ExpiresAt))
	if err != nil {
		return invitedJSON{}, err
	}
	if len(failed) > 0 {
		return invitedJSON{"error", failed}, nil
	}
	return invitedJSON{Status: "success"}, nil
}

type updateInvitationParams struct {
	invitationPlaceParams
	Email     string              `param:"email" doc:"Email address of the invitation."`
	Level     *int64              `param:"access_level" doc:"Access level of the member."`
	ExpiresAt bind.Opt[bind.Date] `param:"expires_at" doc:"Date when the membership expires; empty to remove."`
}

// update: https://docs.gitlab.com/api/invitations/#update-an-invitation-to-a-group-or-project
func (t invitations) update(c *call, p updateInvitationParams) (invitationJSON, error) {
	if p.Level == nil && !p.ExpiresAt.Set {
		return invitationJSON{}, bind.Invalid("access_level, expires_at are missing, at least one parameter must be provided")
	}
	i, err := t.Invites.Update(c, c.actor, t.at(p.invitationPlaceParams), p.Email, (*project.Level)(p.Level), dateChange(p.ExpiresAt))
	if err != nil {
		return invitationJSON{}, err
	}
	return toInvitation(i), nil
}

type invitationParams struct {
	invitationPlaceParams
	Email string `param:"email" doc:"Email address of the invitation."`
}

// revoke: https://docs.gitlab.com/api/invitations/#delete-an-invitation-to-a-group-or-project
func (t invitations) revoke(c *call, p invitationParams) (none, error) {
	return none{}, t.Invites.Revoke(c, c.actor, t.at(p.invitationPlaceParams), p.Email)
}
