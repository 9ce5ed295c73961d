package merge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notify"
	"svc/internal/project"
	"svc/internal/user"
)

// ReviewerState is the state of a review by a reviewer.
type ReviewerState string

// The states of reviewers.
const (
	Unreviewed       ReviewerState = "unreviewed"
	ReviewStarted    ReviewerState = "review_started" // the reviewer has draft notes
	Reviewed         ReviewerState = "reviewed"
	RequestedChanges ReviewerState = "requested_changes"
	Approved         ReviewerState = "approved"
	Unapproved       ReviewerState = "unapproved" // revoked their approval
)

// Reviewer is a reviewer of a merge request.
type Reviewer struct {
	User   *user.User
	State  ReviewerState
	Since  time.Time
	Blocks bool // requested changes that block the merge
}

// ReviewersOf lists the reviewers of a merge request, for users who can see it.
// NotFound.
func (s *Service) ReviewersOf(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) ([]Reviewer, error) {
	_, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	return s.Reviews(ctx, m)
}

// Reviews lists the reviewers of a merge request that was read for the actor.
func (s *Service) Reviews(ctx context.Context, m *MergeRequest) ([]Reviewer, error) {
	list, err := findReviewers(ctx, s.DB, m.ID)
	if err != nil {
		return nil, fmt.Errorf("reviewers of merge request %d: %w", m.ID, err)
	}
	found := []Reviewer{}
	for _, r := range list {
		at := slices.IndexFunc(m.Reviewers, func(u *user.User) bool { return u.ID == r.userID })
		if at >= 0 {
			found = append(found, Reviewer{m.Reviewers[at], r.state, r.since, r.blocks})
		}
	}
	return found, nil
}

// ChangeRequesters returns the users whose request for changes blocks a merge
// request that was read for the actor.
func (s *Service) ChangeRequesters(ctx context.Context, m *MergeRequest) ([]*user.User, error) {
	if m.ChangeRequests == 0 {
		return nil, nil
	}
	ids, err := findChangeRequesters(ctx, s.DB, m.ID)
	if err != nil {
		return nil, fmt.Errorf("change requests of merge request %d: %w", m.ID, err)
	}
	users, err := s.Users.FindAll(ctx, ids)
	if err != nil {
		return nil, err
	}
	var list []*user.User
	for _, id := range ids {
		if u := users[id]; u != nil {
			list = append(list, u)
		}
	}
	return list, nil
}

// requestsChanges reports whether an actor may request changes: reviewers, and
// Developers and above, but not the author.
func (m *MergeRequest) requestsChanges(by actor.Actor, in *project.Project) bool {
	if m.State != Opened || by.Is(m.AuthorID) || changeable(by, in) != nil {
		return false
	}
	return in.Enough(by, project.Developer) == nil || m.isReviewer(by)
}

func (m *MergeRequest) isReviewer(by actor.Actor) bool {
	return slices.ContainsFunc(m.Reviewers, func(u *user.User) bool { return by.Is(u.ID) })
}

// requestChanges records that a user requests changes, in a transaction. The user
// becomes a reviewer, and their approval is removed.
func (s *Service) requestChanges(ctx context.Context, tx *db.Tx, by actor.Actor, m *MergeRequest) error {
	if _, err := deleteApprovals(ctx, tx, m.ID, []int64{by.ID}); err != nil {
		return err
	}
	if err := addReviewer(ctx, tx, m.ID, by.ID, s.Now()); err != nil {
		return err
	}
	if err := saveReviewerState(ctx, tx, m.ID, by.ID, RequestedChanges); err != nil {
		return err
	}
	if err := saveChangeRequest(ctx, tx, m.ID, by.ID, s.Now()); err != nil {
		return err
	}
	return s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, "requested changes")
}

// ReviewerApproved records that a reviewer approved a merge request, in the
// transaction of the approval. It removes their request for changes.
func (s *Service) ReviewerApproved(ctx context.Context, tx *db.Tx, requestID, userID int64) error {
	if err := deleteChangeRequest(ctx, tx, requestID, userID); err != nil {
		return err
	}
	return saveReviewerState(ctx, tx, requestID, userID, Approved)
}

// ReviewerUnapproved records that the approval of a reviewer was revoked or reset,
// in the transaction of that change.
func (s *Service) ReviewerUnapproved(ctx context.Context, tx *db.Tx, requestID, userID int64) error {
	return saveReviewerState(ctx, tx, requestID, userID, Unapproved)
}

// RequestReview requests another review from a reviewer and notifies them, for users
// who may change the reviewers. NotFound; Forbidden.
func (s *Service) RequestReview(ctx context.Context, by actor.Actor, ref project.Ref, iid, userID int64) error {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := m.CheckEdit(by, in); err != nil {
		return err
	}
	if !plans(by, in) {
		return errs.Forbidden("")
	}
	at := slices.IndexFunc(m.Reviewers, func(u *user.User) bool { return u.ID == userID })
	if at < 0 {
		return errs.NotFound("Reviewer")
	}
	who := m.Reviewers[at]
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := saveReviewerState(ctx, tx, m.ID, userID, Unreviewed); err != nil {
			return err
		}
		if err := s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, "requested review from @"+who.Username); err != nil {
			return err
		}
		return s.Plan.NotifyOf(ctx, tx, by.ID, &m.Issuable, notify.ChangeReviewer, notify.Details{After: []int64{userID}})
	})
	if err != nil {
		return fmt.Errorf("request review of merge request %d: %w", m.ID, err)
	}
	return nil
}

// BypassChangeRequests allows a merge request to be merged although reviewers
// requested changes, for users who may merge it. NotFound; Unauthorized; NotAllowed
// if there are no requested changes.
func (s *Service) BypassChangeRequests(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) error {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := changeable(by, in); err != nil {
		return err
	}
	may, err := s.Repos.MayMerge(ctx, by, in, m.TargetBranch)
	if err != nil {
		return err
	}
	if !may {
		return errs.Unauthorized("")
	}
	if m.State != Opened || m.ChangeRequests == 0 {
		return notReady()
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		if err := bypassChangeRequests(ctx, tx, m.ID); err != nil {
			return err
		}
		if err := s.continueAuto(ctx, tx, now); err != nil {
			return err
		}
		return s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, "bypassed the requested changes")
	})
	if err != nil {
		return fmt.Errorf("bypass change requests of merge request %d: %w", m.ID, err)
	}
	return nil
}

// draftsChanged sets the state of a reviewer after their draft notes changed. left
// reports whether draft notes remain.
func draftsChanged(ctx context.Context, tx *db.Tx, requestID, userID int64, left bool) error {
	from, to := ReviewStarted, Unreviewed
	if left {
		from, to = to, from
	}
	return moveReviewerState(ctx, tx, requestID, userID, from, to)
}
