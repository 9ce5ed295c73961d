// Package setting stores the application settings, which administrators change at
// run time. Options that are needed before the database is open belong to the
// configuration.
package setting

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notice"
)

// Settings are all settings.
type Settings struct {
	// New users.
	DefaultProjectsLimit    int
	CanCreateGroup          bool
	DefaultExternal         bool
	DefaultToPrivateProfile bool

	// Passwords and sign-in.
	MinimumPasswordLength int
	MaxLoginAttempts      int // wrong passwords before an account is locked
	UnlockMinutes         int // how long it stays locked
	SessionMinutes        int // how long an idle session lives
	// Failures are counted for each address; 0 is no limit.
	SignInsPerMinute         int // of one login
	FailedPasswordsPerMinute int // of all logins
	FailedTokensPerMinute    int
	FailedLoginDays          int // how long audit events of failed sign-ins are kept; 0 is forever
	SignUpEnabled            bool
	SignUpApproval           bool // who signs up waits for an administrator
	Confirmation             Confirmation

	// Tokens.
	MaxTokenLifetimeDays int
	ImpersonationEnabled bool

	// CI.
	MaxInstanceVariables    int
	AllowRegistrationTokens bool // runners may register themselves
	MaxLogMegabytes         int  // of one job
	MaxArtifactMegabytes    int  // of one file
	ArtifactDays            int  // how long artifacts are kept that say nothing of it; 0 is forever
	LogDays                 int  // how long logs of finished jobs are kept; 0 is forever
	PipelineDays            int  // how long finished pipelines are kept; 0 is forever
	RemoteIncludes          bool // CI files may include files of other sites

	// Pages.
	MaxPagesMegabytes int  // of one site; 0 is no limit
	PagesVerification bool // who brings a domain has to show in the DNS that it is theirs

	AllowLocalRequests bool // what users name may be fetched from loopback and private addresses

	// Repositories.
	MaxPushMegabytes int // of one push; 0 is no limit
	// MaxObjectMegabytes is the limit of one object of a push or an import; 0 is
	// no limit.
	MaxObjectMegabytes int
	DiffMaxFiles       int // with their texts, in a comparison
	DiffMaxLines       int // of all texts of a comparison

	// Error tracking.
	ErrorDays            int // how long an error is kept that comes no more; 0 is forever
	ErrorEventsPerMinute int // that one client key may send; 0 is no limit

	// Alerts.
	AlertDays              int // how long an alert is kept that is over; 0 is forever
	AlertPayloadsPerMinute int // that may be sent to one integration; 0 is no limit

	// Imports.
	MaxImportMegabytes int // of the file of one; 0 is no limit

	// Rates.
	AuthenticatedAPI   Throttle
	UnauthenticatedAPI Throttle
}

// Confirmation says whether passwords open accounts whose address is not
// confirmed.
type Confirmation string

// The values: they do, they do for SoftDays, they do not.
const (
	ConfirmOff  Confirmation = "off"
	ConfirmSoft Confirmation = "soft"
	ConfirmHard Confirmation = "hard"
)

// SoftDays is how long a new account waits for its confirmation where that is
// soft.
const SoftDays = 3

// Throttle is a limit on the rate of requests.
type Throttle struct {
	Enabled  bool
	Requests int
	Seconds  int
}

// Default is what a new instance starts with.
func Default() Settings {
	return Settings{
		DefaultProjectsLimit:     100_000,
		CanCreateGroup:           true,
		MinimumPasswordLength:    8,
		MaxLoginAttempts:         10,
		SignInsPerMinute:         10,
		FailedPasswordsPerMinute: 100,
		FailedTokensPerMinute:    600,
		FailedLoginDays:          90,
		UnlockMinutes:            10,
		SessionMinutes:           7 * 24 * 60,
		SignUpApproval:           true,
		Confirmation:             ConfirmOff,
		MaxTokenLifetimeDays:     365,
		ImpersonationEnabled:     true,
		MaxInstanceVariables:     100,
		AllowRegistrationTokens:  true,
		MaxLogMegabytes:          100,
		MaxArtifactMegabytes:     1024,
		ArtifactDays:             30,
		MaxPagesMegabytes:        100,
		MaxObjectMegabytes:       512,
		DiffMaxFiles:             1000,
		DiffMaxLines:             50_000,
		ErrorDays:                90,
		AlertDays:                365,
		AuthenticatedAPI:         Throttle{Requests: 7200, Seconds: 3600},
		UnauthenticatedAPI:       Throttle{Requests: 3600, Seconds: 3600},
	}
}

