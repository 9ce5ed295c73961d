// Package comment implements comments on commits and the discussions that they
// form.
package comment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/git"
	"svc/internal/notify"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

// Deps are the dependencies of the service.
type Deps struct {
	DB       *db.DB
	Users    *user.Service
	Projects *project.Service
	Repos    *repo.Service
	Plan     *plan.Service
	Notify   *notify.Service
	Now      func() time.Time
}

// Service implements the operations on comments.
type Service struct {
	Deps
	Events Events
}

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }

// Events are the events of comments on commits.
type Events struct {
	// Created is published when a user comments on a commit.
	Created event.Event[Created]
}

// Created is a new comment on a commit.
type Created struct {
	ProjectID int64
	SHA       string
	Title     string // of the commit
	Comment   *Comment
	First     int64 // ID of the first comment on the commit
}

// Comment is a comment on a commit, or on a line of its diff.
type Comment struct {
	ID         int64
	Note       string
	Path       string // empty for a comment on the whole commit
	Line       int64
	LineType   string // new or old
	OldPath    string // path before the commit, if it differs
	AuthorID   int64
	Discussion string
	Thread     bool // others can reply; a single comment becomes a thread with its first reply
	CreatedAt  time.Time
	UpdatedAt  time.Time

	Author *user.User // nil if the user was deleted

	// Set for discussions.
	ProjectID int64
	SHA       string
	Base      string // the parent of the commit; empty without one
}

// maxNote is the maximum length of a comment, in bytes.
const maxNote = 1_000_000

// List lists the comments on a commit, oldest first, for users who can read
// the code of the project. NotFound.
func (s *Service) List(ctx context.Context, by actor.Actor, ref project.Ref, rev string, pg db.Paging) (db.Page[*Comment], error) {
	on, err := s.discussed(ctx, by, ref, rev)
	if err != nil {
		return db.Page[*Comment]{}, err
	}
	page, err := listComments(ctx, s.DB, on.project.ID, string(on.commit.ID), pg)
	if err != nil {
		return page, fmt.Errorf("list comments: %w", err)
	}
	return page, s.fillAuthors(ctx, page.Items...)
}

// CountUpTo returns the position of a comment in List: the number of comments on a
// commit up to the given ID, for users who can read the code of the project.
// NotFound.
func (s *Service) CountUpTo(ctx context.Context, by actor.Actor, ref project.Ref, rev string, last int64) (int64, error) {
	on, err := s.discussed(ctx, by, ref, rev)
	if err != nil {
		return 0, err
	}
	n, err := countComments(ctx, s.DB, on.project.ID, string(on.commit.ID), last)
	if err != nil {
		return 0, fmt.Errorf("count comments: %w", err)
	}
	return n, nil
}

func (s *Service) fillAuthors(ctx context.Context, list ...*Comment) error {
	var ids []int64
	for _, c := range list {
		ids = append(ids, c.AuthorID)
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return fmt.Errorf("find authors: %w", err)
	}
	for _, c := range list {
		c.Author = users[c.AuthorID]
	}
	return nil
}

// CanComment reports whether the actor may comment on the commits of a project whose
// code they can read.
func CanComment(by actor.Actor, p *project.Project) bool {
	return by.RequireUser() == nil && p.MayChange(by, project.CodePart, project.NoAccess)
}

// NewComment has the fields of a new comment.
type NewComment struct {
	Note     string
	Path     string // path after the commit
	Line     int64
	LineType string // new or old

	Thread    bool       // starts a thread; a line that is not in the diff is an error
	CreatedAt *time.Time // for administrators and Owners
}

// mayComment returns an error if the actor may not comment on the commits of a
// project whose code they can read.
func mayComment(by actor.Actor, p *project.Project) error {
	if err := by.RequireUser(); err != nil {
		return err
	}
	return p.Change(by, project.CodePart, project.NoAccess)
}

func (c *Comment) check() error {
	if strings.TrimSpace(c.Note) == "" {
		return errs.InvalidField("note", "can't be blank")
	}
	if len(c.Note) > maxNote {
		return errs.InvalidField("note", "is too long (maximum is %d bytes)", maxNote)
	}
	return nil
}

