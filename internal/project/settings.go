package project

import (
	"slices"

	"svc/internal/errs"
	"svc/internal/git"
)

// Feature is the access level of a feature of a project: disabled, private or
// enabled.
type Feature string

// The values of a Feature. Everyone is only for Pages and the package registry.
const (
	Disabled    Feature = "disabled"
	MembersOnly Feature = "private"
	Enabled     Feature = "enabled" // everyone who can see the project
	Everyone    Feature = "public"
)

// Settings are the settings of a project. They are stored as JSON and read with
// the project.
type Settings struct {
	Forking               Feature
	Wiki                  Feature
	Snippets              Feature
	Pages                 Feature
	Analytics             Feature
	ContainerRegistry     Feature
	PackageRegistry       Feature
	SecurityAndCompliance Feature
	Releases              Feature
	Environments          Feature
	FeatureFlags          Feature
	Infrastructure        Feature
	Monitor               Feature
	ModelExperiments      Feature
	ModelRegistry         Feature
	Requirements          Feature

	MergeMethod                               string // merge, rebase_merge or ff
	SquashOption                              string // never, always, default_on or default_off
	OnlyAllowMergeIfPipelineSucceeds          bool
	AllowMergeOnSkippedPipeline               bool
	OnlyAllowMergeIfAllDiscussionsAreResolved bool
	ResolveOutdatedDiffDiscussions            bool // resolve threads when a push changes their lines
	RemoveSourceBranchAfterMerge              bool
	PrintingMergeRequestLinkEnabled           bool
	AutocloseReferencedIssues                 bool
	MergeCommitTemplate                       string
	SquashCommitTemplate                      string
	SuggestionCommitMessage                   string
	IssuesTemplate                            string
	MergeRequestsTemplate                     string
	IssueBranchTemplate                       string // template of branch names; empty means %{id}-%{title}
	Approvals                                 ApprovalSettings

	LFSEnabled           bool
	RequestAccessEnabled bool
	EmailsEnabled        bool

	SharedRunnersEnabled                   bool
	GroupRunnersEnabled                    bool
	BuildTimeout                           int64  // seconds
	BuildGitStrategy                       string // fetch or clone
	AutoCancelPendingPipelines             string // enabled or disabled
	AutoDevopsDeployStrategy               string
	CIConfigPath                           string
	CIDefaultGitDepth                      int64
	CIForwardDeploymentEnabled             bool
	CIForwardDeploymentRollbackAllowed     bool
	CITriggererMayApprove                  bool // the user who starts a pipeline may approve its deployments
	CISeparatedCaches                      bool
	CIJobTokenScopeEnabled                 bool
	CIPipelineVariablesMinimumOverrideRole string
	KeepLatestArtifact                     bool
	PublicJobs                             bool
	EnforceAuthChecksOnUploads             bool
	WarnAboutPotentiallyUnwantedCharacters bool
	ShowDefaultAwardEmojis                 bool
}

func defaultSettings() Settings {
	return Settings{
		Forking: Enabled, Wiki: Enabled, Snippets: Enabled, Pages: MembersOnly, Analytics: Enabled, ContainerRegistry: Enabled, PackageRegistry: Enabled,
		SecurityAndCompliance: MembersOnly, Releases: Enabled, Environments: Enabled, FeatureFlags: Enabled, Infrastructure: Enabled,
		Monitor: Enabled, ModelExperiments: Enabled, ModelRegistry: Enabled, Requirements: Enabled,
		MergeMethod: "merge", SquashOption: "default_off", PrintingMergeRequestLinkEnabled: true, AutocloseReferencedIssues: true,
		RemoveSourceBranchAfterMerge: true, Approvals: defaultApprovalSettings(),
		LFSEnabled: true, RequestAccessEnabled: true, EmailsEnabled: true,
		SharedRunnersEnabled: true, GroupRunnersEnabled: true, BuildTimeout: 3600, BuildGitStrategy: "fetch", AutoCancelPendingPipelines: "enabled",
		AutoDevopsDeployStrategy: "continuous", CIDefaultGitDepth: 20, CIForwardDeploymentEnabled: true, CIForwardDeploymentRollbackAllowed: true,
		CISeparatedCaches: true, CIPipelineVariablesMinimumOverrideRole: "developer",
		KeepLatestArtifact: true, PublicJobs: true, EnforceAuthChecksOnUploads: true, WarnAboutPotentiallyUnwantedCharacters: true,
		ShowDefaultAwardEmojis: true,
	}
}

