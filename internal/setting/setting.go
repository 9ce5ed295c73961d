// Package setting stores the application settings, which administrators change at
// run time. Options that are needed before the database is open belong to the
// configuration.
package setting

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notice"
	"svc/internal/outbound"
)

// Settings are the values of all application settings.
type Settings struct {
	// New users.
	DefaultProjectsLimit    int
	CanCreateGroup          bool
	GroupServiceAccounts    bool // Owners of top-level groups may create service accounts
	DefaultExternal         bool
	DefaultToPrivateProfile bool

	// Passwords and sign-in.
	MinimumPasswordLength int
	MaxLoginAttempts      int // wrong passwords before an account is locked
	UnlockMinutes         int // how long an account stays locked
	SessionMinutes        int // after which an idle session expires
	// Rate limits per IP address; 0 means no limit.
	SignInsPerMinute         int // with one login
	FailedPasswordsPerMinute int // with any login
	FailedTokensPerMinute    int
	FailedLoginDays          int  // retention of audit events of failed sign-ins; 0 means forever
	PasswordForWeb           bool // users can sign in to the web interface with a password
	PasswordForGit           bool // passwords are accepted by git over HTTP
	SignUpEnabled            bool
	SignUpApproval           bool // new users need the approval of an administrator
	Confirmation             Confirmation

	// Tokens.
	MaxTokenLifetimeDays int
	ImpersonationEnabled bool

	// CI.
	MaxInstanceVariables    int
	AllowRegistrationTokens bool // runners may register themselves
	MaxLogMegabytes         int  // of one job
	MaxGenericMegabytes     int  // of a file of a generic package
	MaxNPMMegabytes         int  // of an npm package
	MaxPyPIMegabytes        int  // of a file of a PyPI package
	// MaxPackageStorageMegabytes is the size of all packages of a project.
	MaxPackageStorageMegabytes int
	NPMForwarding              bool // redirect to the public registry
	PyPIForwarding             bool
	MaxArtifactMegabytes       int  // of one file
	ArtifactDays               int  // retention of artifacts without expire_in; 0 means forever
	LogDays                    int  // retention of the logs of finished jobs; 0 means forever
	PipelineDays               int  // retention of finished pipelines; 0 means forever
	RemoteIncludes             bool // CI/CD configurations may use include:remote

	MaxTerraformStateBytes int // of one state; 0 is no limit

	// Repositories.
	StorageWeights   Weights
	BranchProtection int // initial protection of default branches: see project.ProtectionLevel

	// Rate limits.
	RateLimitText string // body of 429 responses; empty for the default

	// Deletion.
	DeletionDays int // how long projects and groups can be restored; 0 deletes them at once

	// Pages.
	MaxPagesMegabytes  int  // of one site; 0 is no limit
	MaxPagesDomains    int  // of a project; 0 is no limit
	PagesVerification  bool // users must prove the ownership of custom domains with a DNS record
	PagesUniqueDomains bool // sites of new projects use a unique domain

	ImageProxy     bool     // images of other sites are loaded through the image proxy
	ImageAllowlist []string // hosts whose images browsers load directly

	AllowLocalSystemHooks bool     // system hooks may use loopback and private addresses
	OutboundAllowlist     []string // names, addresses and networks that are always allowed
	WebhookCalls          int      // per webhook and minute; 0 means no limit

	// Mirrors allows Maintainers to set up repository mirrors. Administrators always
	// may.
	Mirrors bool

	AllowLocalRequests bool // requests to URLs of users may use loopback and private addresses

	// Repositories.
	MaxPushMegabytes int // of one push; 0 is no limit
	// RepositoryMegabytes is the maximum size of a repository with its LFS objects;
	// 0 means no limit.
	RepositoryMegabytes int
	LFSEnabled          bool
	MaxLFSMegabytes     int  // of one LFS object; 0 is no limit
	LFSDirect           bool // clients transfer LFS objects directly to and from S3
	// MaxObjectMegabytes is the maximum size of a Git object in a push or an import;
	// 0 means no limit.
	MaxObjectMegabytes int
	DiffMaxFiles       int // files whose lines are shown in a comparison
	DiffMaxLines       int // lines of all files in a comparison

	// Error tracking.
	ErrorDays            int // retention of errors after their last event; 0 means forever
	ErrorEventsPerMinute int // per client key; 0 means no limit

	// Alerts.
	AlertDays              int // retention of resolved and ignored alerts; 0 means forever
	AlertPayloadsPerMinute int // per integration; 0 means no limit

	// Imports.
	MaxImportMegabytes int // of the file of an import; 0 means no limit

	// API rate limits.
	AuthenticatedAPI   Throttle
	UnauthenticatedAPI Throttle
}

// Outbound returns which addresses requests to URLs of users may reach.
func (s Settings) Outbound() outbound.Policy {
	return outbound.Policy{Local: s.AllowLocalRequests, Allowed: s.OutboundAllowlist}
}

// Confirmation defines whether users can sign in with a password before they confirm
// their email address.
type Confirmation string

