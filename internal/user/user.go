// Package user implements accounts: their states, emails, keys, access tokens,
// sessions and two-factor authentication. It authenticates credentials.
package user

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/mail"
	"svc/internal/notice"
	"svc/internal/queue"
	"svc/internal/secret"
	"svc/internal/setting"
)

// State is the state of an account.
type State string

// The states. The transitions are in state.go.
const (
	Active          State = "active"
	Blocked         State = "blocked"
	Banned          State = "banned"
	Deactivated     State = "deactivated"
	PendingApproval State = "blocked_pending_approval"
)

// Kind is the kind of an account.
type Kind string

// The kinds. Only a Human can sign in.
const (
	Human      Kind = "human"
	Ghost      Kind = "ghost" // owns the contributions of deleted users
	AlertBot   Kind = "alert_bot"
	SupportBot Kind = "support_bot"
	ProjectBot Kind = "project_bot"
	GroupBot   Kind = "group_bot"
	// ServiceAccount is an account for a program: see service_account.go.
	ServiceAccount Kind = "service_account"
)

// User is an account.
type User struct {
	ID          int64
	Kind        Kind
	Username    string
	Name        string
	Email       string
	ConfirmedAt *time.Time
	State       State
	Admin       bool
	Auditor     bool
	External    bool

	MustChangePassword bool
	LockedUntil        *time.Time
	TwoFactorEnabled   bool

	Profile
	Preferences
	Status

	Avatar         string // name of the uploaded file; empty if there is none
	Note           string // visible to administrators
	PrivateProfile bool
	ProjectsLimit  int64
	CanCreateGroup bool

	CIMinutesLimit      *int64
	ExtraCIMinutesLimit *int64

	SignInCount     int64
	CurrentSignInAt *time.Time
	CurrentSignInIP string
	LastSignInAt    *time.Time
	LastSignInIP    string
	LastActivityOn  string // YYYY-MM-DD; empty if never active

	NamespaceID int64
	CreatedBy   *int64 // nil if the user signed up
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Followers   int64
	Following   int64

	// Set by Service.Get and Service.List.
	IsFollowed bool
	Identities []Identity
	Attributes []Attribute
	Creator    *User // user CreatedBy; nil if deleted

	zone zone // location of Timezone, if it was loaded by the store
}

// Profile has the fields that users edit themselves.
type Profile struct {
	Bio, Location, PublicEmail, CommitEmail       string
	Skype, LinkedIn, Twitter, Discord, WebsiteURL string
	Organization, JobTitle, Pronouns, Timezone    string
}

// Preferences are the display preferences of a user.
type Preferences struct {
	ThemeID, ColorSchemeID int64
	ViewDiffsFileByFile    bool
	ShowWhitespaceInDiffs  bool
	Appearance             Appearance
}

// Bot reports whether the account is used by a program.
func (u *User) Bot() bool { return u.Kind != Human && u.Kind != Ghost }

// PersonalProjects returns the project limit of the user's namespace; 0 if they
// are external.
func (u *User) PersonalProjects() int64 {
	if u.External {
		return 0
	}
	return u.ProjectsLimit
}

// MayCreateGroups reports whether the user may create top-level groups.
func (u *User) MayCreateGroups() bool { return u.CanCreateGroup && !u.External }

// Internal reports whether the account was created by the instance.
func (u *User) Internal() bool {
	return u.Kind == Ghost || u.Kind == AlertBot || u.Kind == SupportBot
}

// Locked reports whether the account is locked after too many failed sign-ins.
func (u *User) Locked(now time.Time) bool { return u.LockedUntil != nil && now.Before(*u.LockedUntil) }

// LocalTime returns the time of day in the time zone of the user.
func (u *User) LocalTime(now time.Time) string {
	at := u.zone.at
	if at == nil || u.zone.name != u.Timezone {
		at = loadZone(u.Timezone).at
	}
	return now.In(at).Format("3:04 PM")
}

// zone is a time zone with its name.
type zone struct {
	name string
	at   *time.Location
}

// loadZone returns UTC for an unknown name.
func loadZone(name string) zone {
	at, err := time.LoadLocation(name)
	if err != nil {
		at = time.UTC
	}
	return zone{name, at}
}

// WorkInformation joins job title and organization. It is empty if both are.
func (u *User) WorkInformation() string {
	switch {
	case u.JobTitle != "" && u.Organization != "":
		return u.JobTitle + " at " + u.Organization
	case u.JobTitle != "":
		return u.JobTitle
	}
	return u.Organization
}

