package api

import (
	"svc/internal/bind"
	"svc/internal/user"
)

func (a *API) userPreferenceRoutes() {
	a.tag("User preferences")
	handle(a, "GET /user/preferences", readUser, a.getPreferences, summary("Get the preferences of the current user"))
	handle(a, "PUT /user/preferences", writeAPI, a.updatePreferences, summary("Update the preferences of the current user"))
}

type preferencesJSON struct {
	ID             int64 `json:"id"`
	UserID         int64 `json:"user_id"`
	FileByFile     bool  `json:"view_diffs_file_by_file"`
	ShowWhitespace bool  `json:"show_whitespace_in_diffs"`
	PassIdentities bool  `json:"pass_user_identities_to_ci_jwt"`
}

func presentPreferences(u *user.User, err error) (preferencesJSON, error) {
	if err != nil {
		return preferencesJSON{}, err
	}
	return preferencesJSON{u.ID, u.ID, u.ViewDiffsFileByFile, u.ShowWhitespaceInDiffs, u.Appearance.PassIdentities}, nil
}

// getPreferences: https://docs.gitlab.com/api/users/#get-your-user-preferences
func (a *API) getPreferences(c *call, _ struct{}) (preferencesJSON, error) {
	return presentPreferences(a.Users.Self(c, c.actor))
}

type preferenceParams struct {
	FileByFile     *bool `param:"view_diffs_file_by_file" doc:"Show only one file diff per page."`
	ShowWhitespace *bool `param:"show_whitespace_in_diffs" doc:"Show whitespace changes in diffs."`
	PassIdentities *bool `param:"pass_user_identities_to_ci_jwt" doc:"Include the identities of the user in ID tokens of CI/CD jobs."`
}

func (preferenceParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("view_diffs_file_by_file", "show_whitespace_in_diffs", "pass_user_identities_to_ci_jwt")}
}

// updatePreferences: https://docs.gitlab.com/api/users/#update-your-user-preferences
func (a *API) updatePreferences(c *call, p preferenceParams) (preferencesJSON, error) {
	return presentPreferences(a.Users.SetPreferences(c, c.actor, user.PreferenceChange{
		ViewDiffsFileByFile: p.FileByFile, ShowWhitespaceInDiffs: p.ShowWhitespace, PassIdentities: p.PassIdentities,
	}))
}
