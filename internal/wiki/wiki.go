// Package wiki implements the wikis of projects and groups. Pages are files of a
// Git repository, so each page has its history and can be pushed with git.
package wiki

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/git"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Projects *project.Service
	Repos    *repo.Service
	Plan     *plan.Service
	Now      func() time.Time
}

// Service manages the wikis of the instance.
type Service struct {
	Deps
	Events Events
}

// Events are the events of wikis.
type Events struct {
	// PageChanged is published when a page is created, changed or deleted, also by
	// git push.
	PageChanged event.Event[PageChange]
}

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }

// AuxRepoOwner returns the rules for pushes to the repositories of wikis.
func (s *Service) AuxRepoOwner() repo.AuxRepoOwner {
	return repo.AuxRepoOwner{Open: s.open, Check: check, Follow: s.follow}
}

// Wiki is the wiki of a project or a group.
type Wiki struct {
	Project *project.Project // nil for that of a group
	Group   *project.Namespace
	// MayWrite reports whether the actor may change pages.
	MayWrite bool

	auxRepo *repo.AuxRepo // nil while there is nothing in it
}

// Path is the path of the project or group.
func (w *Wiki) Path() string {
	if w.Project != nil {
		return w.Project.FullPath
	}
	return w.Group.FullPath
}

// Base returns the path of the pages of the wiki, below the URL of the instance.
func (w *Wiki) Base() string {
	if w.Project != nil {
		return "/" + w.Project.FullPath + "/-/wikis"
	}
	return "/groups/" + w.Group.FullPath + "/-/wikis"
}

// Clone returns the path of the repository of the wiki, below the URL of the instance and
// without ".git".
func (w *Wiki) Clone() string { return w.Path() + ".wiki" }

// owner returns the IDs that own the auxiliary repository of the wiki.
func (w *Wiki) owner() (projectID, namespaceID *int64) {
	if w.Project != nil {
		return &w.Project.ID, nil
	}
	return nil, &w.Group.ID
}

// Wiki returns the wiki of a project or group. That requires Guest if the project
// or group is private or the wiki is limited to members. NotFound.
func (s *Service) Wiki(ctx context.Context, by actor.Actor, at project.Place) (*Wiki, error) {
	w, level, err := s.find(ctx, by, at)
	if err != nil {
		return nil, err
	}
	w.MayWrite = by.Admin || level >= project.Developer
	if w.Project != nil {
		w.MayWrite = w.Project.MayChange(by, project.WikiPart, project.Developer)
	}
	projectID, namespaceID := w.owner()
	w.auxRepo, err = s.Repos.WikiOf(ctx, projectID, namespaceID)
	return w, err
}

func (s *Service) find(ctx context.Context, by actor.Actor, at project.Place) (*Wiki, project.Level, error) {
	if !at.Group {
		p, err := s.Projects.RequireView(ctx, by, at.Ref, project.WikiPart)
		if err != nil {
			return nil, 0, err
		}
		return &Wiki{Project: p}, p.Access.Level(), nil
	}
	g, err := s.Projects.RequireGroup(ctx, by, at.Ref, project.NoAccess)
	if err != nil {
		return nil, 0, err
	}
	level, seen, err := s.sees(ctx, by, g)
	if err == nil && !seen {
		err = errs.NotFound("")
	}
	return &Wiki{Group: g}, level, err
}

// Sees reports whether an actor who can see a group may read its wiki.
func (s *Service) Sees(ctx context.Context, by actor.Actor, g *project.Namespace) (bool, error) {
	_, seen, err := s.sees(ctx, by, g)
	return seen, err
}

func (s *Service) sees(ctx context.Context, by actor.Actor, g *project.Namespace) (project.Level, bool, error) {
	level, err := s.Projects.GroupLevel(ctx, by, g.ID)
	if err != nil {
		return 0, false, fmt.Errorf("access to group %d: %w", g.ID, err)
	}
	// Members of something below a private group can see the group, but nothing in it.
	open := g.Visibility == project.Public || g.Visibility == project.Internal && !by.Anonymous() && !by.External
	member := level >= project.Guest || by.Admin || by.Auditor
	access := g.Settings.WikiAccessLevel
	return level, access != project.Disabled && (member || open && access == project.Enabled), nil
}

// writable returns a wiki that the actor may change, and creates its repository.
// Requires Developer. NotFound; Unauthorized; Forbidden.
func (s *Service) writable(ctx context.Context, by actor.Actor, at project.Place) (*Wiki, error) {
	w, err := s.Wiki(ctx, by, at)
	if err != nil {
		return nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if w.Project != nil {
		if err := w.Project.Change(by, project.WikiPart, project.Developer); err != nil {
			return nil, err
		}
	}
	if !w.MayWrite {
		return nil, errs.Forbidden("")
	}
	return w, s.begin(ctx, w)
}

// begin creates the auxiliary repository of a wiki if it does not exist.
func (s *Service) begin(ctx context.Context, w *Wiki) error {
	if w.auxRepo != nil {
		return nil
	}
	projectID, namespaceID := w.owner()
	var err error
	w.auxRepo, err = s.Repos.BeginWiki(ctx, projectID, namespaceID)
	return err
}

// files returns the repository of a wiki; ok is false while the wiki is empty.
func (s *Service) files(ctx context.Context, w *Wiki) (r git.Repo, ok bool, err error) {
	if w.auxRepo == nil {
		return git.Repo{}, false, nil
	}
	if r, err = s.Repos.OpenAuxRepo(w.auxRepo); err != nil {
		return r, false, err
	}
	r = r.As(git.View{}) // versions from requests must be part of its history
	_, err = r.ResolveCommit(ctx, "HEAD")
	if errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrNoRepository) {
		return r, false, nil
	}
	return r, err == nil, err
}

// open resolves the path of a wiki in a git URL: group/project.wiki or group.wiki.
func (s *Service) open(ctx context.Context, by actor.Actor, path string, write bool) (*repo.AuxRepo, bool, error) {
	const end = ".wiki"
	ref, ok := repo.CutPath(path, end)
	if !ok {
		return nil, false, nil
	}
	get := s.Wiki
	if write {
		get = s.writable
	}
	w, err := get(ctx, by, project.Place{Ref: ref, Group: !strings.Contains(string(ref), "/")})
	if _, moved := errors.AsType[*project.Moved](err); !moved && errs.Is(err, errs.KindNotFound) && strings.Contains(string(ref), "/") {
		w, err = get(ctx, by, project.Place{Ref: ref, Group: true})
	}
	if err != nil {
		return nil, true, repo.MovedWith(err, end)
	}
	if err := s.begin(ctx, w); err != nil {
		return nil, true, err
	}
	return w.auxRepo, true, nil
}

// check accepts every push: wikis have no rules beyond those of all repositories.
func check(context.Context, *repo.AuxRepo, *git.Push) error { return nil }
