package setting

// Setting is one setting. The API, the settings page, the validation and
// docs/admin/settings.md are generated from it.
type Setting struct {
	Name     string // in the API, in the database and in audit events
	Value    any    // pointer to the value: *int, *bool, *string, *[]string, *Weights or *Confirmation
	Default  any
	Min, Max int // of a number
	// Addresses reports whether a list may also contain networks, IP addresses, and
	// ports.
	Addresses bool
	Label     string // on the page
	Hint      string // on the page, below it; may be empty
	Doc       string // in the API document and in the documentation
}

// Section is a group of settings on the page and in the documentation.
type Section struct {
	Title    string
	Settings []Setting
}

const (
	maxCount = 1_000_000_000
	maxDays  = 36_500
	maxSize  = 1 << 20 // in megabytes
)

// Table returns all settings. Their values point to the fields of s.
func (s *Settings) Table() []Section {
	return []Section{
		{"Sign-up and accounts", []Setting{
			{Name: "signup_enabled", Value: &s.SignUpEnabled, Default: false,
				Label: "Sign-up enabled", Hint: "If disabled, only administrators can create users.",
				Doc: "Whether visitors can create an account."},
			{Name: "require_admin_approval_after_user_signup", Value: &s.SignUpApproval, Default: true,
				Label: "Require administrator approval for new sign-ups",
				Doc:   "Whether new sign-ups require administrator approval."},
			{Name: "email_confirmation_setting", Value: &s.Confirmation, Default: ConfirmOff,
				Label: "Email confirmation settings", Hint: "Whether users must confirm their email address before they can sign in.",
				Doc: "Whether users must confirm their email before they sign in: off, never; soft, after three days; hard, always."},
			{Name: "can_create_group", Value: &s.CanCreateGroup, Default: true,
				Label: "Allow new users to create top-level groups",
				Doc:   "Whether new users can create top-level groups."},
			{Name: "allow_top_level_group_owners_to_create_service_accounts", Value: &s.GroupServiceAccounts, Default: false,
				Label: "Allow top-level group owners to create service accounts",
				Doc:   "Whether Owners of top-level groups can create service accounts. Administrators always can."},
			{Name: "user_default_external", Value: &s.DefaultExternal, Default: false,
				Label: "Make new users external by default", Hint: "External users can see only public projects, and groups and projects they are a member of.",
				Doc: "Whether new users are external: they see public projects and those that they are members of, and have no personal projects."},
			{Name: "user_defaults_to_private_profile", Value: &s.DefaultToPrivateProfile, Default: false,
				Label: "Make new users' profiles private by default",
				Doc:   "Whether profiles of new users are private."},
			{Name: "default_projects_limit", Value: &s.DefaultProjectsLimit, Default: 100_000, Max: maxCount,
				Label: "Default projects limit",
				Doc:   "Maximum projects in the personal namespace of a new user."},
		}},
		{"Sign-in and tokens", []Setting{
			{Name: "password_authentication_enabled_for_web", Value: &s.PasswordForWeb, Default: true,
				Label: "Allow password authentication for the web interface",
				Hint:  "If disabled, users sign in with an identity provider, and visitors cannot sign up.",
				Doc:   "Whether users can sign in to the web interface with a password. It can be disabled when an administrator is linked to an identity provider; svc admin enable-passwords enables it again."},
			{Name: "password_authentication_enabled_for_git", Value: &s.PasswordForGit, Default: true,
				Label: "Allow password authentication for Git over HTTP(S)",
				Hint:  "If disabled, access tokens are required.",
				Doc:   "Whether Git over HTTP accepts passwords. Access tokens are always accepted."},
			{Name: "minimum_password_length", Value: &s.MinimumPasswordLength, Default: 8, Min: 8, Max: 128,
				Label: "Minimum password length",
				Doc:   "Minimum password length."},
			{Name: "max_login_attempts", Value: &s.MaxLoginAttempts, Default: 10, Min: 1, Max: 1000,
				Label: "Maximum sign-in attempts before an account is locked",
				Doc:   "Failed sign-in attempts before an account is locked."},
			{Name: "failed_login_attempts_unlock_period_in_minutes", Value: &s.UnlockMinutes, Default: 10, Min: 1, Max: maxCount,
				Label: "Account unlock period (minutes)",
				Doc:   "Minutes after which a locked account is unlocked."},
			{Name: "sign_in_attempts_per_minute", Value: &s.SignInsPerMinute, Default: 10, Max: maxCount,
				Label: "Sign-in attempts per minute", Hint: "For one login from one IP address. 0 means no limit.",
				Doc: "Maximum sign-in attempts per login and IP address per minute; 0 means no limit."},
			{Name: "failed_passwords_per_minute", Value: &s.FailedPasswordsPerMinute, Default: 100, Max: maxCount,
				Label: "Failed passwords per minute", Hint: "From one IP address, with any login. 0 means no limit.",
				Doc: "Maximum failed passwords and one-time codes per IP address per minute; 0 means no limit."},
			{Name: "failed_tokens_per_minute", Value: &s.FailedTokensPerMinute, Default: 600, Max: maxCount,
				Label: "Invalid tokens per minute", Hint: "From one IP address. 0 means no limit.",
				Doc: "Maximum invalid tokens per IP address per minute; 0 means no limit."},
			{Name: "failed_sign_in_retention_days", Value: &s.FailedLoginDays, Default: 90, Max: maxDays,
				Label: "Retention of failed sign-ins (days)", Hint: "In the audit events. 0 means forever.",
				Doc: "Retention of audit events of failed sign-ins in days; 0 means forever."},
			{Name: "session_expire_delay", Value: &s.SessionMinutes, Default: 7 * 24 * 60, Min: 1, Max: maxCount,
				Label: "Session duration (minutes)", Hint: "Idle sessions end after this time.",
				Doc: "Minutes after which an idle session ends."},
			{Name: "max_personal_access_token_lifetime", Value: &s.MaxTokenLifetimeDays, Default: 365, Min: 1, Max: 400,
				Label: "Maximum access token lifetime (days)",
				Doc:   "Maximum lifetime of access tokens in days."},
			{Name: "impersonation_enabled", Value: &s.ImpersonationEnabled, Default: true,
				Label: "Enable impersonation", Hint: "Administrators can sign in as other users, and create impersonation tokens.",
				Doc: "Whether administrators can sign in as other users and create impersonation tokens."},
		}},
		{"CI/CD", []Setting{
			{Name: "allow_runner_registration_token", Value: &s.AllowRegistrationTokens, Default: true,
				Label: "Allow runner registration tokens",
				Doc:   "Whether runners can register with a registration token."},
			{Name: "ci_remote_includes_enabled", Value: &s.RemoteIncludes, Default: false,
				Label: "Allow include:remote in CI/CD configuration",
				Doc:   "Whether CI/CD configurations can include remote files."},
			{Name: "max_instance_variables", Value: &s.MaxInstanceVariables, Default: 100, Max: 10_000,
				Label: "Maximum instance variables",
				Doc:   "Maximum instance CI/CD variables."},
			{Name: "ci_max_log_megabytes", Value: &s.MaxLogMegabytes, Default: 100, Min: 1, Max: 1 << 10,
				Label: "Maximum job log size (MB)",
				Doc:   "Maximum job log size in megabytes."},
			{Name: "max_artifacts_size", Value: &s.MaxArtifactMegabytes, Default: 1024, Min: 1, Max: maxSize,
				Label: "Maximum artifacts size (MB)",
				Doc:   "Maximum artifact size in megabytes."},
			{Name: "ci_default_artifact_days", Value: &s.ArtifactDays, Default: 30, Max: maxDays,
				Label: "Default artifacts expiration (days)", Hint: "For jobs without expire_in. 0 means forever.",
				Doc: "Default artifact expiration in days; 0 means never."},
			{Name: "ci_log_retention_days", Value: &s.LogDays, Default: 0, Max: maxDays,
				Label: "Job log retention (days)", Hint: "0 means forever.",
				Doc: "Retention of job logs in days; 0 means forever."},
			{Name: "ci_pipeline_retention_days", Value: &s.PipelineDays, Default: 0, Max: maxDays,
				Label: "Pipeline retention (days)", Hint: "For finished pipelines. 0 means forever.",
				Doc: "Retention of finished pipelines in days; 0 means forever."},
		}},
		{"Terraform", []Setting{
			{Name: "max_terraform_state_size_bytes", Value: &s.MaxTerraformStateBytes, Default: 100 << 20, Max: maxCount,
				Label: "Maximum Terraform state size (bytes)", Hint: "0 means no limit.",
				Doc: "Maximum size of a Terraform state in bytes; 0 means no limit."},
		}},
		{"Pages", []Setting{
			{Name: "max_pages_size", Value: &s.MaxPagesMegabytes, Default: 100, Max: maxSize,
				Label: "Maximum size of a Pages site (MB)", Hint: "0 means no limit.",
				Doc: "Maximum size of a Pages site in megabytes; 0 means no limit."},
			{Name: "max_pages_custom_domains_per_project", Value: &s.MaxPagesDomains, Default: 100, Max: maxCount,
				Label: "Maximum custom Pages domains per project", Hint: "0 means no limit.",
				Doc: "Maximum custom Pages domains of a project; 0 means no limit."},
			{Name: "pages_domain_verification_enabled", Value: &s.PagesVerification, Default: false,
				Label: "Require users to prove ownership of custom domains", Hint: "With a TXT record in DNS.",
				Doc: "Whether custom Pages domains require verification by a DNS record."},
			{Name: "pages_unique_domain_default_enabled", Value: &s.PagesUniqueDomains, Default: true,
				Label: "Use unique domains for new projects", Hint: "Sites with unique domains do not share cookies and scripts with other sites of their namespace.",
				Doc: "Whether the Pages sites of new projects use a unique domain."},
		}},
		{"Packages", []Setting{
			{Name: "generic_packages_max_file_size", Value: &s.MaxGenericMegabytes, Default: 5 << 10, Max: maxSize,
				Label: "Maximum file size of generic packages (MB)", Hint: "0 means no limit.",
				Doc: "Maximum size of a file of a generic package in megabytes; 0 means no limit."},
			{Name: "npm_max_file_size", Value: &s.MaxNPMMegabytes, Default: 500, Max: maxSize,
				Label: "Maximum file size of npm packages (MB)", Hint: "0 means no limit.",
				Doc: "Maximum size of an npm package in megabytes; 0 means no limit."},
			{Name: "pypi_max_file_size", Value: &s.MaxPyPIMegabytes, Default: 3 << 10, Max: maxSize,
				Label: "Maximum file size of PyPI packages (MB)", Hint: "0 means no limit.",
				Doc: "Maximum size of a file of a PyPI package in megabytes; 0 means no limit."},
			{Name: "max_package_storage_size", Value: &s.MaxPackageStorageMegabytes, Default: 0, Max: maxSize,
				Label: "Maximum size of all packages of a project (MB)", Hint: "0 means no limit.",
				Doc: "Maximum size of all packages of a project in megabytes; 0 means no limit."},
			{Name: "npm_package_requests_forwarding", Value: &s.NPMForwarding, Default: false,
				Label: "Forward npm package requests to the npm Registry if the packages are not found",
				Hint:  "Clients are redirected to registry.npmjs.org. Someone can publish a package there with the name of a private one.",
				Doc:   "Whether clients are redirected to registry.npmjs.org for npm packages that are not found, and for npm audit."},
			{Name: "pypi_package_requests_forwarding", Value: &s.PyPIForwarding, Default: false,
				Label: "Forward PyPI package requests to the PyPI Registry if the packages are not found",
				Hint:  "Clients are redirected to pypi.org. Someone can publish a package there with the name of a private one.",
				Doc:   "Whether clients are redirected to pypi.org for PyPI packages that are not found."},
		}},
		{"Deletion protection", []Setting{
			{Name: "deletion_adjourned_period", Value: &s.DeletionDays, Default: 30, Max: 90,
				Label: "Retention period of deleted groups and projects (days)",
				Hint:  "Owners can restore them during that time. 0 deletes them immediately.",
				Doc:   "Days that deleted groups and projects can be restored; 0 deletes them immediately."},
		}},
		{"Repositories", []Setting{
			{Name: "default_branch_protection", Value: &s.BranchProtection, Default: 2, Max: 4,
				Label: "Initial default branch protection",
				Hint:  "0: not protected, 1: Developers can push, 2: fully protected, 3: Developers can merge, 4: as 2, after the first push.",
				Doc:   "Protection of the default branch of new projects, unless their group has its own: 0 not protected, 1 Developers can push, 2 fully protected, 3 Developers can merge, 4 as 2 after the first push."},
			{Name: "repository_storages_weighted", Value: &s.StorageWeights, Default: Weights{"default": 100}, Max: 100,
				Label: "Weights of storages for new repositories", Hint: "Separated by commas: default: 100, bucket: 50. A storage without a weight gets no new repositories. Forks go to the storage of their source.",
				Doc: "Weights of the repository storages, 0 to 100: new repositories are distributed in their proportion. Storages that are not named get none. Forks are stored where their source is."},
			{Name: "receive_max_input_size", Value: &s.MaxPushMegabytes, Default: 0, Max: maxSize,
				Label: "Maximum push size (MB)", Hint: "0 means no limit.",
				Doc: "Maximum push size in megabytes; 0 means no limit."},
			{Name: "receive_max_object_size", Value: &s.MaxObjectMegabytes, Default: 512, Max: maxSize,
				Label: "Maximum object size in a push (MB)", Hint: "0 means no limit.",
				Doc: "Maximum size in megabytes of one Git object in a push or an import; 0 means no limit."},
			{Name: "mirror_available", Value: &s.Mirrors, Default: true,
				Label: "Allow Maintainers to set up repository mirrors", Hint: "If disabled, only administrators can. Existing mirrors are updated in any case.",
				Doc: "Whether Maintainers of projects can set up repository mirrors. If disabled, only administrators can."},
			{Name: "repository_size_limit", Value: &s.RepositoryMegabytes, Default: 0, Max: maxSize,
				Label: "Size limit per repository (MB)", Hint: "Includes the LFS objects. 0 means no limit.",
				Doc: "Maximum size in megabytes of a repository with its LFS objects, for pushes, imports, pull mirrors and LFS uploads; 0 means no limit. Direct LFS uploads that are not completed count for up to 6 hours."},
			{Name: "lfs_enabled", Value: &s.LFSEnabled, Default: true,
				Label: "Git LFS enabled", Hint: "Projects can disable it.",
				Doc: "Whether Git LFS is enabled on the instance."},
			{Name: "max_lfs_object_size", Value: &s.MaxLFSMegabytes, Default: 0, Max: maxSize,
				Label: "Maximum LFS object size (MB)", Hint: "0 means no limit.",
				Doc: "Maximum size of one LFS object in megabytes; 0 means no limit."},
			{Name: "lfs_direct_transfer", Value: &s.LFSDirect, Default: true,
				Label: "Direct LFS transfers", Hint: "Clients transfer LFS objects directly to and from the object storage, if it is S3. It must be reachable for them.",
				Doc: "Whether clients transfer LFS objects directly to and from the object storage by presigned URLs, if it is S3. Disable it if clients cannot reach the object storage."},
			{Name: "max_import_size", Value: &s.MaxImportMegabytes, Default: 0, Max: maxSize,
				Label: "Maximum import size (MB)", Hint: "0 means no limit.",
				Doc: "Maximum import file size in megabytes; 0 means no limit."},
			{Name: "diff_max_files", Value: &s.DiffMaxFiles, Default: 1000, Min: 1, Max: 3000,
				Label: "Maximum files in a diff",
				Doc:   "Maximum files with their text in a diff."},
			{Name: "diff_max_lines", Value: &s.DiffMaxLines, Default: 50_000, Min: 1, Max: 100_000,
				Label: "Maximum lines in a diff",
				Doc:   "Maximum lines in a diff."},
		}},
		{"Alerts", []Setting{
			{Name: "alert_retention_days", Value: &s.AlertDays, Default: 365, Max: maxDays,
				Label: "Alert retention (days)", Hint: "For resolved and ignored alerts, from their last change. Incidents are kept. 0 means forever.",
				Doc: "Retention of ended alerts in days; 0 means forever."},
			{Name: "alert_payloads_per_minute", Value: &s.AlertPayloadsPerMinute, Default: 0, Max: 1_000_000,
				Label: "Alert payloads per integration per minute", Hint: "0 means no limit.",
				Doc: "Maximum payloads per alert integration per minute; 0 means no limit."},
		}},
		{"Error tracking", []Setting{
			{Name: "error_tracking_retention_days", Value: &s.ErrorDays, Default: 90, Max: maxDays,
				Label: "Error retention (days)", Hint: "From the last event of an error. 0 means forever.",
				Doc: "Retention of errors without new events in days; 0 means forever."},
			{Name: "error_tracking_events_per_minute", Value: &s.ErrorEventsPerMinute, Default: 0, Max: 1_000_000,
				Label: "Error events per client key per minute", Hint: "0 means no limit.",
				Doc: "Maximum events per client key per minute; 0 means no limit."},
		}},
		{"Network", []Setting{
			{Name: "allow_local_requests_from_web_hooks_and_services", Value: &s.AllowLocalRequests, Default: false,
				Label: "Allow requests to the local network",
				Doc:   "Whether URLs of users can lead to loopback and private addresses."},
			{Name: "allow_local_requests_from_system_hooks", Value: &s.AllowLocalSystemHooks, Default: true,
				Label: "Allow requests to the local network from system hooks",
				Doc:   "Whether system hooks can lead to loopback and private addresses."},
			{Name: "outbound_local_requests_whitelist", Value: &s.OutboundAllowlist, Default: []string{}, Addresses: true,
				Label: "Local addresses that webhooks, integrations and imports can reach", Hint: "Separated by commas: example.org, 10.1.2.3:8080, 10.0.0.0/8.",
				Doc: "Names, addresses and networks of the local network that webhooks, integrations and imports can reach, each with an optional port."},
			{Name: "web_hook_calls", Value: &s.WebhookCalls, Default: 0, Max: 1_000_000,
				Label: "Deliveries per webhook per minute", Hint: "Further deliveries wait. 0 means no limit.",
				Doc: "Maximum deliveries per webhook per minute; further deliveries wait. 0 means no limit."},
			{Name: "asset_proxy_enabled", Value: &s.ImageProxy, Default: true,
				Label: "Image proxy", Hint: "Shows images of other sites in Markdown. The server fetches them.",
				Doc: "Whether images of other sites in Markdown are fetched by the server and shown. If disabled, they are links."},
			{Name: "asset_proxy_allowlist", Value: &s.ImageAllowlist, Default: []string{},
				Label: "Image hosts that are not proxied", Hint: "Separated by commas. Browsers load their images directly: example.org, *.example.net.",
				Doc: "Hosts whose images are not proxied: browsers load them directly. `*.` in front matches all subdomains."},
			{Name: "rate_limiting_response_text", Value: &s.RateLimitText, Default: "",
				Label: "Plain-text response to rate-limited requests", Hint: "Empty for the default response.",
				Doc: "Plain-text body of 429 responses of the API; empty for the default JSON body."},
			{Name: "throttle_authenticated_api_enabled", Value: &s.AuthenticatedAPI.Enabled, Default: false,
				Label: "Rate-limit authenticated API requests",
				Doc:   "Whether authenticated API requests are rate-limited, per user."},
			{Name: "throttle_authenticated_api_requests_per_period", Value: &s.AuthenticatedAPI.Requests, Default: 7200, Min: 1, Max: maxCount,
				Label: "Authenticated API requests per period per user",
				Doc:   "Maximum authenticated API requests per period per user."},
			{Name: "throttle_authenticated_api_period_in_seconds", Value: &s.AuthenticatedAPI.Seconds, Default: 3600, Min: 1, Max: maxCount,
				Label: "Authenticated rate-limit period (seconds)",
				Doc:   "Rate-limit period of authenticated API requests in seconds."},
			{Name: "throttle_unauthenticated_api_enabled", Value: &s.UnauthenticatedAPI.Enabled, Default: false,
				Label: "Rate-limit unauthenticated API requests",
				Doc:   "Whether unauthenticated API requests are rate-limited, per IP address."},
			{Name: "throttle_unauthenticated_api_requests_per_period", Value: &s.UnauthenticatedAPI.Requests, Default: 3600, Min: 1, Max: maxCount,
				Label: "Unauthenticated API requests per period per IP address",
				Doc:   "Maximum unauthenticated API requests per period per IP address."},
			{Name: "throttle_unauthenticated_api_period_in_seconds", Value: &s.UnauthenticatedAPI.Seconds, Default: 3600, Min: 1, Max: maxCount,
				Label: "Unauthenticated rate-limit period (seconds)",
				Doc:   "Rate-limit period of unauthenticated API requests in seconds."},
		}},
	}
}

// List returns the rows of the table.
func (s *Settings) List() []Setting {
	var rows []Setting
	for _, section := range s.Table() {
		rows = append(rows, section.Settings...)
	}
	return rows
}

// Default returns the settings of a new instance.
func Default() Settings {
	var s Settings
	for _, row := range s.List() {
		row.Set(row.Default)
	}
	return s
}

// Set sets the value, which must be of its type.
func (s Setting) Set(value any) {
	switch to := s.Value.(type) {
	case *int:
		*to = value.(int)
	case *bool:
		*to = value.(bool)
	case *string:
		*to = value.(string)
	case *[]string:
		*to = value.([]string)
	case *Weights:
		*to = value.(Weights)
	case *Confirmation:
		*to = value.(Confirmation)
	}
}
