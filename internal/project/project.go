// Package project implements namespaces, groups, projects and members, and decides
// the permissions in them.
package project

import (
	"context"
	"sync/atomic"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/notice"
	"svc/internal/queue"
	"svc/internal/setting"
	"svc/internal/user"
)

// Visibility is who can see a project or group without being a member.
type Visibility string

// The visibilities, each wider than the one before. Internal is visible to
// signed-in users who are not external.
const (
	Private  Visibility = "private"
	Internal Visibility = "internal"
	Public   Visibility = "public"
)

func (v Visibility) check(wrong errs.Fields) {
	if v != Private && v != Internal && v != Public {
		wrong.Set("visibility_level", "is not included in the list")
	}
}

// width returns the order of visibilities.
func (v Visibility) width() int {
	switch v {
	case Public:
		return 2
	case Internal:
		return 1
	}
	return 0
}

// NamespaceKind is the kind of a namespace: user or group.
type NamespaceKind string

// The kinds of namespaces.
const (
	UserNamespace  NamespaceKind = "user"
	GroupNamespace NamespaceKind = "group"
)

// Namespace is the owner of projects: a group, or the namespace of a user.
type Namespace struct {
	ID          int64
	Kind        NamespaceKind
	ParentID    *int64
	UserID      *int64 // only for the namespace of a user
	Path        string
	Name        string
	FullPath    string // with the paths of its ancestors
	FullName    string
	Description string
	Visibility  Visibility
	Avatar      string
	Settings    GroupSettings
	CreatedBy   *int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
	MarkedAt    *time.Time // when it was marked for deletion

	// Read by Service.Group only.
	Shares []Share
}

// GroupSettings are the settings of a group. They are stored as JSON.
type GroupSettings struct {
	ProjectCreationLevel                      string // noone, owner, maintainer, developer or administrator
	SubgroupCreationLevel                     string // owner or maintainer
	RequestAccessEnabled                      bool
	TwoFactorGracePeriod                      int64 // hours
	ShareWithGroupLock                        bool
	MembershipLock                            bool
	LFSEnabled                                bool
	EmailsEnabled                             bool
	MentionsDisabled                          bool
	DefaultBranch                             string
	SharedRunnersSetting                      string
	WikiAccessLevel                           Feature
	OnlyAllowMergeIfPipelineSucceeds          bool
	AllowMergeOnSkippedPipeline               bool
	OnlyAllowMergeIfAllDiscussionsAreResolved bool
	Approvals                                 ApprovalLimits // only of top-level groups
	PreventForkingOutsideGroup                bool
	BranchProtection                          *BranchProtection // of default branches; nil: inherited from the parent or the instance
}

// DefaultGroupSettings returns the settings of new groups.
func DefaultGroupSettings() GroupSettings { return defaultGroupSettings() }

func defaultGroupSettings() GroupSettings {
	return GroupSettings{
		ProjectCreationLevel: "developer", SubgroupCreationLevel: "maintainer", RequestAccessEnabled: true, TwoFactorGracePeriod: 48,
		LFSEnabled: true, EmailsEnabled: true, SharedRunnersSetting: "enabled", WikiAccessLevel: Enabled,
	}
}

// Project is a Git repository with its issues, pipelines, members and settings.
type Project struct {
	ID            int64
	NamespaceID   int64
	Path          string
	Name          string
	FullPath      string
	Description   string
	Visibility    Visibility
	DefaultBranch string // empty before the first push
	// Edition changes each time Summary reads the project from the database, for any
	// actor. It can be used as a cache key for data derived from the project.
	Edition       int64
	InitialBranch string // default branch for the first push; empty for the default
	Readme        string // path in the default branch; empty if there is none
	Archived      bool
	Avatar        string
	CreatorID     *int64
	ForkedFromID  *int64
	Stars         int64
	Storage       string
	ReadOnly      bool
	Import        ImportStatus
	ImportError   string
	ImportType    string // FromGit or FromFile; empty if the project was not imported
	ImportURL     string // without credentials

	Issues        Feature
	Repository    Feature
	MergeRequests Feature
	Builds        Feature
	Settings      Settings
	Inherited     MergeRules // from its groups: see MergeSettings

	LastActivityAt time.Time
	CreatedAt      time.Time
	UpdatedAt      time.Time
	MarkedAt       *time.Time // when it was marked for deletion

	Namespace Namespace // only the fields for display

	// Set by Service.Get, List and similar methods.
	Topics []string
	Forks  int64
	Access Access     // access of the actor
	Owner  *user.User // only for a project in the namespace of a user
	Shares []Share    // set by Service.Get only

	Statistics Statistics
	ForkedFrom *Project // nil if the actor cannot see it
}

// ImportStatus is the state of a fork or import.
type ImportStatus string

// The states of an import.
const (
	ImportNone      ImportStatus = "none"
	ImportScheduled ImportStatus = "scheduled"
	ImportStarted   ImportStatus = "started"
	ImportFinished  ImportStatus = "finished"
	ImportFailed    ImportStatus = "failed"
)

// Pending reports whether the repository is still being copied.
func (s ImportStatus) Pending() bool { return s == ImportScheduled || s == ImportStarted }

// FromGit is the type of an import by URL.
const FromGit = "git"

// FullName returns the name with the names of all ancestors.
func (p *Project) FullName() string { return p.Namespace.FullName + " / " + p.Name }

