package repo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/user"
)

// Comment is a comment on a commit, or on a line of its diff.
type Comment struct {
	ID        int64
	Note      string
	Path      string // empty for a comment on the whole commit
	Line      int64
	LineType  string // new or old
	AuthorID  int64
	Author    *user.User // nil if the user was deleted
	CreatedAt time.Time
}

// maxNote is the maximum length of a comment, in bytes.
const maxNote = 1_000_000

// Comments lists the comments on a commit, oldest first, for users who can read
// the code of the project. NotFound.
func (s *Service) Comments(ctx context.Context, by actor.Actor, ref project.Ref, rev string, pg db.Paging) (db.Page[*Comment], error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return db.Page[*Comment]{}, err
	}
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return db.Page[*Comment]{}, missing(err, "Commit")
	}
	page, err := listComments(ctx, s.DB, p.ID, string(id), pg)
	if err != nil {
		return page, fmt.Errorf("list comments: %w", err)
	}
	return page, s.fillAuthors(ctx, page.Items...)
}

// CommentsUpTo returns the number of comments on a commit up to the one with the ID,
// for users who can read the code of the project: its place in Comments. NotFound.
func (s *Service) CommentsUpTo(ctx context.Context, by actor.Actor, ref project.Ref, rev string, last int64) (int64, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return 0, err
	}
	id, err := r.ResolveCommit(ctx, rev)
	if err != nil {
		return 0, missing(err, "Commit")
	}
	n, err := countComments(ctx, s.DB, p.ID, string(id), last)
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

// CanComment reports whether the actor may comment on the commits of a project
// whose code they see.
func CanComment(by actor.Actor, p *project.Project) bool {
	return by.RequireUser() == nil && p.MayChange(by, project.CodePart, project.NoAccess)
}

// NewComment has the fields of a new comment.
type NewComment struct {
	Note     string
	Path     string // path after the commit
	Line     int64
	LineType string // new or old
}

// CreateComment adds a comment to a commit, for signed-in users who can read
// the code of the project, unless it is archived. A line that is not in the
// diff is ignored. NotFound; Invalid if the note is too long.
func (s *Service) CreateComment(ctx context.Context, by actor.Actor, ref project.Ref, rev string, n NewComment) (*Comment, error) {
	p, r, err := s.read(ctx, by, ref)
	if err != nil {
		return nil, err
	}
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if err := p.Change(by, project.CodePart, project.NoAccess); err != nil {
		return nil, err
	}
	if strings.TrimSpace(n.Note) == "" {
		return nil, errs.InvalidField("note", "can't be blank")
	}
	if len(n.Note) > maxNote {
		return nil, errs.InvalidField("note", "is too long (maximum is %d bytes)", maxNote)
	}
	c, err := r.Commit(ctx, rev)
	if err != nil {
		return nil, missing(err, "Commit")
	}
	made := &Comment{Note: n.Note, AuthorID: by.ID, CreatedAt: s.Now()}
	if n.Path != "" {
		d, err := s.commitDiff(ctx, r, c, false)
		if err != nil {
			return nil, err
		}
		if inDiff(d, n) {
			made.Path, made.Line, made.LineType = n.Path, n.Line, n.LineType
		}
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := insertComment(ctx, tx, p.ID, string(c.ID), made); err != nil {
			return err
		}
		first, err := findFirstComment(ctx, tx, p.ID, string(c.ID))
		if err != nil {
			return err
		}
		return s.Events.Commented.Publish(ctx, tx, Commented{ProjectID: p.ID, SHA: string(c.ID), Title: c.Title, Comment: made, First: first})
	})
	if err != nil {
		return nil, fmt.Errorf("comment on %s: %w", c.ID, err)
	}
	return made, s.fillAuthors(ctx, made)
}

// maxCommenters is the maximum number of users who are notified because they
// commented on a commit.
const maxCommenters = 1000

// Commenters returns the users who take part in the discussion of a commit: its
// author and the authors of its comments. The caller checks the permissions.
func (s *Service) Commenters(ctx context.Context, projectID int64, sha string) ([]int64, error) {
	ids, err := findCommenters(ctx, s.DB, projectID, sha, maxCommenters)
	if err != nil {
		return nil, fmt.Errorf("find authors of comments: %w", err)
	}
	p, err := s.Projects.Require(ctx, actor.System(), project.RefTo(projectID), project.NoAccess)
	if err != nil {
		return nil, err
	}
	r, err := s.Of(p)
	if err != nil {
		return nil, err
	}
	c, err := r.Commit(ctx, sha)
	if errs.Is(missing(err, "Commit"), errs.KindNotFound) {
		return ids, nil // it was removed
	}
	if err != nil {
		return nil, passing(err)
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

// inDiff reports whether the line of a comment was added or removed.
func inDiff(d *git.Diff, n NewComment) bool {
	for _, f := range d.Files {
		if f.NewPath != n.Path {
			continue
		}
		for l := range f.Lines() {
			if n.LineType == "old" && l.Kind == '-' && l.Old == n.Line || n.LineType != "old" && l.Kind == '+' && l.New == n.Line {
				return true
			}
		}
		return false
	}
	return false
}

// UserDeleted hands the comments of a deleted user over to the ghost user,
// unless the deletion is hard, and adds a background job that removes the
// repositories of their snippets.
func (s *Service) UserDeleted(ctx context.Context, tx *db.Tx, d user.Deletion) error {
	if !d.Hard {
		if err := moveComments(ctx, tx, d.UserID, d.GhostID); err != nil {
			return fmt.Errorf("hand over comments of user %d: %w", d.UserID, err)
		}
	}
	return s.DropOrphans(ctx, tx)
}
