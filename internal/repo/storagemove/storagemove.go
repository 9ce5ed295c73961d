// Package storagemove moves repositories between storages: those of projects with
// their wikis, of group wikis and of snippets.
package storagemove

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notice"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
)

// Move is the move of a repository to another storage, with the
// auxiliary repository that belongs to it.
type Move struct {
	ID          int64
	Kind        Kind
	OwnerID     int64
	Name        string // of the owner: full path, or title of a snippet
	Title       string // of the owner
	Source      string
	Destination string
	State       State
	Error       string // why it failed
	CreatedAt   time.Time
	UpdatedAt   time.Time
	StartedAt   *time.Time
	EndedAt     *time.Time

	run   string
	tries int
	left  []location
}

// owner returns the owner of the repositories.
func (m *Move) owner() repo.Owner {
	switch m.Kind {
	case Project:
		return repo.Owner{ProjectID: m.OwnerID}
	case Group:
		return repo.Owner{NamespaceID: m.OwnerID}
	}
	return repo.Owner{SnippetID: m.OwnerID}
}

// Took returns the time from the first copy to the end; 0 before the end.
func (m *Move) Took() time.Duration {
	if m.StartedAt == nil || m.EndedAt == nil {
		return 0
	}
	return m.EndedAt.Sub(*m.StartedAt)
}

// Kind is the kind of a moved repository: project, group wiki or snippet.
type Kind string

// The kinds: a project with its wiki, a snippet, the wiki of a group.
const (
	Project Kind = "project"
	Snippet Kind = "snippet"
	Group   Kind = "group"
)

// State is the state of a storage move.
//
//	initial ──> scheduled ──> started ──> replicated ──> finished
//	   │            │            │             └───────> cleanup failed
//	   └────────────┴────────────┴─────────────────────> failed
//
// From scheduled on the repository is read-only until the move is over. In
// replicated it becomes writable after Options.Patience.
type State string

// The states. A move that is part of a MoveAll waits in Initial.
const (
	Initial       State = "initial"
	Scheduled     State = "scheduled"
	Started       State = "started"
	Replicated    State = "replicated"
	Finished      State = "finished"
	Failed        State = "failed"
	CleanupFailed State = "cleanup failed"
)

// Over reports whether a state is final.
func (s State) Over() bool {
	return s == Finished || s == Failed || s == CleanupFailed
}

// Deps are the dependencies of a Service besides the repositories.
type Deps struct {
	Repos   *repo.Service
	Notices *notice.Bus
	Log     *slog.Logger
	Options
}

// Options are options of moves; the zero value has the defaults.
type Options struct {
	// Quiet is how long the old directory must have had no readers before it is
	// removed; default: five seconds.
	Quiet time.Duration
	// Patience is how long a moved repository stays read-only while its old
	// directory still has readers; default: one minute.
	Patience time.Duration
	// Step is called before each step. Tests end the process there.
	Step func(name string)
}

// Service moves repositories between storages.
type Service struct{ Deps }

// New returns the mover and registers its background jobs.
func New(d Deps) *Service {
	if d.Quiet == 0 {
		d.Quiet = 5 * time.Second
	}
	if d.Patience == 0 {
		d.Patience = time.Minute
	}
	if d.Step == nil {
		d.Step = func(string) {}
	}
	m := &Service{d}
	m.handleWork()
	return m
}

// SetStorage implements project.StorageSetter.
func (m *Service) SetStorage(ctx context.Context, by actor.Actor, p *project.Project, storage string) error {
	_, err := m.Move(ctx, by, Project, p.ID, storage)
	return err
}

// Filter selects moves; the zero value selects all.
type Filter struct {
	Kind    Kind
	OwnerID int64
	ID      int64
}

// List lists moves, newest first. Administrators only.
func (m *Service) List(ctx context.Context, by actor.Actor, f Filter, p db.Paging) (db.Page[*Move], error) {
	if err := by.RequireAdmin(); err != nil {
		return db.Page[*Move]{}, err
	}
	page, err := searchMoves(ctx, m.Repos.DB, f, p)
	if err != nil {
		return page, fmt.Errorf("list storage moves: %w", err)
	}
	return page, nil
}