// overrideRoles are the values of ci_pipeline_variables_minimum_override_role.
var overrideRoles = []string{"developer", "maintainer", "owner", "no_one_allowed"}

// overrideRoleForOwners reports whether a change moves the role that may override
// pipeline variables to or from a value above Maintainer.
func (s *Settings) overrideRoleForOwners(next *Settings) bool {
	was, is := s.CIPipelineVariablesMinimumOverrideRole, next.CIPipelineVariablesMinimumOverrideRole
	above := []string{"owner", "no_one_allowed"}
	return was != is && (slices.Contains(above, was) || slices.Contains(above, is))
}

// check validates the settings.
func (s *Settings) check(wrong errs.Fields) {
	for name, c := range map[string]struct {
		value string
		among []string
	}{
		"merge_method":                                {s.MergeMethod, []string{"merge", "rebase_merge", "ff"}},
		"squash_option":                               {s.SquashOption, []string{"never", "always", "default_on", "default_off"}},
		"build_git_strategy":                          {s.BuildGitStrategy, []string{"fetch", "clone"}},
		"auto_cancel_pending_pipelines":               {s.AutoCancelPendingPipelines, []string{"enabled", "disabled"}},
		"auto_devops_deploy_strategy":                 {s.AutoDevopsDeployStrategy, []string{"continuous", "manual", "timed_incremental"}},
		"ci_pipeline_variables_minimum_override_role": {s.CIPipelineVariablesMinimumOverrideRole, overrideRoles},
	} {
		if !slices.Contains(c.among, c.value) {
			wrong.Set(name, "is not included in the list")
		}
	}
	s.Approvals.check(wrong)
	if s.BuildTimeout < 600 || s.BuildTimeout > 30*24*3600 {
		wrong.Set("build_timeout", "needs to be between 10 minutes and 1 month")
	}
	if s.CIDefaultGitDepth < 0 || s.CIDefaultGitDepth > 1000 {
		wrong.Set("ci_default_git_depth", "must be less than or equal to 1000")
	}
	for name, text := range map[string]string{
		"merge_commit_template": s.MergeCommitTemplate, "squash_commit_template": s.SquashCommitTemplate,
		"suggestion_commit_message": s.SuggestionCommitMessage, "ci_config_path": s.CIConfigPath, "issue_branch_template": s.IssueBranchTemplate,
	} {
		if len(text) > maxTemplate {
			wrong.Set(name, "is too long (maximum is %d characters)", maxTemplate)
		}
	}
}

// maxTemplate is the maximum length of a template in bytes.
const maxTemplate = 500

func (g *GroupSettings) check(wrong errs.Fields) {
	for name, c := range map[string]struct {
		value string
		among []string
	}{
		"project_creation_level":  {g.ProjectCreationLevel, []string{"noone", "owner", "maintainer", "developer", "administrator"}},
		"subgroup_creation_level": {g.SubgroupCreationLevel, []string{"owner", "maintainer"}},
		"shared_runners_setting":  {g.SharedRunnersSetting, []string{"enabled", "disabled_and_overridable", "disabled_and_unoverridable"}},
	} {
		if !slices.Contains(c.among, c.value) {
			wrong.Set(name, "is not included in the list")
		}
	}
	if g.DefaultBranch != "" && git.CheckBranch(g.DefaultBranch) != nil {
		wrong.Set("default_branch", "is not a valid name of a branch")
	}
	g.Approvals.check(wrong)
	if g.TwoFactorGracePeriod < 0 {
		wrong.Set("two_factor_grace_period", "must be greater than or equal to 0")
	}
}
