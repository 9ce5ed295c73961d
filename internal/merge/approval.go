package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notify"
	"svc/internal/project"
)

// ApproveOptions are the options of an approval.
type ApproveOptions struct {
	SHA      string // expected head; empty: any
	Password string // of the actor, if the project requires it
}

// Approve approves a merge request for an eligible approver: a Developer or above,
// or a user listed in a rule. If the project prevents it, the author and users who
// committed are not eligible. NotFound; Unauthorized if the actor may not approve or
// has already approved, or the password is wrong; Forbidden in an archived project;
// NotAllowed if it is not open; Conflict if the head is not SHA.
func (s *Service) Approve(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, o ApproveOptions) (*MergeRequest, *Approvals, error) {
	in, m, err := s.checkApproval(ctx, by, ref, iid, o)
	if err != nil {
		return nil, nil, err
	}
	if err := s.DB.Tx(ctx, func(tx *db.Tx) error { return s.addApproval(ctx, tx, by, m) }); err != nil {
		return nil, nil, fmt.Errorf("approve merge request %d: %w", m.ID, err)
	}
	return s.ApprovalState(ctx, by, project.RefTo(in.ID), iid)
}

// errNoPassword is the cause of the refusal of an approval without the password that
// the project requires.
var errNoPassword = errors.New("the project requires the password to approve")

// checkApproval returns a merge request that the actor may approve.
func (s *Service) checkApproval(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, o ApproveOptions) (*project.Project, *MergeRequest, error) {
	in, m, err := s.approvable(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	if o.SHA != "" && o.SHA != m.Head {
		return nil, nil, errs.Conflict("SHA does not match HEAD of source branch: %s", m.Head)
	}
	a, err := s.ApprovalsOf(ctx, by, in, m)
	if err != nil {
		return nil, nil, err
	}
	if !a.CanApprove {
		return nil, nil, errs.Unauthorized("")
	}
	if a.Password {
		if o.Password == "" {
			return nil, nil, errs.Unauthorized("").Because(errNoPassword)
		}
		if err := s.Users.Reauthenticate(ctx, by, o.Password); err != nil {
			return nil, nil, err
		}
	}
	m.complete = a.completes
	return in, m, nil
}

// addApproval records the approval of a merge request that checkApproval returned.
func (s *Service) addApproval(ctx context.Context, tx *db.Tx, by actor.Actor, m *MergeRequest) error {
	now, err := lockRequest(ctx, tx, m.ID)
	if err != nil {
		return err
	}
	if now.State != Opened {
		return notOpen(now)
	}
	if now.Head != m.Head { // commits that the approver has not seen
		return errs.Conflict("SHA does not match HEAD of source branch: %s", now.Head)
	}
	fresh, err := insertApproval(ctx, tx, Approval{RequestID: m.ID, UserID: by.ID, Head: m.Head, At: s.Now()})
	if err != nil {
		return err
	}
	if !fresh {
		return errs.Unauthorized("")
	}
	if err := s.ReviewerApproved(ctx, tx, m.ID, by.ID); err != nil {
		return err
	}
	if err := s.Plan.Join(ctx, tx, m.Target(), by.ID); err != nil {
		return err
	}
	now.complete = m.complete
	if err := s.noteApproval(ctx, tx, by, now, "approved this merge request", notify.ApproveMergeRequest, ApprovalGiven); err != nil {
		return err
	}
	return s.continueAuto(ctx, tx, now)
}

// approvable returns an open merge request that the actor can see, in a project
// that is not archived.
func (s *Service) approvable(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*project.Project, *MergeRequest, error) {
	in, m, err := s.current(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	if err := changeable(by, in); err != nil {
		return nil, nil, err
	}
	if m.State != Opened {
		return nil, nil, notOpen(m)
	}
	return in, m, s.complete(ctx, by, in, m)
}

// notOpen returns the error for an approval of a merge request that is not open.
func notOpen(m *MergeRequest) error {
	return &errs.Error{Kind: errs.KindNotAllowed, Text: "405 Method Not Allowed - The merge request is " + string(m.State) + ". Only open merge requests can be approved.", Bare: true}
}

// noteApproval records a change of approvals as a system note and, for an approval,
// as an activity event, and notifies users.
func (s *Service) noteApproval(ctx context.Context, tx *db.Tx, by actor.Actor, m *MergeRequest, text string, e notify.EventType, kind ChangeKind) error {
	if err := touchRequest(ctx, tx, m.ID, s.Now()); err != nil {
		return err
	}
	if err := s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, m.ProjectID, text); err != nil {
		return err
	}
	if kind == ApprovalGiven {
		if err := s.Plan.Record(ctx, tx, by.ID, &m.Issuable, activity.MergeReaders, activity.Approved); err != nil {
			return err
		}
	}
	if e != "" {
		if err := s.Plan.NotifyOf(ctx, tx, by.ID, &m.Issuable, e, notify.Details{}); err != nil {
			return err
		}
	}
	return s.Events.Changed.Publish(ctx, tx, Change{Request: m, Kind: kind, By: by.ID, Complete: m.complete})
}

// Unapprove revokes the approval of the actor. NotFound if they have not
// approved; Forbidden in an archived project; NotAllowed if it is not open.
func (s *Service) Unapprove(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) (*MergeRequest, *Approvals, error) {
	in, m, err := s.approvable(ctx, by, ref, iid)
	if err != nil {
		return nil, nil, err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		if now.State != Opened {
			return notOpen(now)
		}
		ids, err := deleteApprovals(ctx, tx, m.ID, []int64{by.ID})
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return errs.NotFound("")
		}
		if err := s.ReviewerUnapproved(ctx, tx, m.ID, by.ID); err != nil {
			return err
		}
		now.complete = !m.lacksApproval
		return s.noteApproval(ctx, tx, by, now, "unapproved this merge request", notify.UnapproveMergeRequest, ApprovalGone)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("unapprove merge request %d: %w", m.ID, err)
	}
	return s.ApprovalState(ctx, by, project.RefTo(in.ID), iid)
}

