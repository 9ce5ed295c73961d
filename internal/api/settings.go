package api

import (
	"svc/internal/patch"
	"svc/internal/setting"
)

func (a *API) settingRoutes() {
	a.tag("Application settings")
	handle(a, "GET /application/settings", readAPI, a.getSettings, summary("Get application settings"))
	handle(a, "PUT /application/settings", writeAPI, a.updateSettings, summary("Update application settings"))
}

// getSettings: https://docs.gitlab.com/api/settings/#get-details-on-current-application-settings
func (a *API) getSettings(c *call, _ struct{}) (settingsJSON, error) {
	s, err := a.Settings.Get(c, c.actor)
	if err != nil {
		return settingsJSON{}, err
	}
	return toSettings(s), nil
}

type settingsParams struct {
	DefaultProjectsLimit    *int                  `param:"default_projects_limit"`
	CanCreateGroup          *bool                 `param:"can_create_group"`
	DefaultExternal         *bool                 `param:"user_default_external"`
	DefaultToPrivateProfile *bool                 `param:"user_defaults_to_private_profile"`
	MinimumPasswordLength   *int                  `param:"minimum_password_length"`
	MaxLoginAttempts        *int                  `param:"max_login_attempts"`
	UnlockMinutes           *int                  `param:"failed_login_attempts_unlock_period_in_minutes"`
	SessionMinutes          *int                  `param:"session_expire_delay" doc:"Session duration in minutes."`
	SignInsPerMinute        *int                  `param:"sign_in_attempts_per_minute" doc:"Maximum sign-in attempts per login and IP address per minute; 0 means no limit."`
	FailedPasswords         *int                  `param:"failed_passwords_per_minute" doc:"Maximum failed passwords and one-time codes per IP address per minute; 0 means no limit."`
	FailedTokens            *int                  `param:"failed_tokens_per_minute" doc:"Maximum invalid tokens per IP address per minute; 0 means no limit."`
	FailedLoginDays         *int                  `param:"failed_sign_in_retention_days" doc:"Retention of audit events of failed sign-ins in days; 0 means forever."`
	SignUpEnabled           *bool                 `param:"signup_enabled" doc:"Whether sign-up is enabled."`
	SignUpApproval          *bool                 `param:"require_admin_approval_after_user_signup" doc:"Whether new sign-ups require administrator approval."`
	Confirmation            *setting.Confirmation `param:"email_confirmation_setting" enum:"off,soft,hard" doc:"Whether users must confirm their email before they sign in: off, never; soft, after three days; hard, always."`
	MaxTokenLifetimeDays    *int                  `param:"max_personal_access_token_lifetime" doc:"Maximum lifetime in days."`
	ImpersonationEnabled    *bool                 `param:"impersonation_enabled" doc:"Whether impersonation is enabled."`
	MaxInstanceVariables    *int                  `param:"max_instance_variables"`
	AllowRegistrationTokens *bool                 `param:"allow_runner_registration_token" doc:"Whether runners can register with a registration token."`
	MaxLogMegabytes         *int                  `param:"ci_max_log_megabytes" doc:"Maximum job log size in megabytes."`
	MaxArtifactMegabytes    *int                  `param:"max_artifacts_size" doc:"Maximum artifact size in megabytes."`
	ArtifactDays            *int                  `param:"ci_default_artifact_days" doc:"Default artifact expiration in days; 0 means never."`
	LogDays                 *int                  `param:"ci_log_retention_days" doc:"Retention of job logs in days; 0 means forever."`
	PipelineDays            *int                  `param:"ci_pipeline_retention_days" doc:"Retention of finished pipelines in days; 0 means forever."`
	RemoteIncludes          *bool                 `param:"ci_remote_includes_enabled" doc:"Whether CI/CD configurations can include remote files."`
	MaxPagesMegabytes       *int                  `param:"max_pages_size" doc:"Maximum size of a Pages site in megabytes; 0 means no limit."`
	PagesVerification       *bool                 `param:"pages_domain_verification_enabled" doc:"Whether custom Pages domains require verification by a DNS record."`
	AllowLocalRequests      *bool                 `param:"allow_local_requests_from_web_hooks_and_services" doc:"Whether requests to the local network are allowed."`
	MaxPushMegabytes        *int                  `param:"receive_max_input_size" doc:"Maximum push size in megabytes; 0 means no limit."`
	MaxObjectMegabytes      *int                  `param:"receive_max_object_size" doc:"Maximum size in megabytes of one Git object in a push or an import; 0 means no limit."`
	MaxImportMegabytes      *int                  `param:"max_import_size" doc:"Maximum import file size in megabytes; 0 means no limit."`
	DiffMaxFiles            *int                  `param:"diff_max_files"`
	DiffMaxLines            *int                  `param:"diff_max_lines"`
	ErrorDays               *int                  `param:"error_tracking_retention_days" doc:"Retention of errors without new events in days; 0 means forever."`
	ErrorEventsPerMinute    *int                  `param:"error_tracking_events_per_minute" doc:"Maximum events per client key per minute; 0 means no limit."`
	AlertDays               *int                  `param:"alert_retention_days" doc:"Retention of ended alerts in days; 0 means forever."`
	AlertPayloadsPerMinute  *int                  `param:"alert_payloads_per_minute" doc:"Maximum payloads per alert integration per minute; 0 means no limit."`
	AuthEnabled             *bool                 `param:"throttle_authenticated_api_enabled"`
	AuthRequests            *int                  `param:"throttle_authenticated_api_requests_per_period"`
	AuthSeconds             *int                  `param:"throttle_authenticated_api_period_in_seconds"`
	UnauthEnabled           *bool                 `param:"throttle_unauthenticated_api_enabled"`
	UnauthRequests          *int                  `param:"throttle_unauthenticated_api_requests_per_period"`
	UnauthSeconds           *int                  `param:"throttle_unauthenticated_api_period_in_seconds"`
}

