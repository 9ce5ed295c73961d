package api

import (
	"svc/internal/patch"
	"svc/internal/project"
)

// projectSettingsJSON is the settings of a project. Its fields are those of
// project.Settings.
type projectSettingsJSON struct {
	Forking                                   project.Feature          `json:"forking_access_level"`
	Wiki                                      project.Feature          `json:"wiki_access_level"`
	Snippets                                  project.Feature          `json:"snippets_access_level"`
	Pages                                     project.Feature          `json:"pages_access_level"`
	Analytics                                 project.Feature          `json:"analytics_access_level"`
	ContainerRegistry                         project.Feature          `json:"container_registry_access_level"`
	PackageRegistry                           project.Feature          `json:"package_registry_access_level"`
	SecurityAndCompliance                     project.Feature          `json:"security_and_compliance_access_level"`
	Releases                                  project.Feature          `json:"releases_access_level"`
	Environments                              project.Feature          `json:"environments_access_level"`
	FeatureFlags                              project.Feature          `json:"feature_flags_access_level"`
	Infrastructure                            project.Feature          `json:"infrastructure_access_level"`
	Monitor                                   project.Feature          `json:"monitor_access_level"`
	ModelExperiments                          project.Feature          `json:"model_experiments_access_level"`
	ModelRegistry                             project.Feature          `json:"model_registry_access_level"`
	Requirements                              project.Feature          `json:"requirements_access_level"`
	MergeMethod                               string                   `json:"merge_method"`
	SquashOption                              string                   `json:"squash_option"`
	OnlyAllowMergeIfPipelineSucceeds          bool                     `json:"only_allow_merge_if_pipeline_succeeds"`
	AllowMergeOnSkippedPipeline               bool                     `json:"allow_merge_on_skipped_pipeline"`
	OnlyAllowMergeIfAllDiscussionsAreResolved bool                     `json:"only_allow_merge_if_all_discussions_are_resolved"`
	ResolveOutdatedDiffDiscussions            bool                     `json:"resolve_outdated_diff_discussions"`
	RemoveSourceBranchAfterMerge              bool                     `json:"remove_source_branch_after_merge"`
	PrintingMergeRequestLinkEnabled           bool                     `json:"printing_merge_request_link_enabled"`
	AutocloseReferencedIssues                 bool                     `json:"autoclose_referenced_issues"`
	MergeCommitTemplate                       string                   `json:"merge_commit_template"`
	SquashCommitTemplate                      string                   `json:"squash_commit_template"`
	SuggestionCommitMessage                   string                   `json:"suggestion_commit_message"`
	IssuesTemplate                            string                   `json:"issues_template"`
	MergeRequestsTemplate                     string                   `json:"merge_requests_template"`
	IssueBranchTemplate                       string                   `json:"issue_branch_template"`
	Approvals                                 project.ApprovalSettings `json:"-"` // see approvals.go
	LFSEnabled                                bool                     `json:"lfs_enabled"`
	RequestAccessEnabled                      bool                     `json:"request_access_enabled"`
	EmailsEnabled                             bool                     `json:"emails_enabled"`
	SharedRunnersEnabled                      bool                     `json:"shared_runners_enabled"`
	GroupRunnersEnabled                       bool                     `json:"group_runners_enabled"`
	BuildTimeout                              int64                    `json:"build_timeout"`
	BuildGitStrategy                          string                   `json:"build_git_strategy"`
	AutoCancelPendingPipelines                string                   `json:"auto_cancel_pending_pipelines"`
	AutoDevopsDeployStrategy                  string                   `json:"auto_devops_deploy_strategy"`
	CIConfigPath                              string                   `json:"ci_config_path"`
	CIDefaultGitDepth                         int64                    `json:"ci_default_git_depth"`
	CIForwardDeploymentEnabled                bool                     `json:"ci_forward_deployment_enabled"`
	CIForwardDeploymentRollbackAllowed        bool                     `json:"ci_forward_deployment_rollback_allowed"`
	CITriggererMayApprove                     bool                     `json:"allow_pipeline_trigger_approve_deployment"`
	CISeparatedCaches                         bool                     `json:"ci_separated_caches"`
	CIJobTokenScopeEnabled                    bool                     `json:"ci_job_token_scope_enabled"`
	CIPipelineVariablesMinimumOverrideRole    string                   `json:"ci_pipeline_variables_minimum_override_role"`
	KeepLatestArtifact                        bool                     `json:"keep_latest_artifact"`
	PublicJobs                                bool                     `json:"public_jobs"`
	EnforceAuthChecksOnUploads                bool                     `json:"enforce_auth_checks_on_uploads"`
	WarnAboutPotentiallyUnwantedCharacters    bool                     `json:"warn_about_potentially_unwanted_characters"`
	ShowDefaultAwardEmojis                    bool                     `json:"show_default_award_emojis"`
}

