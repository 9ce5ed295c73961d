package merge

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/plan/diffnote"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

// DraftNote is a comment on a merge request that is visible only to its author until
// they publish it.
type DraftNote struct {
	ID         int64
	RequestID  int64
	AuthorID   int64
	Body       string
	Discussion string // ID of the thread that it replies to
	Internal   bool   // the thread is internal
	Resolve    bool   // resolve the thread when it is published
	CommitSHA  string
	Position   *diffnote.Position // in the diff
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// NewDraft has the fields of a new draft note.
type NewDraft struct {
	Body       string
	Discussion string
	Resolve    bool
	CommitSHA  string
	Position   *diffnote.Position // ignored in a reply, which has the position of the thread
}

// DraftChange is a change to a draft note; nil keeps the current value.
type DraftChange struct {
	Body     *string
	Position *diffnote.Position
}

// maxDrafts is the maximum number of draft notes of a user on a merge request.
const maxDrafts = 500

// Drafts lists the draft notes of the actor on a merge request that they can see,
// oldest first. NotFound.
func (s *Service) Drafts(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, sort listing.Sort, p db.Paging) (db.Page[*DraftNote], error) {
	_, m, err := s.request(ctx, by, ref, iid)
	if err == nil {
		err = by.RequireUser()
	}
	if err != nil {
		return db.Page[*DraftNote]{}, err
	}
	page, err := listDrafts(ctx, s.DB, m.ID, by.ID, sort, p)
	if err != nil {
		return page, fmt.Errorf("draft notes of merge request %d: %w", m.ID, err)
	}
	return page, nil
}

// Draft returns a draft note of the actor. NotFound.
func (s *Service) Draft(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) (*DraftNote, error) {
	_, _, d, err := s.draft(ctx, by, ref, iid, id, false)
	return d, err
}

// draft returns a draft note of the actor, to change it or to read it.
func (s *Service) draft(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64, change bool) (*project.Project, *MergeRequest, *DraftNote, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err == nil {
		err = by.RequireUser()
	}
	if err == nil && change {
		err = changeable(by, in)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := findDraft(ctx, s.DB, m.ID, by.ID, id)
	return in, m, d, db.NotFound(err, "Draft Note")
}

// CreateDraft creates a draft note, for users who may comment. NotFound;
// Forbidden; Invalid; Conflict if there are too many.
func (s *Service) CreateDraft(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, n NewDraft) (*DraftNote, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	on := s.noteable(by, in, m)
	internal := false
	if n.Discussion != "" {
		n.Position = nil
		thread, err := s.Plan.Discussion(ctx, on, n.Discussion)
		if err != nil {
			return nil, err
		}
		internal = thread.Notes[0].Internal
	}
	made, err := s.Plan.Prepare(ctx, by, on, plan.NewNote{Body: n.Body, Thread: n.Position == nil, Discussion: n.Discussion, Position: n.Position, CommitSHA: n.CommitSHA})
	if err != nil {
		return nil, err
	}
	now := s.Now()
	d := &DraftNote{
		RequestID: m.ID, AuthorID: by.ID, Body: n.Body, Discussion: n.Discussion, Internal: internal, Resolve: n.Resolve && n.Discussion != "", CommitSHA: n.CommitSHA,
		Position: made.Position, CreatedAt: now, UpdatedAt: now,
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if _, err := lockRequest(ctx, tx, m.ID); err != nil {
			return err
		}
		count, err := countDrafts(ctx, tx, m.ID, by.ID)
		if err != nil {
			return err
		}
		if count >= maxDrafts {
			return errs.Conflict("You have %d draft notes on this merge request. Publish them first.", count)
		}
		if err := insertDraft(ctx, tx, d); err != nil {
			return err
		}
		return draftsChanged(ctx, tx, m.ID, by.ID, true)
	})
	if err != nil {
		return nil, fmt.Errorf("create draft note on merge request %d: %w", m.ID, err)
	}
	return d, nil
}

// UpdateDraft changes a draft note of the actor. NotFound; Forbidden; Invalid.
func (s *Service) UpdateDraft(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64, c DraftChange) (*DraftNote, error) {
	in, m, d, err := s.draft(ctx, by, ref, iid, id, true)
	if err != nil {
		return nil, err
	}
	if c.Body != nil {
		d.Body = *c.Body
	}
	if c.Position != nil && d.Discussion == "" {
		d.Position = c.Position
	}
	if _, err := s.Plan.Prepare(ctx, by, s.noteable(by, in, m), plan.NewNote{Body: d.Body, Position: d.Position, Checked: c.Position == nil}); err != nil {
		return nil, err
	}
	d.UpdatedAt = s.Now()
	if err := saveDraft(ctx, s.DB, d); err != nil {
		return nil, fmt.Errorf("update draft note %d: %w", id, err)
	}
	return d, nil
}

// DeleteDraft deletes a draft note of the actor. NotFound.
func (s *Service) DeleteDraft(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) error {
	_, m, d, err := s.draft(ctx, by, ref, iid, id, true)
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error { return s.removeDrafts(ctx, tx, m.ID, by.ID, d.ID) })
	if err != nil {
		return fmt.Errorf("delete draft note %d: %w", id, err)
	}
	return nil
}

// removeDrafts deletes draft notes of a user. NotFound if another request has
// published or deleted one of them.
func (s *Service) removeDrafts(ctx context.Context, tx *db.Tx, requestID, userID int64, ids ...int64) error {
	gone, err := deleteDrafts(ctx, tx, requestID, userID, ids)
	if err != nil {
		return err
	}
	if int(gone) != len(ids) {
		return errs.NotFound("Draft Note")
	}
	left, err := countDrafts(ctx, tx, requestID, userID)
	if err != nil {
		return err
	}
	return draftsChanged(ctx, tx, requestID, userID, left > 0)
}