func (p *settingsParams) apply(s *setting.Settings) {
	patch.Set(&s.DefaultProjectsLimit, p.DefaultProjectsLimit)
	patch.Set(&s.CanCreateGroup, p.CanCreateGroup)
	patch.Set(&s.DefaultExternal, p.DefaultExternal)
	patch.Set(&s.DefaultToPrivateProfile, p.DefaultToPrivateProfile)
	patch.Set(&s.MinimumPasswordLength, p.MinimumPasswordLength)
	patch.Set(&s.MaxLoginAttempts, p.MaxLoginAttempts)
	patch.Set(&s.UnlockMinutes, p.UnlockMinutes)
	patch.Set(&s.SessionMinutes, p.SessionMinutes)
	patch.Set(&s.SignInsPerMinute, p.SignInsPerMinute)
	patch.Set(&s.FailedPasswordsPerMinute, p.FailedPasswords)
	patch.Set(&s.FailedTokensPerMinute, p.FailedTokens)
	patch.Set(&s.FailedLoginDays, p.FailedLoginDays)
	patch.Set(&s.SignUpEnabled, p.SignUpEnabled)
	patch.Set(&s.SignUpApproval, p.SignUpApproval)
	patch.Set(&s.Confirmation, p.Confirmation)
	patch.Set(&s.MaxTokenLifetimeDays, p.MaxTokenLifetimeDays)
	patch.Set(&s.ImpersonationEnabled, p.ImpersonationEnabled)
	patch.Set(&s.MaxInstanceVariables, p.MaxInstanceVariables)
	patch.Set(&s.AllowRegistrationTokens, p.AllowRegistrationTokens)
	patch.Set(&s.MaxLogMegabytes, p.MaxLogMegabytes)
	patch.Set(&s.MaxArtifactMegabytes, p.MaxArtifactMegabytes)
	patch.Set(&s.ArtifactDays, p.ArtifactDays)
	patch.Set(&s.LogDays, p.LogDays)
	patch.Set(&s.PipelineDays, p.PipelineDays)
	patch.Set(&s.RemoteIncludes, p.RemoteIncludes)
	patch.Set(&s.MaxPagesMegabytes, p.MaxPagesMegabytes)
	patch.Set(&s.PagesVerification, p.PagesVerification)
	patch.Set(&s.AllowLocalRequests, p.AllowLocalRequests)
	patch.Set(&s.MaxPushMegabytes, p.MaxPushMegabytes)
	patch.Set(&s.MaxObjectMegabytes, p.MaxObjectMegabytes)
	patch.Set(&s.MaxImportMegabytes, p.MaxImportMegabytes)
	patch.Set(&s.DiffMaxFiles, p.DiffMaxFiles)
	patch.Set(&s.DiffMaxLines, p.DiffMaxLines)
	patch.Set(&s.ErrorDays, p.ErrorDays)
	patch.Set(&s.ErrorEventsPerMinute, p.ErrorEventsPerMinute)
	patch.Set(&s.AlertDays, p.AlertDays)
	patch.Set(&s.AlertPayloadsPerMinute, p.AlertPayloadsPerMinute)
	patch.Set(&s.AuthenticatedAPI.Enabled, p.AuthEnabled)
	patch.Set(&s.AuthenticatedAPI.Requests, p.AuthRequests)
	patch.Set(&s.AuthenticatedAPI.Seconds, p.AuthSeconds)
	patch.Set(&s.UnauthenticatedAPI.Enabled, p.UnauthEnabled)
	patch.Set(&s.UnauthenticatedAPI.Requests, p.UnauthRequests)
	patch.Set(&s.UnauthenticatedAPI.Seconds, p.UnauthSeconds)
}

