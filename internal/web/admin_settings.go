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

func (adminSettingsPage) view() string  { return "admin_settings" }
func (adminSettingsPage) title() string { return "Settings · Administration" }

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
		{Value: string(setting.ConfirmOff), Label: "Never"},
		{Value: string(setting.ConfirmSoft), Label: "After " + plural(setting.SoftDays, "day")},
		{Value: string(setting.ConfirmHard), Label: "At once"},
	}
}

// settingSections tell people of the settings. The names are those of the
// feature, which names what is wrong by them.
func settingSections(s *setting.Settings) []settingSection {
	return []settingSection{
		{"Accounts", []settingItem{
			{"signup_enabled", "People may sign up", "Without it, administrators make the accounts.", &s.SignUpEnabled},
			{"require_admin_approval_after_user_signup", "Who signs up waits for an administrator", "", &s.SignUpApproval},
			{"email_confirmation_setting", "Addresses have to be confirmed", "Before a password opens an account that is not, by the letter to it.", &s.Confirmation},
			{"can_create_group", "New users may make groups", "", &s.CanCreateGroup},
			{"user_default_external", "New users are external", "They see only what they are members of, and what is public.", &s.DefaultExternal},
			{"user_defaults_to_private_profile", "New users have a private profile", "", &s.DefaultToPrivateProfile},
			{"default_projects_limit", "Projects that a new user may make", "", &s.DefaultProjectsLimit},
		}},
		{"Sign-in and tokens", []settingItem{
			{"minimum_password_length", "Characters that a password has at least", "", &s.MinimumPasswordLength},
			{"max_login_attempts", "Wrong passwords before an account is locked", "", &s.MaxLoginAttempts},
			{"failed_login_attempts_unlock_period_in_minutes", "Minutes that it stays locked", "", &s.UnlockMinutes},
			{"sign_in_attempts_per_minute", "Sign-in attempts per minute", "With one login from one address; 0 is no limit.", &s.SignInsPerMinute},
			{"failed_passwords_per_minute", "Failed passwords per minute", "From one address, with any login; 0 is no limit.", &s.FailedPasswordsPerMinute},
			{"failed_tokens_per_minute", "Invalid tokens per minute", "From one address; 0 is no limit.", &s.FailedTokensPerMinute},
			{"failed_sign_in_retention_days", "Retention of failed sign-ins (days)", "In the audit events; 0 is for ever.", &s.FailedLoginDays},
			{"session_expire_delay", "Minutes after which an idle session ends", "", &s.SessionMinutes},
			{"max_personal_access_token_lifetime", "Days that an access token may work", "", &s.MaxTokenLifetimeDays},
			{"impersonation_enabled", "Administrators may act as other users", "By impersonation, and by tokens for it.", &s.ImpersonationEnabled},
		}},
		{"CI/CD", []settingItem{
			{"allow_runner_registration_token", "Runners may register by a registration token", "", &s.AllowRegistrationTokens},
			{"ci_remote_includes_enabled", "CI files may include files of other sites", "", &s.RemoteIncludes},
			{"max_instance_variables", "Variables of the installation", "At most.", &s.MaxInstanceVariables},
			{"ci_max_log_megabytes", "Megabytes of the log of a job", "", &s.MaxLogMegabytes},
			{"max_artifacts_size", "Megabytes of an artifact", "", &s.MaxArtifactMegabytes},
			{"ci_default_artifact_days", "Days that artifacts are kept", "Unless the job says otherwise; 0 is for ever.", &s.ArtifactDays},
			{"ci_log_retention_days", "Days that logs are kept", "0 is for ever.", &s.LogDays},
			{"ci_pipeline_retention_days", "Days that finished pipelines are kept", "0 is for ever.", &s.PipelineDays},
		}},
		{"Pages", []settingItem{
			{"max_pages_size", "Megabytes of a site", "0 is no limit.", &s.MaxPagesMegabytes},
			{"pages_domain_verification_enabled", "Domains have to be verified", "Who brings one shows by a record of the DNS that it is his.", &s.PagesVerification},
		}},
		{"Repositories", []settingItem{
			{"receive_max_input_size", "Megabytes of a push", "0 is no limit.", &s.MaxPushMegabytes},
			{"receive_max_object_size", "Maximum object size in a push (MB)", "0 means no limit.", &s.MaxObjectMegabytes},
			{"max_import_size", "Megabytes of the file of an import", "0 is no limit.", &s.MaxImportMegabytes},
			{"diff_max_files", "Files of a comparison that are shown with their texts", "", &s.DiffMaxFiles},
			{"diff_max_lines", "Lines of a comparison", "", &s.DiffMaxLines},
		}},
		{"Alerts", []settingItem{
			{"alert_retention_days", "Days that alerts are kept", "Resolved and ignored ones, counted from their last change; their incidents stay. 0 is for ever.", &s.AlertDays},
			{"alert_payloads_per_minute", "Payloads to an integration in a minute", "0 is no limit.", &s.AlertPayloadsPerMinute},
		}},
		{"Error tracking", []settingItem{
			{"error_tracking_retention_days", "Days that errors are kept", "Counted from the last time that one came; 0 is for ever.", &s.ErrorDays},
			{"error_tracking_events_per_minute", "Events of a client key in a minute", "0 is no limit.", &s.ErrorEventsPerMinute},
		}},
		{"Network", []settingItem{
			{"allow_local_requests_from_web_hooks_and_services", "What users name may be fetched from private addresses", "", &s.AllowLocalRequests},
			{"throttle_authenticated_api_enabled", "Limit the rate of users by the API", "", &s.AuthenticatedAPI.Enabled},
			{"throttle_authenticated_api_requests_per_period", "Requests of a user in a period", "", &s.AuthenticatedAPI.Requests},
			{"throttle_authenticated_api_period_in_seconds", "Seconds of the period of users", "", &s.AuthenticatedAPI.Seconds},
			{"throttle_unauthenticated_api_enabled", "Limit the rate of others by the API", "", &s.UnauthenticatedAPI.Enabled},
			{"throttle_unauthenticated_api_requests_per_period", "Requests of an address in a period", "", &s.UnauthenticatedAPI.Requests},
			{"throttle_unauthenticated_api_period_in_seconds", "Seconds of the period of addresses", "", &s.UnauthenticatedAPI.Seconds},
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
	return v.done("The settings have been saved.", settingsAt)
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
