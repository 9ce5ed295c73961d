package api

import (
	"svc/internal/bind"
	"svc/internal/merge"
	"svc/internal/plan/diffnote"
	"svc/internal/plan/listing"
)

func (a *API) draftNoteRoutes() {
	a.tag("Draft notes")
	const at = "/projects/{id}/merge_requests/{merge_request_iid}/draft_notes"
	const one = at + "/{draft_note_id}"
	handle(a, "GET "+at, readAPI, a.listDraftNotes, summary("List all merge request draft notes"))
	handle(a, "POST "+at, writeAPI, a.createDraftNote, summary("Create a draft note"))
	handle(a, "POST "+at+"/bulk_publish", writeAPI, a.publishReview, summary("Publish all pending draft notes"))
	handle(a, "GET "+one, readAPI, a.getDraftNote, summary("Get a single draft note"))
	handle(a, "PUT "+one, writeAPI, a.updateDraftNote, summary("Update a draft note"))
	handle(a, "DELETE "+one, writeAPI, a.deleteDraftNote, summary("Delete a draft note"))
	handle(a, "PUT "+one+"/publish", writeAPI, a.publishDraftNote, summary("Publish a draft note"))
}

type draftNoteJSON struct {
	ID                int64             `json:"id"`
	AuthorID          int64             `json:"author_id"`
	MergeRequestID    int64             `json:"merge_request_id"`
	ResolveDiscussion bool              `json:"resolve_discussion"`
	DiscussionID      *string           `json:"discussion_id"`
	Note              string            `json:"note"`
	CommitID          *string           `json:"commit_id"`
	LineCode          *string           `json:"line_code"`
	Position          draftPositionJSON `json:"position"`
}

// draftPositionJSON is the position of a draft note. Its fields except position_type
// are null for a note that is not on a diff.
type draftPositionJSON struct {
	BaseSHA  *string        `json:"base_sha"`
	StartSHA *string        `json:"start_sha"`
	HeadSHA  *string        `json:"head_sha"`
	OldPath  *string        `json:"old_path"`
	NewPath  *string        `json:"new_path"`
	Type     string         `json:"position_type"`
	OldLine  *int64         `json:"old_line"`
	NewLine  *int64         `json:"new_line"`
	Range    *lineRangeJSON `json:"line_range"`
	Width    *int64         `json:"width,omitempty"`
	Height   *int64         `json:"height,omitempty"`
	X        *float64       `json:"x,omitempty"`
	Y        *float64       `json:"y,omitempty"`
}

func toDraftNote(d *merge.DraftNote) draftNoteJSON {
	out := draftNoteJSON{
		ID: d.ID, AuthorID: d.AuthorID, MergeRequestID: d.RequestID, ResolveDiscussion: d.Resolve, DiscussionID: textOrNull(d.Discussion), Note: d.Body,
		CommitID: textOrNull(d.CommitSHA), Position: draftPositionJSON{Type: string(diffnote.OnText)},
	}
	if p := toPosition(d.Position); p != nil {
		out.LineCode = textOrNull(d.Position.Code)
		out.Position = draftPositionJSON{
			textOrNull(p.BaseSHA), textOrNull(p.StartSHA), textOrNull(p.HeadSHA), textOrNull(p.OldPath), textOrNull(p.NewPath), p.Type, p.OldLine, p.NewLine, p.Range,
			p.Width, p.Height, p.X, p.Y,
		}
	}
	return out
}

type listDraftNotesParams struct {
	mergeParams
	OrderBy string `param:"order_by" enum:"id,created_at" default:"id"`
	Sort    string `param:"sort" enum:"asc,desc" default:"asc"`
	pageParams
}

// listDraftNotes: https://docs.gitlab.com/api/draft_notes/#list-all-merge-request-draft-notes
func (a *API) listDraftNotes(c *call, p listDraftNotesParams) (page[draftNoteJSON], error) {
	order := listing.Sort{By: p.OrderBy, Desc: p.Sort == "desc"}
	return offsetList(p.pageParams, toDraftNote)(a.Merges.Drafts(c, c.actor, p.Project, p.Request, order, p.paging()))
}

type createDraftNoteParams struct {
	mergeParams
	Note       string          `param:"note,required,nonblank"`
	CommitID   string          `param:"commit_id" doc:"SHA of the commit that the note is about."`
	Discussion string          `param:"in_reply_to_discussion_id" doc:"ID of the discussion that the note replies to."`
	Resolve    bool            `param:"resolve_discussion" doc:"Resolve the discussion when the note is published."`
	Position   *positionParams `param:"position" doc:"Position in the diff. A reply has the position of its discussion."`
}

// createDraftNote: https://docs.gitlab.com/api/draft_notes/#create-a-draft-note
func (a *API) createDraftNote(c *call, p createDraftNoteParams) (draftNoteJSON, error) {
	return presentAs(toDraftNote)(a.Merges.CreateDraft(c, c.actor, p.Project, p.Request, merge.NewDraft{
		Body: p.Note, Discussion: p.Discussion, Resolve: p.Resolve, CommitSHA: p.CommitID, Position: p.Position.position(),
	}))
}

type draftNoteParams struct {
	mergeParams
	Draft int64 `param:"draft_note_id"`
}

// getDraftNote: https://docs.gitlab.com/api/draft_notes/#get-a-single-draft-note
func (a *API) getDraftNote(c *call, p draftNoteParams) (draftNoteJSON, error) {
	return presentAs(toDraftNote)(a.Merges.Draft(c, c.actor, p.Project, p.Request, p.Draft))
}

type updateDraftNoteParams struct {
	draftNoteParams
	Note     *string         `param:"note,nonblank"`
	Position *positionParams `param:"position" doc:"Position in the diff. No effect for a reply."`
}

func (updateDraftNoteParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("note", "position")}
}

// updateDraftNote: https://docs.gitlab.com/api/draft_notes/#update-a-draft-note
func (a *API) updateDraftNote(c *call, p updateDraftNoteParams) (draftNoteJSON, error) {
	return presentAs(toDraftNote)(a.Merges.UpdateDraft(c, c.actor, p.Project, p.Request, p.Draft, merge.DraftChange{Body: p.Note, Position: p.Position.position()}))
}

// deleteDraftNote: https://docs.gitlab.com/api/draft_notes/#delete-a-draft-note
func (a *API) deleteDraftNote(c *call, p draftNoteParams) (none, error) {
	return none{}, a.Merges.DeleteDraft(c, c.actor, p.Project, p.Request, p.Draft)
}

// publishDraftNote: https://docs.gitlab.com/api/draft_notes/#publish-a-draft-note
func (a *API) publishDraftNote(c *call, p draftNoteParams) (none, error) {
	_, err := a.Merges.PublishDraft(c, c.actor, p.Project, p.Request, p.Draft)
	return none{}, err
}

type publishReviewParams struct {
	mergeParams
	Note     string `param:"note" doc:"Summary that is published with the review."`
	Internal bool   `param:"internal" doc:"Publish the summary as an internal note."`
	State    string `param:"reviewer_state" enum:"reviewed,requested_changes" doc:"State of the reviewer after the review."`
}

// publishReview: https://docs.gitlab.com/api/draft_notes/#publish-all-pending-draft-notes
func (a *API) publishReview(c *call, p publishReviewParams) (none, error) {
	_, err := a.Merges.PublishReview(c, c.actor, p.Project, p.Request, merge.Review{Summary: p.Note, Internal: p.Internal, State: merge.ReviewerState(p.State)})
	return none{}, err
}