// updateSettings: https://docs.gitlab.com/api/settings/#update-application-settings
func (a *API) updateSettings(c *call, p settingsParams) (settingsJSON, error) {
	s, err := a.Settings.Update(c, c.actor, p.apply)
	if err != nil {
		return settingsJSON{}, err
	}
	return toSettings(s), nil
}

type settingsJSON struct {
	ID                      int64  `json:"id"`
	DefaultProjectsLimit    int    `json:"default_projects_limit"`
	CanCreateGroup          bool   `json:"can_create_group"`
	DefaultExternal         bool   `json:"user_default_external"`
	DefaultToPrivateProfile bool   `json:"user_defaults_to_private_profile"`
	MinimumPasswordLength   int    `json:"minimum_password_length"`
	MaxLoginAttempts        int    `json:"max_login_attempts"`
	UnlockMinutes           int    `json:"failed_login_attempts_unlock_period_in_minutes"`
	SessionMinutes          int    `json:"session_expire_delay"`
	SignInsPerMinute        int    `json:"sign_in_attempts_per_minute"`
	FailedPasswords         int    `json:"failed_passwords_per_minute"`
	FailedTokens            int    `json:"failed_tokens_per_minute"`
	FailedLoginDays         int    `json:"failed_sign_in_retention_days"`
	SignUpEnabled           bool   `json:"signup_enabled"`
	SignUpApproval          bool   `json:"require_admin_approval_after_user_signup"`
	Confirmation            string `json:"email_confirmation_setting"`
	MaxTokenLifetimeDays    int    `json:"max_personal_access_token_lifetime"`
	ImpersonationEnabled    bool   `json:"impersonation_enabled"`
	MaxInstanceVariables    int    `json:"max_instance_variables"`
	AllowRegistrationTokens bool   `json:"allow_runner_registration_token"`
	MaxLogMegabytes         int    `json:"ci_max_log_megabytes"`
	MaxArtifactMegabytes    int    `json:"max_artifacts_size"`
	ArtifactDays            int    `json:"ci_default_artifact_days"`
	LogDays                 int    `json:"ci_log_retention_days"`
	PipelineDays            int    `json:"ci_pipeline_retention_days"`
	RemoteIncludes          bool   `json:"ci_remote_includes_enabled"`
	MaxPagesMegabytes       int    `json:"max_pages_size"`
	PagesVerification       bool   `json:"pages_domain_verification_enabled"`
	AllowLocalRequests      bool   `json:"allow_local_requests_from_web_hooks_and_services"`
	MaxPushMegabytes        int    `json:"receive_max_input_size"`
	MaxObjectMegabytes      int    `json:"receive_max_object_size"`
	MaxImportMegabytes      int    `json:"max_import_size"`
	DiffMaxFiles            int    `json:"diff_max_files"`
	DiffMaxLines            int    `json:"diff_max_lines"`
	ErrorDays               int    `json:"error_tracking_retention_days"`
	ErrorEventsPerMinute    int    `json:"error_tracking_events_per_minute"`
	AlertDays               int    `json:"alert_retention_days"`
	AlertPayloadsPerMinute  int    `json:"alert_payloads_per_minute"`
	AuthEnabled             bool   `json:"throttle_authenticated_api_enabled"`
	AuthRequests            int    `json:"throttle_authenticated_api_requests_per_period"`
	AuthSeconds             int    `json:"throttle_authenticated_api_period_in_seconds"`
	UnauthEnabled           bool   `json:"throttle_unauthenticated_api_enabled"`
	UnauthRequests          int    `json:"throttle_unauthenticated_api_requests_per_period"`
	UnauthSeconds           int    `json:"throttle_unauthenticated_api_period_in_seconds"`
}

