package web

import (
	"strconv"

	"svc/internal/setting"
)

const settingsAt = "/admin/application_settings"

func (w *Web) adminSettingsPages() {
	w.page("GET "+settingsAt, admins, w.adminSettings)
	w.page("POST "+settingsAt, admins, w.saveAdminSettings)
	w.page("GET "+settingsAt+"/general", admins, func(v *visit) error { return v.redirect(settingsAt) })
}

type adminSettingsPage struct {
	Form     form
	Sections []settingSection
}

func (adminSettingsPage) view() string  { return "admin/settings" }
func (adminSettingsPage) title() string { return "Settings · Admin area" }

type settingSection struct {
	Title string
	Items []settingItem
}

// settingItem is one setting: its field, and the value that it stands for, an
// *int, a *bool or a *setting.Confirmation.
type settingItem struct {
	Name, Label, Hint string
	value             any
}

// Boxes are those of its settings that are turned on or off.
func (s settingSection) Boxes() []settingItem { return those[*bool](s) }

// Numbers are those that count something.
func (s settingSection) Numbers() []settingItem { return those[*int](s) }

// Confirmations are those that say what an address is asked for.
func (s settingSection) Confirmations() []settingItem { return those[*setting.Confirmation](s) }

func those[T any](s settingSection) []settingItem {
	var list []settingItem
	for _, i := range s.Items {
		if _, ok := i.value.(T); ok {
			list = append(list, i)
		}
	}
	return list
}

// Demands are the choices of how addresses are confirmed.
func (adminSettingsPage) Demands() []option {
	return []option{
		{Value: string(setting.ConfirmOff), Label: "Off"},
		{Value: string(setting.ConfirmSoft), Label: "Soft: required after " + plural(setting.SoftDays, "day")},
		{Value: string(setting.ConfirmHard), Label: "Hard: required before first sign-in"},
	}
}

