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

// The visibilities, each wider than the one before. Internal is for everyone
// who has signed in and is not external.
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

// width orders the visibilities.
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

// Namespace is a place for projects: a group, or what each user has of their
// own.
type Namespace struct {
	ID          int64
	Kind        NamespaceKind
	ParentID    *int64
	UserID      *int64 // of a user's namespace
	Path        string
	Name        string
	FullPath    string // with the paths of all above it
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
	RequireTwoFactorAuthentication            bool
	TwoFactorGracePeriod                      int64 // hours
	ShareWithGroupLock                        bool
	MembershipLock                            bool
	LFSEnabled                                bool
	EmailsEnabled                             bool
	MentionsDisabled                          bool
	AutoDevopsEnabled                         bool
	DefaultBranch                             string
	SharedRunnersSetting                      string
	WikiAccessLevel                           Feature
	OnlyAllowMergeIfPipelineSucceeds          bool
	AllowMergeOnSkippedPipeline               bool
	OnlyAllowMergeIfAllDiscussionsAreResolved bool
	Approvals                                 ApprovalLimits // only of top-level groups
	PreventForkingOutsideGroup                bool
	BranchProtection                          *BranchProtection // of default branches; nil: as in the group above, or the instance
}

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
	DefaultBranch string // empty until something has been pushed
	// Edition is another number each time that Summary finds the project again, also
	// for another actor: what is made from one holds as long as that.
	Edition       int64
	InitialBranch string // chosen for the first push; empty is the usual one
	Readme        string // its path in the default branch; empty without one
	Archived      bool
	Avatar        string
	CreatorID     *int64
	ForkedFromID  *int64
	Stars         int64
	Storage       string
	ReadOnly      bool
	Import        ImportStatus
	ImportError   string
	ImportType    string // git for an import by URL; empty otherwise
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

	Namespace Namespace // what is shown of it

	// Read by Service.Get, List and the like.
	Topics []string
	Forks  int64
	Access Access     // of the one who asks
	Owner  *user.User // of a project in a user's namespace
	Shares []Share    // by Service.Get only

	Statistics Statistics
	ForkedFrom *Project // if the one who asks sees it
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

// FullName is the name with the names of all namespaces above.
func (p *Project) FullName() string { return p.Namespace.FullName + " / " + p.Name }

// Entity is the project in audit events.
func (p *Project) Entity() audit.Entity {
	return audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath}
}

// Entity is the group in audit events.
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

	Host     string   // of the addresses that bots get
	Storages []string // that a project may be on; empty: not asked
}

// Service manages the groups and projects of the instance.
type Service struct {
	Deps
	Events Events

	branch   BranchSetter
	storage  StorageSetter
	known    *notice.Cache[knownKey, *Project] // with what the user of the key is in it
	editions atomic.Int64                      // of projects that were read: see Project.Edition
}

// Deleted is a project that is deleted permanently.
type Deleted struct {
	ID      int64
	Storage string
}

// Events is what happens to projects.
type Events struct {
	// Changed is published when a project is created, renamed or moved, and when a member
	// joins, leaves or expires.
	Changed event.Event[Event]
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
}

// AccessRequest is the request of a user to become a member of a project or group.
type AccessRequest struct {
	ProjectID int64 // one of these
	GroupID   int64 // likewise
	UserID    int64
	Settled   bool // it was approved, denied or withdrawn
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
	Name      string // of the project
	From      string // the path of one that moved, before
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
	ProjectMoved // it has another path, and so has everything below it
)

// publishMember publishes an event about a member. Groups have no such events.
func (s *Service) publishMember(ctx context.Context, tx *db.Tx, kind EventKind, in source, userID int64) error {
	if in.project == nil {
		return nil
	}
	return s.Events.Changed.Publish(ctx, tx, Event{Kind: kind, ProjectID: in.project.ID, UserID: userID})
}

// BranchSetter makes a branch of the repository the default one. It is asked
// before the project is saved: InvalidField when there is no such branch.
type BranchSetter func(ctx context.Context, p *Project, branch string) error

// OnDefaultBranch registers who knows the repository; it is called at start-up.
func (s *Service) OnDefaultBranch(b BranchSetter) { s.branch = b }

// StorageSetter has the repository of a project brought to another storage, in
// the background, for administrators. InvalidField when it cannot go there.
type StorageSetter func(ctx context.Context, by actor.Actor, p *Project, storage string) error

// OnStorage registers who moves repositories; it is called at start-up.
func (s *Service) OnStorage(m StorageSetter) { s.storage = m }

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d}
	s.handleWork()
	s.watchProjects()
	return s
}

// today is the day by which memberships expire.
func (s *Service) today() string { return s.Now().UTC().Format(time.DateOnly) }

// record writes an audit event about a group or project.
func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, kind string, in audit.Entity, target audit.Target, d audit.Details) error {
	if err := audit.Record(ctx, tx, by, s.Now(), audit.Event{Type: kind, Entity: in, Target: target, Details: d}); err != nil {
		return err
	}
	return s.Events.Recorded.Publish(ctx, tx, Recorded{By: by, Kind: kind, Entity: in, Target: target, Detail: d})
}
