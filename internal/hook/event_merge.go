package hook

import (
	"context"
	"fmt"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
)

// MergeRequestChanged sends merge request events.
func (s *Service) MergeRequestChanged(ctx context.Context, tx *db.Tx, c merge.Change) error {
	action := mergeAction(c)
	if action == "" {
		return nil
	}
	list, err := s.listening(ctx, tx, c.Request.ProjectID)
	if err != nil || !wants(list, MergeRequests) {
		return err
	}
	o, err := s.mergeEvent(ctx, tx, c, action)
	if err != nil {
		return fmt.Errorf("hooks of merge request %d: %w", c.Request.ID, err)
	}
	return s.emit(ctx, tx, list, o)
}

// mergeAction returns the action of a change; empty if hooks do not get the change.
func mergeAction(c merge.Change) string {
	choose := func(all, one string) string {
		if c.Complete {
			return all
		}
		return one
	}
	switch c.Kind {
	case merge.Created:
		return "open"
	case merge.HeadChanged, merge.FieldsChanged:
		return "update"
	case merge.StateChanged:
		if c.Was == nil {
			return ""
		}
		return issuableAction(&c.Request.Issuable, &c.Was.Issuable)
	case merge.ApprovalGiven:
		return choose("approved", "approval")
	case merge.ApprovalGone:
		return choose("unapproved", "unapproval")
	case merge.ApprovalsReset:
		return "unapproved"
	}
	return ""
}

func (s *Service) mergeEvent(ctx context.Context, q db.Q, c merge.Change, action string) (occurrence, error) {
	m := c.Request
	in, err := project.In(ctx, q, m.ProjectID)
	if err != nil {
		return occurrence{}, err
	}
	attributes, reviewers, err := s.requestObject(ctx, q, in, m)
	if err != nil {
		return occurrence{}, err
	}
	user, err := s.userBy(ctx, q, c.By)
	if err != nil {
		return occurrence{}, err
	}
	attributes["action"] = action
	labels, _ := attributes["labels"].([]any)
	changes := object{}
	if c.Was != nil {
		was := c.Was
		if changes, err = s.issuableChanges(ctx, q, &was.Issuable, &m.Issuable, labels); err != nil {
			return occurrence{}, err
		}
		put := differing(changes)
		put("draft", was.Draft, m.Draft)
		put("target_branch", was.TargetBranch, m.TargetBranch)
		put("source_branch", was.SourceBranch, m.SourceBranch)
		put("squash", was.Squash, m.Squash)
		attributes["updated_by_id"] = c.By
		attributes["time_change"], attributes["human_time_change"] = m.TimeSpent-was.TimeSpent, human(m.TimeSpent-was.TimeSpent)
	}
	if c.Kind == merge.HeadChanged {
		attributes["oldrev"] = c.OldHead
	}
	attributes["system"] = c.Kind == merge.ApprovalsReset
	if c.Kind == merge.ApprovalsReset {
		attributes["system_action"] = "approvals_reset_on_push"
	}
	payload := object{
		"object_kind": "merge_request", "event_type": "merge_request", "user": user, "project": s.projectObject(in), "repository": s.repositoryObject(in),
		"object_attributes": attributes, "labels": labels, "changes": changes,
	}
	assignees, err := s.related(ctx, q, m, plan.Assignees)
	if err != nil {
		return occurrence{}, err
	}
	if len(assignees) > 0 {
		payload["assignees"] = assignees
	}
	if len(reviewers) > 0 {
		payload["reviewers"] = reviewers
	}
	return occurrence{
		projectID: in.ID, trigger: MergeRequests, payload: payload, pending: pending{Commits: map[string]string{"object_attributes.last_commit": m.Head}},
		chat: chatFacts{labels: labelNames(labels)},
	}, nil
}

func (s *Service) related(ctx context.Context, q db.Q, m *merge.MergeRequest, as plan.Relation) ([]any, error) {
	ids, err := plan.Related(ctx, q, m.Target(), as)
	if err != nil {
		return nil, err
	}
	return s.userObjects(ctx, q, ids)
}

// requestObject is a merge request with its reviewers. The last commit is filled in
// later.
func (s *Service) requestObject(ctx context.Context, q db.Q, in *project.Project, m *merge.MergeRequest) (o object, reviewers []any, err error) {
	found, err := plan.LabelsOf(ctx, q, m.Target())
	if err != nil {
		return nil, nil, err
	}
	assignees, err := plan.Related(ctx, q, m.Target(), plan.Assignees)
	if err != nil {
		return nil, nil, err
	}
	reviewing, err := plan.Related(ctx, q, m.Target(), plan.Reviewers)
	if err != nil {
		return nil, nil, err
	}
	if reviewers, err = s.userObjects(ctx, q, reviewing); err != nil {
		return nil, nil, err
	}
	source := any(nil)
	if m.SourceProjectID != nil {
		from := in
		if *m.SourceProjectID != in.ID {
			if from, err = project.In(ctx, q, *m.SourceProjectID); err != nil && !errs.IsRefusal(err) {
				return nil, nil, err
			}
		}
		if from != nil {
			source = s.projectObject(from)
		}
	}
	pipeline, err := findHeadPipeline(ctx, q, m.ProjectID, m.Head)
	if err != nil {
		return nil, nil, err
	}
	status := m.KnownStatus(in)
	labels := labelObjects(found)
	return object{
		"id": m.ID, "iid": m.IID, "title": m.Title, "description": m.Description, "state": string(m.State), "state_id": stateIDs[m.State],
		"target_branch": m.TargetBranch, "source_branch": m.SourceBranch, "source_project_id": idOrNull(m.SourceProjectID), "target_project_id": m.ProjectID,
		"author_id": m.AuthorID, "assignee_ids": listOf(assignees), "assignee_id": firstOf(assignees), "reviewer_ids": listOf(reviewing),
		"milestone_id": idOrNull(m.MilestoneID), "created_at": iso(m.CreatedAt), "updated_at": iso(m.UpdatedAt), "last_edited_at": nil, "last_edited_by_id": nil,
		"merge_status": status.Git, "detailed_merge_status": string(status.Detailed), "updated_by_id": nil, "merge_error": orNull(m.MergeError),
		"merge_params": object{"force_remove_source_branch": m.RemoveSource}, "merge_when_pipeline_succeeds": m.AutoMergeByID != nil,
		"merge_user_id": idOrNull(m.MergedByID), "merge_commit_sha": orNull(m.MergeCommit), "squash_commit_sha": orNull(m.SquashCommit), "squash": m.Squash,
		"draft": m.Draft, "work_in_progress": m.Draft, "time_estimate": m.TimeEstimate, "total_time_spent": m.TimeSpent, "time_change": 0,
		"human_time_estimate": human(m.TimeEstimate), "human_total_time_spent": human(m.TimeSpent), "human_time_change": nil, "head_pipeline_id": idOrNull(pipeline),
		"blocking_discussions_resolved": m.ResolvedThreads(), "first_contribution": false, "prepared_at": isoOrNull(m.PreparedAt), "source": source, "target": s.projectObject(in),
		"last_commit": nil, "labels": labels, "url": fmt.Sprintf("%s/-/merge_requests/%d", s.webURL(in), m.IID),
	}, reviewers, nil
}
