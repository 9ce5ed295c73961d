package api

import (
	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/user"
)

func (a *API) userAvatarRoutes() {
	a.tag("Users")
	handle(a, "PUT /user/avatar", writeAPI, a.setAvatar, files(maxAvatarUpload), summary("Upload an avatar for the current user"))
	a.tag("Avatar")
	handle(a, "GET /avatar", readUser.orAnonymous(), a.getAvatar, summary("Get the avatar URL of a user"))
}

type setAvatarParams struct {
	Avatar bind.Opt[*bind.Upload] `param:"avatar,required" doc:"Image file: PNG, JPEG, GIF or WebP, at most 200 KiB. Empty to remove the avatar."`
}

// setAvatar: https://docs.gitlab.com/api/users/#upload-an-avatar-for-yourself
func (a *API) setAvatar(c *call, p setAvatarParams) (avatarJSON, error) {
	if p.Avatar.Null {
		u, err := a.Users.RemoveAvatar(c, c.actor, c.actor.ID)
		return presentAvatar(c, u, err)
	}
	u, err := a.Users.SetAvatar(c, c.actor, c.actor.ID, toAvatarFile(p.Avatar.Value))
	return presentAvatar(c, u, err)
}

type getAvatarParams struct {
	Email string `param:"email,required" doc:"Public email address of the user."`
	Size  int64  `param:"size" doc:"Size in pixels. Avatars are served in their original size."`
}

// getAvatar: https://docs.gitlab.com/api/avatar/#get-details-on-an-account-avatar
//
// The URL is null for unknown email addresses: svc uses no external avatar service.
func (a *API) getAvatar(c *call, p getAvatarParams) (avatarJSON, error) {
	u, err := a.Users.ByPublicEmail(c, c.actor, p.Email)
	if errs.Is(err, errs.KindNotFound) {
		return avatarJSON{}, nil
	}
	return presentAvatar(c, u, err)
}

type avatarJSON struct {
	AvatarURL *string `json:"avatar_url"`
}

func presentAvatar(c *call, u *user.User, err error) (avatarJSON, error) {
	if err != nil {
		return avatarJSON{}, err
	}
	return avatarJSON{avatarURL(c.site, u)}, nil
}