// entity returns the user for audit events.
func (u *User) entity() audit.Entity {
	return audit.Entity{Type: audit.UserEntity, ID: u.ID, Path: u.Username}
}

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Blobs    blob.Store
	Queue    *queue.Queue
	Notices  *notice.Bus
	Settings *setting.Service
	Keys     *secret.Keyring
	Hasher   *secret.Hasher
	Mail     *mail.Sender // nil disables emails
	Now      func() time.Time

	ServiceName string
	// TokenPrefix is the prefix of personal access tokens: svcpat-…. The default is
	// ServiceName.
	TokenPrefix string
	// Host is the host name of the instance.
	Host string
}

// Service implements the operations on users.
type Service struct {
	Deps
	Events Events

	tokenSources []TokenSource
	actors       *notice.Cache[string, *credential] // by token digest
	limits       *limit.Limiter                     // for failed credentials
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d, limits: limit.New(limit.Deps{Now: d.Now})}
	s.handleWork()
	s.watchNotices()
	return s
}

// Self returns the account of the actor. Unauthorized if not signed in.
func (s *Service) Self(ctx context.Context, by actor.Actor) (*User, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	return s.profile(ctx, by, by.ID)
}

// Get returns an account, with custom attributes on request. Unauthorized if the
// actor is not signed in; NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, id int64, attributes bool) (*User, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	u, err := s.profile(ctx, by, id)
	if err != nil || !attributes {
		return u, err
	}
	u.Attributes, err = attributesOf(ctx, s.DB, id)
	return u, err
}

// profile returns an account with its counts and identities.
func (s *Service) profile(ctx context.Context, by actor.Actor, id int64) (*User, error) {
	u, err := findProfile(ctx, s.DB, by.ID, id)
	if err != nil {
		return nil, err
	}
	if !visible(by, u) {
		return nil, errs.NotFound("User")
	}
	if !by.Admin {
		return u, nil
	}
	return u, s.addCreators(ctx, u)
}

// addCreators reads the creators of accounts, for administrators.
func (s *Service) addCreators(ctx context.Context, list ...*User) error {
	var ids []int64
	for _, u := range list {
		if u.CreatedBy != nil && !slices.Contains(ids, *u.CreatedBy) {
			ids = append(ids, *u.CreatedBy)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	creators, err := findUsers(ctx, s.DB, ids)
	if err != nil {
		return err
	}
	for _, u := range list {
		if u.CreatedBy != nil {
			u.Creator = creators[*u.CreatedBy]
		}
	}
	return nil
}

// find returns an account that the actor can see.
func (s *Service) find(ctx context.Context, q db.Q, by actor.Actor, id int64) (*User, error) {
	u, err := findUser(ctx, q, id)
	if err != nil {
		return nil, err
	}
	if !visible(by, u) {
		return nil, errs.NotFound("User")
	}
	return u, nil
}

// Find returns an account by ID or username, ignoring case. NotFound.
func (s *Service) Find(ctx context.Context, by actor.Actor, ref Ref) (*User, error) {
	u, err := findByRef(ctx, s.DB, ref)
	if err != nil {
		return nil, err
	}
	if !visible(by, u) {
		return nil, errs.NotFound("User")
	}
	return u, nil
}

// visible reports whether the actor can see a user. Banned users and users who are
// pending approval are visible only to administrators and to themselves.
func visible(by actor.Actor, u *User) bool {
	hidden := u.State == Banned || u.State == PendingApproval
	return !hidden || by.Admin || by.Is(u.ID)
}

// MayReadProfile reports whether the actor can see more than the public fields of
// a user. Private profiles are visible only to administrators and to the user.
func MayReadProfile(by actor.Actor, u *User) bool {
	return !u.PrivateProfile || by.Admin || by.Is(u.ID)
}

// change calls f with an account in a transaction and saves the account. All
// changes to accounts use it, so that caches are invalidated.
func (s *Service) change(ctx context.Context, id int64, f func(tx *db.Tx, u *User) error) (*User, error) {
	var u *User
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "users", id); err != nil {
			return err
		}
		var err error
		if u, err = findUser(ctx, tx, id); err != nil {
			return err
		}
		was := u.Username
		if err := f(tx, u); err != nil {
			return err
		}
		u.UpdatedAt = s.Now()
		if err := saveUser(ctx, tx, u); err != nil {
			return err
		}
		if u.Username != was {
			if err := s.Events.Renamed.Publish(ctx, tx, Renaming{NamespaceID: u.NamespaceID, From: was, To: u.Username}); err != nil {
				return err
			}
		}
		return s.dropActor(ctx, tx, u.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("change user %d: %w", id, err)
	}
	return u, nil
}

// record adds an audit event about a user.
func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, u *User, kind string, d audit.Details) error {
	return s.recordOf(ctx, tx, by, u, kind, audit.Target{Type: "User", ID: u.ID, Details: u.Username}, d)
}
