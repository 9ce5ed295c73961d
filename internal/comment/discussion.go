package comment

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
)

// Discussion is a comment on a commit and its replies, oldest first.
type Discussion struct {
	ID       string
	Comments []*Comment
}

// discussed is a commit with its project.
type discussed struct {
	project *project.Project
	commit  *git.Commit
}

// discussed returns a commit to users who can read the code of the project.
// NotFound.
func (s *Service) discussed(ctx context.Context, by actor.Actor, ref project.Ref, rev string) (discussed, error) {
	source, err := s.Repos.Source(ctx, by, ref)
	if err != nil {
		return discussed{}, err
	}
	c, err := source.Commit(ctx, rev)
	if err != nil {
		return discussed{}, err
	}
	return discussed{source.Project, c}, nil
}

// fillDiscussions reads the comments of discussions and their authors.
func (s *Service) fillDiscussions(ctx context.Context, on discussed, list ...*Discussion) error {
	if len(list) == 0 {
		return nil
	}
	byID, ids := map[string]*Discussion{}, make([]string, len(list))
	for i, d := range list {
		ids[i], byID[d.ID] = d.ID, d
	}
	comments, err := findDiscussed(ctx, s.DB, on.project.ID, string(on.commit.ID), ids)
	if err != nil {
		return fmt.Errorf("comments of discussions: %w", err)
	}
	for _, c := range comments {
		byID[c.Discussion].Comments = append(byID[c.Discussion].Comments, c)
	}
	return s.fillComments(ctx, on, comments...)
}

func (s *Service) fillComments(ctx context.Context, on discussed, list ...*Comment) error {
	for _, c := range list {
		c.ProjectID, c.SHA = on.project.ID, string(on.commit.ID)
		if len(on.commit.ParentIDs) > 0 {
			c.Base = string(on.commit.ParentIDs[0])
		}
	}
	return s.fillAuthors(ctx, list...)
}

// Discussions lists the discussions of a commit, oldest first, for users who can
// read the code of the project. NotFound.
func (s *Service) Discussions(ctx context.Context, by actor.Actor, ref project.Ref, rev string, pg db.Paging) (db.Page[*Discussion], error) {
	on, err := s.discussed(ctx, by, ref, rev)
	if err != nil {
		return db.Page[*Discussion]{}, err
	}
	page, err := listDiscussions(ctx, s.DB, on.project.ID, string(on.commit.ID), pg)
	if err != nil {
		return page, fmt.Errorf("list discussions: %w", err)
	}
	return page, s.fillDiscussions(ctx, on, page.Items...)
}

// Discussion returns a discussion of a commit to users who can read the code of
// the project. NotFound.
func (s *Service) Discussion(ctx context.Context, by actor.Actor, ref project.Ref, rev, id string) (*Discussion, error) {
	on, err := s.discussed(ctx, by, ref, rev)
	if err != nil {
		return nil, err
	}
	d := &Discussion{ID: id}
	if err := s.fillDiscussions(ctx, on, d); err != nil {
		return nil, err
	}
	if len(d.Comments) == 0 {
		return nil, errs.NotFound("Discussion")
	}
	return d, nil
}

// maxThread is the maximum number of comments in a discussion: discussions are not
// paginated.
const maxThread = 500

// Reply adds a comment to a discussion of a commit. It requires the same permissions
// as Create. A single comment becomes a thread. NotFound; Invalid, also if the
// discussion is full.
func (s *Service) Reply(ctx context.Context, by actor.Actor, ref project.Ref, rev, id, text string, at *time.Time) (*Comment, error) {
	on, err := s.discussed(ctx, by, ref, rev)
	if err != nil {
		return nil, err
	}
	if err := mayComment(by, on.project); err != nil {
		return nil, err
	}
	made := &Comment{Note: text, AuthorID: by.ID, Discussion: id, Thread: true}
	if err := made.check(); err != nil {
		return nil, err
	}
	made.date(by, on.project, s.Now(), at)
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		first, err := lockDiscussion(ctx, tx, on.project.ID, string(on.commit.ID), id)
		if err != nil {
			return db.NotFound(err, "Discussion")
		}
		full, err := hasComments(ctx, tx, on.project.ID, string(on.commit.ID), id, maxThread)
		if err != nil {
			return err
		}
		if full {
			return errs.Invalid("A thread can have at most %d comments. Start a new thread.", maxThread)
		}
		made.Path, made.OldPath, made.Line, made.LineType = first.Path, first.OldPath, first.Line, first.LineType
		return s.saveComment(ctx, tx, on, made)
	})
	if err != nil {
		return nil, fmt.Errorf("reply to discussion %s: %w", id, err)
	}
	return made, s.fillComments(ctx, on, made)
}

// Update changes a comment of a discussion, for its author and for Maintainers and
// above. NotFound; Forbidden; Invalid.
func (s *Service) Update(ctx context.Context, by actor.Actor, ref project.Ref, rev, discussion string, id int64, text string) (*Comment, error) {
	on, err := s.discussed(ctx, by, ref, rev)
	if err != nil {
		return nil, err
	}
	var c *Comment
	err = s.DB.Tx(ctx, func(tx *db.Tx) (err error) {
		if c, err = s.lockComment(ctx, tx, by, on, discussion, id); err != nil {
			return err
		}
		c.Note, c.UpdatedAt = text, s.Now()
		if err := c.check(); err != nil {
			return err
		}
		return updateComment(ctx, tx, c)
	})
	if err != nil {
		return nil, fmt.Errorf("update comment %d: %w", id, err)
	}
	return c, s.fillComments(ctx, on, c)
}

// Delete deletes a comment of a discussion, for its author and for Maintainers and
// above. NotFound; Forbidden; Precondition if it was changed after unmodifiedSince.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref project.Ref, rev, discussion string, id int64, unmodifiedSince *time.Time) error {
	on, err := s.discussed(ctx, by, ref, rev)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		c, err := s.lockComment(ctx, tx, by, on, discussion, id)
		if err != nil {
			return err
		}
		if err := errs.ChangedSince(c.UpdatedAt, unmodifiedSince); err != nil {
			return err
		}
		return deleteComment(ctx, tx, c.ID)
	})
	if err != nil {
		return fmt.Errorf("delete comment %d: %w", id, err)
	}
	return nil
}

// lockComment locks and returns a comment, for users who may change it.
func (s *Service) lockComment(ctx context.Context, tx *db.Tx, by actor.Actor, on discussed, discussion string, id int64) (*Comment, error) {
	if err := by.RequireUser(); err != nil {
		return nil, err
	}
	if err := tx.Lock(ctx, "commit_comments", id); err != nil {
		return nil, err
	}
	c, err := findComment(ctx, tx, on.project.ID, string(on.commit.ID), discussion, id)
	if err != nil {
		return nil, db.NotFound(err, "Note")
	}
	need := project.Maintainer
	if by.Is(c.AuthorID) {
		need = project.NoAccess
	}
	return c, on.project.Change(by, project.CodePart, need)
}

// newDiscussion returns a random discussion ID.
func newDiscussion() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