// settingSections describe the settings. The names are those of the
// feature, which names what is wrong by them.
func settingSections(s *setting.Settings) []settingSection {
	return []settingSection{
		{"Sign-up and accounts", []settingItem{
			{"signup_enabled", "Sign-up enabled", "If disabled, only administrators can create users.", &s.SignUpEnabled},
			{"require_admin_approval_after_user_signup", "Require administrator approval for new sign-ups", "", &s.SignUpApproval},
			{"email_confirmation_setting", "Email confirmation settings", "Whether users must confirm their email address before they can sign in.", &s.Confirmation},
			{"can_create_group", "Allow new users to create top-level groups", "", &s.CanCreateGroup},
			{"user_default_external", "Make new users external by default", "External users can see only public projects, and groups and projects they are a member of.", &s.DefaultExternal},
			{"user_defaults_to_private_profile", "Make new users' profiles private by default", "", &s.DefaultToPrivateProfile},
			{"default_projects_limit", "Default projects limit", "", &s.DefaultProjectsLimit},
		}},
		{"Sign-in and tokens", []settingItem{
			{"minimum_password_length", "Minimum password length", "", &s.MinimumPasswordLength},
			{"max_login_attempts", "Maximum sign-in attempts before an account is locked", "", &s.MaxLoginAttempts},
			{"failed_login_attempts_unlock_period_in_minutes", "Account unlock period (minutes)", "", &s.UnlockMinutes},
			{"sign_in_attempts_per_minute", "Sign-in attempts per minute", "For one login from one IP address. 0 means no limit.", &s.SignInsPerMinute},
			{"failed_passwords_per_minute", "Failed passwords per minute", "From one IP address, with any login. 0 means no limit.", &s.FailedPasswordsPerMinute},
			{"failed_tokens_per_minute", "Invalid tokens per minute", "From one IP address. 0 means no limit.", &s.FailedTokensPerMinute},
			{"failed_sign_in_retention_days", "Retention of failed sign-ins (days)", "In the audit events. 0 means forever.", &s.FailedLoginDays},
			{"session_expire_delay", "Session duration (minutes)", "Idle sessions end after this time.", &s.SessionMinutes},
			{"max_personal_access_token_lifetime", "Maximum access token lifetime (days)", "", &s.MaxTokenLifetimeDays},
			{"impersonation_enabled", "Enable impersonation", "Administrators can sign in as other users, and create impersonation tokens.", &s.ImpersonationEnabled},
		}},
		{"CI/CD", []settingItem{
			{"allow_runner_registration_token", "Allow runner registration tokens", "", &s.AllowRegistrationTokens},
			{"ci_remote_includes_enabled", "Allow include:remote in CI/CD configuration", "", &s.RemoteIncludes},
			{"max_instance_variables", "Maximum instance variables", "", &s.MaxInstanceVariables},
			{"ci_max_log_megabytes", "Maximum job log size (MB)", "", &s.MaxLogMegabytes},
			{"max_artifacts_size", "Maximum artifacts size (MB)", "", &s.MaxArtifactMegabytes},
			{"ci_default_artifact_days", "Default artifacts expiration (days)", "For jobs without expire_in. 0 means forever.", &s.ArtifactDays},
			{"ci_log_retention_days", "Job log retention (days)", "0 means forever.", &s.LogDays},
			{"ci_pipeline_retention_days", "Pipeline retention (days)", "For finished pipelines. 0 means forever.", &s.PipelineDays},
		}},
		{"Pages", []settingItem{
			{"max_pages_size", "Maximum size of a Pages site (MB)", "0 means no limit.", &s.MaxPagesMegabytes},
			{"pages_domain_verification_enabled", "Require users to prove ownership of custom domains", "With a TXT record in DNS.", &s.PagesVerification},
		}},
		{"Repositories", []settingItem{
			{"receive_max_input_size", "Maximum push size (MB)", "0 means no limit.", &s.MaxPushMegabytes},
			{"receive_max_object_size", "Maximum object size in a push (MB)", "0 means no limit.", &s.MaxObjectMegabytes},
			{"max_import_size", "Maximum import size (MB)", "0 means no limit.", &s.MaxImportMegabytes},
			{"diff_max_files", "Maximum files in a diff", "", &s.DiffMaxFiles},
			{"diff_max_lines", "Maximum lines in a diff", "", &s.DiffMaxLines},
		}},
		{"Alerts", []settingItem{
			{"alert_retention_days", "Alert retention (days)", "For resolved and ignored alerts, from their last change. Incidents are kept. 0 means forever.", &s.AlertDays},
			{"alert_payloads_per_minute", "Alert payloads per integration per minute", "0 means no limit.", &s.AlertPayloadsPerMinute},
		}},
		{"Error tracking", []settingItem{
			{"error_tracking_retention_days", "Error retention (days)", "From the last event of an error. 0 means forever.", &s.ErrorDays},
			{"error_tracking_events_per_minute", "Error events per client key per minute", "0 means no limit.", &s.ErrorEventsPerMinute},
		}},
		{"Network", []settingItem{
			{"allow_local_requests_from_web_hooks_and_services", "Allow requests to the local network", "", &s.AllowLocalRequests},
			{"throttle_authenticated_api_enabled", "Rate-limit authenticated API requests", "", &s.AuthenticatedAPI.Enabled},
			{"throttle_authenticated_api_requests_per_period", "Authenticated API requests per period per user", "", &s.AuthenticatedAPI.Requests},
			{"throttle_authenticated_api_period_in_seconds", "Authenticated rate-limit period (seconds)", "", &s.AuthenticatedAPI.Seconds},
			{"throttle_unauthenticated_api_enabled", "Rate-limit unauthenticated API requests", "", &s.UnauthenticatedAPI.Enabled},
			{"throttle_unauthenticated_api_requests_per_period", "Unauthenticated API requests per period per IP address", "", &s.UnauthenticatedAPI.Requests},
			{"throttle_unauthenticated_api_period_in_seconds", "Unauthenticated rate-limit period (seconds)", "", &s.UnauthenticatedAPI.Seconds},
		}},
	}
}

func (w *Web) adminSettings(v *visit) error {
	s, err := w.Settings.Get(v, v.actor)
	if err != nil {
		return err
	}
	p := adminSettingsPage{Form: filled(), Sections: settingSections(&s)}
	for _, section := range p.Sections {
		for _, i := range section.Items {
			switch value := i.value.(type) {
			case *bool:
				p.Form.Values.Set(i.Name, on(*value))
			case *int:
				p.Form.Values.Set(i.Name, strconv.Itoa(*value))
			case *setting.Confirmation:
				p.Form.Values.Set(i.Name, string(*value))
			}
		}
	}
	return v.show(p)
}

func (w *Web) saveAdminSettings(v *visit) error {
	f := v.sent()
	v.readSettings(&f, &setting.Settings{}) // what is no number is found before anything changes
	if f.bad() {
		return v.again(adminSettingsPage{f, settingSections(&setting.Settings{})})
	}
	_, err := w.Settings.Update(v, v.actor, func(s *setting.Settings) { v.readSettings(&f, s) })
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return v.again(adminSettingsPage{f, settingSections(&setting.Settings{})})
	}
	return v.done("The settings were saved.", settingsAt)
}

// readSettings puts what was sent into the settings.
func (v *visit) readSettings(f *form, s *setting.Settings) {
	for _, section := range settingSections(s) {
		for _, i := range section.Items {
			switch value := i.value.(type) {
			case *bool:
				*value = v.ticked(i.Name)
			case *int:
				*value = int(v.whole(f, i.Name))
			case *setting.Confirmation:
				*value = setting.Confirmation(v.text(i.Name))
			}
		}
	}
}
