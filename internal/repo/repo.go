// Package repo implements the Git repositories of projects, wikis and snippets:
// their storage, permissions, and the effects of pushes. Package git reads and
// writes the repositories; this package stores rows about them.
package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/setting"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Git      *git.Engine
	Users    *user.Service
	Projects *project.Service
	Activity *activity.Service
	Settings *setting.Service
	Storages map[string]string // directory by name
	Log      *slog.Logger
	Now      func() time.Time
}

// Service manages the repositories of the instance.
type Service struct {
	Deps
	Events Events

	auxRepoOwners  map[AuxRepoKind]AuxRepoOwner
	pushHints      []PushHint
	pushOptions    []PushOption
	pushRules      []PushCheck
	pushChecks     []PushCheck
	forked         []Forked
	archiveFilter  ArchiveFilter // may be nil
	collaborations []Collaboration
	branchChecks   []BranchCheck
}

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{Deps: d, auxRepoOwners: map[AuxRepoKind]AuxRepoOwner{}}
	s.handleWork()
	s.handleAuxRepoWork()
	return s
}

// read returns the repository of a project, as visible to an actor who may read
// it: revisions resolve only to what the actor may read. The repository need
// not exist, because nothing may have been pushed yet.
func (s *Service) read(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, git.Repo, error) {
	p, err := s.Projects.ReadCode(ctx, by, ref)
	if err != nil {
		return nil, git.Repo{}, err
	}
	r, err := s.open(p.Storage, p.ID)
	return p, seen(by, p, r), err
}

// seen returns the repository of a project as visible to an actor who can read
// its code. Revisions from requests must be resolved with it.
func seen(by actor.Actor, p *project.Project, r git.Repo) git.Repo {
	if by.ID == actor.SystemID {
		return r
	}
	return r.As(viewOf(by, p))
}

// viewOf returns which refs of a project an actor who can read its code can
// see. Merge request refs are for actors who can read merge requests. So are
// the internal refs that keep earlier heads; they can be reached by ID but have
// no visible name.
func viewOf(by actor.Actor, p *project.Project) git.View {
	if by.Deploy == nil && p.MayRead(by, project.MergePart) {
		return git.View{Internal: []string{internalRefs}}
	}
	return git.View{Hide: []string{internalRefs, MergeRefs}}
}

// The prefixes of refs that are not branches or tags. Users cannot change them.
const (
	internalRefs = "refs/svc/" // internal, not visible to clients
	MergeRefs    = "refs/merge-requests/"
)

// NoteRefs is the prefix of notes on commits (git notes). Users who may push branches can push
// them. Other features get no events about them.
const NoteRefs = "refs/notes/"

// write returns the repository of a project to an actor who may push to it, and
// creates it if it does not exist. The permissions on refs are checked by move.
// Revisions from requests must be resolved with seen.
func (s *Service) write(ctx context.Context, by actor.Actor, ref project.Ref) (*project.Project, git.Repo, error) {
	p, err := s.Projects.WriteCode(ctx, by, ref)
	if err != nil {
		return nil, git.Repo{}, err
	}
	if p.Import.Pending() {
		return nil, git.Repo{}, errs.Conflict("The repository is being copied. Please try again when that is done.")
	}
	r, err := s.ensure(ctx, p)
	return p, r, err
}

// Of returns the repository of a project for background jobs of other features. It
// checks no permissions, and the repository need not exist.
func (s *Service) Of(p *project.Project) (git.Repo, error) { return s.open(p.Storage, p.ID) }

// open returns a handle on the repository of a project.
func (s *Service) open(storage string, projectID int64) (git.Repo, error) {
	return s.at(storage, pathOf(projectID))
}

// at returns a handle on the repository at a path of a storage.
func (s *Service) at(storage, path string) (git.Repo, error) {
	root, ok := s.Storages[storage]
	if !ok {
		return git.Repo{}, fmt.Errorf("%s is on storage %q, which is not configured", path, storage)
	}
	return s.Git.Repo(filepath.Join(root, path)), nil
}

