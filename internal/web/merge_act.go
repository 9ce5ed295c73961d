package web

import (
	"strings"
	"unicode"

	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/project"
)

func (w *Web) mergeActions() {
	w.projectPage("POST merge_requests/{id}/merge", signedIn, w.acceptMerge)
	w.projectPage("POST merge_requests/{id}/cancel_auto_merge", signedIn, w.cancelAutoMerge)
	w.projectPage("POST merge_requests/{id}/rebase", signedIn, w.rebaseMerge)
	w.projectPage("POST merge_requests/{id}/context_commits", signedIn, w.addContextCommits)
	w.projectPage("POST merge_requests/{id}/context_commits/delete", signedIn, w.deleteContextCommit)
}

// addContextCommits adds the commits of a form, separated by spaces or commas.
func (w *Web) addContextCommits(v *visit, ref project.Ref) error {
	names := strings.FieldsFunc(v.text("commits"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	return w.contextAct(v, ref, "The context commits were added.", func(iid int64) error {
		_, _, err := w.Merges.AddContextCommits(v, v.actor, ref, iid, names)
		return err
	})
}

func (w *Web) deleteContextCommit(v *visit, ref project.Ref) error {
	return w.contextAct(v, ref, "The context commit was removed.", func(iid int64) error {
		return w.Merges.DeleteContextCommits(v, v.actor, ref, iid, []string{v.text("commit")})
	})
}

// contextAct changes the context commits of a merge request and returns to its
// commits.
func (w *Web) contextAct(v *visit, ref project.Ref, done string, act func(iid int64) error) error {
	p, err := w.mergeRequest(v, ref)
	if err != nil {
		return err
	}
	return v.redirectWithFlash(act(p.IID), done, p.Path+"/commits")
}

// acceptMerge merges, now or when the pipeline has succeeded. The head that the
// user saw is sent along, so that unseen commits are not merged.
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
	return w.actOn(v, ref, w.mergeKind(), done, func(iid int64) error {
		_, err := w.Merges.Merge(v, v.actor, ref, iid, a)
		if errs.Is(err, errs.KindConflict) {
			err = errs.Conflict("New commits were pushed to the source branch. Review them, then merge again.").Because(err)
		}
		return err
	})
}

func (w *Web) cancelAutoMerge(v *visit, ref project.Ref) error {
	return w.actOn(v, ref, w.mergeKind(), "Auto-merge was canceled.", func(iid int64) error {
		_, err := w.Merges.CancelAuto(v, v.actor, ref, iid)
		return err
	})
}

func (w *Web) rebaseMerge(v *visit, ref project.Ref) error {
	skip := v.ticked("skip_ci")
	return w.actOn(v, ref, w.mergeKind(), "The rebase was started.", func(iid int64) error { return w.Merges.Rebase(v, v.actor, ref, iid, skip) })
}

// setDraft marks a merge request as draft or as ready.
func (w *Web) setDraft(draft bool) func(*visit, project.Ref, int64) error {
	return func(v *visit, ref project.Ref, iid int64) error {
		m, err := w.Merges.Get(v, v.actor, ref, iid)
		if err != nil {
			return err
		}
		title := m.Titled(draft)
		_, err = w.Merges.Update(v, v.actor, ref, iid, merge.Fields{Fields: plan.Fields{Title: &title}})
		return err
	}
}
