package merge

import (
	"context"
	"errors"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
)

// commandTarget returns a merge request as the target of quick actions of an actor.
// A merge request without an ID is a new one.
func (s *Service) commandTarget(by actor.Actor, in *project.Project, m *MergeRequest) *plan.CommandTarget {
	on := &plan.CommandTarget{Issuable: &m.Issuable}
	if m.ID == 0 {
		on.Edit, on.Plan = true, Chooses(by, in)
		return on
	}
	on.Edit = m.CheckEdit(by, in) == nil
	on.Plan = on.Edit && plans(by, in)
	on.Apply = func(ctx context.Context, out *plan.Outcome) (func(context.Context, *db.Tx) error, error) {
		f := Fields{}
		m.merge(&f, out)
		if err := s.checkUsers(ctx, in, &f); err != nil {
			return nil, err
		}
		head, err := s.checkTarget(ctx, in, m, f)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, tx *db.Tx) error {
			if err := s.change(ctx, tx, by, in, m.ID, f, head); err != nil {
				return err
			}
			return out.InTx(ctx, tx, &m.Issuable)
		}, nil
	}
	return on
}

// handleCommands registers the quick actions that run after the transaction of the
// text: they change repositories, approvals and reviews.
func (s *Service) handleCommands() {
	s.Plan.OnCommand(plan.MergeKind, "merge", func(ctx context.Context, by actor.Actor, in *project.Project, i *plan.Issuable, _, head string) (string, error) {
		m, err := s.Merge(ctx, by, project.RefTo(in.ID), i.IID, Acceptance{SHA: head, Auto: true, orNow: true})
		if errs.Is(err, errs.KindNotAllowed) {
			return "", errs.Invalid("The merge request cannot be merged now.")
		}
		if err != nil {
			return "", err
		}
		if m.State != Merged {
			return "Scheduled to merge this merge request when its pipeline succeeds.", nil
		}
		return "Merged this merge request.", nil
	})
	s.Plan.OnCommand(plan.MergeKind, "approve", func(ctx context.Context, by actor.Actor, in *project.Project, i *plan.Issuable, _, head string) (string, error) {
		_, _, err := s.Approve(ctx, by, project.RefTo(in.ID), i.IID, ApproveOptions{SHA: head})
		if errors.Is(err, errNoPassword) {
			return "", errs.Invalid("This project requires your password to approve. Use the Approve button of the merge request.")
		}
		return commandResult("Approved the current merge request.", err)
	})
	s.Plan.OnCommand(plan.MergeKind, "unapprove", func(ctx context.Context, by actor.Actor, in *project.Project, i *plan.Issuable, _, _ string) (string, error) {
		_, _, err := s.Unapprove(ctx, by, project.RefTo(in.ID), i.IID)
		return commandResult("Unapproved the current merge request.", err)
	})
	s.Plan.OnCommand(plan.MergeKind, "rebase", func(ctx context.Context, by actor.Actor, in *project.Project, i *plan.Issuable, _, _ string) (string, error) {
		return "Scheduled a rebase of the source branch.", s.Rebase(ctx, by, project.RefTo(in.ID), i.IID, false)
	})
	review := func(state ReviewerState, done string) plan.CommandHandler {
		return func(ctx context.Context, by actor.Actor, in *project.Project, i *plan.Issuable, _, _ string) (string, error) {
			_, err := s.PublishReview(ctx, by, project.RefTo(in.ID), i.IID, Review{State: state})
			return done, err
		}
	}
	s.Plan.OnCommand(plan.MergeKind, "request_changes", review(RequestedChanges, "Requested changes."))
	s.Plan.OnCommand(plan.MergeKind, "submit_review", review(Reviewed, "Submitted the review."))
	s.Plan.OnCommand(plan.IssueKind, "create_merge_request", func(ctx context.Context, by actor.Actor, in *project.Project, i *plan.Issuable, args, _ string) (string, error) {
		m, err := s.createForIssue(ctx, by, in, i.IID, args)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Created branch '%s' and merge request !%d to resolve this issue.", m.SourceBranch, m.IID), nil
	})
}

