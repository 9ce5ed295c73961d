package web

import (
	"strconv"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) mergeSettingsPages() {
	const at = "settings/merge_requests"
	w.projectPage("GET "+at, signedIn, ofProject(w.mergeSettings))
	w.projectPage("POST "+at, signedIn, ofProject(w.saveMergeSettings))
	w.projectPage("POST "+at+"/approvals", signedIn, ofProject(w.saveApprovalSettings))
	w.projectPage("POST "+at+"/rules", signedIn, ofProject(w.addProjectRule))
	w.projectPage("POST "+at+"/rules/{rule}", signedIn, ofProject(w.saveProjectRule))
	w.projectPage("POST "+at+"/rules/{rule}/delete", signedIn, ofProject(w.deleteProjectRule))
}

// mergeSettingsPage has the settings of merge requests of a project.
type mergeSettingsPage struct {
	setup
	ruleEditor
	Settings form // of the merge settings
	Methods  []option
	Squash   []option
	OnPush   []option
}

// Enforced is the hint of a setting that a group of the project enforces.
func (p mergeSettingsPage) Enforced(name, otherwise string) string {
	r := p.P.Project.Inherited
	enforced := map[string]bool{
		"only_allow_merge_if_pipeline_succeeds": r.PipelineSucceeds, "allow_merge_on_skipped_pipeline": r.SkippedSucceeds,
		"only_allow_merge_if_all_discussions_are_resolved": r.ThreadsResolved, "prevent_author": r.Approvals.PreventAuthor,
		"prevent_committers": r.Approvals.PreventCommitters, "prevent_overriding": r.Approvals.PreventOverriding,
		"require_password": r.Approvals.PasswordToApprove, "on_push": r.Approvals.ResetOnPush || r.Approvals.SelectiveRemovals,
	}
	if enforced[name] {
		return "Enforced by a group, whatever is set here."
	}
	return otherwise
}

func (mergeSettingsPage) view() string    { return "project/settings_merge" }
func (p mergeSettingsPage) title() string { return "Merge requests · " + p.Name() }

func (w *Web) mergeSettings(v *visit, in project.Place) error {
	return w.showMergeSettings(v, in, form{}, form{})
}

// showMergeSettings shows the page again with the refused form: the settings,
// or a new rule.
func (w *Web) showMergeSettings(v *visit, in project.Place, settings, rule form) error {
	s, err := w.setup(v, in, "merge_requests")
	if err != nil {
		return err
	}
	if !settings.bad() {
		settings = mergeSettingsForm(s.P.Project.Settings)
	}
	p := mergeSettingsPage{setup: s, Settings: settings,
		Methods: []option{{"merge", "Merge commit"}, {"rebase_merge", "Merge commit with semi-linear history"}, {"ff", "Fast-forward merge"}},
		Squash:  []option{{"never", "Do not allow"}, {"default_off", "Allow"}, {"default_on", "Encourage"}, {"always", "Require"}},
		OnPush:  []option{{"reset", "Remove all approvals"}, {"owners", "Remove approvals by Code Owners if their files changed"}, {"keep", "Keep approvals"}},
	}
	p.RuleForm, p.RuleBase = rule, settingsOf(in, "merge_requests")+"/rules"
	list, err := w.Merges.ProjectRules(v, v.actor, in.Ref, db.Paging{Limit: 100})
	if err != nil {
		return err
	}
	for _, r := range list.Items {
		p.Rules = append(p.Rules, newRuleRow(r))
	}
	p.RuleBranches = []option{{"", "All branches"}, {"protected", "All protected branches"}}
	protected, err := w.Repos.ProtectedRefs(v, v.actor, in.Ref, repo.BranchRef, "", allOf())
	if err != nil {
		return err
	}
	for _, b := range protected.Items {
		p.RuleBranches = append(p.RuleBranches, option{strconv.FormatInt(b.ID, 10), b.Name})
	}
	bad := settings
	if rule.bad() {
		bad = rule
	}
	return v.showForm(p, bad)
}

// mergeSettingsForm returns a form with the current settings.
func mergeSettingsForm(c project.Settings) form {
	a := c.Approvals
	return filled("merge_method", c.MergeMethod, "squash_option", c.SquashOption,
		"only_allow_merge_if_pipeline_succeeds", on(c.OnlyAllowMergeIfPipelineSucceeds), "allow_merge_on_skipped_pipeline", on(c.AllowMergeOnSkippedPipeline),
		"only_allow_merge_if_all_discussions_are_resolved", on(c.OnlyAllowMergeIfAllDiscussionsAreResolved),
		"resolve_outdated_diff_discussions", on(c.ResolveOutdatedDiffDiscussions), "remove_source_branch_after_merge", on(c.RemoveSourceBranchAfterMerge),
		"printing_merge_request_link_enabled", on(c.PrintingMergeRequestLinkEnabled), "autoclose_referenced_issues", on(c.AutocloseReferencedIssues),
		"merge_commit_template", c.MergeCommitTemplate, "squash_commit_template", c.SquashCommitTemplate, "suggestion_commit_message", c.SuggestionCommitMessage,
		"prevent_author", on(!a.AuthorApproval), "prevent_committers", on(a.DisableCommitters), "prevent_overriding", on(a.DisableOverriding),
		"require_password", on(a.PasswordToApprove), "on_push", pushChoice(a))
}

