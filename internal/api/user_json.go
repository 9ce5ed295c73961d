package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/picture"
	"svc/internal/user"
)

// userPublicJSON is a user for all callers.
type userPublicJSON struct {
	ID        int64   `json:"id"`
	Username  string  `json:"username"`
	Name      string  `json:"name"`
	State     string  `json:"state"`
	Locked    bool    `json:"locked"`
	AvatarURL *string `json:"avatar_url"`
	WebURL    string  `json:"web_url"`
}

// userProfileJSON is a user for authenticated users.
type userProfileJSON struct {
	userPublicJSON
	CreatedAt       stamp   `json:"created_at"`
	Bio             string  `json:"bio"`
	Bot             bool    `json:"bot"`
	Location        *string `json:"location"`
	PublicEmail     string  `json:"public_email"`
	Skype           string  `json:"skype"`
	LinkedIn        string  `json:"linkedin"`
	Twitter         string  `json:"twitter"`
	Discord         string  `json:"discord"`
	WebsiteURL      string  `json:"website_url"`
	Organization    string  `json:"organization"`
	JobTitle        string  `json:"job_title"`
	Pronouns        string  `json:"pronouns"`
	WorkInformation *string `json:"work_information"`
	Followers       int64   `json:"followers"`
	Following       int64   `json:"following"`
	LocalTime       string  `json:"local_time"`
	IsFollowed      bool    `json:"is_followed"`
}

// userSelfJSON is the current user.
type userSelfJSON struct {
	userProfileJSON
	Email            string         `json:"email"`
	LastSignInAt     *stamp         `json:"last_sign_in_at"`
	CurrentSignInAt  *stamp         `json:"current_sign_in_at"`
	ConfirmedAt      *stamp         `json:"confirmed_at"`
	ThemeID          int64          `json:"theme_id"`
	ColorSchemeID    int64          `json:"color_scheme_id"`
	LastActivityOn   *day           `json:"last_activity_on"`
	ProjectsLimit    int64          `json:"projects_limit"`
	Identities       []identityJSON `json:"identities"`
	CanCreateGroup   bool           `json:"can_create_group"`
	CanCreateProject bool           `json:"can_create_project"`
	TwoFactorEnabled bool           `json:"two_factor_enabled"`
	External         bool           `json:"external"`
	PrivateProfile   bool           `json:"private_profile"`
	CommitEmail      string         `json:"commit_email"`

	// Premium.
	*userMinutesJSON
}

// userMinutesJSON has the fields of the Premium tier.
type userMinutesJSON struct {
	MinutesLimit      *int64             `json:"shared_runners_minutes_limit"`
	ExtraMinutesLimit *int64             `json:"extra_shared_runners_minutes_limit"`
	ScimIdentities    []scimIdentityJSON `json:"scim_identities"`
}

// userAdminJSON is a user for administrators.
type userAdminJSON struct {
	userSelfJSON
	IsAdmin             bool            `json:"is_admin"`
	Note                string          `json:"note"`
	CurrentSignInIP     *string         `json:"current_sign_in_ip"`
	LastSignInIP        *string         `json:"last_sign_in_ip"`
	Plan                *string         `json:"plan"`
	Trial               *bool           `json:"trial"`
	SignInCount         int64           `json:"sign_in_count"`
	NamespaceID         int64           `json:"namespace_id"`
	CreatedBy           *userPublicJSON `json:"created_by"`
	EmailResetOfferedAt *stamp          `json:"email_reset_offered_at"`

	// Premium.
	*userSeatJSON

	*attributesJSON
}

// userSeatJSON has the fields of the Premium tier for administrators.
type userSeatJSON struct {
	IsAuditor            bool   `json:"is_auditor"`
	UsingLicenseSeat     bool   `json:"using_license_seat"`
	ProvisionedByGroupID *int64 `json:"provisioned_by_group_id"`
}

type identityJSON struct {
	Provider       string `json:"provider"`
	ExternUID      string `json:"extern_uid"`
	SAMLProviderID *int64 `json:"saml_provider_id"`
}

// scimIdentityJSON is an identity of a provisioning service.
type scimIdentityJSON struct {
	ExternUID string `json:"extern_uid"`
	GroupID   *int64 `json:"group_id"`
	Active    bool   `json:"active"`
}

type attributeJSON struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// attributesJSON is the custom attributes of a user, group or project, if they were
// requested.
type attributesJSON struct {
	CustomAttributes []attributeJSON `json:"custom_attributes"`
}

