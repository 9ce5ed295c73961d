package todo

import (
	"context"
	"fmt"

	"svc/internal/alert"
	"svc/internal/comment"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/user"
)

// CommitCommented resolves the item of the author of a comment on a commit, and
// adds the background job that creates the items of the mentioned users.
func (s *Service) CommitCommented(ctx context.Context, tx *db.Tx, c comment.Created) error {
	by := c.Comment.AuthorID
	done, err := resolveCommit(ctx, tx, by, c.ProjectID, c.SHA, s.Now())
	if err != nil {
		return err
	}
	if done {
		if err := s.changed(ctx, tx, by); err != nil {
			return err
		}
	}
	return s.Queue.Add(ctx, tx, mentionWork{
		On: string(plan.CommitKind), ProjectID: c.ProjectID, AuthorID: by, Commit: &Commit{SHA: c.SHA, Title: c.Title, CommentID: c.Comment.ID},
	})
}

// AlertUpdated creates an item for the user to whom an alert was assigned. It
// resolves the item of the previous assignee, and all items of an alert that was
// resolved.
func (s *Service) AlertUpdated(ctx context.Context, tx *db.Tx, u alert.Updated) error {
	on := plan.Target{Kind: alert.NoteKind, ID: u.Alert.ID}
	now := u.Alert.AssigneeID
	if u.Before != nil && (now == nil || *now != *u.Before) {
		if err := s.acted(ctx, tx, *u.Before, on); err != nil {
			return err
		}
	}
	if now != nil && (u.Before == nil || *now != *u.Before) {
		err := s.addEach(ctx, tx, []int64{*now}, func(id int64) *Item {
			author := u.By
			if author == 0 {
				author = id
			}
			return s.item(id, author, u.Alert.ProjectID, on, Assigned)
		})
		if err != nil {
			return err
		}
	}
	if !u.Alert.Open() {
		return s.resolveFor(ctx, tx, on, Assigned)
	}
	return nil
}

// requestWork is the background job that creates the items of the users who decide
// on an access request.
type requestWork struct {
	ProjectID int64 `json:"project_id,omitempty"`
	GroupID   int64 `json:"group_id,omitempty"`
	UserID    int64 `json:"user_id"`
}

// Kind implements queue.Work.
func (requestWork) Kind() string { return "todo.access_request" }

// maxManagers is the maximum number of users who get an item for an access request.
const maxManagers = 100

// AccessRequested adds the background job that creates the items of an access
// request, and resolves these items when the request is settled.
func (s *Service) AccessRequested(ctx context.Context, tx *db.Tx, r project.AccessRequest) error {
	if !r.Settled {
		return s.Queue.Add(ctx, tx, requestWork{ProjectID: r.ProjectID, GroupID: r.GroupID, UserID: r.UserID})
	}
	users, err := resolveRequest(ctx, tx, r, s.Now())
	if err != nil {
		return err
	}
	for _, id := range users {
		if err := s.changed(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// addRequest creates the items of an access request. Items of a request that was
// settled in the meantime are not listed.
func (s *Service) addRequest(ctx context.Context, w requestWork) error {
	r := project.AccessRequest{ProjectID: w.ProjectID, GroupID: w.GroupID, UserID: w.UserID}
	managers, err := s.Projects.Managers(ctx, r.Place())
	if err != nil {
		return errs.IgnoreRefusal(err)
	}
	users, err := s.Users.FindAll(ctx, managers[:min(len(managers), maxManagers)])
	if err != nil {
		return fmt.Errorf("managers: %w", err)
	}
	kind := ProjectKind
	if w.GroupID != 0 {
		kind = GroupKind
	}
	for id, u := range users {
		if u.State != user.Active {
			continue
		}
		err := s.DB.Tx(ctx, func(tx *db.Tx) error {
			return s.addEach(ctx, tx, []int64{id}, func(id int64) *Item {
				t := s.item(id, w.UserID, w.ProjectID, plan.Target{Kind: kind}, AccessRequested)
				t.GroupID = w.GroupID
				return t
			})
		})
		if err != nil {
			return fmt.Errorf("to-do item of user %d: %w", id, err)
		}
	}
	return nil
}