// pathOf returns the path of a repository in its storage. It does not depend on
// the path of the project, which can change, and is spread over directories
// that stay small.
func pathOf(projectID int64) string {
	return filepath.Join("projects", fmt.Sprintf("%02x", projectID%256), strconv.FormatInt(projectID, 10)+".git")
}

// ensure creates the repository if it does not exist.
func (s *Service) ensure(ctx context.Context, p *project.Project) (git.Repo, error) {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return git.Repo{}, err
	}
	if _, err := r.DefaultBranch(ctx); !errors.Is(err, git.ErrNoRepository) {
		return r, err
	}
	branch := cmp.Or(p.InitialBranch, UsualBranch)
	err = s.hold(ctx, p, func(now git.Repo) error { // the storage may have changed since p was read
		r = now
		return s.make(ctx, r, branch)
	})
	if errors.Is(err, project.ErrMoving) {
		err = s.make(ctx, r, branch) // needed for reading; an empty repository left on the old storage is harmless
	}
	if err != nil {
		return git.Repo{}, fmt.Errorf("make repository of project %d: %w", p.ID, err)
	}
	return r, nil
}

// make creates a repository if it does not exist.
func (s *Service) make(ctx context.Context, r git.Repo, branch string) error {
	if _, err := r.DefaultBranch(ctx); !errors.Is(err, git.ErrNoRepository) {
		return err
	}
	_, err := s.Git.Init(ctx, r.Path(), branch)
	if errors.Is(err, git.ErrExists) { // created concurrently
		return nil
	}
	return err
}

// UsualBranch is the default branch of an empty repository.
const UsualBranch = "main"

// missing converts errors of git: not found and invalid names to NotFound,
// others like passing.
func missing(err error, thing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, git.ErrNotFound), errors.Is(err, git.ErrBadRevision), errors.Is(err, git.ErrNoRepository),
		errors.Is(err, git.ErrBadPath), errors.Is(err, git.ErrBadRef):
		return errs.NotFound(thing).Because(err)
	}
	return passing(err)
}

// passing converts the errors of git that are not faults: rejected objects to
// Refused, busy and timeout to Unavailable, too little memory to Unprocessable.
// Other errors are returned unchanged.
func passing(err error) error {
	if rejected, ok := errors.AsType[*git.Rejected](err); ok {
		return errs.Refused("Git refuses the objects of the commit: %s", rejected.Why).Because(err)
	}
	switch {
	case errs.KindOf(err) != 0:
		return err // already converted
	case errors.Is(err, git.ErrBusy):
		return errs.Unavailable("The server is busy with other repositories. Please try again.").Because(err)
	case errors.Is(err, git.ErrMemory):
		return errs.Unprocessable("An object of the repository is too large for this.").Because(err)
	case errors.Is(err, git.ErrTimeout):
		return errs.Unavailable("The repository took too long to answer.").Because(err)
	}
	return err
}

// SetDefaultBranch sets HEAD to another branch, which must exist.
func (s *Service) SetDefaultBranch(ctx context.Context, p *project.Project, branch string) error {
	r, err := s.open(p.Storage, p.ID)
	if err != nil {
		return err
	}
	wrong := errs.InvalidField("default_branch", "Could not set the default branch. Do you have a branch named '%s' in your repository?", branch)
	if _, err := r.Ref(ctx, git.Heads+branch); err != nil {
		if errs.Is(missing(err, "Branch"), errs.KindNotFound) {
			return wrong.Because(err)
		}
		return err
	}
	if err := s.hold(ctx, p, func(r git.Repo) error { return r.SetDefaultBranch(ctx, branch) }); err != nil {
		return err
	}
	// The statistics of the files must be updated.
	return s.DB.Tx(ctx, func(tx *db.Tx) error { return s.addTidying(ctx, tx, p.ID) })
}
