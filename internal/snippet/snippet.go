// Package snippet implements snippets: small collections of files, each with a
// title and its own Git repository.
package snippet

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/markup"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/queue"
	"svc/internal/repo"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Queue    *queue.Queue
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	Plan     *plan.Service
	Now      func() time.Time
}

// Service manages the snippets of the instance.
type Service struct{ Deps }

// New returns the service and registers its background jobs.
func New(d Deps) *Service {
	s := &Service{d}
	d.Queue.Every("snippet_unfinished", time.Hour, s.DropUnfinished)
	return s
}

// AuxRepoOwner returns the rules for pushes to the repositories of snippets.
func (s *Service) AuxRepoOwner() repo.AuxRepoOwner {
	return repo.AuxRepoOwner{Open: s.open, Check: s.check, Follow: s.follow}
}

// Kind is the target type of a snippet in notes and events.
const Kind plan.Kind = "Snippet"

// Snippet is a snippet of a user or project.
type Snippet struct {
	ID          int64
	ProjectID   *int64 // nil for a personal snippet
	AuthorID    int64
	Visibility  project.Visibility
	Title       string
	Description string
	Files       []string // paths, in their order in the repository
	UserAgent   string   // of the creator
	IPAddress   string
	CreatedAt   time.Time
	UpdatedAt   time.Time

	Author  *user.User
	In      *project.Project // nil for a personal snippet
	Storage string
}

// Path returns the path of the page and of the repository of a snippet, below the URL of
// the instance: "group/project/-/snippets/1" with "-/" between.
func (s *Snippet) Path(between string) string {
	path := between + "snippets/" + strconv.FormatInt(s.ID, 10)
	if s.In != nil {
		path = s.In.FullPath + "/" + path
	}
	return path
}

// visible reports whether an actor can see a snippet. If it belongs to a project, the
// caller has checked that the actor can see the project.
func (s *Snippet) visible(by actor.Actor) bool {
	known := !by.Anonymous() && !by.External
	if s.In == nil {
		return s.Visibility == project.Public || s.Visibility == project.Internal && known || by.Is(s.AuthorID) || by.Admin || by.Auditor
	}
	if s.In.MayRead(by, project.MemberSnippetPart) {
		return true
	}
	return s.In.MayRead(by, project.SnippetPart) &&
		(s.Visibility == project.Public || s.Visibility == project.Internal && known || by.Is(s.AuthorID))
}

// MayChange reports whether an actor who can see the snippet may change it: its
// author may, and in a project Maintainers, unless the project is archived.
func (s *Snippet) MayChange(by actor.Actor) bool { return s.editable(by) == nil }

func (s *Snippet) editable(by actor.Actor) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	if !by.Admin && !by.Is(s.AuthorID) && (s.In == nil || s.In.Enough(by, project.Maintainer) != nil) {
		return errs.Forbidden("")
	}
	if s.In != nil {
		return s.In.Change(by, project.WholePart, project.NoAccess)
	}
	return nil
}

// audience returns the users who may see events about the snippet.
func (s *Snippet) audience() activity.Audience {
	audiences := map[project.Visibility]activity.Audience{
		project.Public: activity.Everyone, project.Internal: activity.Accounts, project.Private: activity.Alone,
	}
	if s.ProjectID != nil {
		audiences = map[project.Visibility]activity.Audience{
			project.Public: activity.SnippetReaders, project.Internal: activity.SnippetAccounts, project.Private: activity.SnippetMembers,
		}
	}
	return audiences[s.Visibility]
}

func (s *Snippet) subject() activity.Subject { return activity.Subject{Type: "Snippet", ID: s.ID} }

// MayCreate reports whether an actor may create a snippet: Reporters in a project,
// and users who are not external elsewhere.
func MayCreate(by actor.Actor, in *project.Project) bool {
	switch {
	case by.Anonymous():
		return false
	case in == nil:
		return !by.External
	}
	return in.MayChange(by, project.SnippetPart, project.Reporter)
}