// field ties a setting to the name under which it is stored and shown, and to
// the values that it may take.
type field struct {
	name     string
	value    any // *int, *bool or *Confirmation
	min, max int // of an *int
}

const maxCount = 1_000_000_000

func (s *Settings) fields() []field {
	return []field{
		{"default_projects_limit", &s.DefaultProjectsLimit, 0, maxCount},
		{"can_create_group", &s.CanCreateGroup, 0, 0},
		{"user_default_external", &s.DefaultExternal, 0, 0},
		{"user_defaults_to_private_profile", &s.DefaultToPrivateProfile, 0, 0},
		{"minimum_password_length", &s.MinimumPasswordLength, 8, 128},
		{"max_login_attempts", &s.MaxLoginAttempts, 1, 1000},
		{"failed_login_attempts_unlock_period_in_minutes", &s.UnlockMinutes, 1, maxCount},
		{"session_expire_delay", &s.SessionMinutes, 1, maxCount},
		{"sign_in_attempts_per_minute", &s.SignInsPerMinute, 0, maxCount},
		{"failed_passwords_per_minute", &s.FailedPasswordsPerMinute, 0, maxCount},
		{"failed_tokens_per_minute", &s.FailedTokensPerMinute, 0, maxCount},
		{"failed_sign_in_retention_days", &s.FailedLoginDays, 0, 36_500},
		{"signup_enabled", &s.SignUpEnabled, 0, 0},
		{"require_admin_approval_after_user_signup", &s.SignUpApproval, 0, 0},
		{"email_confirmation_setting", &s.Confirmation, 0, 0},
		{"max_personal_access_token_lifetime", &s.MaxTokenLifetimeDays, 1, 400},
		{"impersonation_enabled", &s.ImpersonationEnabled, 0, 0},
		{"max_instance_variables", &s.MaxInstanceVariables, 0, 10_000},
		{"allow_runner_registration_token", &s.AllowRegistrationTokens, 0, 0},
		{"ci_max_log_megabytes", &s.MaxLogMegabytes, 1, 1 << 10},
		{"max_artifacts_size", &s.MaxArtifactMegabytes, 1, 1 << 20},
		{"ci_default_artifact_days", &s.ArtifactDays, 0, 36_500},
		{"ci_log_retention_days", &s.LogDays, 0, 36_500},
		{"ci_pipeline_retention_days", &s.PipelineDays, 0, 36_500},
		{"ci_remote_includes_enabled", &s.RemoteIncludes, 0, 0},
		{"max_pages_size", &s.MaxPagesMegabytes, 0, 1 << 20},
		{"pages_domain_verification_enabled", &s.PagesVerification, 0, 0},
		{"allow_local_requests_from_web_hooks_and_services", &s.AllowLocalRequests, 0, 0},
		{"receive_max_input_size", &s.MaxPushMegabytes, 0, 1 << 20},
		{"receive_max_object_size", &s.MaxObjectMegabytes, 0, 1 << 20},
		{"max_import_size", &s.MaxImportMegabytes, 0, 1 << 20},
		{"diff_max_files", &s.DiffMaxFiles, 1, 3000},
		{"diff_max_lines", &s.DiffMaxLines, 1, 100_000},
		{"error_tracking_retention_days", &s.ErrorDays, 0, 36_500},
		{"error_tracking_events_per_minute", &s.ErrorEventsPerMinute, 0, 1_000_000},
		{"alert_retention_days", &s.AlertDays, 0, 36_500},
		{"alert_payloads_per_minute", &s.AlertPayloadsPerMinute, 0, 1_000_000},
		{"throttle_authenticated_api_enabled", &s.AuthenticatedAPI.Enabled, 0, 0},
		{"throttle_authenticated_api_requests_per_period", &s.AuthenticatedAPI.Requests, 1, maxCount},
		{"throttle_authenticated_api_period_in_seconds", &s.AuthenticatedAPI.Seconds, 1, maxCount},
		{"throttle_unauthenticated_api_enabled", &s.UnauthenticatedAPI.Enabled, 0, 0},
		{"throttle_unauthenticated_api_requests_per_period", &s.UnauthenticatedAPI.Requests, 1, maxCount},
		{"throttle_unauthenticated_api_period_in_seconds", &s.UnauthenticatedAPI.Seconds, 1, maxCount},
	}
}