// Entity returns the project for audit events.
func (p *Project) Entity() audit.Entity {
	return audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath}
}

// Entity returns the group for audit events.
func (n *Namespace) Entity() audit.Entity {
	return audit.Entity{Type: audit.GroupEntity, ID: n.ID, Path: n.FullPath}
}

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Blobs    blob.Store
	Queue    *queue.Queue
	Notices  *notice.Bus
	Users    *user.Service
	Audit    *audit.Service
	Settings *setting.Service
	Now      func() time.Time

	Host     string   // host of the email addresses of bot users
	Storages []string // valid storages; empty disables the check
}

// Service manages the groups and projects of the instance.
type Service struct {
	Deps
	Events Events

	branch   BranchSetter
	storage  StorageSetter
	known    *notice.Cache[knownKey, *Project] // with the access of the user in the key
	editions atomic.Int64                      // last Project.Edition
}

// Deleted is a project that is deleted permanently.
type Deleted struct {
	ID      int64
	Storage string
}

// Events are the events of projects.
type Events struct {
	// Changed is published when a project is created, renamed or moved, when a member
	// joins or leaves, and when a membership expires.
	Changed event.Event[Event]
	// Transferred is published when a project or group has moved to another namespace,
	// in the transaction of the move. A subscriber replaces what was inherited from
	// groups that are no longer above it.
	Transferred event.Event[Transferred]
	// Deleted is published when projects are deleted permanently, in the
	// transaction that removes their rows. The database deletes rows with a foreign
	// key to the project; project itself deletes bots, deploy keys and the avatar. A
	// subscriber removes what is outside of the database by a background job.
	Deleted event.Event[[]Deleted]
	// AccessRequested is published when a user requests access to a project or
	// group, and when the request is approved, denied or withdrawn.
	AccessRequested event.Event[AccessRequest]
	// Recorded is published with each audit event about a group or project.
	Recorded event.Event[Recorded]
	// Unlinked is published when the fork relationship of a project is removed: the
	// project and its forks become a separate fork network.
	Unlinked event.Event[Unlinked]
}

// Unlinked is the removal of the fork relationship of a project.
type Unlinked struct {
	ProjectID int64
	By        int64 // the user who removed it
}

// Transferred is a project or group that has moved to another namespace.
type Transferred struct {
	Project *Project   // one of Project and Group is set
	Group   *Namespace // its tree is that of the new place
	From    *int64     // ID of the previous namespace; nil for a top-level group
}

// AccessRequest is the request of a user to become a member of a project or group.
type AccessRequest struct {
	ProjectID int64 // one of ProjectID and GroupID is set
	GroupID   int64
	UserID    int64
	Settled   bool // approved, denied or withdrawn
}

// Place returns the project or group.
func (r AccessRequest) Place() Place {
	if r.GroupID != 0 {
		return Place{Group: true, Ref: RefTo(r.GroupID)}
	}
	return Place{Ref: RefTo(r.ProjectID)}
}

// Recorded is an audit event about a group or project.
type Recorded struct {
	By     actor.Actor
	Kind   string // "member_created"
	Entity audit.Entity
	Target audit.Target
	Detail audit.Details
}

// Event is a change to a project or to a user's membership in it.
type Event struct {
	Kind      EventKind
	ProjectID int64
	UserID    int64
	Name      string // name of the project
	From      string // previous path of a moved project
}

// EventKind is the kind of an Event.
type EventKind int

// The kinds of events.
const (
	ProjectCreated EventKind = iota + 1
	ProjectRenamed
	MemberJoined
	MemberLeft
	MemberExpired
	ProjectMoved // the path has changed
)

// publishMember publishes an event about a project member. There are no such
// events for groups.
func (s *Service) publishMember(ctx context.Context, tx *db.Tx, kind EventKind, in source, userID int64) error {
	if in.project == nil {
		return nil
	}
	return s.Events.Changed.Publish(ctx, tx, Event{Kind: kind, ProjectID: in.project.ID, UserID: userID})
}

// BranchSetter changes the default branch of the repository. It is called before
// the project is saved. InvalidField if the branch does not exist.
type BranchSetter func(ctx context.Context, p *Project, branch string) error

// OnDefaultBranch registers the BranchSetter. It is called at startup.
func (s *Service) OnDefaultBranch(b BranchSetter) { s.branch = b }

// StorageSetter moves the repository of a project to another storage in the
// background. Requires an administrator. InvalidField if that is not possible.
type StorageSetter func(ctx context.Context, by actor.Actor, p *Project, storage string) error

// OnStorage registers the StorageSetter. It is called at startup.
func (s *Service) OnStorage(m StorageSetter) { s.storage = m }

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d}
	s.handleWork()
	s.watchProjects()
	return s
}

// today returns the current date, by which memberships expire.
func (s *Service) today() string { return s.Now().UTC().Format(time.DateOnly) }

// record adds an audit event about a project or group.
func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, kind string, in audit.Entity, target audit.Target, d audit.Details) error {
	if err := audit.Record(ctx, tx, by, s.Now(), audit.Event{Type: kind, Entity: in, Target: target, Details: d}); err != nil {
		return err
	}
	return s.Events.Recorded.Publish(ctx, tx, Recorded{By: by, Kind: kind, Entity: in, Target: target, Detail: d})
}