// projectSettingParams are the settings for create and update. Flags that end in
// _enabled are deprecated; access levels take precedence.
type projectSettingParams struct {
	Issues        *project.Feature `param:"issues_access_level" enum:"disabled,private,enabled"`
	Repository    *project.Feature `param:"repository_access_level" enum:"disabled,private,enabled"`
	MergeRequests *project.Feature `param:"merge_requests_access_level" enum:"disabled,private,enabled"`
	Builds        *project.Feature `param:"builds_access_level" enum:"disabled,private,enabled"`

	IssuesEnabled        *bool `param:"issues_enabled"`
	MergeRequestsEnabled *bool `param:"merge_requests_enabled"`
	JobsEnabled          *bool `param:"jobs_enabled"`
	WikiEnabled          *bool `param:"wiki_enabled"`
	SnippetsEnabled      *bool `param:"snippets_enabled"`
	PackagesEnabled      *bool `param:"packages_enabled" doc:"Deprecated: use package_registry_access_level."`

	Forking                                   *project.Feature `param:"forking_access_level" enum:"disabled,private,enabled"`
	Wiki                                      *project.Feature `param:"wiki_access_level" enum:"disabled,private,enabled"`
	Snippets                                  *project.Feature `param:"snippets_access_level" enum:"disabled,private,enabled"`
	Pages                                     *project.Feature `param:"pages_access_level" enum:"disabled,private,enabled,public"`
	Analytics                                 *project.Feature `param:"analytics_access_level" enum:"disabled,private,enabled"`
	ContainerRegistry                         *project.Feature `param:"container_registry_access_level" enum:"disabled,private,enabled"`
	PackageRegistry                           *project.Feature `param:"package_registry_access_level" enum:"disabled,private,enabled,public" doc:"With public everyone can pull packages, even from a private project."`
	SecurityAndCompliance                     *project.Feature `param:"security_and_compliance_access_level" enum:"disabled,private,enabled"`
	Releases                                  *project.Feature `param:"releases_access_level" enum:"disabled,private,enabled"`
	Environments                              *project.Feature `param:"environments_access_level" enum:"disabled,private,enabled"`
	FeatureFlags                              *project.Feature `param:"feature_flags_access_level" enum:"disabled,private,enabled"`
	Infrastructure                            *project.Feature `param:"infrastructure_access_level" enum:"disabled,private,enabled"`
	Monitor                                   *project.Feature `param:"monitor_access_level" enum:"disabled,private,enabled"`
	ModelExperiments                          *project.Feature `param:"model_experiments_access_level" enum:"disabled,private,enabled"`
	ModelRegistry                             *project.Feature `param:"model_registry_access_level" enum:"disabled,private,enabled"`
	Requirements                              *project.Feature `param:"requirements_access_level" enum:"disabled,private,enabled"`
	MergeMethod                               *string          `param:"merge_method" enum:"merge,rebase_merge,ff"`
	SquashOption                              *string          `param:"squash_option" enum:"never,always,default_on,default_off"`
	OnlyAllowMergeIfPipelineSucceeds          *bool            `param:"only_allow_merge_if_pipeline_succeeds"`
	AllowMergeOnSkippedPipeline               *bool            `param:"allow_merge_on_skipped_pipeline"`
	OnlyAllowMergeIfAllDiscussionsAreResolved *bool            `param:"only_allow_merge_if_all_discussions_are_resolved"`
	ResolveOutdatedDiffDiscussions            *bool            `param:"resolve_outdated_diff_discussions" doc:"Whether threads on lines of merge requests are resolved when a push changes their lines."`
	RemoveSourceBranchAfterMerge              *bool            `param:"remove_source_branch_after_merge"`
	PrintingMergeRequestLinkEnabled           *bool            `param:"printing_merge_request_link_enabled"`
	AutocloseReferencedIssues                 *bool            `param:"autoclose_referenced_issues"`
	MergeCommitTemplate                       *string          `param:"merge_commit_template"`
	SquashCommitTemplate                      *string          `param:"squash_commit_template"`
	SuggestionCommitMessage                   *string          `param:"suggestion_commit_message"`
	IssuesTemplate                            *string          `param:"issues_template"`
	MergeRequestsTemplate                     *string          `param:"merge_requests_template"`
	IssueBranchTemplate                       *string          `param:"issue_branch_template" doc:"Template of the names of branches that are created from issues. Variables: %{id}, %{title}."`
	ApprovalsBeforeMerge                      *int64           `param:"approvals_before_merge" doc:"Deprecated: use approval rules."`
	LFSEnabled                                *bool            `param:"lfs_enabled"`
	RequestAccessEnabled                      *bool            `param:"request_access_enabled"`
	EmailsEnabled                             *bool            `param:"emails_enabled"`
	SharedRunnersEnabled                      *bool            `param:"shared_runners_enabled"`
	GroupRunnersEnabled                       *bool            `param:"group_runners_enabled"`
	BuildTimeout                              *int64           `param:"build_timeout"`
	BuildGitStrategy                          *string          `param:"build_git_strategy" enum:"fetch,clone"`
	AutoCancelPendingPipelines                *string          `param:"auto_cancel_pending_pipelines" enum:"enabled,disabled"`
	AutoDevopsDeployStrategy                  *string          `param:"auto_devops_deploy_strategy" enum:"continuous,manual,timed_incremental"`
	CIConfigPath                              *string          `param:"ci_config_path"`
	CIDefaultGitDepth                         *int64           `param:"ci_default_git_depth"`
	CIForwardDeploymentEnabled                *bool            `param:"ci_forward_deployment_enabled"`
	CIForwardDeploymentRollbackAllowed        *bool            `param:"ci_forward_deployment_rollback_allowed"`
	CITriggererMayApprove                     *bool            `param:"allow_pipeline_trigger_approve_deployment" doc:"Whether the user who started a pipeline may approve its deployments."`
	CISeparatedCaches                         *bool            `param:"ci_separated_caches"`
	CIJobTokenScopeEnabled                    *bool            `param:"ci_job_token_scope_enabled"`
	CIPipelineVariablesMinimumOverrideRole    *string          `param:"ci_pipeline_variables_minimum_override_role" enum:"developer,maintainer,owner,no_one_allowed"`
	KeepLatestArtifact                        *bool            `param:"keep_latest_artifact"`
	PublicJobs                                *bool            `param:"public_jobs" aliases:"public_builds"`
	EnforceAuthChecksOnUploads                *bool            `param:"enforce_auth_checks_on_uploads"`
	WarnAboutPotentiallyUnwantedCharacters    *bool            `param:"warn_about_potentially_unwanted_characters"`
	ShowDefaultAwardEmojis                    *bool            `param:"show_default_award_emojis"`
	EmailsDisabled                            *bool            `param:"emails_disabled" doc:"Deprecated: use emails_enabled."`
	RestrictVariables                         *bool            `param:"restrict_user_defined_variables" doc:"Deprecated: use ci_pipeline_variables_minimum_override_role."`
}