func toSettings(s setting.Settings) settingsJSON {
	return settingsJSON{
		ID: 1, DefaultProjectsLimit: s.DefaultProjectsLimit, CanCreateGroup: s.CanCreateGroup,
		DefaultExternal: s.DefaultExternal, DefaultToPrivateProfile: s.DefaultToPrivateProfile,
		MinimumPasswordLength: s.MinimumPasswordLength, MaxLoginAttempts: s.MaxLoginAttempts, UnlockMinutes: s.UnlockMinutes,
		SignInsPerMinute: s.SignInsPerMinute, FailedPasswords: s.FailedPasswordsPerMinute, FailedTokens: s.FailedTokensPerMinute, FailedLoginDays: s.FailedLoginDays,
		SessionMinutes: s.SessionMinutes, SignUpEnabled: s.SignUpEnabled, SignUpApproval: s.SignUpApproval, Confirmation: string(s.Confirmation), MaxTokenLifetimeDays: s.MaxTokenLifetimeDays, ImpersonationEnabled: s.ImpersonationEnabled,
		MaxInstanceVariables: s.MaxInstanceVariables, AllowRegistrationTokens: s.AllowRegistrationTokens, MaxLogMegabytes: s.MaxLogMegabytes,
		MaxArtifactMegabytes: s.MaxArtifactMegabytes, ArtifactDays: s.ArtifactDays, LogDays: s.LogDays, PipelineDays: s.PipelineDays,
		RemoteIncludes: s.RemoteIncludes, AllowLocalRequests: s.AllowLocalRequests,
		MaxPagesMegabytes: s.MaxPagesMegabytes, PagesVerification: s.PagesVerification,
		MaxPushMegabytes: s.MaxPushMegabytes, MaxObjectMegabytes: s.MaxObjectMegabytes, MaxImportMegabytes: s.MaxImportMegabytes, DiffMaxFiles: s.DiffMaxFiles, DiffMaxLines: s.DiffMaxLines,
		ErrorDays: s.ErrorDays, ErrorEventsPerMinute: s.ErrorEventsPerMinute,
		AlertDays: s.AlertDays, AlertPayloadsPerMinute: s.AlertPayloadsPerMinute,
		AuthEnabled: s.AuthenticatedAPI.Enabled, AuthRequests: s.AuthenticatedAPI.Requests, AuthSeconds: s.AuthenticatedAPI.Seconds,
		UnauthEnabled: s.UnauthenticatedAPI.Enabled, UnauthRequests: s.UnauthenticatedAPI.Requests, UnauthSeconds: s.UnauthenticatedAPI.Seconds,
	}
}
