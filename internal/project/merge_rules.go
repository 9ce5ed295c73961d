package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
)

// ApprovalLimits are the approval settings that a top-level group enforces in all
// its projects. The zero value enforces nothing.
type ApprovalLimits struct {
	PreventAuthor     bool // authors may not approve
	PreventCommitters bool // users who committed may not approve
	PreventOverriding bool // merge requests have no rules of their own
	ResetOnPush       bool // remove all approvals when commits are pushed
	SelectiveRemovals bool // remove only the approvals of code owners whose files a push changes
	PasswordToApprove bool // approvers enter their password
}

func (a ApprovalLimits) check(wrong errs.Fields) {
	if a.SelectiveRemovals && a.ResetOnPush {
		wrong.Set("selective_code_owner_removals", "can only be enabled if retain_approvals_on_push is enabled")
	}
}

// MergeRules are the requirements for merging that a project inherits from its
// groups. The zero value requires nothing.
type MergeRules struct {
	PipelineSucceeds bool // only_allow_merge_if_pipeline_succeeds
	SkippedSucceeds  bool // allow_merge_on_skipped_pipeline
	ThreadsResolved  bool // only_allow_merge_if_all_discussions_are_resolved
	Approvals        ApprovalLimits
}

// rules returns the rules that are set in the group itself. Only top-level groups
// limit approvals.
func (n *Namespace) rules() MergeRules {
	g := n.Settings
	r := MergeRules{PipelineSucceeds: g.OnlyAllowMergeIfPipelineSucceeds, SkippedSucceeds: g.AllowMergeOnSkippedPipeline, ThreadsResolved: g.OnlyAllowMergeIfAllDiscussionsAreResolved}
	if n.ParentID == nil {
		r.Approvals = g.Approvals
	}
	return r
}

// with returns the rules combined with those of an ancestor group.
func (r MergeRules) with(above MergeRules) MergeRules {
	r.PipelineSucceeds = r.PipelineSucceeds || above.PipelineSucceeds
	r.SkippedSucceeds = r.SkippedSucceeds || above.SkippedSucceeds
	r.ThreadsResolved = r.ThreadsResolved || above.ThreadsResolved
	if above.Approvals != (ApprovalLimits{}) {
		r.Approvals = above.Approvals
	}
	return r
}

// MergeSettings returns the effective settings for merge requests: those of the
// project combined with the rules of its groups.
func (p *Project) MergeSettings() Settings {
	set, rules := p.Settings, p.Inherited
	set.OnlyAllowMergeIfPipelineSucceeds = set.OnlyAllowMergeIfPipelineSucceeds || rules.PipelineSucceeds
	set.AllowMergeOnSkippedPipeline = set.AllowMergeOnSkippedPipeline || rules.SkippedSucceeds
	set.OnlyAllowMergeIfAllDiscussionsAreResolved = set.OnlyAllowMergeIfAllDiscussionsAreResolved || rules.ThreadsResolved
	a, limits := &set.Approvals, rules.Approvals
	a.AuthorApproval = a.AuthorApproval && !limits.PreventAuthor
	a.DisableCommitters = a.DisableCommitters || limits.PreventCommitters
	a.DisableOverriding = a.DisableOverriding || limits.PreventOverriding
	a.ResetOnPush = a.ResetOnPush || limits.ResetOnPush
	a.SelectiveRemovals = !a.ResetOnPush && (a.SelectiveRemovals || limits.SelectiveRemovals)
	a.PasswordToApprove = a.PasswordToApprove || limits.PasswordToApprove
	return set
}

// inheritRules stores the effective rules of a group and its descendants, after the
// settings or the parent of the group have changed.
func inheritRules(ctx context.Context, tx *db.Tx, id int64) error {
	// Creating a group locks its parent, so no subgroup is added concurrently.
	groups, err := findBelow(ctx, tx, id)
	if err != nil {
		return fmt.Errorf("groups below %d: %w", id, err)
	}
	for _, below := range groups {
		if err := tx.Lock(ctx, "namespaces", below); err != nil {
			return err
		}
	}
	lines, err := findTreeRules(ctx, tx, id)
	if err != nil {
		return fmt.Errorf("rules of group %d: %w", id, err)
	}
	rules, stored := map[int64]MergeRules{}, map[int64]string{}
	for _, l := range lines { // the nearest first
		rules[l.id] = rules[l.id].with(l.above.rules())
		stored[l.id] = l.stored
	}
	for id, r := range rules {
		text, err := r.text()
		if err != nil {
			return err
		}
		if text == stored[id] {
			continue
		}
		if err := saveRules(ctx, tx, id, text); err != nil {
			return fmt.Errorf("save rules of group %d: %w", id, err)
		}
	}
	return nil
}

// GroupApprovals returns the approval limits of a top-level group. Requires Owner.
// NotFound; Forbidden, also for a subgroup.
func (s *Service) GroupApprovals(ctx context.Context, by actor.Actor, ref Ref) (ApprovalLimits, error) {
	n, err := s.RequireGroup(ctx, by, ref, Owner)
	if err != nil {
		return ApprovalLimits{}, err
	}
	return n.Settings.Approvals, n.topLevel()
}

// LimitApprovals changes the approval limits of a top-level group. Requires Owner.
// NotFound; Forbidden, also for a subgroup; Invalid.
func (s *Service) LimitApprovals(ctx context.Context, by actor.Actor, ref Ref, change func(*ApprovalLimits)) (ApprovalLimits, error) {
	n, err := s.RequireGroup(ctx, by, ref, Owner)
	if err != nil {
		return ApprovalLimits{}, err
	}
	if err := n.topLevel(); err != nil {
		return ApprovalLimits{}, err
	}
	if n, err = s.UpdateGroup(ctx, by, RefTo(n.ID), GroupChange{Settings: func(g *GroupSettings) { change(&g.Approvals) }}); err != nil {
		return ApprovalLimits{}, err
	}
	return n.Settings.Approvals, nil
}

func (n *Namespace) topLevel() error {
	if n.ParentID != nil {
		return errs.Forbidden("Approval settings are set in the top-level group.")
	}
	return nil
}
