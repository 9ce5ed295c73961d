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
	SelectiveRemovals bool // remove the approvals of code owners whose files are pushed
	PasswordToApprove bool // approvers enter their password
}

func (a ApprovalLimits) check(wrong errs.Fields) {
	if a.SelectiveRemovals && a.ResetOnPush {
		wrong.Set("selective_code_owner_removals", "can only be enabled if retain_approvals_on_push is enabled")
	}
}

// MergeRules are what the groups of a project require of its merge requests. The
// zero value requires nothing.
type MergeRules struct {
	PipelineSucceeds bool // only_allow_merge_if_pipeline_succeeds
	SkippedSucceeds  bool // allow_merge_on_skipped_pipeline
	ThreadsResolved  bool // only_allow_merge_if_all_discussions_are_resolved
	Approvals        ApprovalLimits
}

// rules are the rules of a group alone. Approvals are limited by top-level groups
// only.
func (n *Namespace) rules() MergeRules {
	g := n.Settings
	r := MergeRules{PipelineSucceeds: g.OnlyAllowMergeIfPipelineSucceeds, SkippedSucceeds: g.AllowMergeOnSkippedPipeline, ThreadsResolved: g.OnlyAllowMergeIfAllDiscussionsAreResolved}
	if n.ParentID == nil {
		r.Approvals = g.Approvals
	}
	return r
}

// with returns the rules together with those of a group above.
func (r MergeRules) with(above MergeRules) MergeRules {
	r.PipelineSucceeds = r.PipelineSucceeds || above.PipelineSucceeds
	r.SkippedSucceeds = r.SkippedSucceeds || above.SkippedSucceeds
	r.ThreadsResolved = r.ThreadsResolved || above.ThreadsResolved
	if above.Approvals != (ApprovalLimits{}) {
		r.Approvals = above.Approvals
	}
	return r
}

// MergeSettings returns the settings of a project as they apply to merge
// requests: its own, with the rules of its groups.
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

// inheritRules stores the rules of a group, and of all groups below it, after the
// settings or the parent of the group changed.
func inheritRules(ctx context.Context, tx *db.Tx, id int64) error {
	// Who creates a group locks its parent, so that none is added meanwhile.
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

// GroupApprovals returns the approval limits of a top-level group to its Owners.
// NotFound; Forbidden.
func (s *Service) GroupApprovals(ctx context.Context, by actor.Actor, ref Ref) (ApprovalLimits, error) {
	n, err := s.RequireGroup(ctx, by, ref, Owner)
	if err != nil {
		return ApprovalLimits{}, err
	}
	return n.Settings.Approvals, n.topLevel()
}

// LimitApprovals changes the approval limits of a top-level group, for Owners.
// NotFound; Forbidden; Invalid.
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
