package api

import (
	"svc/internal/patch"
	"svc/internal/project"
)

func (a *API) approvalSettingRoutes() {
	a.tag("Merge request approval settings")
	const at = "/projects/{id}/merge_request_approval_setting"
	handle(a, "GET "+at, readAPI, a.getApprovalSetting, summary("Get merge request approval settings of a project"))
	handle(a, "PUT "+at, writeAPI, a.changeApprovalSetting, summary("Update merge request approval settings of a project"))
}

// approvalSettingJSON is one approval setting. Groups have none, so that it is
// neither locked nor inherited.
type approvalSettingJSON struct {
	Value         bool    `json:"value"`
	Locked        bool    `json:"locked"`
	InheritedFrom *string `json:"inherited_from"`
}

// approvalSettingsJSON are the settings of approvalConfigJSON in the words of a
// later API.
type approvalSettingsJSON struct {
	AuthorApproval    approvalSettingJSON `json:"allow_author_approval"`
	CommitterApproval approvalSettingJSON `json:"allow_committer_approval"`
	Overrides         approvalSettingJSON `json:"allow_overrides_to_approver_list_per_merge_request"`
	RetainOnPush      approvalSettingJSON `json:"retain_approvals_on_push"`
	SelectiveRemovals approvalSettingJSON `json:"selective_code_owner_removals"`
	Password          approvalSettingJSON `json:"require_password_to_approve"`
	Reauthentication  approvalSettingJSON `json:"require_reauthentication_to_approve"`
}

func presentApprovalSettings(s project.ApprovalSettings, err error) (approvalSettingsJSON, error) {
	is := func(value bool) approvalSettingJSON { return approvalSettingJSON{Value: value} }
	return approvalSettingsJSON{
		is(s.AuthorApproval), is(!s.DisableCommitters), is(!s.DisableOverriding), is(!s.ResetOnPush), is(s.SelectiveRemovals),
		is(s.PasswordToApprove), is(s.PasswordToApprove),
	}, err
}

// getApprovalSetting: https://docs.gitlab.com/api/merge_request_approval_settings/#get-project-mr-approval-settings
func (a *API) getApprovalSetting(c *call, p projectParams) (approvalSettingsJSON, error) {
	return presentApprovalSettings(a.Merges.ApprovalConfig(c, c.actor, p.Project))
}

type approvalSettingParams struct {
	projectParams
	AuthorApproval    *bool `param:"allow_author_approval"`
	CommitterApproval *bool `param:"allow_committer_approval"`
	Overrides         *bool `param:"allow_overrides_to_approver_list_per_merge_request"`
	RetainOnPush      *bool `param:"retain_approvals_on_push"`
	SelectiveRemovals *bool `param:"selective_code_owner_removals" doc:"Reset the approvals of code owners whose files changed; needs retain_approvals_on_push."`
	Password          *bool `param:"require_reauthentication_to_approve" aliases:"require_password_to_approve"`
}

// changeApprovalSetting: https://docs.gitlab.com/api/merge_request_approval_settings/#update-project-mr-approval-settings
func (a *API) changeApprovalSetting(c *call, p approvalSettingParams) (approvalSettingsJSON, error) {
	not := func(b *bool) *bool {
		if b == nil {
			return nil
		}
		other := !*b
		return &other
	}
	return presentApprovalSettings(a.Merges.ConfigureApprovals(c, c.actor, p.Project, func(s *project.ApprovalSettings) {
		patch.Set(&s.AuthorApproval, p.AuthorApproval)
		patch.Set(&s.DisableCommitters, not(p.CommitterApproval))
		patch.Set(&s.DisableOverriding, not(p.Overrides))
		patch.Set(&s.ResetOnPush, not(p.RetainOnPush))
		patch.Set(&s.SelectiveRemovals, p.SelectiveRemovals)
		patch.Set(&s.PasswordToApprove, p.Password)
	}))
}
