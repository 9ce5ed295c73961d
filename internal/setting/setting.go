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
)

// Settings are all settings.
type Settings struct {
	// New users.
	DefaultProjectsLimit    int
	CanCreateGroup          bool
	GroupServiceAccounts    bool // Owners of top-level groups create service accounts
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
	FailedLoginDays          int  // how long audit events of failed sign-ins are kept; 0 is forever
	PasswordForWeb           bool // passwords open sessions
	PasswordForGit           bool // passwords are accepted by git over HTTP
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
	MaxGenericMegabytes     int  // of a file of a generic package
	MaxNPMMegabytes         int  // of an npm package
	MaxPyPIMegabytes        int  // of a file of a PyPI package
	// MaxPackageStorageMegabytes is the size of all packages of a project.
	MaxPackageStorageMegabytes int
	NPMForwarding              bool // redirect to the public registry
	PyPIForwarding             bool
	MaxArtifactMegabytes       int  // of one file
	ArtifactDays               int  // how long artifacts are kept that say nothing of it; 0 is forever
	LogDays                    int  // how long logs of finished jobs are kept; 0 is forever
	PipelineDays               int  // how long finished pipelines are kept; 0 is forever
	RemoteIncludes             bool // CI files may include files of other sites

	MaxTerraformStateBytes int // of one state; 0 is no limit

	// Repositories.
	StorageWeights   Weights
	BranchProtection int // level of the default branch of new projects: see project.ProtectionLevel

	// Rate limits.
	RateLimitText string // body of 429 responses; empty for the usual one

	// Deletion.
	DeletionDays int // how long projects and groups can be restored; 0 deletes them at once

	// Pages.
	MaxPagesMegabytes  int  // of one site; 0 is no limit
	PagesVerification  bool // who brings a domain has to show in the DNS that it is theirs
	PagesUniqueDomains bool // sites of new projects use a unique domain

	ImageProxy     bool     // images of other sites are shown, by the image proxy
	ImageAllowlist []string // hosts whose images browsers load themselves

	AllowLocalSystemHooks bool     // system hooks may go to loopback and private addresses
	OutboundAllowlist     []string // names, addresses and networks that requests may go to in any case
	WebhookCalls          int      // per webhook and minute; 0: no limit

	// Mirrors allows Maintainers to set up mirrors of repositories; administrators may
	// in any case.
	Mirrors bool

	AllowLocalRequests bool // what users name may be fetched from loopback and private addresses

	// Repositories.
	MaxPushMegabytes int // of one push; 0 is no limit
	// RepositoryMegabytes is the limit of a repository with its LFS objects; 0 is
	// none.
	RepositoryMegabytes int
	LFSEnabled          bool
	MaxLFSMegabytes     int  // of one LFS object; 0 is no limit
	LFSDirect           bool // clients transfer LFS objects to and from S3 themselves
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

// topic is the notice upon which nodes read the settings again.
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
	guards []Guard
	cached *notice.Cache[struct{}, *Settings]
}

// New returns the service.
func New(d Deps) *Service {
	s := &Service{Deps: d, cached: notice.NewCache[struct{}](notice.CacheOptions[*Settings]{Bus: d.Notices, Max: 1})}
	d.Notices.Subscribe(topic, func(string) { s.cached.Drop() })
	return s
}

// Guard refuses a change of the settings with errs.Invalid.
type Guard func(ctx context.Context, tx *db.Tx, by actor.Actor, was, now Settings) error

// OnUpdate adds a guard that each update must pass.
func (s *Service) OnUpdate(g Guard) { s.guards = append(s.guards, g) }

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

// host is a name of a host, or one with all names below it. It goes into a header,
// so it has nothing else.
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