// Get returns the move with the ID of the filter. Administrators only;
// NotFound.
func (m *Service) Get(ctx context.Context, by actor.Actor, f Filter) (*Move, error) {
	page, err := m.List(ctx, by, f, db.Paging{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		return nil, errs.NotFound("")
	}
	return page.Items[0], nil
}

// Progress counts the moves in progress.
type Progress struct {
	Waiting int64 // in the queue, or waiting for writers
	Copying int64
	Leaving int64 // moved, but the old directory is not removed yet
}

func (p Progress) all() int64 { return p.Waiting + p.Copying + p.Leaving }

// Progress returns the numbers of moves in progress. Administrators only.
func (m *Service) Progress(ctx context.Context, by actor.Actor) (Progress, error) {
	if err := by.RequireAdmin(); err != nil {
		return Progress{}, err
	}
	p, err := countMoves(ctx, m.Repos.DB)
	if err != nil {
		return p, fmt.Errorf("count storage moves: %w", err)
	}
	return p, nil
}

// Move moves a repository to another storage in a background job; that of a
// project with its wiki. Without a destination it is the storage with the most
// free space. A group wiki without a repository will be created on the
// destination. Administrators only. NotFound; InvalidField if the destination
// is not possible or a move is in progress.
func (m *Service) Move(ctx context.Context, by actor.Actor, kind Kind, ownerID int64, destination string) (*Move, error) {
	if err := by.RequireAdmin(); err != nil {
		return nil, err
	}
	mv := &Move{Kind: kind, OwnerID: ownerID, Destination: destination}
	if kind == Project {
		p, err := m.Repos.Projects.Require(ctx, by, project.RefTo(ownerID), project.NoAccess)
		if err != nil {
			return nil, err
		}
		mv.Name, mv.Source = p.FullPath, p.Storage
		return m.schedule(ctx, by, mv)
	}
	var a *repo.AuxRepo
	if kind == Group {
		g, err := m.Repos.Projects.RequireGroup(ctx, by, project.RefTo(ownerID), project.NoAccess)
		if err != nil {
			return nil, err
		}
		mv.Name, mv.Title = g.FullPath, g.Name
		if a, err = m.Repos.BeginWiki(ctx, nil, &g.ID); err != nil {
			return nil, err
		}
	} else {
		var err error
		if a, err = m.Repos.SnippetAuxRepo(ctx, ownerID); err != nil {
			return nil, err
		}
		if a == nil {
			return nil, errs.NotFound("Snippet")
		}
	}
	mv.Source = a.Storage
	return m.schedule(ctx, by, mv)
}

// schedule inserts a move that starts as soon as possible.
func (m *Service) schedule(ctx context.Context, by actor.Actor, mv *Move) (*Move, error) {
	if mv.Destination == "" {
		mv.Destination = m.roomiest(mv.Source)
	}
	if err := m.possible(mv.Source, mv.Destination); err != nil {
		return nil, err
	}
	mv.State, mv.CreatedAt, mv.UpdatedAt = Scheduled, m.Repos.Now(), m.Repos.Now()
	err := m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := m.close(ctx, tx, mv); err != nil {
			return err
		}
		err := insertMove(ctx, tx, mv)
		if errors.Is(err, db.ErrNoRows) {
			return errs.InvalidField(string(mv.Kind), "is being moved already")
		}
		if err != nil {
			return err
		}
		if err := m.record(ctx, tx, by, mv, "repository_storage_move_scheduled"); err != nil {
			return err
		}
		return m.Repos.Queue.Add(ctx, tx, moveWork{mv.ID}, queue.In(moveLane), queue.Tries(moveTries))
	})
	if err != nil {
		return nil, fmt.Errorf("move %s %d: %w", mv.Kind, mv.OwnerID, err)
	}
	return mv, nil // in its scheduled state, even if it has progressed
}

// record writes an audit event about a move.
func (m *Service) record(ctx context.Context, tx *db.Tx, by actor.Actor, mv *Move, kind string) error {
	e := audit.Event{
		Type: string(mv.Kind) + "_" + kind, Entity: audit.Instance(),
		Target:  audit.Target{Type: "StorageMove", ID: mv.ID, Details: mv.Name},
		Details: audit.Details{Change: "repository storage", From: mv.Source, To: mv.Destination},
	}
	switch mv.Kind {
	case Project:
		e.Entity = audit.Entity{Type: audit.ProjectEntity, ID: mv.OwnerID, Path: mv.Name}
	case Group:
		e.Entity = audit.Entity{Type: audit.GroupEntity, ID: mv.OwnerID, Path: mv.Name}
	}
	return audit.Record(ctx, tx, by, m.Repos.Now(), e)
}

// possible returns an error if the destination is not configured, or is the
// same directory as the source.
func (m *Service) possible(source, destination string) error {
	root, ok := m.Repos.Storages[destination]
	if destination == "" {
		return errs.InvalidField("destination_storage_name", "can't be blank: there is no other storage")
	}
	if !ok {
		return errs.InvalidField("destination_storage_name", "is not included in the list")
	}
	if source == destination || sameDir(m.Repos.Storages[source], root) {
		return errs.InvalidField("destination_storage_name", "is the storage that the repository is on")
	}
	return nil
}

// sameDir reports whether two paths are the same directory.
func sameDir(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// roomiest returns the storage with the most free space, other than the source;
// empty if there is none.
func (m *Service) roomiest(source string) string {
	best, most := "", int64(-2)
	for name, root := range m.Repos.Storages {
		if m.possible(source, name) != nil {
			continue
		}
		free := int64(-1) // a storage that does not exist or respond comes last
		var fs syscall.Statfs_t
		if syscall.Statfs(root, &fs) == nil {
			free = int64(fs.Bavail) * int64(fs.Bsize)
		}
		if free > most || free == most && name < best {
			best, most = name, free
		}
	}
	return best
}

// MoveAll moves all repositories of a kind on a storage to the destination, or
// to the storage with the most free space. Each is read-only only from the
// start of its own move. Administrators only. InvalidField.
func (m *Service) MoveAll(ctx context.Context, by actor.Actor, kind Kind, source, destination string) error {
	if err := by.RequireAdmin(); err != nil {
		return err
	}
	if _, ok := m.Repos.Storages[source]; !ok {
		return errs.InvalidField("source_storage_name", "is not included in the list")
	}
	to := destination
	if to == "" {
		to = m.roomiest(source)
	}
	if err := m.possible(source, to); err != nil {
		return err
	}
	err := m.Repos.DB.Tx(ctx, func(tx *db.Tx) error {
		err := audit.Record(ctx, tx, by, m.Repos.Now(), audit.Event{
			Type: string(kind) + "_repository_storage_moves_scheduled", Entity: audit.Instance(), Target: audit.Target{Type: "Storage", Details: source},
			Details: audit.Details{Change: "repository storage", From: source, To: destination},
		})
		if err != nil {
			return err
		}
		return m.Repos.Queue.Add(ctx, tx, moveAllWork{kind, source, destination}, queue.Unique())
	})
	if err != nil {
		return fmt.Errorf("move all %ss of storage %s: %w", kind, source, err)
	}
	return nil
}
