package web

import (
	"context"
	"fmt"
	"html/template"
	"net/url"
	"slices"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/markup"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/plan/diffnote"
	"svc/internal/plan/listing"
	"svc/internal/project"
)

func (w *Web) reviewPages() {
	const at = "merge_requests/{id}/"
	w.projectPage("POST "+at+"drafts/publish", signedIn, w.publishReview)
	w.projectPage("POST "+at+"drafts/discard", signedIn, w.discardReview)
	w.projectPage("GET "+at+"drafts/{draft}/edit", signedIn, w.editDraft)
	w.projectPage("POST "+at+"drafts/{draft}", signedIn, w.updateDraft)
	w.projectPage("POST "+at+"drafts/{draft}/delete", signedIn, w.deleteDraft)
	w.projectPage("POST "+at+"drafts/{draft}/publish", signedIn, w.publishDraft)
	w.projectPage("POST "+at+"suggestions", signedIn, w.applySuggestions)
	w.projectPage("POST "+at+"reviewers/{user}/request", signedIn, w.requestReview)
	w.projectPage("POST "+at+"bypass", signedIn, w.bypassChanges)
	w.conflictPages()
	w.pickPages()
}

// reviewView is the review form of a merge request.
type reviewView struct {
	May     bool // publish a review
	Drafts  int
	Changes bool // request changes
	Applies bool // apply suggestions
	Approve bool
	Confirm bool   // an approval needs the password
	SHA     string // the head that is approved
}

// Label is the text of the button that adds a comment to the review; empty for
// users who may not comment.
func (r reviewView) Label() string {
	switch {
	case !r.May:
		return ""
	case r.Drafts > 0:
		return "Add to review"
	}
	return "Start a review"
}

// maxPending is the maximum number of draft notes on a page, which is the
// maximum that a user can have.
const maxPending = 500

// fillReview reads the review of the user: their draft notes and permissions.
func (w *Web) fillReview(v *visit, p *mergePage, can merge.Can) error {
	on := p.MergeRequest.Noteable(v.actor, p.P.Project)
	if p.Review.May = on.CanComment(v.actor); v.actor.Anonymous() {
		return nil
	}
	page, err := w.Merges.Drafts(v, v.actor, p.Place.Ref, p.IID, listing.Sort{}, db.Paging{Limit: maxPending})
	if err != nil {
		return err
	}
	p.drafts, p.Review.Drafts, p.Review.Changes = page.Items, len(page.Items), can.RequestChanges
	if p.MergeRequest.State == merge.Opened && p.Review.May {
		p.Review.Applies, err = w.Merges.CanPush(v, v.actor, p.MergeRequest)
		v.applies = p.Review.Applies
		if err != nil {
			return err
		}
		a, err := w.Merges.ApprovalsOf(v, v.actor, p.P.Project, p.MergeRequest)
		if err != nil {
			return err
		}
		p.Review.Approve, p.Review.Confirm, p.Review.SHA = a.CanApprove, a.Password, p.MergeRequest.Head
	}
	return err
}

// draftView is a draft note as its author sees it.
type draftView struct {
	*merge.DraftNote
	Text  template.HTML
	Where string // in the diff
	There string // address of that
	At    string // address of the merge request
}

// drafts renders draft notes.
func (w *Web) drafts(v *visit, p *mergePage, list []*merge.DraftNote) ([]draftView, error) {
	texts := make([]plan.Text, len(list))
	for i, d := range list {
		texts[i].Source = d.Body
	}
	html, err := w.Plan.RenderAll(v, v.actor, &p.Place.Ref, texts...)
	if err != nil {
		return nil, err
	}
	views := make([]draftView, len(list))
	for i, d := range list {
		views[i] = draftView{DraftNote: d, Text: template.HTML(html[i]), At: p.Path} // markup has sanitized it
		if d.Position != nil {
			views[i].Where, views[i].There = positionText(d.Position), p.Path+"/diffs?"+url.Values{"file": {d.Position.NewPath}}.Encode()
		}
	}
	return views, nil
}

