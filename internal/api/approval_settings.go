package api

import (
	"svc/internal/merge"
	"svc/internal/patch"
	"svc/internal/project"
)

func (a *API) approvalSettingRoutes() {
	a.tag("Merge request approval settings")
	const at = "/projects/{id}/merge_request_approval_setting"
	handle(a, "GET "+at, readAPI, a.getApprovalSetting, summary("Get merge request approval settings of a project"))
	handle(a, "PUT "+at, writeAPI, a.changeApprovalSetting, summary("Update merge request approval settings of a project"))
	const of = "/groups/{id}/merge_request_approval_setting"
	handle(a, "GET "+of, readAPI, a.getGroupApprovalSetting, summary("Get merge request approval settings of a group"))
	handle(a, "PUT "+of, writeAPI, a.changeGroupApprovalSetting, summary("Update merge request approval settings of a group"))
}

// approvalSettingJSON is one approval setting.
type approvalSettingJSON struct {
	Value         bool    `json:"value"`
	Locked        bool    `json:"locked"`         // a group enforces the value
	InheritedFrom *string `json:"inherited_from"` // group, if it is locked
}

// approvalSettingsJSON has the settings of approvalConfigJSON with the field names
// of the newer API.
type approvalSettingsJSON struct {
	AuthorApproval    approvalSettingJSON `json:"allow_author_approval"`
	CommitterApproval approvalSettingJSON `json:"allow_committer_approval"`
	Overrides         approvalSettingJSON `json:"allow_overrides_to_approver_list_per_merge_request"`
	RetainOnPush      approvalSettingJSON `json:"retain_approvals_on_push"`
	SelectiveRemovals approvalSettingJSON `json:"selective_code_owner_removals"`
	Password          approvalSettingJSON `json:"require_password_to_approve"`
	Reauthentication  approvalSettingJSON `json:"require_reauthentication_to_approve"`
}

func presentApprovalSettings(s merge.ApprovalConfig, err error) (approvalSettingsJSON, error) {
	is := func(value, locked bool) approvalSettingJSON {
		out := approvalSettingJSON{Value: value, Locked: locked}
		if locked {
			group := "group"
			out.InheritedFrom = &group
		}
		return out
	}
	l := s.Locked
	return approvalSettingsJSON{
		is(s.AuthorApproval, l.PreventAuthor), is(!s.DisableCommitters, l.PreventCommitters), is(!s.DisableOverriding, l.PreventOverriding),
		is(!s.ResetOnPush, l.ResetOnPush), is(s.SelectiveRemovals, l.SelectiveRemovals), is(s.PasswordToApprove, l.PasswordToApprove),
		is(s.PasswordToApprove, l.PasswordToApprove),
	}, err
}

// presentGroupApprovals returns the representation of the settings of a group. They
// are never locked, because only top-level groups have them.
func presentGroupApprovals(l project.ApprovalLimits, err error) (approvalSettingsJSON, error) {
	return presentApprovalSettings(merge.ApprovalConfig{ApprovalSettings: project.ApprovalSettings{
		AuthorApproval: !l.PreventAuthor, DisableCommitters: l.PreventCommitters, DisableOverriding: l.PreventOverriding, ResetOnPush: l.ResetOnPush,
		SelectiveRemovals: l.SelectiveRemovals, PasswordToApprove: l.PasswordToApprove,
	}}, err)
}

// getGroupApprovalSetting: https://docs.gitlab.com/api/merge_request_approval_settings/#get-group-mr-approval-settings
func (a *API) getGroupApprovalSetting(c *call, p inGroupParams) (approvalSettingsJSON, error) {
	return presentGroupApprovals(a.Projects.GroupApprovals(c, c.actor, p.Group))
}

type groupApprovalSettingParams struct {
	inGroupParams
	approvalSettingFields
}

// changeGroupApprovalSetting: https://docs.gitlab.com/api/merge_request_approval_settings/#update-group-mr-approval-settings
func (a *API) changeGroupApprovalSetting(c *call, p groupApprovalSettingParams) (approvalSettingsJSON, error) {
	return presentGroupApprovals(a.Projects.LimitApprovals(c, c.actor, p.Group, func(l *project.ApprovalLimits) {
		patch.Set(&l.PreventAuthor, not(p.AuthorApproval))
		patch.Set(&l.PreventCommitters, not(p.CommitterApproval))
		patch.Set(&l.PreventOverriding, not(p.Overrides))
		patch.Set(&l.ResetOnPush, not(p.RetainOnPush))
		patch.Set(&l.SelectiveRemovals, p.SelectiveRemovals)
		patch.Set(&l.PasswordToApprove, p.Password)
	}))
}

// getApprovalSetting: https://docs.gitlab.com/api/merge_request_approval_settings/#get-project-mr-approval-settings
func (a *API) getApprovalSetting(c *call, p projectParams) (approvalSettingsJSON, error) {
	return presentApprovalSettings(a.Merges.ApprovalConfig(c, c.actor, p.Project))
}

// approvalSettingFields are the parameters to change approval settings.
type approvalSettingFields struct {
	AuthorApproval    *bool `param:"allow_author_approval"`
	CommitterApproval *bool `param:"allow_committer_approval"`
	Overrides         *bool `param:"allow_overrides_to_approver_list_per_merge_request"`
	RetainOnPush      *bool `param:"retain_approvals_on_push"`
	SelectiveRemovals *bool `param:"selective_code_owner_removals" doc:"Reset the approvals of code owners whose files changed; needs retain_approvals_on_push."`
	Password          *bool `param:"require_reauthentication_to_approve" aliases:"require_password_to_approve"`
}

type approvalSettingParams struct {
	projectParams
	approvalSettingFields
}

// not negates a parameter if it was sent.
func not(b *bool) *bool {
	if b == nil {
		return nil
	}
	other := !*b
	return &other
}

// changeApprovalSetting: https://docs.gitlab.com/api/merge_request_approval_settings/#update-project-mr-approval-settings
func (a *API) changeApprovalSetting(c *call, p approvalSettingParams) (approvalSettingsJSON, error) {
	return presentApprovalSettings(a.Merges.ConfigureApprovals(c, c.actor, p.Project, func(s *project.ApprovalSettings) {
		patch.Set(&s.AuthorApproval, p.AuthorApproval)
		patch.Set(&s.DisableCommitters, not(p.CommitterApproval))
		patch.Set(&s.DisableOverriding, not(p.Overrides))
		patch.Set(&s.ResetOnPush, not(p.RetainOnPush))
		patch.Set(&s.SelectiveRemovals, p.SelectiveRemovals)
		patch.Set(&s.PasswordToApprove, p.Password)
	}))
}
