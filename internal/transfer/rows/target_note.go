package rows

import (
	"context"
	"encoding/json"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/plan/diffnote"
	"svc/internal/transfer/archive"
)

func (t *Target) putMergeRequest(ctx context.Context, tx *db.Tx, r *archive.MergeRequestRow) error {
	wrong := errs.Fields{}
	t.issuable(wrong, &r.IssuableRow, "opened", "closed", "merged")
	for name, branch := range map[string]string{"source_branch": r.SourceBranch, "target_branch": r.TargetBranch} {
		if git.CheckRef(git.Heads+branch) != nil {
			wrong.Set(name, "is invalid")
		}
	}
	checkSHA(wrong, "sha", r.SHA, r.MergeCommitSHA, r.SquashCommitSHA)
	checkSHA(wrong, "commits", r.Commits...)
	for _, v := range r.Versions {
		checkSHA(wrong, "versions", v.HeadSHA, v.BaseSHA, v.StartSHA, v.WasSHA)
		inRange(wrong, "versions", v.Files, 0, 1<<31)
		if v.HeadSHA == "" {
			wrong.Set("versions", "have no head")
		}
	}
	for _, c := range r.ContextCommits {
		checkSHA(wrong, "context_commits", c.SHA)
	}
	for _, a := range r.Approvals {
		checkSHA(wrong, "approvals", a.SHA)
	}
	for _, v := range r.Reviewers {
		among(wrong, "reviewers", v.State, string(merge.Unreviewed), string(merge.ReviewStarted), string(merge.Reviewed), string(merge.RequestedChanges), string(merge.Approved), string(merge.Unapproved))
	}
	if r.SHA == "" {
		wrong.Set("sha", "can't be blank")
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	if (r.MergedAt != nil) != (r.State == "merged") {
		if r.MergedAt = nil; r.State == "merged" {
			r.MergedAt = &r.UpdatedAt
		}
	}
	mergedBy, err := t.find(r.MergedBy)
	if err != nil {
		return err
	}
	var id int64
	err = t.putIssuable(ctx, tx, plan.MergeKind, &r.IssuableRow, func(i *issuable) error {
		err := insertMergeRequest(ctx, tx, r, i, t.pastOrNull(r.MergedAt), mergedBy, t.pastOrNull(r.PreparedAt))
		id = i.id
		return err
	})
	if err != nil {
		return err
	}
	if err := t.putReview(ctx, tx, id, r); err != nil {
		return err
	}
	for _, v := range r.Versions {
		author, err := t.find(v.Author)
		if err != nil {
			return err
		}
		if err := insertVersion(ctx, tx, id, v, author, t.past(v.CreatedAt)); err != nil {
			return err
		}
	}
	for _, sha := range r.Commits {
		if err := insertCommit(ctx, tx, id, sha); err != nil {
			return err
		}
	}
	for _, c := range r.ContextCommits {
		if err := insertContextCommit(ctx, tx, id, c.SHA, t.past(c.CreatedAt)); err != nil {
			return err
		}
	}
	for _, n := range r.Issues {
		issue, err := t.objectID(ctx, tx, plan.IssueKind, n.IID)
		if err != nil {
			return err
		}
		if issue == 0 {
			t.lost[lostRow]++
			continue
		}
		if err := insertNamedIssue(ctx, tx, id, issue, n.Closes); err != nil {
			return err
		}
	}
	for _, iid := range r.BlockedBy {
		// Of two that block each other one is not there yet: it blocks nothing.
		other, err := t.objectID(ctx, tx, plan.MergeKind, iid)
		if err != nil {
			return err
		}
		if other == 0 || other == id {
			t.lost["merge_request_block"]++
			continue
		}
		if err := insertBlock(ctx, tx, id, other, t.past(r.CreatedAt)); err != nil {
			return err
		}
	}
	return nil
}

// putReview writes the reviewers, approvals and committers of a merge request.
func (t *Target) putReview(ctx context.Context, tx *db.Tx, id int64, r *archive.MergeRequestRow) error {
	for _, v := range r.Reviewers {
		user, err := t.need(v.User)
		if err != nil {
			return err
		}
		if user == nil {
			continue
		}
		if err := insertReviewer(ctx, tx, id, *user, v.State, t.past(v.CreatedAt)); err != nil {
			return err
		}
	}
	for _, a := range r.Approvals {
		user, err := t.need(a.User)
		if err != nil {
			return err
		}
		if user == nil {
			continue
		}
		if err := insertApproval(ctx, tx, id, *user, a.SHA, t.past(a.CreatedAt)); err != nil {
			return err
		}
	}
	for _, c := range r.ChangeRequests {
		user, err := t.need(c.User)
		if err != nil {
			return err
		}
		if user == nil {
			continue
		}
		if err := insertChangeRequest(ctx, tx, id, *user, c.Bypassed, t.past(c.CreatedAt)); err != nil {
			return err
		}
	}
	for _, p := range r.Committers {
		user, err := t.find(p)
		if err != nil {
			return err
		}
		if user == nil {
			continue
		}
		if err := insertCommitter(ctx, tx, id, *user); err != nil {
			return err
		}
	}
	return nil
}

// on returns what a note or event is on. ok is false if it is not there.
func (t *Target) on(ctx context.Context, tx *db.Tx, n archive.Noteable) (on plan.Target, iid int64, ok bool, err error) {
	given := 0
	for _, v := range []struct {
		number int64
		kind   plan.Kind
	}{{n.Issue, plan.IssueKind}, {n.MergeRequest, plan.MergeKind}, {n.Snippet, snippetKind}} {
		if v.number != 0 {
			given++
			on.Kind, iid = v.kind, v.number
		}
	}
	if given != 1 {
		return on, 0, false, errs.Invalid("it is not on one issue, merge request or snippet")
	}
	if on.Kind == snippetKind {
		on.ID = t.Snippet(n.Snippet)
		return on, on.ID, on.ID != 0, nil
	}
	if t.noteable != n {
		if t.noteableID, err = t.objectID(ctx, tx, on.Kind, iid); err != nil {
			return on, 0, false, err
		}
		t.noteable = n
	}
	on.ID = t.noteableID
	return on, iid, on.ID != 0, nil
}

func (t *Target) putNote(ctx context.Context, tx *db.Tx, r *archive.NoteRow) error {
	on, iid, ok, err := t.on(ctx, tx, r.Noteable)
	if err != nil {
		return err
	}
	wrong := errs.Fields{}
	text(wrong, "body", r.Body)
	among(wrong, "type", r.Type, "", plan.DiscussionNote, plan.DiffNote)
	checkSHA(wrong, "commit_id", r.CommitSHA)
	if !hexID.MatchString(r.Discussion) {
		wrong.Set("discussion", "is invalid")
	}
	if !eventKey.MatchString(r.System) {
		wrong.Set("system", "is invalid")
	}
	for _, s := range r.Suggestions {
		inRange(wrong, "suggestions", s.FromLine, 0, 1<<31)
		inRange(wrong, "suggestions", s.ToLine, s.FromLine, 1<<31)
		text(wrong, "suggestions", s.FromContent)
		text(wrong, "suggestions", s.ToContent)
		checkSHA(wrong, "suggestions", s.CommitSHA)
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	at, err := position(r.Position)
	if err != nil {
		return err
	}
	current, err := position(r.CurrentPosition)
	if err != nil {
		return err
	}
	if !ok {
		t.lost["note"]++
		return nil
	}
	full, err := isFull(ctx, tx, on, r.Discussion)
	if err != nil {
		return err
	}
	if full {
		return errs.Invalid("a thread has more than %d comments", maxThread)
	}
	source, ok, err := t.source(ctx, tx, r)
	if err != nil {
		return err
	}
	if !ok {
		t.lost["note"]++
		return nil
	}
	n := &newNote{projectID: t.Draft.ID, on: on, iid: iid, position: at, current: current, created: t.past(r.CreatedAt), updated: t.past(r.UpdatedAt), resolved: t.pastOrNull(r.ResolvedAt)}
	if r.System == "" {
		n.author, err = t.signed(r.Author, n.created, &r.Body)
	} else {
		n.author, err = t.orGhost(r.Author)
	}
	if err != nil {
		return err
	}
	if n.resolvedBy, err = t.find(r.ResolvedBy); err != nil {
		return err
	}
	if n.resolved != nil && n.resolvedBy == nil {
		n.resolvedBy = &t.GhostID
	}
	id, err := insertNote(ctx, tx, r, n)
	if err != nil {
		return err
	}
	if r.System == "" && on.Kind != snippetKind {
		t.comments[on]++
	}
	for i, s := range r.Suggestions {
		if err := insertSuggestion(ctx, tx, id, i, s, t.pastOrNull(s.AppliedAt)); err != nil {
			return err
		}
	}
	if source != nil {
		if err := insertCrossReference(ctx, tx, on, t.Draft.ID, *source, id); err != nil {
			return err
		}
	}
	awards, _, _, err := t.reactions(r.AwardEmoji)
	if err != nil {
		return err
	}
	return insertAwards(ctx, tx, plan.Target{Kind: plan.NoteKind, ID: id}, awards)
}

// maxThread is the maximum number of notes in a discussion, which is always read whole.
const maxThread = 500

// sourceOf is where something is mentioned.
type sourceOf struct {
	kind plan.Kind
	id   int64
	sha  string
}

// source returns where the target of a note is mentioned, if the note is about that.
// ok is false if it is not there.
func (t *Target) source(ctx context.Context, tx *db.Tx, r *archive.NoteRow) (s *sourceOf, ok bool, err error) {
	if r.System != crossReference {
		return nil, true, nil
	}
	if r.Source == nil {
		return nil, false, nil
	}
	s = &sourceOf{}
	switch {
	case r.Source.Issue != 0:
		s.kind = plan.IssueKind
		s.id, err = t.objectID(ctx, tx, s.kind, r.Source.Issue)
	case r.Source.MergeRequest != 0:
		s.kind = plan.MergeKind
		s.id, err = t.objectID(ctx, tx, s.kind, r.Source.MergeRequest)
	default:
		wrong := errs.Fields{}
		checkSHA(wrong, "source", r.Source.Commit)
		s.kind, s.sha = plan.CommitKind, r.Source.Commit
		return s, s.sha != "", wrong.Err()
	}
	return s, s.id != 0, err
}

// position checks the position of a note in a diff, and returns it as it is stored.
func position(given json.RawMessage) (string, error) {
	if len(given) == 0 || string(given) == "null" {
		return "", nil
	}
	p, err := diffnote.DecodePosition(string(given))
	if err != nil {
		return "", errs.InvalidField("position", "is invalid").Because(err)
	}
	wrong := errs.Fields{}
	checkSHA(wrong, "position", p.BaseSHA, p.StartSHA, p.HeadSHA)
	among(wrong, "position", string(p.Type), string(diffnote.OnText), string(diffnote.OnFile), string(diffnote.OnImage))
	texts := []string{p.OldPath, p.NewPath, p.Code}
	lines := []*int64{p.OldLine, p.NewLine}
	if p.Range != nil {
		for _, point := range []diffnote.LinePoint{p.Range.Start, p.Range.End} {
			texts, lines = append(texts, point.Code, point.Type), append(lines, point.OldLine, point.NewLine)
		}
	}
	for _, text := range texts {
		short(wrong, "position", text, 4096)
	}
	for _, line := range lines {
		if line != nil {
			inRange(wrong, "position", *line, 0, 1<<31)
		}
	}
	if err := wrong.Err(); err != nil {
		return "", err
	}
	return p.Encode()
}

func (t *Target) putComment(ctx context.Context, tx *db.Tx, r *archive.CommentRow) error {
	wrong := errs.Fields{}
	checkSHA(wrong, "sha", r.SHA)
	if r.SHA == "" {
		wrong.Set("sha", "can't be blank")
	}
	text(wrong, "note", r.Note)
	if !hexID.MatchString(r.Discussion) {
		wrong.Set("discussion", "is invalid")
	}
	short(wrong, "path", r.Path, 4096)
	short(wrong, "path", r.OldPath, 4096)
	inRange(wrong, "line", r.Line, 0, 1<<31)
	among(wrong, "line_type", r.LineType, "", "new", "old")
	if err := wrong.Err(); err != nil {
		return err
	}
	author, err := t.signed(r.Author, t.past(r.CreatedAt), &r.Note)
	if err != nil {
		return err
	}
	return insertComment(ctx, tx, t.Draft.ID, r, author, t.past(r.CreatedAt), t.past(r.UpdatedAt))
}

func (t *Target) putEvent(ctx context.Context, tx *db.Tx, r *archive.EventRow) error {
	on, _, ok, err := t.on(ctx, tx, r.Noteable)
	if err != nil {
		return err
	}
	wrong := errs.Fields{}
	among(wrong, "kind", r.Kind, string(plan.LabelEvent), string(plan.StateEvent), string(plan.MilestoneEvent), string(plan.WeightEvent))
	among(wrong, "action", r.Action, "add", "remove", "closed", "reopened", "merged", "")
	if r.Weight != nil {
		inRange(wrong, "weight", *r.Weight, 0, 1<<31)
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	user, err := t.find(r.User)
	if err != nil {
		return err
	}
	var label *int64
	if r.Label != "" {
		id, err := t.label(ctx, tx, r.Label)
		if err != nil {
			return err
		}
		if id != 0 {
			label = &id
		}
	}
	milestone, err := t.milestone(ctx, tx, r.Milestone)
	if err != nil {
		return err
	}
	if !ok || on.Kind == snippetKind || r.Kind == string(plan.MilestoneEvent) && milestone == nil {
		t.lost["resource_event"]++
		return nil
	}
	return insertEvent(ctx, tx, t.Draft.ID, on, r, user, label, milestone, t.past(r.CreatedAt))
}