// createForIssue creates a branch for an issue and a draft merge request that closes
// the issue. Without a name, the branch is named by the template of the project.
func (s *Service) createForIssue(ctx context.Context, by actor.Actor, in *project.Project, iid int64, branch string) (*MergeRequest, error) {
	ref := project.RefTo(in.ID)
	i, err := s.Plan.Issue(ctx, by, ref, iid)
	if err != nil {
		return nil, err
	}
	if !CanCreate(by, in) {
		return nil, errs.Forbidden("You cannot create merge requests in this project.")
	}
	if in.DefaultBranch == "" {
		return nil, errs.Invalid("The repository is empty.")
	}
	if branch == "" {
		own, err := s.Plan.IssueBranches(ctx, by, ref, i)
		if err != nil {
			return nil, err
		}
		branch = own.New
	}
	if _, _, err := s.Repos.CreateBranch(ctx, by, ref, branch, in.DefaultBranch); err != nil {
		return nil, err
	}
	f := FieldsFor(i)
	f.TargetBranch = &in.DefaultBranch
	return s.Create(ctx, by, ref, NewRequest{Fields: f, SourceBranch: branch})
}

// FieldsFor returns the title and description of a draft merge request that closes
// an issue. Readers of the merge request may not be allowed to see a confidential
// issue, so they do not contain its title.
func FieldsFor(i *plan.Issue) Fields {
	title, description := fmt.Sprintf("Draft: Resolve %q", i.Title), fmt.Sprintf("Closes #%d", i.IID)
	if i.Confidential {
		title = fmt.Sprintf("Draft: Resolve #%d", i.IID)
	}
	if r := []rune(title); len(r) > plan.MaxTitle {
		title = string(r[:plan.MaxTitle])
	}
	return Fields{Fields: plan.Fields{Title: &title, Description: &description}}
}

// commandResult returns the result of a quick action; Invalid if it was refused.
func commandResult(done string, err error) (string, error) {
	if errs.IsRefusal(err) {
		return "", errs.Invalid("The state of this merge request does not allow this action, or you do not have permission.")
	}
	return done, err
}

// merge adds the changes of quick actions to the fields.
func (m *MergeRequest) merge(f *Fields, out *plan.Outcome) {
	out.MergeInto(&f.Fields)
	if out.Reviewers != nil {
		f.Reviewers = out.Reviewers
	}
	if out.TargetBranch != nil {
		f.TargetBranch = out.TargetBranch
	}
	if out.Draft != nil {
		named := *m
		if f.Title != nil {
			named.Title = *f.Title
		}
		title := named.Titled(*out.Draft)
		f.Title = &title
	}
}

// commands removes the quick actions from the description of a new or existing merge
// request, and adds their changes to the fields. It returns nil if there are none.
func (s *Service) commands(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest, f *Fields) (*plan.Outcome, error) {
	if f.Description == nil || *f.Description == m.Description {
		return nil, nil
	}
	text, list := s.Plan.ParseCommands(plan.MergeKind, *f.Description)
	f.Description = &text
	if len(list) == 0 {
		return nil, nil
	}
	out, err := s.Plan.RunCommands(ctx, by, in, s.commandTarget(by, in, m), list)
	if err == nil {
		m.merge(f, out)
	}
	return out, err
}

// done runs the quick actions that cannot be part of the transaction, and returns
// the updated merge request.
func (s *Service) done(ctx context.Context, by actor.Actor, in *project.Project, m *MergeRequest, out *plan.Outcome) (*MergeRequest, error) {
	if err := out.After(ctx, &m.Issuable); err != nil {
		return nil, fmt.Errorf("quick actions on merge request %d: %w", m.ID, err)
	}
	now, err := s.Get(ctx, by, project.RefTo(in.ID), m.IID)
	if err == nil {
		now.Commands = out
	}
	return now, err
}

// NewTarget returns a new merge request of a project for quick actions, to users
// who can read its merge requests. NotFound.
func (s *Service) NewTarget(ctx context.Context, by actor.Actor, ref project.Ref) (*plan.CommandTarget, error) {
	in, err := s.Projects.RequireView(ctx, by, ref, project.MergePart)
	if err != nil {
		return nil, err
	}
	return s.commandTarget(by, in, &MergeRequest{Issuable: plan.NewIssuable(plan.MergeKind, by, in, s.Now())}), nil
}
