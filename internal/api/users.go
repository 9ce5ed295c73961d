package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/user"
)

func (a *API) userRoutes() {
	a.tag("Users")
	shapes := returns(userPublicJSON{}, userProfileJSON{}, userAdminJSON{})
	handle(a, "GET /users", readUser.orAnonymous(), a.listUsers, shapes, summary("List users"))
	handle(a, "GET /users/{id}", readUser, a.getUser, shapes, summary("Get a user"))
	handle(a, "POST /users", writeAPI, a.createUser, returns(userAdminJSON{}), files(maxAvatarUpload), summary("Create a user"))
	handle(a, "PUT /users/{id}", writeAPI, a.updateUser, returns(userAdminJSON{}), files(maxAvatarUpload), summary("Update a user"))
	handle(a, "DELETE /users/{id}", writeAPI, a.deleteUser, summary("Delete a user"))
	handle(a, "GET /user", readUser, a.getSelf, returns(userSelfJSON{}, userAdminJSON{}), summary("Get the current user"))
	handle(a, "GET /user/activities", readAPI, a.listActivities, summary("List user activities"))
}

// maxAvatarUpload is the limit of an avatar upload in bytes. It is larger than the
// limit of an avatar, so that slightly larger files get the error about avatars.
const maxAvatarUpload = 10 << 20

type listUsersParams struct {
	Username           string     `param:"username" doc:"Username to look up, case-insensitive."`
	Search             string     `param:"search" max:"1024" doc:"Text in the name or username, or a complete email address."`
	Active             onlyTrue   `param:"active" doc:"Only active users."`
	External           onlyTrue   `param:"external" doc:"Only external users."`
	Blocked            onlyTrue   `param:"blocked" doc:"Only blocked users."`
	ExcludeExternal    bool       `param:"exclude_external"`
	CreatedAfter       *time.Time `param:"created_after"`
	CreatedBefore      *time.Time `param:"created_before"`
	ExcludeInternal    bool       `param:"exclude_internal" doc:"Exclude the ghost user and the alert and support bots."`
	WithoutProjectBots bool       `param:"without_project_bots"`
	Humans             bool       `param:"humans" doc:"Only users that are not bots or internal users."`
	ExcludeHumans      bool       `param:"exclude_humans" doc:"Only bots and internal users."`
	ExcludeActive      bool       `param:"exclude_active"`
	PublicEmail        string     `param:"public_email" doc:"Public email address to look up."`

	ExternUID      string            `param:"extern_uid"`
	Provider       string            `param:"provider"`
	OrderBy        string            `param:"order_by" enum:"id,name,username,created_at,updated_at" default:"id"`
	Sort           string            `param:"sort" enum:"asc,desc" default:"desc"`
	TwoFactor      string            `param:"two_factor" enum:"enabled,disabled"`
	NoProjects     bool              `param:"without_projects"`
	Admins         bool              `param:"admins"`
	Auditors       bool              `param:"auditors" tier:"premium"`
	SAMLProviderID int64             `param:"saml_provider_id" tier:"premium"`
	SkipLDAP       bool              `param:"skip_ldap" tier:"premium"`
	Attributes     map[string]string `param:"custom_attributes"`
	WithAttributes bool              `param:"with_custom_attributes"`
	keysetParams
}

// onlyTrue is a filter that applies only if it is true. Public clients send false if
// they do not filter.
type onlyTrue bool

// UnmarshalParam parses the flag.
func (o *onlyTrue) UnmarshalParam(text string) error {
	v, ok := bind.ParseBool(text)
	if !ok {
		return bind.Invalid()
	}
	*o = onlyTrue(v)
	return nil
}

// usersOffsetDeprecated is the time when offset pagination of users was deprecated:
// 2023-10-22, release 16.5.
const usersOffsetDeprecated = 1697932800

// listUsers: https://docs.gitlab.com/api/users/#list-users
func (a *API) listUsers(c *call, p listUsersParams) (page[any], error) {
	k := keyset{object: "User", columns: []string{"id"}, allowed: true}
	switch p.OrderBy {
	case "name", "username":
		k.columns = []string{p.OrderBy, "id"}
	case "created_at", "updated_at":
		k.allowed = false
	}
	paging, err := p.paging(k)
	if err != nil {
		return page[any]{}, err
	}
	if !paging.Keyset {
		deprecated(c.w.Header(), usersOffsetDeprecated)
	}
	list, err := a.Users.List(c, c.actor, p.filter(), user.Sort{By: p.OrderBy, Desc: p.Sort == "desc"}, paging)
	if err != nil {
		return page[any]{}, err
	}
	now := a.Now()
	return keysetPage(p.keysetParams, k, list, func(u *user.User) any {
		if c.actor.Admin {
			out := toUserAdmin(c, u, now)
			if p.WithAttributes {
				out.attributesJSON = &attributesJSON{toAttributes(u.Attributes)}
			}
			return &out
		}
		out := toUserPublic(c.site, u, now)
		return &out
	}), nil
}

