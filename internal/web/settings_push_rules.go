package web

import (
	"strconv"

	"svc/internal/project"
	"svc/internal/repo/pushrule"
)

func (w *Web) pushRulePages() {
	w.settingsPage("GET settings/push_rules", w.pushRules)
	w.settingsPage("POST settings/push_rules", w.savePushRules)
	w.groupPage("POST settings/push_rules/delete", signedIn, w.deletePushRules)
}

// pushRulesPage has the push rule of a project, or the one of a group that new
// projects start with.
type pushRulesPage struct {
	setup
	Form   form
	Exists bool // the group has a push rule
}

func (pushRulesPage) view() string    { return "shared/settings_push_rules" }
func (p pushRulesPage) title() string { return "Push rules · " + p.Name() }

func (w *Web) pushRules(v *visit, in project.Place) error {
	r, _, err := w.findPushRules(v, in)
	if err != nil {
		return err
	}
	return w.showPushRules(v, in, filled("commit_message_regex", r.CommitMessage, "commit_message_negative_regex", r.CommitMessageNegative,
		"branch_name_regex", r.BranchName, "author_email_regex", r.AuthorEmail, "file_name_regex", r.FileName,
		"max_file_size", strconv.FormatInt(r.MaxFileSize, 10), "deny_delete_tag", on(r.DenyDeleteTag), "member_check", on(r.MemberCheck),
		"prevent_secrets", on(r.PreventSecrets), "commit_committer_check", on(r.CommitterCheck), "commit_committer_name_check", on(r.CommitterNameCheck),
		"reject_unsigned_commits", on(r.RejectUnsigned), "reject_non_dco_commits", on(r.RejectNonDCO)))
}

// findPushRules returns the push rule of a project or group, and reports whether
// there is one.
func (w *Web) findPushRules(v *visit, in project.Place) (pushrule.Rules, bool, error) {
	rule, err := w.PushRules.Rule(v, v.actor, in)
	if err != nil || rule == nil {
		return pushrule.Rules{}, false, err
	}
	return rule.Rules, true, nil
}

func (w *Web) showPushRules(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "push_rules")
	if err != nil {
		return err
	}
	_, exists, err := w.findPushRules(v, in)
	if err != nil {
		return err
	}
	return v.showForm(pushRulesPage{s, f, exists && in.Group}, f)
}

func (w *Web) savePushRules(v *visit, in project.Place) error {
	f := v.sent()
	text := func(name string) *string {
		value := v.text(name)
		return &value
	}
	box := func(name string) *bool {
		value := v.ticked(name)
		return &value
	}
	size := v.whole(&f, "max_file_size")
	if f.bad() {
		return w.showPushRules(v, in, f)
	}
	err := w.PushRules.SaveRule(v, v.actor, in, pushrule.Change{
		CommitMessage: text("commit_message_regex"), CommitMessageNegative: text("commit_message_negative_regex"),
		BranchName: text("branch_name_regex"), AuthorEmail: text("author_email_regex"), FileName: text("file_name_regex"), MaxFileSize: &size,
		DenyDeleteTag: box("deny_delete_tag"), MemberCheck: box("member_check"), PreventSecrets: box("prevent_secrets"),
		CommitterCheck: box("commit_committer_check"), CommitterNameCheck: box("commit_committer_name_check"),
		RejectUnsigned: box("reject_unsigned_commits"), RejectNonDCO: box("reject_non_dco_commits"),
	})
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showPushRules(v, in, f)
	}
	return v.done("The push rules were saved.", settingsOf(in, "push_rules"))
}

// deletePushRules deletes the push rule of a group, so that new projects start
// with that of the next group above.
func (w *Web) deletePushRules(v *visit, ref project.Ref) error {
	in := project.Place{Ref: ref, Group: true}
	return v.redirectWithFlash(w.PushRules.DeleteRule(v, v.actor, in), "The push rules were deleted.", settingsOf(in, "push_rules"))
}
