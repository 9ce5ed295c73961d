package merge

import (
	"context"
	"fmt"
	"time"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/patch"
	"svc/internal/plan"
	"svc/internal/project"
)

// Update changes a merge request, for Developers and above, its author and its
// assignees. Planning fields are ignored below the Planner role, and
// AllowCollaboration unless the actor is the author. NotFound; Forbidden;
// Invalid; Conflict if it cannot be reopened.
func (s *Service) Update(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, f Fields) (*MergeRequest, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := m.CheckEdit(by, in); err != nil {
		return nil, err
	}
	if !plans(by, in) {
		f.DropPlan()
	}
	if !by.Is(m.AuthorID) {
		f.AllowCollaboration = nil // it gives write access to the author's branch
	}
	out, err := s.commands(ctx, by, in, m, &f)
	if err != nil {
		return nil, err
	}
	if err := s.checkUsers(ctx, in, &f); err != nil {
		return nil, err
	}
	head, err := s.checkTarget(ctx, in, m, f)
	if err != nil {
		return nil, err
	}
	var named map[int64]bool
	if f.Title != nil || f.Description != nil {
		next := *m
		patch.Set(&next.Title, f.Title)
		patch.Set(&next.Description, f.Description)
		if named, err = s.namedAgain(ctx, in, &next); err != nil {
			return nil, err
		}
	}
	crossed, err := s.Plan.Mentioned(ctx, by, in, f.Texts())
	if err != nil {
		return nil, err
	}
	err = s.Plan.Update(ctx, &m.Issuable, &f.Fields, func(tx *db.Tx) error {
		if named != nil {
			if err := saveIssues(ctx, tx, m.ID, named); err != nil {
				return err
			}
		}
		if err := s.change(ctx, tx, by, in, m.ID, f, head); err != nil {
			return err
		}
		if err := s.Plan.CrossReference(ctx, tx, by, m.source(in), crossed); err != nil {
			return err
		}
		return out.InTx(ctx, tx, &m.Issuable)
	})
	if err != nil {
		return nil, fmt.Errorf("update merge request %d: %w", m.ID, err)
	}
	return s.done(ctx, by, in, m, out)
}

// checkTarget validates that a new target branch exists. If the merge request is
// reopened, it returns the head of the source branch.
func (s *Service) checkTarget(ctx context.Context, in *project.Project, m *MergeRequest, f Fields) (git.OID, error) {
	if f.TargetBranch != nil && *f.TargetBranch != m.TargetBranch {
		if !m.FromFork() && *f.TargetBranch == m.SourceBranch {
			return "", unprocessable("You can't use same project/branch for source and target")
		}
		at, err := s.tip(ctx, in, *f.TargetBranch)
		if err != nil {
			return "", err
		}
		if at == "" {
			return "", errs.InvalidField("target_branch", "does not exist")
		}
	}
	if f.Event != "reopen" || m.State != Closed {
		return "", nil
	}
	head, err := s.sourceHead(ctx, m)
	if err != nil {
		return "", err
	}
	if head == "" {
		return "", errs.Conflict("The source branch does not exist any more")
	}
	linked, err := s.linked(ctx, in, m)
	if err == nil && !linked {
		err = errs.Conflict("The source project is not a fork of the target project any more")
	}
	return head, err
}

func (s *Service) change(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, id int64, f Fields, head git.OID) error {
	m, err := lockRequest(ctx, tx, id)
	if err != nil {
		return err
	}
	was := *m
	if m.State == Merged {
		f.TargetBranch = nil // the target of a merged merge request cannot change
	}
	if err := m.apply(f); err != nil {
		return err
	}
	if m.TargetBranch != was.TargetBranch {
		merging, err := claimed(ctx, tx, "merging_at", m.ID, s.Now())
		if err != nil {
			return err
		}
		if merging {
			return errs.Conflict("The target branch cannot be changed while the merge request is being merged")
		}
	}
	if err := plan.Usable(ctx, tx, in, f.Milestone); err != nil {
		return err
	}
	m.UpdatedAt = s.Now()
	done := m.Move(f.Event, by.ID, s.Now())
	if done == activity.Reopened {
		if head == "" { // it was closed after its head was read
			return errs.Conflict("The merge request has been closed in the meantime")
		}
		m.Head = string(head)
	}
	if m.State == Opened && (done == activity.Reopened || m.TargetBranch != was.TargetBranch) {
		if err := alone(ctx, tx, m); err != nil {
			return err
		}
		m.check = check{}
		how := byTarget
		if m.Head != was.Head { // pushed while it was closed
			how = byPush
		}
		if m.Head != was.Head || m.TargetBranch != was.TargetBranch {
			if err := s.resetOnPush(ctx, tx, by, m, how); err != nil {
				return err
			}
		}
		if err := s.addVersion(ctx, tx, m, &by.ID, was.Head); err != nil {
			return err
		}
	}
	if m.State != Opened || m.Draft && !was.Draft || m.TargetBranch != was.TargetBranch {
		m.AutoMergeByID, m.autoMerge = nil, ""
	}
	if err := saveRequest(ctx, tx, m); err != nil {
		return err
	}
	if was.Draft && !m.Draft {
		if err := s.continueAuto(ctx, tx, m); err != nil {
			return err
		}
	}
	changes, err := s.changes(ctx, tx, by, in, &was, m, f)
	if err != nil {
		return err
	}
	if err := s.Plan.RecordState(ctx, tx, by.ID, &m.Issuable, was.State); err != nil {
		return err
	}
	for _, text := range changes {
		if err := s.Plan.AddSystemNote(ctx, tx, by, m.Target(), m.IID, in.ID, text); err != nil {
			return err
		}
	}
	if was.Title != m.Title {
		if err := activity.Retitle(ctx, tx, m.Subject(), m.Title); err != nil {
			return err
		}
	}
	if done == "" {
		return s.Events.Changed.Publish(ctx, tx, Change{Request: m, Kind: FieldsChanged, By: by.ID, Was: &was})
	}
	if err := project.Touch(ctx, tx, in, s.Now()); err != nil {
		return err
	}
	if err := s.record(ctx, tx, by.ID, m, done); err != nil {
		return err
	}
	return s.Events.Changed.Publish(ctx, tx, Change{Request: m, Kind: StateChanged, By: by.ID, Was: &was})
}