// pushChoice is what happens to approvals when commits are pushed.
func pushChoice(a project.ApprovalSettings) string {
	switch {
	case a.ResetOnPush:
		return "reset"
	case a.SelectiveRemovals:
		return "owners"
	}
	return "keep"
}

func (w *Web) saveMergeSettings(v *visit, in project.Place) error {
	_, err := w.Projects.Update(v, v.actor, in.Ref, project.Change{Fields: project.Fields{Settings: func(c *project.Settings) {
		c.MergeMethod, c.SquashOption = v.text("merge_method"), v.text("squash_option")
		c.OnlyAllowMergeIfPipelineSucceeds, c.AllowMergeOnSkippedPipeline = v.ticked("only_allow_merge_if_pipeline_succeeds"), v.ticked("allow_merge_on_skipped_pipeline")
		c.OnlyAllowMergeIfAllDiscussionsAreResolved = v.ticked("only_allow_merge_if_all_discussions_are_resolved")
		c.ResolveOutdatedDiffDiscussions = v.ticked("resolve_outdated_diff_discussions")
		c.RemoveSourceBranchAfterMerge = v.ticked("remove_source_branch_after_merge")
		c.PrintingMergeRequestLinkEnabled, c.AutocloseReferencedIssues = v.ticked("printing_merge_request_link_enabled"), v.ticked("autoclose_referenced_issues")
		c.MergeCommitTemplate, c.SquashCommitTemplate = v.text("merge_commit_template"), v.text("squash_commit_template")
		c.SuggestionCommitMessage = v.text("suggestion_commit_message")
	}}})
	return w.savedMergeSettings(v, in, err)
}

func (w *Web) saveApprovalSettings(v *visit, in project.Place) error {
	_, err := w.Merges.ConfigureApprovals(v, v.actor, in.Ref, func(a *project.ApprovalSettings) {
		a.AuthorApproval, a.DisableCommitters = !v.ticked("prevent_author"), v.ticked("prevent_committers")
		a.DisableOverriding, a.PasswordToApprove = v.ticked("prevent_overriding"), v.ticked("require_password")
		a.ResetOnPush, a.SelectiveRemovals = v.text("on_push") == "reset", v.text("on_push") == "owners"
	})
	return w.savedMergeSettings(v, in, err)
}

func (w *Web) savedMergeSettings(v *visit, in project.Place, err error) error {
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		f.only("merge_method", "squash_option", "merge_commit_template", "squash_commit_template", "suggestion_commit_message")
		return w.showMergeSettings(v, in, f, form{})
	}
	return v.done("The settings were saved.", settingsOf(in, "merge_requests"))
}

// changeProjectRule changes the approval rules of a project and returns to the
// page.
func (w *Web) changeProjectRule(v *visit, in project.Place, done string, do func(f *form) error) error {
	f := v.sent()
	err := do(&f)
	if err == nil && !f.bad() {
		return v.done(done, settingsOf(in, "merge_requests"))
	}
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
	}
	moveRuleErrors(&f)
	return w.showMergeSettings(v, in, form{}, f)
}

func (w *Web) addProjectRule(v *visit, in project.Place) error {
	return w.changeProjectRule(v, in, "The approval rule was added.", func(f *form) error {
		fields, err := w.sentRule(v, f, true)
		if err != nil || f.bad() {
			return err
		}
		_, err = w.Merges.CreateProjectRule(v, v.actor, in.Ref, fields)
		return err
	})
}

func (w *Web) saveProjectRule(v *visit, in project.Place) error {
	return w.changeProjectRule(v, in, "The approval rule was saved.", func(f *form) error {
		fields, err := w.sentRule(v, f, true)
		if err != nil || f.bad() {
			return err
		}
		id, err := v.number("rule")
		if err != nil {
			return err
		}
		_, err = w.Merges.UpdateProjectRule(v, v.actor, in.Ref, id, fields)
		return err
	})
}

func (w *Web) deleteProjectRule(v *visit, in project.Place) error {
	return w.changeProjectRule(v, in, "The approval rule was deleted.", func(f *form) error {
		id, err := v.number("rule")
		if err != nil {
			return err
		}
		return w.Merges.DeleteProjectRule(v, v.actor, in.Ref, id)
	})
}