// topic is the notice that tells nodes to read the settings again.
const topic = "settings"

// Deps are the dependencies of the service.
type Deps struct {
	DB      *db.DB
	Notices *notice.Bus
	Now     func() time.Time
}

// Service keeps the settings.
type Service struct {
	Deps
	cached *notice.Cache[struct{}, *Settings]
}

// New returns the service.
func New(d Deps) *Service {
	s := &Service{Deps: d, cached: notice.NewCache[struct{}](notice.CacheOptions[*Settings]{Bus: d.Notices, Max: 1})}
	d.Notices.Subscribe(topic, func(string) { s.cached.Drop() })
	return s
}

// Current returns the settings for the program's own use; it costs nothing once
// they have been read.
func (s *Service) Current(ctx context.Context) (Settings, error) {
	have, err := s.cached.Get(struct{}{}, func() (*Settings, bool, error) {
		read, err := load(ctx, s.DB)
		return &read, true, err
	})
	if err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	return *have, nil
}

// Get returns the settings to administrators.
func (s *Service) Get(ctx context.Context, by actor.Actor) (Settings, error) {
	if err := by.RequireAdmin(); err != nil {
		return Settings{}, err
	}
	return s.Current(ctx)
}

// Update lets administrators change settings: change is given the present
// ones. Values out of range are Invalid, and then nothing changes.
func (s *Service) Update(ctx context.Context, by actor.Actor, change func(*Settings)) (Settings, error) {
	if err := by.RequireAdmin(); err != nil {
		return Settings{}, err
	}
	var now Settings
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		was, err := load(ctx, tx)
		if err != nil {
			return err
		}
		now = was
		change(&now)
		if err := now.check(); err != nil {
			return err
		}
		if err := s.save(ctx, tx, by, was, now); err != nil {
			return err
		}
		return s.Notices.Send(ctx, tx, topic, "changed")
	})
	if err != nil {
		return Settings{}, fmt.Errorf("update settings: %w", err)
	}
	return now, nil
}

func (s *Service) save(ctx context.Context, tx *db.Tx, by actor.Actor, was, now Settings) error {
	before := was.fields()
	for i, f := range now.fields() {
		from, to := encode(before[i].value), encode(f.value)
		if from == to {
			continue
		}
		if err := saveSetting(ctx, tx, f.name, to); err != nil {
			return err
		}
		err := audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type:    "application_setting_updated",
			Entity:  audit.Instance(),
			Target:  audit.Target{Type: "ApplicationSetting", ID: 1, Details: f.name},
			Details: audit.Details{Change: f.name, From: from, To: to},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) check() error {
	wrong := errs.Fields{}
	for _, f := range s.fields() {
		n, ok := f.value.(*int)
		switch {
		case ok && *n < f.min:
			wrong.Set(f.name, "must be greater than or equal to %d", f.min)
		case ok && *n > f.max:
			wrong.Set(f.name, "must be less than or equal to %d", f.max)
		}
		if c, ok := f.value.(*Confirmation); ok && *c != ConfirmOff && *c != ConfirmSoft && *c != ConfirmHard {
			wrong.Set(f.name, "must be off, soft or hard")
		}
	}
	return wrong.Err()
}

func encode(v any) string {
	text, _ := json.Marshal(v) // numbers, booleans and texts always encode
	return string(text)
}

func load(ctx context.Context, q db.Q) (Settings, error) {
	stored, err := storedSettings(ctx, q)
	if err != nil {
		return Settings{}, err
	}
	s := Default()
	for _, f := range s.fields() {
		if text, ok := stored[f.name]; ok {
			if err := json.Unmarshal([]byte(text), f.value); err != nil {
				return Settings{}, fmt.Errorf("setting %s: %w", f.name, err)
			}
		}
	}
	return s, nil
}