// date sets the creation time of a comment: now, or the given time for Owners.
func (c *Comment) date(by actor.Actor, p *project.Project, now time.Time, at *time.Time) {
	if at != nil && p.Enough(by, project.Owner) == nil {
		now = *at
	}
	c.CreatedAt, c.UpdatedAt = now, now
}

// Create adds a comment to a commit, for signed-in users who can read the code of
// the project, unless it is archived. A line that is not in the diff is ignored,
// unless the comment starts a thread. NotFound; Invalid if the note is too long, or
// the line is not in the diff.
func (s *Service) Create(ctx context.Context, by actor.Actor, ref project.Ref, rev string, n NewComment) (*Comment, error) {
	source, err := s.Repos.Source(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	p := source.Project
	if err := mayComment(by, p); err != nil {
		return nil, err
	}
	made := &Comment{Note: n.Note, AuthorID: by.ID, Discussion: newDiscussion(), Thread: n.Thread}
	if err := made.check(); err != nil {
		return nil, err
	}
	made.date(by, p, s.Now(), n.CreatedAt)
	c, err := source.Commit(ctx, rev)
	if err != nil {
		return nil, err
	}
	if n.Path != "" {
		d, err := source.CommitDiff(ctx, c)
		if err != nil {
			return nil, err
		}
		if file := inDiff(d, n); file != nil {
			made.Path, made.Line, made.LineType = n.Path, n.Line, n.LineType
			if file.OldPath != n.Path {
				made.OldPath = file.OldPath
			}
		} else if n.Thread {
			return nil, errs.InvalidField("position", "is not a changed line of the commit")
		}
	}
	on := discussed{p, c}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.saveComment(ctx, tx, on, made) })
	if err != nil {
		return nil, fmt.Errorf("comment on %s: %w", c.ID, err)
	}
	return made, s.fillComments(ctx, on, made)
}

// saveComment inserts a comment and publishes Created.
func (s *Service) saveComment(ctx context.Context, tx *db.Tx, on discussed, made *Comment) error {
	id := string(on.commit.ID)
	if err := insertComment(ctx, tx, on.project.ID, id, made); err != nil {
		return err
	}
	first, err := findFirstComment(ctx, tx, on.project.ID, id)
	if err != nil {
		return err
	}
	return s.Events.Created.Publish(ctx, tx, Created{ProjectID: on.project.ID, SHA: id, Title: on.commit.Title, Comment: made, First: first})
}

// maxCommenters is the maximum number of authors of comments on a commit who are
// notified of a new one.
const maxCommenters = 1000

// commenters returns the participants in the discussion of a commit: its author and
// the authors of its comments. The caller checks the permissions.
func (s *Service) commenters(ctx context.Context, projectID int64, sha string) ([]int64, error) {
	ids, err := findCommenters(ctx, s.DB, projectID, sha, maxCommenters)
	if err != nil {
		return nil, fmt.Errorf("find authors of comments: %w", err)
	}
	source, err := s.Repos.Source(ctx, actor.System(), project.RefTo(projectID))
	if err != nil {
		return nil, err
	}
	c, err := source.CommitAt(ctx, sha)
	if errs.Is(err, errs.KindNotFound) {
		return ids, nil // the commit was removed
	}
	if err != nil {
		return nil, err
	}
	users, err := s.Users.FindByEmails(ctx, []string{c.Author.Email})
	if err != nil {
		return nil, fmt.Errorf("find author: %w", err)
	}
	for _, u := range users {
		ids = append(ids, u.ID)
	}
	return ids, nil
}

// inDiff returns the file of a comment if its line was added or removed, or nil.
func inDiff(d *git.Diff, n NewComment) *git.FileDiff {
	for _, f := range d.Files {
		if f.NewPath != n.Path {
			continue
		}
		for l := range f.Lines() {
			if n.LineType == "old" && l.Kind == '-' && l.Old == n.Line || n.LineType != "old" && l.Kind == '+' && l.New == n.Line {
				return &f
			}
		}
		return nil
	}
	return nil
}

// UserDeleted makes the ghost user the author of the comments of a deleted user,
// unless the deletion is hard.
func UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	if d.Hard {
		return nil
	}
	if err := moveComments(ctx, tx, d.UserID, d.GhostID); err != nil {
		return fmt.Errorf("hand over comments of user %d: %w", d.UserID, err)
	}
	return nil
}