// ResetApprovals removes all approvals of a merge request. Requires a bot user of a
// project or group access token with the Developer role. NotFound; Unauthorized;
// NotAllowed if it is not open.
func (s *Service) ResetApprovals(ctx context.Context, by actor.Actor, ref project.Ref, iid int64) error {
	in, m, err := s.approvable(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if !by.Bot || in.Enough(by, project.Developer) != nil {
		return errs.Unauthorized("")
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		now, err := lockRequest(ctx, tx, m.ID)
		if err != nil {
			return err
		}
		if now.State != Opened {
			return notOpen(now)
		}
		return s.dropApprovals(ctx, tx, by, now, nil, "")
	})
	if err != nil {
		return fmt.Errorf("reset approvals of merge request %d: %w", m.ID, err)
	}
	return nil
}

// dropApprovals removes the approvals of the given users, or all with nil. how is
// the end of the system note; it gives the cause.
func (s *Service) dropApprovals(ctx context.Context, tx *db.Tx, by actor.Actor, m *MergeRequest, userIDs []int64, how string) error {
	ids, err := deleteApprovals(ctx, tx, m.ID, userIDs)
	if err != nil || len(ids) == 0 {
		return err
	}
	for _, id := range ids {
		if err := s.ReviewerUnapproved(ctx, tx, m.ID, id); err != nil {
			return err
		}
	}
	names, err := findUsernames(ctx, tx, ids)
	if err != nil {
		return err
	}
	return s.noteApproval(ctx, tx, by, m, "reset approvals from "+sentence(names)+how, "", ApprovalsReset)
}

// sentence joins the names of users.
func sentence(names []string) string {
	if len(names) == 0 {
		return "deleted users"
	}
	at := make([]string, len(names))
	for i, name := range names {
		at[i] = "@" + name
	}
	if n := len(at) - 1; n > 0 {
		return strings.Join(at[:n], ", ") + " and " + at[n]
	}
	return at[0]
}

// resetOnPush removes all approvals if the project settings require this after a
// push. It is called in the transaction that changes the head or the target branch,
// so that no approval counts for commits that the approver has not seen.
func (s *Service) resetOnPush(ctx context.Context, tx *db.Tx, by actor.Actor, m *MergeRequest, how string) error {
	settings, err := project.SettingsOf(ctx, tx, m.ProjectID)
	if err != nil || !settings.Approvals.ResetOnPush {
		return err
	}
	return s.dropApprovals(ctx, tx, by, m, nil, how)
}

// The causes of a reset, as they end the system note.
const (
	byPush   = " by pushing to the branch"
	byTarget = " by changing the target branch"
)

// approvedBy returns the Approved-by trailers for the message of the merge commit.
func (s *Service) approvedBy(ctx context.Context, m *MergeRequest) ([]string, error) {
	given, err := findApprovals(ctx, s.DB, []int64{m.ID})
	if err != nil {
		return nil, fmt.Errorf("approvals of merge request %d: %w", m.ID, err)
	}
	users, err := s.usersAmong(ctx, approversOf(given))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, u := range known(users, approversOf(given)) {
		lines = append(lines, "Approved-by: "+signed(u.Name, u.CommitAddress(s.Users.Host)))
	}
	return lines, nil
}

// reviewedBy returns the Reviewed-by trailers of the reviewers who have reviewed.
func (s *Service) reviewedBy(ctx context.Context, m *MergeRequest) ([]string, error) {
	rows, err := findReviewers(ctx, s.DB, m.ID)
	if err != nil {
		return nil, fmt.Errorf("reviewers of merge request %d: %w", m.ID, err)
	}
	rows = slices.DeleteFunc(rows, func(r reviewerRow) bool { return r.state == Unreviewed || r.state == ReviewStarted })
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.userID
	}
	users, err := s.usersAmong(ctx, ids)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, u := range known(users, ids) {
		lines = append(lines, "Reviewed-by: "+signed(u.Name, u.CommitAddress(s.Users.Host)))
	}
	return lines, nil
}
