package api

import (
	"svc/internal/patch"
	"svc/internal/project"
)

// groupFixedJSON has fixed values for the fields of features that svc does not have.
type groupFixedJSON struct {
	AllowedEmailDomains *string    `json:"allowed_email_domains_list"`
	AutoDevops          bool       `json:"auto_devops_enabled"`
	RequireTwoFactor    bool       `json:"require_two_factor_authentication"`
	IPRestrictionRanges *string    `json:"ip_restriction_ranges"`
	FileTemplateProject *int64     `json:"file_template_project_id"`
	MaxArtifactsSize    *int64     `json:"max_artifacts_size"`
	MinutesLimit        *int64     `json:"shared_runners_minutes_limit"`
	ExtraMinutesLimit   *int64     `json:"extra_shared_runners_minutes_limit"`
	LDAPCN              *string    `json:"ldap_cn"`
	LDAPAccess          *int64     `json:"ldap_access"`
	LDAPLinks           []struct{} `json:"ldap_group_links"`
	SAMLLinks           []struct{} `json:"saml_group_links"`
}

// branchProtectionJSON is the protection of the default branch of new projects.
type branchProtectionJSON struct {
	AllowedToPush     []roleJSON `json:"allowed_to_push"`
	AllowForcePush    bool       `json:"allow_force_push"`
	AllowedToMerge    []roleJSON `json:"allowed_to_merge"`
	InitialPush       bool       `json:"developer_can_initial_push"`
	CodeOwnerApproval bool       `json:"code_owner_approval_required"`
}

type roleJSON struct {
	AccessLevel int64 `json:"access_level"`
}

func toBranchProtection(b project.BranchProtection) branchProtectionJSON {
	role := func(l project.Level) roleJSON { return roleJSON{int64(l)} }
	return branchProtectionJSON{mapped(b.Push, role), b.ForcePush, mapped(b.Merge, role), b.InitialPush, b.CodeOwnerApproval}
}

// branchProtectionParams change the protection of the default branch of new
// projects.
type branchProtectionParams struct {
	AllowedToPush     *[]roleParams `param:"allowed_to_push" doc:"Roles that can push: 0, 30 or 40."`
	AllowForcePush    *bool         `param:"allow_force_push"`
	AllowedToMerge    *[]roleParams `param:"allowed_to_merge" doc:"Roles that can merge: 0, 30 or 40."`
	InitialPush       *bool         `param:"developer_can_initial_push"`
	CodeOwnerApproval *bool         `param:"code_owner_approval_required"`
}

type roleParams struct {
	AccessLevel int64 `param:"access_level" enum:"0,30,40"`
}

// change returns b with the changes. If b is nil, the changes apply to full
// protection.
func (p *branchProtectionParams) change(b *project.BranchProtection) *project.BranchProtection {
	next := project.ProtectionOf(project.FullProtection)
	if b != nil {
		next = *b
	}
	level := func(r roleParams) project.Level { return project.Level(r.AccessLevel) }
	if p.AllowedToPush != nil {
		next.Push = mapped(*p.AllowedToPush, level)
	}
	if p.AllowedToMerge != nil {
		next.Merge = mapped(*p.AllowedToMerge, level)
	}
	patch.Set(&next.ForcePush, p.AllowForcePush)
	patch.Set(&next.InitialPush, p.InitialPush)
	patch.Set(&next.CodeOwnerApproval, p.CodeOwnerApproval)
	return &next
}