func (p *projectSettingParams) apply(s *project.Settings) {
	patch.Set(&s.ShowDefaultAwardEmojis, p.ShowDefaultAwardEmojis)
	if p.EmailsDisabled != nil {
		s.EmailsEnabled = !*p.EmailsDisabled
	}
	if p.RestrictVariables != nil {
		restricted := s.CIPipelineVariablesMinimumOverrideRole != "developer"
		switch {
		case *p.RestrictVariables && !restricted:
			s.CIPipelineVariablesMinimumOverrideRole = "maintainer"
		case !*p.RestrictVariables && restricted:
			s.CIPipelineVariablesMinimumOverrideRole = "developer"
		}
	}
	patch.Set(&s.Wiki, toFeature(p.WikiEnabled))
	patch.Set(&s.Snippets, toFeature(p.SnippetsEnabled))
	patch.Set(&s.PackageRegistry, toFeature(p.PackagesEnabled))
	patch.Set(&s.Forking, p.Forking)
	patch.Set(&s.Wiki, p.Wiki)
	patch.Set(&s.Snippets, p.Snippets)
	patch.Set(&s.Pages, p.Pages)
	patch.Set(&s.Analytics, p.Analytics)
	patch.Set(&s.ContainerRegistry, p.ContainerRegistry)
	patch.Set(&s.PackageRegistry, p.PackageRegistry)
	patch.Set(&s.SecurityAndCompliance, p.SecurityAndCompliance)
	patch.Set(&s.Releases, p.Releases)
	patch.Set(&s.Environments, p.Environments)
	patch.Set(&s.FeatureFlags, p.FeatureFlags)
	patch.Set(&s.Infrastructure, p.Infrastructure)
	patch.Set(&s.Monitor, p.Monitor)
	patch.Set(&s.ModelExperiments, p.ModelExperiments)
	patch.Set(&s.ModelRegistry, p.ModelRegistry)
	patch.Set(&s.Requirements, p.Requirements)
	patch.Set(&s.MergeMethod, p.MergeMethod)
	patch.Set(&s.SquashOption, p.SquashOption)
	patch.Set(&s.OnlyAllowMergeIfPipelineSucceeds, p.OnlyAllowMergeIfPipelineSucceeds)
	patch.Set(&s.AllowMergeOnSkippedPipeline, p.AllowMergeOnSkippedPipeline)
	patch.Set(&s.OnlyAllowMergeIfAllDiscussionsAreResolved, p.OnlyAllowMergeIfAllDiscussionsAreResolved)
	patch.Set(&s.ResolveOutdatedDiffDiscussions, p.ResolveOutdatedDiffDiscussions)
	patch.Set(&s.RemoveSourceBranchAfterMerge, p.RemoveSourceBranchAfterMerge)
	patch.Set(&s.PrintingMergeRequestLinkEnabled, p.PrintingMergeRequestLinkEnabled)
	patch.Set(&s.AutocloseReferencedIssues, p.AutocloseReferencedIssues)
	patch.Set(&s.MergeCommitTemplate, p.MergeCommitTemplate)
	patch.Set(&s.SquashCommitTemplate, p.SquashCommitTemplate)
	patch.Set(&s.SuggestionCommitMessage, p.SuggestionCommitMessage)
	patch.Set(&s.IssuesTemplate, p.IssuesTemplate)
	patch.Set(&s.MergeRequestsTemplate, p.MergeRequestsTemplate)
	patch.Set(&s.IssueBranchTemplate, p.IssueBranchTemplate)
	patch.Set(&s.Approvals.BeforeMerge, p.ApprovalsBeforeMerge)
	patch.Set(&s.LFSEnabled, p.LFSEnabled)
	patch.Set(&s.RequestAccessEnabled, p.RequestAccessEnabled)
	patch.Set(&s.EmailsEnabled, p.EmailsEnabled)
	patch.Set(&s.SharedRunnersEnabled, p.SharedRunnersEnabled)
	patch.Set(&s.GroupRunnersEnabled, p.GroupRunnersEnabled)
	patch.Set(&s.BuildTimeout, p.BuildTimeout)
	patch.Set(&s.BuildGitStrategy, p.BuildGitStrategy)
	patch.Set(&s.AutoCancelPendingPipelines, p.AutoCancelPendingPipelines)
	patch.Set(&s.AutoDevopsDeployStrategy, p.AutoDevopsDeployStrategy)
	patch.Set(&s.CIConfigPath, p.CIConfigPath)
	patch.Set(&s.CIDefaultGitDepth, p.CIDefaultGitDepth)
	patch.Set(&s.CIForwardDeploymentEnabled, p.CIForwardDeploymentEnabled)
	patch.Set(&s.CIForwardDeploymentRollbackAllowed, p.CIForwardDeploymentRollbackAllowed)
	patch.Set(&s.CITriggererMayApprove, p.CITriggererMayApprove)
	patch.Set(&s.CISeparatedCaches, p.CISeparatedCaches)
	patch.Set(&s.CIJobTokenScopeEnabled, p.CIJobTokenScopeEnabled)
	patch.Set(&s.CIPipelineVariablesMinimumOverrideRole, p.CIPipelineVariablesMinimumOverrideRole)
	patch.Set(&s.KeepLatestArtifact, p.KeepLatestArtifact)
	patch.Set(&s.PublicJobs, p.PublicJobs)
	patch.Set(&s.EnforceAuthChecksOnUploads, p.EnforceAuthChecksOnUploads)
	patch.Set(&s.WarnAboutPotentiallyUnwantedCharacters, p.WarnAboutPotentiallyUnwantedCharacters)
}

// toFeature converts a deprecated flag to an access level.
func toFeature(enabled *bool) *project.Feature {
	if enabled == nil {
		return nil
	}
	f := project.Disabled
	if *enabled {
		f = project.Enabled
	}
	return &f
}

// either returns the first value that was sent.
func either[T any](first, second *T) *T {
	if first != nil {
		return first
	}
	return second
}