// changes saves labels, users and milestone, and returns the texts of the system
// notes about all changes.
func (s *Service) changes(ctx context.Context, tx *db.Tx, by actor.Actor, in *project.Project, was, m *MergeRequest, f Fields) ([]string, error) {
	var changes []string
	note := func(is bool, format string, args ...any) {
		if is {
			changes = append(changes, fmt.Sprintf(format, args...))
		}
	}
	note(was.Title != m.Title, "changed title from **%s** to **%s**", was.Title, m.Title)
	note(!was.Draft && m.Draft, "marked this merge request as **draft**")
	note(was.Draft && !m.Draft, "marked this merge request as **ready**")
	note(was.Description != m.Description, "changed the description")
	note(was.TargetBranch != m.TargetBranch, "changed target branch from `%s` to `%s`", was.TargetBranch, m.TargetBranch)
	planned, err := s.Plan.ChangePlan(ctx, tx, by, in, &was.Issuable, &m.Issuable, f.Fields, f.Reviewers)
	if err != nil {
		return nil, err
	}
	changes = append(changes, planned...)
	if err := dateReviewers(ctx, tx, m.ID, s.Now()); err != nil {
		return nil, err
	}
	locked := plan.LockChange(&was.Issuable, &m.Issuable)
	note(locked != "", "%s", locked)
	note(was.State == Opened && m.State == Closed, "closed")
	note(was.State == Closed && m.State == Opened, "reopened")
	return changes, nil
}

// TrackTime changes the time tracking of a merge request, for users who may change
// its planning fields. NotFound; Forbidden; Invalid.
func (s *Service) TrackTime(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, c plan.TimeChange) (*MergeRequest, error) {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if err := m.CheckEdit(by, in); err != nil {
		return nil, err
	}
	if !plans(by, in) {
		return nil, errs.Forbidden("")
	}
	return s.Update(ctx, by, project.RefTo(in.ID), iid, Fields{Fields: plan.Fields{Time: c}})
}

// Delete deletes a merge request with its notes, for Owners. NotFound;
// Forbidden; Precondition if it was changed after unmodifiedSince.
func (s *Service) Delete(ctx context.Context, by actor.Actor, ref project.Ref, iid int64, unmodifiedSince *time.Time) error {
	in, m, err := s.request(ctx, by, ref, iid)
	if err != nil {
		return err
	}
	if err := deletable(by, in); err != nil {
		return err
	}
	if err := errs.ChangedSince(m.UpdatedAt, unmodifiedSince); err != nil {
		return err
	}
	err = s.DB.Tx(ctx, func(tx *db.Tx) error {
		if err := s.unblock(ctx, tx, m.ID); err != nil { // before its dependencies are deleted with it
			return err
		}
		// Deleted before its notes: a concurrent note then fails with NotFound.
		if err := deleteRequest(ctx, tx, m.ID); err != nil {
			return err
		}
		if err := plan.Forget(ctx, tx, plan.MergeKind, m.ID); err != nil {
			return err
		}
		if err := s.Queue.Add(ctx, tx, dropWork{in.ID, m.IID}); err != nil {
			return err
		}
		return s.Plan.RecordDeletion(ctx, tx, by, in, &m.Issuable)
	})
	if err != nil {
		return fmt.Errorf("delete merge request %d: %w", m.ID, err)
	}
	return nil
}

// dropWork is the background job that deletes the refs of a deleted merge
// request.
type dropWork struct {
	ProjectID int64 `json:"project_id"`
	IID       int64 `json:"iid"`
}

// Kind implements queue.Work.
func (dropWork) Kind() string { return "merge_drop" }

func (s *Service) workDrop(ctx context.Context, w dropWork) error {
	p, err := s.system(ctx, &w.ProjectID)
	if err != nil || p == nil {
		return err
	}
	return s.Repos.DropMerge(ctx, p, w.IID)
}