// DiscardDrafts deletes all draft notes of the actor on a merge request. NotFound.
func (s *Service) DiscardDrafts(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) error {
	_, m, err := s.request(ctx, by, ref, iid)
	if err == nil {
		err = by.RequireUser()
	}
	if err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if _, err := deleteDrafts(ctx, tx, m.ID, by.ID, nil); err != nil {
			return err
		}
		return draftsChanged(ctx, tx, m.ID, by.ID, false)
	})
	if err != nil {
		return fmt.Errorf("discard draft notes of merge request %d: %w", m.ID, err)
	}
	return nil
}

// PublishDraft publishes one draft note of the actor. It returns the outcome of its
// quick actions; nil without any. NotFound; Forbidden.
func (s *Service) PublishDraft(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) (*plan.Outcome, error) {
	in, m, d, err := s.draft(ctx, by, ref, iid, id, true)
	if err != nil {
		return nil, err
	}
	return s.publish(ctx, by, in, m, []*DraftNote{d}, Review{})
}

// Review has the options of publishing all draft notes.
type Review struct {
	Summary  string // an additional comment; empty for none
	Internal bool   // the summary is an internal note
	// State is reviewed, requested_changes or approved; empty leaves the state of
	// the reviewer unless all their draft notes are published.
	State   ReviewerState
	Approve ApproveOptions // options of an approval
}

// PublishReview publishes all draft notes of the actor on a merge request as one
// review: in one transaction, with one notification and one event. It returns the
// outcome of their quick actions; nil without any. NotFound; Forbidden; Invalid;
// with an approval, also the errors of Approve.
func (s *Service) PublishReview(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, r Review) (*plan.Outcome, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err == nil {
		err = by.RequireUser()
	}
	if err != nil {
		return nil, err
	}
	if r.State == RequestedChanges && !m.requestsChanges(by, in) {
		return nil, errs.Forbidden("You cannot request changes of this merge request.")
	}
	if r.State == Approved {
		if in, m, err = s.checkApproval(ctx, by, ref, iid, r.Approve); err != nil {
			return nil, err
		}
	}
	page, err := listDrafts(ctx, s.DB, m.ID, by.ID, listing.Sort{}, db.Paging{Limit: maxDrafts})
	if err != nil {
		return nil, fmt.Errorf("draft notes of merge request %d: %w", m.ID, err)
	}
	return s.publish(ctx, by, in, m, page.Items, r)
}

func (s *Service) publish(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest, drafts []*DraftNote, r Review) (*plan.Outcome, error) {
	if err := changeable(by, in); err != nil {
		return nil, err
	}
	on := s.noteable(by, in, m)
	var notes []plan.NewNote
	ids := make([]int64, len(drafts))
	for i, d := range drafts {
		if d.Internal && !on.Insider {
			return nil, errs.Forbidden("Draft note %d replies to an internal thread that you can no longer read. Delete the draft note.", d.ID)
		}
		ids[i] = d.ID
		notes = append(notes, plan.NewNote{
			Body: d.Body, Thread: d.Discussion == "" && d.Position == nil, Discussion: d.Discussion, Internal: d.Internal, Position: d.Position,
			Checked: true, CommitSHA: d.CommitSHA,
		})
	}
	if r.Summary != "" {
		notes = append(notes, plan.NewNote{Body: r.Summary, Internal: r.Internal})
	}
	batch, err := s.Plan.PrepareNotes(ctx, by, on, r.Approve.SHA, notes...)
	if err != nil {
		return nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		// Fails if another request has published one of the draft notes, so that none is
		// published twice.
		if len(ids) > 0 {
			if err := s.removeDrafts(ctx, tx, m.ID, by.ID, ids...); err != nil {
				return err
			}
		}
		if err := batch.Publish(ctx, tx); err != nil {
			return err
		}
		for i, d := range drafts {
			if !d.Resolve || !on.CanResolve(by) {
				continue
			}
			thread := d.Discussion
			if n := batch.Notes[i]; n != nil {
				thread = n.Discussion
			}
			if err := s.Plan.ResolveThread(ctx, tx, by, on.Target, thread); err != nil {
				return err
			}
		}
		if err := s.continueAuto(ctx, tx, now); err != nil {
			return err
		}
		return s.reviewed(ctx, tx, by, m, r)
	})
	if err != nil {
		return nil, fmt.Errorf("publish review of merge request %d: %w", m.ID, err)
	}
	return batch.Outcome, batch.After(ctx)
}

// reviewed sets the state of a reviewer who published draft notes.
func (s *Service) reviewed(ctx context.Context, tx *db.Tx, by actor.Actor, m *MergeRequest, r Review) error {
	if r.State == "" {
		left, err := countDrafts(ctx, tx, m.ID, by.ID)
		if err != nil || left > 0 {
			return err
		}
	}
	if err := s.Events.Changed.Publish(ctx, tx, Change{Request: m, Kind: ReviewedBy, By: by.ID}); err != nil {
		return err
	}
	switch r.State {
	case RequestedChanges:
		return s.requestChanges(ctx, tx, by, m)
	case Approved:
		return s.addApproval(ctx, tx, by, m)
	case "":
		// No draft notes are left: removeDrafts has set the state unreviewed.
		return moveReviewerState(ctx, tx, m.ID, by.ID, Unreviewed, Reviewed)
	}
	return saveReviewerState(ctx, tx, m.ID, by.ID, r.State)
}
