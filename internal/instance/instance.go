// Package instance has the data of the Admin area about the whole instance:
// counts, background jobs, nodes, repository storages, and the setup checklist.
package instance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/blob"
	"svc/internal/db"
	"svc/internal/mail"
	"svc/internal/queue"
	"svc/internal/setting"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB          *db.DB
	Queue       *queue.Queue
	Settings    *setting.Service
	Mail        *mail.Sender
	Blobs       blob.Store
	Storages    map[string]string // directory by name
	ExternalURL string
	Now         func() time.Time
}

// Service provides the data of the Admin area about the instance.
type Service struct {
	Deps
	self atomic.Pointer[Node] // as last reported
}

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }

// Count is a number of objects. They are counted up to a limit, so that the page is
// fast in a large instance.
type Count struct {
	N    int64
	Over bool // whether there are more
}

// Counts are the numbers of objects of the instance.
type Counts struct {
	Users, Pending, Blocked     Count // all users, those pending approval, and blocked ones
	Groups, Projects, Archived  Count
	Pipelines, Running, Waiting Count // Running and Waiting count jobs
	Runners                     Count
	Database                    int64 // bytes
}

// Counts counts the objects of the instance. Administrators only.
func (s *Service) Counts(ctx context.Context, by actor.Actor) (*Counts, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	c, err := count(ctx, s.DB)
	if err == nil {
		c.Database, err = s.DB.Size(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("count: %w", err)
	}
	return c, nil
}

// Work lists background jobs that have not succeeded, newest first; an empty state
// lists all states. Administrators only.
func (s *Service) Work(ctx context.Context, by actor.Actor, state queue.State, p db.Paging) (db.Page[queue.Item], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[queue.Item]{}, err
	}
	return s.Queue.List(ctx, state, p)
}

// WorkCounts counts background jobs that have not succeeded by state. Administrators
// only.
func (s *Service) WorkCounts(ctx context.Context, by actor.Actor) (map[queue.State]int64, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	list, err := s.Queue.Stats(ctx)
	if err != nil {
		return nil, fmt.Errorf("count work: %w", err)
	}
	counts := map[queue.State]int64{}
	for _, c := range list {
		counts[c.State] += c.N
	}
	return counts, nil
}

// RetryWork retries a background job immediately. Administrators only; NotFound;
// Conflict if it is running or has succeeded.
func (s *Service) RetryWork(ctx context.Context, by actor.Actor, id int64) error {
	return s.meddle(ctx, by, id, "background_work_retried", s.Queue.Again)
}

// DropWork removes a background job from the queue without running it.
// Administrators only; NotFound; Conflict if it is running or has succeeded.
func (s *Service) DropWork(ctx context.Context, by actor.Actor, id int64) error {
	return s.meddle(ctx, by, id, "background_work_dropped", s.Queue.Drop)
}

func (s *Service) meddle(ctx context.Context, by actor.Actor, id int64, kind string, do func(context.Context, *db.Tx, int64) (queue.Item, error)) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	return s.DB.Tx(ctx, func(tx *db.Tx) error {
		item, err := do(ctx, tx, id)
		if err != nil {
			return err
		}
		return audit.Record(ctx, tx, by, s.Now(), audit.Event{
			Type: kind, Entity: audit.Instance(), Target: audit.Target{Type: "Work", ID: id, Details: item.Kind},
			Details: audit.Details{Message: item.Kind},
		})
	})
}

// Storage is a repository storage.
type Storage struct {
	Name     string
	Dir      string
	Projects int64
	Snippets int64
	Wikis    int64 // wikis of projects and groups
	ReadOnly int64 // number of the projects that are being moved
	Bytes    int64 // size of the repositories, as last measured
	Disk
}

// StorageList lists the storages with their use. Administrators only.
func (s *Service) StorageList(ctx context.Context, by actor.Actor) ([]Storage, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	used, err := usage(ctx, s.DB)
	if err != nil {
		return nil, fmt.Errorf("list storages: %w", err)
	}
	var list []Storage
	for _, name := range slices.Sorted(maps.Keys(s.Storages)) {
		one := used[name]
		one.Name, one.Dir = name, s.Storages[name]
		one.Disk = look(one.Dir)
		list = append(list, one)
	}
	return list, nil
}