// Get returns a snippet that the actor can see: if in is not nil, one of that
// project, otherwise any. NotFound.
func (s *Service) Get(ctx context.Context, by actor.Actor, in *project.Ref, id int64) (*Snippet, error) {
	var p *project.Project
	if in != nil {
		var err error
		if p, err = s.Projects.RequireView(ctx, by, *in, project.SnippetPart); err != nil {
			return nil, err
		}
	}
	found, err := findSnippet(ctx, s.DB, id)
	if err != nil {
		return nil, fmt.Errorf("find snippet %d: %w", id, db.NotFound(err, "Snippet"))
	}
	if p != nil && (found.ProjectID == nil || *found.ProjectID != p.ID) {
		return nil, errs.NotFound("Snippet")
	}
	if p == nil && found.ProjectID != nil {
		if p, err = s.Projects.Require(ctx, by, project.RefTo(*found.ProjectID), project.NoAccess); err != nil {
			return nil, hide(err)
		}
	}
	found.In = p
	if !found.visible(by) {
		return nil, errs.NotFound("Snippet")
	}
	return found, s.fill(ctx, found)
}

// hide converts errors about a project that the actor cannot see to NotFound.
func hide(err error) error {
	if errs.Is(err, errs.KindNotFound) {
		return errs.NotFound("Snippet")
	}
	return err
}

// fill reads the related objects of snippets.
func (s *Service) fill(ctx context.Context, list ...*Snippet) error {
	var ids, authors []int64
	for _, one := range list {
		ids, authors = append(ids, one.ID), append(authors, one.AuthorID)
	}
	users, err := s.Users.FindAll(ctx, authors)
	if err != nil {
		return fmt.Errorf("authors of snippets: %w", err)
	}
	auxRepos, err := s.Repos.SnippetAuxRepos(ctx, ids)
	if err != nil {
		return err
	}
	for _, one := range list {
		one.Author = users[one.AuthorID]
		if a := auxRepos[one.ID]; a != nil {
			one.Storage = a.Storage
		}
	}
	return nil
}

// changeable returns a snippet that the actor may change. NotFound; Forbidden;
// Unauthorized.
func (s *Service) changeable(ctx context.Context, by actor.Actor, in *project.Ref, id int64) (*Snippet, error) {
	found, err := s.Get(ctx, by, in, id)
	if err != nil {
		return nil, err
	}
	return found, found.editable(by)
}

// OnSnippet returns a snippet of a project as a target of notes. NotFound.
func (s *Service) OnSnippet(ctx context.Context, by actor.Actor, in project.Ref, id int64) (plan.Noteable, error) {
	found, err := s.Get(ctx, by, &in, id)
	if err != nil {
		return plan.Noteable{}, err
	}
	// Snippets have neither internal notes nor resolvable threads.
	return plan.Noteable{
		Target: plan.Target{Kind: Kind, ID: found.ID}, IID: found.ID, Title: found.Title, In: found.In,
		Count: func(ctx context.Context, tx *db.Tx, _ int) (activity.Audience, error) {
			now, err := lockSnippet(ctx, tx, id)
			if err != nil {
				return 0, err
			}
			return now.audience(), nil
		},
	}, nil
}

// lockSnippet locks and returns a snippet. NotFound.
func lockSnippet(ctx context.Context, tx *db.Tx, id int64) (*Snippet, error) {
	if err := tx.Lock(ctx, "snippets", id); err != nil {
		return nil, err
	}
	found, err := findSnippet(ctx, tx, id)
	return found, db.NotFound(err, "Snippet")
}

// Refer resolves the reference $1 in a text.
func (s *Service) Refer(ctx context.Context, by actor.Actor, in *project.Project, name string) (*markup.Target, error) {
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return nil, nil
	}
	ref := project.RefTo(in.ID)
	found, err := s.Get(ctx, by, &ref, id)
	if err != nil {
		return nil, err
	}
	return &markup.Target{URL: "/" + found.Path("-/"), Title: found.Title}, nil
}

// UserDeleted deletes the personal snippets of a deleted user, and makes the
// ghost user the author of those in projects. A hard deletion deletes these
// too.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	gone, err := deleteOf(ctx, tx, d.UserID, d.Hard)
	if err != nil {
		return err
	}
	if err := plan.Forget(ctx, tx, Kind, gone...); err != nil {
		return err
	}
	return changeAuthor(ctx, tx, d.UserID, d.GhostID)
}

// unfinishedAge is the age at which a snippet without files is removed. Its creation
// was interrupted.
const unfinishedAge = 24 * time.Hour

// DropUnfinished removes snippets without files. The queue calls it every hour.
func (s *Service) DropUnfinished(ctx context.Context) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		gone, err := deleteUnfinished(ctx, tx, s.Now().Add(-unfinishedAge))
		if err != nil || !gone {
			return err
		}
		return s.Repos.DropOrphans(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("drop unfinished snippets: %w", err)
	}
	return nil
}