// showDrafts adds the draft notes to the discussions of the overview: replies to
// their threads, the others at the end.
func (w *Web) showDrafts(v *visit, p *mergePage) error {
	p.Discussions.Review, p.Discussions.Follow = p.Review.Label(), p.Box.FollowUp
	views, err := w.drafts(v, p, p.drafts)
	if err != nil {
		return err
	}
	for _, d := range views {
		at := slices.IndexFunc(p.Discussions.Threads, func(t thread) bool { return t.ID == d.Discussion })
		if at < 0 {
			p.Discussions.Pending = append(p.Discussions.Pending, d)
			continue
		}
		p.Discussions.Threads[at].Drafts = append(p.Discussions.Threads[at].Drafts, d)
	}
	return nil
}

// addDraft adds a comment to the review of the user.
func (w *Web) addDraft(v *visit, ref project.Ref, on plan.Noteable, c commentable, action string, n merge.NewDraft) error {
	d, err := w.Merges.CreateDraft(v, v.actor, ref, on.IID, n)
	if err != nil {
		return w.writeAgain(v, on, c, writing{Action: action, Review: true}, err)
	}
	return v.redirect(fmt.Sprintf("%s#draft_%d", targetPath(on, c), d.ID))
}

// addDiffDraft adds a comment on the changes to the review of the user.
func (w *Web) addDiffDraft(v *visit, p *mergePage, version int64, n merge.NewDraft) error {
	d, err := w.Merges.CreateDraft(v, v.actor, p.Place.Ref, p.IID, n)
	if err != nil {
		return w.refuseDiffNote(v, p, version, err)
	}
	to := fmt.Sprintf("%s/diffs?diff_id=%d#draft_%d", p.Path, version, d.ID)
	if v.param("fragment") == "" {
		return v.redirect(to)
	}
	if err := w.fillReview(v, p, p.MergeRequest.Can(v.actor, p.P.Project)); err != nil {
		return err
	}
	return w.showStored(v, p, to)
}

// placedDraft is a draft note with its position in the diff that is shown.
type placedDraft struct {
	draftView
	at *diffnote.Position
}

// placeDrafts places the draft notes of the user in the version that is shown.
func (t *lineThreads) placeDrafts(p *mergePage, found *merge.Contents) error {
	t.drafts, t.reply = map[string][]placedDraft{}, map[string][]draftView{}
	views, err := t.w.drafts(t.v, p, p.drafts)
	if err != nil {
		return err
	}
	var list []draftView
	var at []*diffnote.Position
	for _, d := range views {
		d.There = "" // it is here
		switch {
		case d.Discussion != "":
			t.reply[d.Discussion] = append(t.reply[d.Discussion], d)
		case d.Position != nil:
			list, at = append(list, d), append(at, d.Position)
		}
	}
	if len(list) > 0 {
		traced, err := t.w.Merges.Trace(t.v, found, at)
		if err != nil {
			return err
		}
		for i, d := range list {
			if traced[i] != nil && (!t.NewSide || traced[i].NewLine != nil || traced[i].Type != diffnote.OnText) {
				d.Where = ""
				t.drafts[traced[i].NewPath] = append(t.drafts[traced[i].NewPath], placedDraft{d, traced[i]})
			}
		}
	}
	if t.v.param("fragment") != "" {
		t.Bar, err = t.w.part("project/merge", "reviewbar", &frame{visit: t.v, Now: t.w.Now(), Page: *p})
	}
	return err
}

// drawDrafts draws the draft notes of a file, like lineThreads.of.
func (t *lineThreads) drawDrafts(path string, lines bool, below *lineNotes, above *template.HTML) {
	for _, d := range t.drafts[path] {
		if !lines && d.at.Type == diffnote.OnText {
			continue
		}
		html, err := t.w.part("project/merge", "draft", pair{&frame{visit: t.v, Now: t.w.Now()}, d.draftView})
		if err != nil {
			t.err = err
			return
		}
		line := t.lineOf(d.at.OldLine, d.at.NewLine)
		html = template.HTML(fmt.Sprintf(`<div class="thread panel" data-from="%s" data-to="%[1]s">%s</div>`, line, html))
		if d.at.Type == diffnote.OnText {
			below.at[line] += html
		} else {
			*above += html
		}
	}
}