func (p *listUsersParams) filter() user.Filter {
	return user.Filter{
		Username: p.Username, Search: p.Search, Active: bool(p.Active), Blocked: bool(p.Blocked), External: bool(p.External),
		ExcludeExternal: p.ExcludeExternal, CreatedAfter: p.CreatedAfter, CreatedBefore: p.CreatedBefore,
		ExcludeInternal: p.ExcludeInternal, ExcludeBots: p.WithoutProjectBots,
		Humans: p.Humans, ExcludeHumans: p.ExcludeHumans, ExcludeActive: p.ExcludeActive, PublicEmail: p.PublicEmail,
		Admin: user.AdminFilter{
			ExternUID: p.ExternUID, Provider: p.Provider, SAMLProviderID: p.SAMLProviderID, TwoFactor: p.TwoFactor,
			WithoutProjects: p.NoProjects, Admins: p.Admins, Auditors: p.Auditors, SkipLDAP: p.SkipLDAP,
			Attributes: p.Attributes, WithAttributes: p.WithAttributes,
		},
	}
}

type userParams struct {
	ID int64 `param:"id"`
}

type getUserParams struct {
	userParams
	WithAttributes bool `param:"with_custom_attributes" doc:"Include custom attributes (administrators only)."`
}

// getUser: https://docs.gitlab.com/api/users/#retrieve-a-user
func (a *API) getUser(c *call, p getUserParams) (any, error) {
	u, err := a.Users.Get(c, c.actor, p.ID, p.WithAttributes && c.actor.Admin)
	if err != nil {
		return nil, err
	}
	now := a.Now()
	switch {
	case c.actor.Admin:
		out := toUserAdmin(c, u, now)
		if p.WithAttributes {
			out.attributesJSON = &attributesJSON{toAttributes(u.Attributes)}
		}
		return out, nil
	case user.MayReadProfile(c.actor, u):
		return toUserProfile(c.site, u, now), nil
	}
	return toUserPublic(c.site, u, now), nil
}

// getSelf: https://docs.gitlab.com/api/users/#retrieve-the-current-user
func (a *API) getSelf(c *call, _ struct{}) (any, error) {
	u, err := a.Users.Self(c, c.actor)
	if err != nil {
		return nil, err
	}
	if c.actor.Admin {
		out := toUserAdmin(c, u, a.Now())
		return &out, nil
	}
	out := toUserSelf(c, u, a.Now())
	return &out, nil
}

// userFieldParams are the attributes for create and update.
type userFieldParams struct {
	Admin               *bool                  `param:"admin"`
	Auditor             *bool                  `param:"auditor" tier:"premium"`
	Avatar              bind.Opt[*bind.Upload] `param:"avatar" doc:"Image file, at most 200 KiB; empty to remove."`
	Bio                 *string                `param:"bio"`
	CanCreateGroup      *bool                  `param:"can_create_group"`
	ColorSchemeID       *int64                 `param:"color_scheme_id"`
	CommitEmail         *string                `param:"commit_email" doc:"Confirmed email address of the user, or _private."`
	ExternUID           string                 `param:"extern_uid"`
	External            *bool                  `param:"external"`
	ExtraMinutes        bind.Opt[int64]        `param:"extra_shared_runners_minutes_limit" tier:"premium"`
	GroupIDForSAML      *int64                 `param:"group_id_for_saml" tier:"premium"`
	JobTitle            *string                `param:"job_title"`
	LinkedIn            *string                `param:"linkedin"`
	Location            *string                `param:"location"`
	Note                *string                `param:"note"`
	Organization        *string                `param:"organization"`
	PrivateProfile      *bool                  `param:"private_profile" doc:"Whether the profile is private; null for the default of the instance."`
	ProjectsLimit       *int64                 `param:"projects_limit"`
	Pronouns            *string                `param:"pronouns"`
	Provider            string                 `param:"provider"`
	PublicEmail         *string                `param:"public_email" doc:"Confirmed email address of the user."`
	Minutes             bind.Opt[int64]        `param:"shared_runners_minutes_limit" tier:"premium" doc:"Compute minutes limit; null inherits the default, 0 means unlimited."`
	Skype               *string                `param:"skype"`
	ThemeID             *int64                 `param:"theme_id"`
	Twitter             *string                `param:"twitter"`
	Discord             *string                `param:"discord"`
	ViewDiffsFileByFile *bool                  `param:"view_diffs_file_by_file"`
	WebsiteURL          *string                `param:"website_url"`
}

