// Package featureflag manages the feature flags of projects and serves them to
// applications with the protocol of Unleash clients.
package featureflag

import (
	"context"
	"sync"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/lru"
	"svc/internal/project"
	"svc/internal/secret"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Keys     *secret.Keyring
	Projects *project.Service
	Now      func() time.Time
	Prefix   string // prefix of tokens
}

// Service manages the feature flags of all projects.
type Service struct {
	Deps
	Events Events

	mu     sync.Mutex
	served *lru.Map[servedKey, *served] // guarded by mu
}

// Events are the events of feature flags.
type Events struct {
	// Toggled is published when a flag is turned on or off.
	Toggled event.Event[Toggle]
}

// Toggle is the event that a user turned a flag on or off.
type Toggle struct {
	Project *project.Project
	Flag    *Flag
	By      actor.Actor
}

// maxServed is the maximum size of the cached responses, in bytes.
const maxServed = 16 << 20

// New returns the service.
func New(d Deps) *Service {
	return &Service{Deps: d, served: lru.New[servedKey, *served](maxServed, nil)}
}

// Sees reports whether an actor with access to the project may read and change
// its feature flags: Developers and above.
func Sees(by actor.Actor, p *project.Project) bool { return p.MayRead(by, project.FeatureFlagPart) }

// MayChange reports whether an actor may change the feature flags: Developers and
// above, if the project is not archived.
func MayChange(by actor.Actor, p *project.Project) bool {
	return p.MayChange(by, project.FeatureFlagPart, project.Developer)
}

// MayConfigure reports whether an actor may see and replace the instance ID of
// clients: Maintainers and above.
func MayConfigure(by actor.Actor, p *project.Project) bool {
	return p.MayChange(by, project.FeatureFlagPart, project.Maintainer)
}

func (s *Service) reader(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireView(ctx, by, ref, project.FeatureFlagPart)
}

func (s *Service) writer(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, error) {
	return s.Projects.RequireChange(ctx, by, ref, project.FeatureFlagPart, project.Developer)
}

// change runs f in a transaction that is serialized with other changes of the
// project's flags, and increments the revision, so that clients get the new flags.
func (s *Service) change(ctx context.Context, p *project.Project, f func(tx *db.Tx) error) error {
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(ctx, "projects", p.ID); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		return countRevision(ctx, tx, p.ID)
	})
}

// grow is like change, for changes that can increase the size of the flags. Invalid
// if they become too large.
func (s *Service) grow(ctx context.Context, p *project.Project, f func(tx *db.Tx) error) error {
	return s.change(ctx, p, func(tx *db.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		size, err := flagsSize(ctx, tx, p.ID)
		if err == nil && size > maxFlagsSize {
			err = errs.Invalid("The strategies, scopes and user lists of the feature flags have more than %d bytes together", maxFlagsSize)
		}
		return err
	})
}

// maxFlagsSize is the maximum size of all flags of a project, approximately as a
// response to a client: a user list counts for each strategy that uses it.
const maxFlagsSize = 4 << 20

// number returns the IID of a new row of a table. Invalid if the project has the
// maximum number of rows.
func number(ctx context.Context, tx *db.Tx, table string, projectID int64, most int, what string) (int64, error) {
	n, err := countRows(ctx, tx, table, projectID)
	if err != nil {
		return 0, err
	}
	if n >= most {
		return 0, errs.Invalid("A project has at most %d %s: delete one first", most, what)
	}
	return nextIID(ctx, tx, table, projectID)
}

func (s *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, p *project.Project, kind string, target audit.Target, d audit.Details) error {
	return audit.Record(ctx, tx, by, s.Now(), audit.Event{
		Type: kind, Entity: audit.Entity{Type: audit.ProjectEntity, ID: p.ID, Path: p.FullPath}, Target: target, Details: d,
	})
}