func toAttributes(list []user.Attribute) []attributeJSON {
	return mapped(list, func(a user.Attribute) attributeJSON { return attributeJSON{a.Key, a.Value} })
}

func toUserPublic(site *Site, u *user.User, now time.Time) userPublicJSON {
	return userPublicJSON{
		ID: u.ID, Username: u.Username, Name: u.Name, State: string(u.State), Locked: u.Locked(now),
		AvatarURL: avatarURL(site, u), WebURL: site.URL + "/" + u.Username,
	}
}

// avatarURL returns the URL of the avatar of a user, or nil if the user has none.
// svc does not use external avatar services.
func avatarURL(site *Site, u *user.User) *string {
	return pictureURL(site, "user", u.ID, u.Avatar)
}

// toAvatarFile converts an upload. It returns nil if f is nil.
func toAvatarFile(f *bind.Upload) *picture.File {
	if f == nil {
		return nil
	}
	return &picture.File{Name: f.Name, Data: f.Open()}
}

func toUserProfile(site *Site, u *user.User, now time.Time) userProfileJSON {
	return userProfileJSON{
		userPublicJSON: toUserPublic(site, u, now),
		CreatedAt:      toStamp(u.CreatedAt), Bio: u.Bio, Bot: u.Bot(), Location: textOrNull(u.Location), PublicEmail: u.PublicEmail,
		Skype: u.Skype, LinkedIn: u.LinkedIn, Twitter: u.Twitter, Discord: u.Discord, WebsiteURL: u.WebsiteURL,
		Organization: u.Organization, JobTitle: u.JobTitle, Pronouns: u.Pronouns, WorkInformation: textOrNull(u.WorkInformation()),
		Followers: u.Followers, Following: u.Following, LocalTime: u.LocalTime(now), IsFollowed: u.IsFollowed,
	}
}

func toUserSelf(c *call, u *user.User, now time.Time) userSelfJSON {
	out := userSelfJSON{
		userProfileJSON: toUserProfile(c.site, u, now),
		Email:           u.Email, LastSignInAt: toStampOrNull(u.LastSignInAt), CurrentSignInAt: toStampOrNull(u.CurrentSignInAt),
		ConfirmedAt: toStampOrNull(u.ConfirmedAt), ThemeID: u.ThemeID, ColorSchemeID: u.ColorSchemeID,
		LastActivityOn: toDayOrNull(u.LastActivityOn), ProjectsLimit: u.ProjectsLimit,
		Identities: mapped(u.Identities, func(i user.Identity) identityJSON {
			return identityJSON{i.Provider, i.ExternUID, i.SAMLProviderID}
		}),
		CanCreateGroup: u.CanCreateGroup, CanCreateProject: u.PersonalProjects() > 0, TwoFactorEnabled: u.TwoFactorEnabled,
		External: u.External, PrivateProfile: u.PrivateProfile, CommitEmail: u.CommitAddress(c.site.Host()),
	}
	if c.site.Tier >= Premium {
		out.userMinutesJSON = &userMinutesJSON{
			MinutesLimit: u.CIMinutesLimit, ExtraMinutesLimit: u.ExtraCIMinutesLimit, ScimIdentities: scimIdentities(u.Identities),
		}
	}
	return out
}

// scimIdentities returns the identities of provisioning services.
func scimIdentities(list []user.Identity) []scimIdentityJSON {
	found := []scimIdentityJSON{}
	for _, i := range list {
		if i.Provider == "scim" {
			found = append(found, scimIdentityJSON{ExternUID: i.ExternUID, GroupID: i.SAMLProviderID, Active: true})
		}
	}
	return found
}

func toUserAdmin(c *call, u *user.User, now time.Time) userAdminJSON {
	out := userAdminJSON{
		userSelfJSON: toUserSelf(c, u, now),
		IsAdmin:      u.Admin, Note: u.Note, CurrentSignInIP: textOrNull(u.CurrentSignInIP), LastSignInIP: textOrNull(u.LastSignInIP),
		SignInCount: u.SignInCount, NamespaceID: u.NamespaceID,
	}
	if u.Creator != nil {
		creator := toUserPublic(c.site, u.Creator, now)
		out.CreatedBy = &creator
	}
	if c.site.Tier >= Premium {
		out.userSeatJSON = &userSeatJSON{IsAuditor: u.Auditor, UsingLicenseSeat: u.State == user.Active && !u.Bot() && !u.Internal()}
	}
	return out
}