func (p *userFieldParams) fields(t Tier) user.Fields {
	f := user.Fields{
		Admin: p.Admin, External: p.External,
		Bio: p.Bio, Location: p.Location, PublicEmail: p.PublicEmail, CommitEmail: p.CommitEmail,
		Skype: p.Skype, LinkedIn: p.LinkedIn, Twitter: p.Twitter, Discord: p.Discord, WebsiteURL: p.WebsiteURL,
		Organization: p.Organization, JobTitle: p.JobTitle, Pronouns: p.Pronouns, Note: p.Note,
		CanCreateGroup: p.CanCreateGroup, PrivateProfile: p.PrivateProfile, ViewDiffsFileByFile: p.ViewDiffsFileByFile,
		ProjectsLimit: p.ProjectsLimit, ThemeID: p.ThemeID, ColorSchemeID: p.ColorSchemeID,
		Provider: p.Provider, ExternUID: p.ExternUID, Avatar: toAvatarFile(p.Avatar.Value), RemoveAvatar: p.Avatar.Null,
	}
	if t < Premium {
		return f
	}
	f.Auditor, f.SAMLProviderID = p.Auditor, p.GroupIDForSAML
	f.CIMinutesLimit, f.ExtraCIMinutesLimit = numberOrNull(p.Minutes), numberOrNull(p.ExtraMinutes)
	return f
}

// numberOrNull returns nil for an absent value, a pointer to nil for null, and a
// pointer to the number otherwise.
func numberOrNull(o bind.Opt[int64]) **int64 {
	if !o.Set {
		return nil
	}
	var n *int64
	if !o.Null {
		n = &o.Value
	}
	return &n
}

type createUserParams struct {
	Email               string `param:"email,required"`
	Name                string `param:"name,required"`
	Username            string `param:"username,required"`
	Password            string `param:"password" secret:"true"`
	ResetPassword       bool   `param:"reset_password"`
	ForceRandomPassword bool   `param:"force_random_password"`
	SkipConfirmation    bool   `param:"skip_confirmation"`
	userFieldParams
}

func (createUserParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("password", "reset_password", "force_random_password")}
}

func (p *createUserParams) check() error {
	if p.Password == "" && !p.ResetPassword && !p.ForceRandomPassword {
		return bind.Invalid("password is missing")
	}
	return nil
}

// createUser: https://docs.gitlab.com/api/users/#create-a-user
func (a *API) createUser(c *call, p createUserParams) (any, error) {
	u, err := a.Users.Create(c, c.actor, user.NewUser{
		Email: p.Email, Name: p.Name, Username: p.Username, Password: p.Password,
		ResetPassword: p.ResetPassword, ForceRandomPassword: p.ForceRandomPassword, SkipConfirmation: p.SkipConfirmation,
		Fields: p.fields(a.Site.Tier),
	})
	if err != nil {
		return nil, err
	}
	return toUserAdmin(c, u, a.Now()), nil
}

type updateUserParams struct {
	userParams
	Email              *string `param:"email,nonblank" doc:"Secondary email address of the user."`
	Name               *string `param:"name,nonblank"`
	Username           *string `param:"username,nonblank"`
	Password           *string `param:"password,nonblank" secret:"true"`
	SkipReconfirmation bool    `param:"skip_reconfirmation"`
	userFieldParams
}

// updateUser: https://docs.gitlab.com/api/users/#modify-a-user
func (a *API) updateUser(c *call, p updateUserParams) (any, error) {
	u, err := a.Users.Update(c, c.actor, p.ID, user.Change{
		Email: p.Email, Name: p.Name, Username: p.Username, Password: p.Password,
		SkipReconfirmation: p.SkipReconfirmation, Fields: p.fields(a.Site.Tier),
	})
	if err != nil {
		return nil, err
	}
	return toUserAdmin(c, u, a.Now()), nil
}

type deleteUserParams struct {
	userParams
	HardDelete bool `param:"hard_delete" doc:"Delete contributions instead of moving them to the ghost user."`
}

// deleteUser: https://docs.gitlab.com/api/users/#delete-a-user
func (a *API) deleteUser(c *call, p deleteUserParams) (none, error) {
	return none{}, a.Users.Delete(c, c.actor, p.ID, p.HardDelete, c.unmodifiedSince())
}

type activitiesParams struct {
	From *bind.Date `param:"from" doc:"First date in the format YYYY-MM-DD. Default is six months ago."`
	pageParams
}

type activityJSON struct {
	Username       string `json:"username"`
	LastActivityOn day    `json:"last_activity_on"`
	LastActivityAt day    `json:"last_activity_at"` // deprecated
}

// listActivities: https://docs.gitlab.com/api/users/#list-a-users-activity
func (a *API) listActivities(c *call, p activitiesParams) (page[activityJSON], error) {
	from := ""
	if p.From != nil {
		from = p.From.String()
	}
	list, err := a.Users.Activities(c, c.actor, from, p.paging())
	if err != nil {
		return page[activityJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(u user.Activity) activityJSON {
		return activityJSON{Username: u.Username, LastActivityOn: day(u.On), LastActivityAt: day(u.On)}
	}), nil
}