// publishReview publishes the draft notes of the user.
func (w *Web) publishReview(v *visit, ref project.Ref) error {
	r := merge.Review{Summary: v.text("note"), State: merge.Reviewed}
	done := "Your review was published."
	switch v.text("state") {
	case "approved":
		r.State, r.Approve, done = merge.Approved, merge.ApproveOptions{SHA: v.text("sha"), Password: v.prose("password")}, "Your review was published. You approved the merge request."
	case "requested_changes":
		r.State, done = merge.RequestedChanges, "Your review was published. The merge is blocked until you approve."
	case "", "reviewed":
	default:
		return errs.Invalid("Choose how to finish the review.")
	}
	return w.actOn(v, ref, w.mergeKind(), "", func(iid int64) error {
		out, err := w.Merges.PublishReview(v, v.actor, ref, iid, r)
		return v.flashPublished(done, out, err)
	})
}

// flashPublished shows that draft notes were published, or what their quick
// actions did.
func (v *visit) flashPublished(done string, out *plan.Outcome, err error) error {
	switch {
	case err != nil:
		return err
	case out != nil:
		v.flashCommands(out)
	default:
		v.setFlash("ok", done)
	}
	return nil
}

func (w *Web) discardReview(v *visit, ref project.Ref) error {
	return w.actOn(v, ref, w.mergeKind(), "Your pending comments were discarded.", func(iid int64) error { return w.Merges.DiscardDrafts(v, v.actor, ref, iid) })
}

// editDraft shows the form of a draft note.
func (w *Web) editDraft(v *visit, ref project.Ref) error {
	on, d, err := w.draft(v, ref)
	if err != nil {
		return err
	}
	return w.showWriting(v, on, w.mergeKind().commentable, draftForm(on, w.mergeKind().commentable, d, filled("note", d.Body)))
}

func draftForm(on plan.Noteable, c commentable, d *merge.DraftNote, f form) writing {
	return writing{Head: "Edit pending comment", Action: fmt.Sprintf("%s/drafts/%d", targetPath(on, c), d.ID), Form: f}
}

// draft finds the draft note that an address names.
func (w *Web) draft(v *visit, ref project.Ref) (plan.Noteable, *merge.DraftNote, error) {
	on, err := w.mergeKind().find(v, ref)
	if err != nil {
		return on, nil, err
	}
	id, err := v.number("draft")
	if err != nil {
		return on, nil, err
	}
	d, err := w.Merges.Draft(v, v.actor, ref, on.IID, id)
	return on, d, err
}

func (w *Web) updateDraft(v *visit, ref project.Ref) error {
	on, d, err := w.draft(v, ref)
	if err != nil {
		return err
	}
	c, body := w.mergeKind().commentable, v.text("note")
	p := draftForm(on, c, d, v.sent())
	if v.ticked("preview") {
		p.Looks = true
		return w.showWriting(v, on, c, p)
	}
	if _, err := w.Merges.UpdateDraft(v, v.actor, ref, on.IID, d.ID, merge.DraftChange{Body: &body}); err != nil {
		return w.writeAgain(v, on, c, p, err)
	}
	return v.redirect(fmt.Sprintf("%s#draft_%d", targetPath(on, c), d.ID))
}

func (w *Web) deleteDraft(v *visit, ref project.Ref) error {
	return w.onDraft(v, ref, "The pending comment was deleted.", w.Merges.DeleteDraft)
}

func (w *Web) publishDraft(v *visit, ref project.Ref) error {
	publish := func(ctx context.Context, by actor.Actor, ref project.Ref, iid, id int64) error {
		out, err := w.Merges.PublishDraft(ctx, by, ref, iid, id)
		return v.flashPublished("The comment was published.", out, err)
	}
	return w.onDraft(v, ref, "", publish)
}

func (w *Web) onDraft(v *visit, ref project.Ref, done string, do func(context.Context, actor.Actor, project.Ref, int64, int64) error) error {
	id, err := v.number("draft")
	if err != nil {
		return err
	}
	return w.actOn(v, ref, w.mergeKind(), done, func(iid int64) error { return do(v, v.actor, ref, iid, id) })
}

// suggestionView is a suggestion as it is shown in a note.
type suggestionView struct {
	*diffnote.Suggestion
	Old, New []suggestedLine
	At       string // address of the merge request
	Applies  bool   // the user may apply it
	Token    string
}

// suggestedLine is a line of a suggestion with its number.
type suggestedLine struct {
	Number int64
	Text   string
}

