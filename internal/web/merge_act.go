package web

import (
	"fmt"

	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
)

func (w *Web) mergeActions() {
	w.projectPage("POST merge_requests/{id}/merge", signedIn, w.acceptMerge)
	w.projectPage("POST merge_requests/{id}/cancel_auto_merge", signedIn, w.cancelAutoMerge)
	w.projectPage("POST merge_requests/{id}/rebase", signedIn, w.rebaseMerge)
	w.projectPage("POST merge_requests/{id}/turn", signedIn, w.turnMerge)
	w.projectPage("POST merge_requests/{id}/subscribe", signedIn, w.subscribeMerge)
	w.projectPage("POST merge_requests/{id}/delete", signedIn, w.deleteMerge)
}

// onMerge does something to the merge request that the address names, and goes
// back to it.
func (w *Web) onMerge(v *visit, ref project.Ref, done string, do func(iid int64) error) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	in, err := w.Projects.RequireView(v, v.actor, ref, project.MergePart)
	if err != nil {
		return err
	}
	err = do(iid)
	switch {
	case errs.Is(err, errs.KindUnauthorized): // he is known, so it is his right that is missing
		err = errs.Forbidden("You are not allowed to do that to this merge request.")
	case errs.Is(err, errs.KindNotAllowed):
		err = errs.Conflict("The state of the merge request does not allow this. Reload the page.")
	}
	return v.redirectWithFlash(err, done, fmt.Sprintf("/%s/-/merge_requests/%d", in.FullPath, iid))
}

// acceptMerge merges, now or when the pipeline has succeeded. The head that the
// visitor saw is sent along: what nobody looked at is not merged.
func (w *Web) acceptMerge(v *visit, ref project.Ref) error {
	squash, remove := v.ticked("squash"), v.ticked("remove")
	a := merge.Acceptance{SHA: v.text("sha"), MergeMessage: v.text("message"), Auto: v.ticked("auto")}
	if v.ticked("chosen") { // the form had these boxes
		a.Squash, a.RemoveSource = &squash, &remove
	}
	if a.SHA == "" {
		return errs.Invalid("Reload the page before you merge.")
	}
	done := "The merge request was merged."
	if a.Auto {
		done = "The merge request will be merged when the pipeline succeeds."
	}
	return w.onMerge(v, ref, done, func(iid int64) error {
		_, err := w.Merges.Merge(v, v.actor, ref, iid, a)
		if errs.Is(err, errs.KindConflict) {
			err = errs.Conflict("New commits were pushed to the source branch. Review them, then merge again.").Because(err)
		}
		return err
	})
}

func (w *Web) cancelAutoMerge(v *visit, ref project.Ref) error {
	return w.onMerge(v, ref, "Auto-merge was canceled.", func(iid int64) error {
		_, err := w.Merges.CancelAuto(v, v.actor, ref, iid)
		return err
	})
}

func (w *Web) rebaseMerge(v *visit, ref project.Ref) error {
	return w.onMerge(v, ref, "The rebase was started.", func(iid int64) error { return w.Merges.Rebase(v, v.actor, ref, iid, false) })
}

// turnMerge is what the buttons at the top do: close and reopen, draft or
// ready, lock the discussion.
func (w *Web) turnMerge(v *visit, ref project.Ref) error {
	yes, no := true, false
	known := map[string]struct {
		done   string
		fields merge.Fields
	}{
		"close":  {"The merge request was closed.", merge.Fields{Event: "close"}},
		"reopen": {"The merge request was reopened.", merge.Fields{Event: "reopen"}},
		"lock":   {"The discussion was locked to project members.", merge.Fields{Locked: &yes}},
		"unlock": {"The discussion was unlocked.", merge.Fields{Locked: &no}},
		"draft":  {"The merge request was marked as draft.", merge.Fields{}},
		"ready":  {"The merge request was marked as ready.", merge.Fields{}},
	}
	event := v.text("event")
	turn, ok := known[event]
	if !ok {
		return errs.Invalid("Unknown action for a merge request.")
	}
	return w.onMerge(v, ref, turn.done, func(iid int64) error {
		if turn.fields.Locked != nil {
			if _, err := w.plannedMerge(v, ref); err != nil {
				return err // the feature would leave it as it is
			}
		}
		m, err := w.Merges.Get(v, v.actor, ref, iid)
		if err != nil {
			return err
		}
		if event == "draft" || event == "ready" {
			title := m.Titled(event == "draft")
			turn.fields.Title = &title
		}
		_, err = w.Merges.Update(v, v.actor, ref, iid, turn.fields)
		return err
	})
}

func (w *Web) subscribeMerge(v *visit, ref project.Ref) error {
	want := v.ticked("want")
	return w.onMerge(v, ref, subscribedWords(want), func(iid int64) error {
		_, _, err := w.Merges.Subscribe(v, v.actor, ref, iid, want)
		return err
	})
}

func subscribedWords(want bool) string {
	if want {
		return "You will be notified of changes."
	}
	return "You will no longer be notified of changes."
}

func (w *Web) deleteMerge(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.Merges.Delete(v, v.actor, ref, iid, nil); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The merge request was deleted.", "merge_requests")
}

// mergeFields reads what the form of a merge request says.
func (v *visit) mergeFields(f *form) merge.Fields {
	title, text, target := v.text("title"), v.prose("description"), v.text("target_branch")
	squash, remove := v.ticked("squash"), v.ticked("remove")
	fields := merge.Fields{Title: &title, Description: &text, TargetBranch: &target, Squash: &squash, RemoveSource: &remove}
	if v.ticked("lends") { // the form has it
		open := v.ticked("allow_collaboration")
		fields.AllowCollaboration = &open
	}
	if v.ticked("planned") {
		v.mergePlan(f, &fields, "labels", "assignees", "reviewers", "milestone")
	}
	return fields
}

// mergePlan reads parts of what is planned.
func (v *visit) mergePlan(f *form, to *merge.Fields, parts ...string) {
	var issue plan.IssueFields
	for _, part := range parts {
		if part == "reviewers" {
			list := v.ids("reviewer_ids")
			to.Reviewers = &list
			continue
		}
		v.planFields(f, &issue, part)
	}
	to.Labels.Names, to.Assignees, to.Milestone = issue.Labels, issue.Assignees, issue.Milestone
}
