package web

import "svc/internal/project"

func (w *Web) groupMergeSettingsPages() {
	w.groupPage("GET settings/merge_requests", signedIn, w.groupMergeSettings)
	w.groupPage("POST settings/merge_requests", signedIn, w.saveGroupMergeSettings)
}

// groupMergeSettingsPage has the merge settings that a group enforces for its
// projects.
type groupMergeSettingsPage struct {
	setup
	Form   form
	Top    bool // approvals are limited by top-level groups
	OnPush []option
}

func (groupMergeSettingsPage) view() string    { return "group/settings_merge" }
func (p groupMergeSettingsPage) title() string { return "Merge requests · " + p.Name() }

func (w *Web) groupMergeSettings(v *visit, ref project.Ref) error {
	in := project.Place{Ref: ref, Group: true}
	s, err := w.setup(v, in, "merge_requests")
	if err != nil {
		return err
	}
	g := s.G.Group.Settings
	a, onPush := g.Approvals, "project"
	switch {
	case a.ResetOnPush:
		onPush = "reset"
	case a.SelectiveRemovals:
		onPush = "owners"
	}
	return v.show(groupMergeSettingsPage{setup: s, Top: s.G.Group.ParentID == nil,
		Form: filled("only_allow_merge_if_pipeline_succeeds", on(g.OnlyAllowMergeIfPipelineSucceeds), "allow_merge_on_skipped_pipeline", on(g.AllowMergeOnSkippedPipeline),
			"only_allow_merge_if_all_discussions_are_resolved", on(g.OnlyAllowMergeIfAllDiscussionsAreResolved),
			"prevent_author", on(a.PreventAuthor), "prevent_committers", on(a.PreventCommitters), "prevent_overriding", on(a.PreventOverriding),
			"require_password", on(a.PasswordToApprove), "on_push", onPush),
		OnPush: []option{{"project", "As the project does"}, {"reset", "Remove all approvals"}, {"owners", "Remove approvals by Code Owners if their files changed"}},
	})
}

func (w *Web) saveGroupMergeSettings(v *visit, ref project.Ref) error {
	_, err := w.Projects.UpdateGroup(v, v.actor, ref, project.GroupChange{Settings: func(g *project.GroupSettings) {
		g.OnlyAllowMergeIfPipelineSucceeds, g.AllowMergeOnSkippedPipeline = v.ticked("only_allow_merge_if_pipeline_succeeds"), v.ticked("allow_merge_on_skipped_pipeline")
		g.OnlyAllowMergeIfAllDiscussionsAreResolved = v.ticked("only_allow_merge_if_all_discussions_are_resolved")
		if v.text("on_push") == "" { // the form of a subgroup
			return
		}
		g.Approvals = project.ApprovalLimits{
			PreventAuthor: v.ticked("prevent_author"), PreventCommitters: v.ticked("prevent_committers"), PreventOverriding: v.ticked("prevent_overriding"),
			PasswordToApprove: v.ticked("require_password"), ResetOnPush: v.text("on_push") == "reset", SelectiveRemovals: v.text("on_push") == "owners",
		}
	}})
	return v.redirectWithFlash(err, "The settings were saved.", settingsOf(project.Place{Ref: ref, Group: true}, "merge_requests"))
}