// Lines names the lines that the suggestion replaces.
func (s suggestionView) Lines() string {
	if s.FromLine == s.ToLine {
		return fmt.Sprintf("line %d", s.FromLine)
	}
	return fmt.Sprintf("lines %d to %d", s.FromLine, s.ToLine)
}

func numbered(text string, from int64) (list []suggestedLine) {
	for i, line := range diffnote.SplitLines([]byte(text)) {
		list = append(list, suggestedLine{from + int64(i), shown(line[:max(0, len(line)-1)])})
	}
	return list
}

// suggestion returns the function that draws the suggestions of a note; nil for a
// note without.
func (w *Web) suggestion(v *visit, at string, n *plan.Note) func(int) string {
	if len(n.Suggestions) == 0 {
		return nil
	}
	return func(number int) string {
		i := slices.IndexFunc(n.Suggestions, func(s *diffnote.Suggestion) bool { return s.Number == number })
		if i < 0 { // it could not be stored
			if all := markup.Suggestions(v, n.Body); number < len(all) {
				return markup.Plain(all[number].Content)
			}
			return ""
		}
		one := n.Suggestions[i]
		view := suggestionView{Suggestion: one, Old: numbered(one.FromContent, one.FromLine), New: numbered(one.ToContent, one.FromLine), At: at}
		if view.Applies = one.Appliable && v.applies; view.Applies {
			view.Token = v.csrf()
		}
		html, err := w.part("project/merge", "suggestion", view)
		if err != nil {
			return markup.Plain(one.ToContent)
		}
		return string(html)
	}
}

// applySuggestions applies one suggestion, or the selected ones.
func (w *Web) applySuggestions(v *visit, ref project.Ref) error {
	ids := v.ids("ids")
	done := "The suggestion was applied."
	if len(ids) > 1 {
		done = fmt.Sprintf("%d suggestions were applied.", len(ids))
	}
	return w.actOn(v, ref, w.mergeKind(), done, func(iid int64) error {
		if len(ids) == 0 {
			return errs.Invalid("Select suggestions to apply.")
		}
		_, err := w.Merges.ApplySuggestions(v, v.actor, ids, v.text("message"))
		return err
	})
}

func (w *Web) requestReview(v *visit, ref project.Ref) error {
	user, err := v.number("user")
	if err != nil {
		return err
	}
	return w.actOn(v, ref, w.mergeKind(), "A review was requested.", func(iid int64) error { return w.Merges.RequestReview(v, v.actor, ref, iid, user) })
}

func (w *Web) bypassChanges(v *visit, ref project.Ref) error {
	return w.actOn(v, ref, w.mergeKind(), "The requested changes are bypassed.", func(iid int64) error { return w.Merges.BypassChangeRequests(v, v.actor, ref, iid) })
}

// reviewerView is a reviewer beside the description.
type reviewerView struct {
	merge.Reviewer
	Token string // of the form that requests another review; empty if that is not possible
}

// Icon is the icon of the state.
func (r reviewerView) Icon() string {
	switch r.State {
	case merge.Approved:
		return "s-success"
	case merge.RequestedChanges:
		return "s-failed"
	case merge.Reviewed, merge.Unapproved:
		return "talk"
	case merge.ReviewStarted:
		return "pen"
	}
	return "clock"
}

// Word is the state in words.
func (r reviewerView) Word() string {
	switch r.State {
	case merge.Approved:
		return "Approved"
	case merge.RequestedChanges:
		return "Requested changes"
	case merge.Reviewed:
		return "Reviewed"
	case merge.Unapproved:
		return "Revoked the approval"
	case merge.ReviewStarted:
		return "Review in progress"
	}
	return "Awaiting review"
}

// fillReviewers reads the reviewers with their states.
func (w *Web) fillReviewers(v *visit, p *mergePage, can merge.Can) error {
	list, err := w.Merges.Reviews(v, p.MergeRequest)
	for _, r := range list {
		one := reviewerView{Reviewer: r}
		if can.RequestReview && p.MergeRequest.State == merge.Opened && r.State != merge.Unreviewed && r.State != merge.ReviewStarted {
			one.Token = v.csrf()
		}
		p.Reviews = append(p.Reviews, one)
	}
	return err
}