// The values of Confirmation: they can, they can for SoftDays, they cannot.
const (
	ConfirmOff  Confirmation = "off"
	ConfirmSoft Confirmation = "soft"
	ConfirmHard Confirmation = "hard"
)

// SoftDays is the number of days for which users can sign in without confirmation
// with ConfirmSoft.
const SoftDays = 3

// Throttle is a limit on the rate of requests.
type Throttle struct {
	Enabled  bool
	Requests int
	Seconds  int
}

// topic is the topic of the notices that drop the cached settings of all nodes.
const topic = "settings"

// Deps are the dependencies of the service.
type Deps struct {
	DB      *db.DB
	Notices *notice.Bus
	Now     func() time.Time
}

// Service reads and updates the settings.
type Service struct {
	Deps
	guards []Guard
	cached *notice.Cache[struct{}, *Settings]
}

// New returns the service.
func New(d Deps) *Service {
	s := &Service{Deps: d, cached: notice.NewCache[struct{}](notice.CacheOptions[*Settings]{Bus: d.Notices, Max: 1})}
	d.Notices.Subscribe(topic, func(string) { s.cached.Drop() })
	return s
}

// Guard checks a change of the settings. It returns errs.Invalid to reject it.
type Guard func(ctx context.Context, tx *db.Tx, by actor.Actor, was, now Settings) error

// OnUpdate adds a guard that each update must pass.
func (s *Service) OnUpdate(g Guard) { s.guards = append(s.guards, g) }

// Current returns the settings without a permission check, for internal use. They
// are cached.
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

// Get returns the settings. Only administrators may call it.
func (s *Service) Get(ctx context.Context, by actor.Actor) (Settings, error) {
	if err := by.RequireAdmin(); err != nil {
		return Settings{}, err
	}
	return s.Current(ctx)
}

// Update changes the settings: change is called with the current values. Only
// administrators may call it. It returns Invalid, and changes nothing, if a value is
// out of range or a guard rejects the change.
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
		for _, g := range s.guards {
			if err := g(ctx, tx, by, was, now); err != nil {
				return err
			}
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
	before := was.List()
	for i, f := range now.List() {
		from, to := encode(before[i].Value), encode(f.Value)
		if from == to {
			continue
		}
		if err := saveSetting(ctx, tx, f.Name, to); err != nil {
			return err
		}
		err := audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type:    "application_setting_updated",
			Entity:  audit.Instance(),
			Target:  audit.Target{Type: "ApplicationSetting", ID: 1, Details: f.Name},
			Details: audit.Details{Change: f.Name, From: from, To: to},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) check() error {
	wrong := errs.Fields{}
	for _, f := range s.List() {
		n, ok := f.Value.(*int)
		switch {
		case ok && *n < f.Min:
			wrong.Set(f.Name, "must be greater than or equal to %d", f.Min)
		case ok && *n > f.Max:
			wrong.Set(f.Name, "must be less than or equal to %d", f.Max)
		}
		if list, ok := f.Value.(*[]string); ok && f.Addresses {
			if !addresses(*list) {
				wrong.Set(f.Name, "must be at most %d names, addresses and networks", maxHosts)
			}
		} else if ok && !hosts(*list) {
			wrong.Set(f.Name, "must be at most %d host names", maxHosts)
		}
		if text, ok := f.Value.(*string); ok && utf8.RuneCountInString(*text) > maxText {
			wrong.Set(f.Name, "is too long (maximum is %d characters)", maxText)
		}
		if w, ok := f.Value.(*Weights); ok {
			w.check(wrong, f)
		}
		if c, ok := f.Value.(*Confirmation); ok && *c != ConfirmOff && *c != ConfirmSoft && *c != ConfirmHard {
			wrong.Set(f.Name, "must be off, soft or hard")
		}
	}
	return wrong.Err()
}

const (
	maxHosts = 100
	maxText  = 1000 // characters of a text
)

// host matches a host name, or "*." and a host name for all its subdomains. The
// match is strict because the value is sent in a header.
var host = regexp.MustCompile(`^(\*\.)?[a-zA-Z0-9]([a-zA-Z0-9-]{0,62}\.?)+$`)

func addresses(list []string) bool {
	return len(list) <= maxHosts && !slices.ContainsFunc(list, func(entry string) bool {
		if _, err := netip.ParsePrefix(entry); err == nil {
			return false
		}
		host := entry
		if name, port, err := net.SplitHostPort(entry); err == nil {
			if _, err := strconv.ParseUint(port, 10, 16); err != nil {
				return true
			}
			host = name
		}
		_, err := netip.ParseAddr(host)
		return err != nil && !hosts([]string{host})
	})
}

func hosts(list []string) bool {
	return len(list) <= maxHosts && !slices.ContainsFunc(list, func(h string) bool { return len(h) > 253 || !host.MatchString(h) })
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
	for _, f := range s.List() {
		if text, ok := stored[f.Name]; ok {
			if w, ok := f.Value.(*Weights); ok {
				*w = nil // JSON would be merged into the default
			}
			if err := json.Unmarshal([]byte(text), f.Value); err != nil {
				return Settings{}, fmt.Errorf("setting %s: %w", f.Name, err)
			}
		}
	}
	return s, nil
}
