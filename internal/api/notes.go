package api

import (
	"time"

	"svc/internal/plan"
)

func (a *API) noteRoutes() {
	const at = "/projects/{id}/issues/{issue_iid}"
	handle(a, "GET "+at+"/notes", readAPI.orNobody(), a.listIssueNotes, does("List the notes on an issue"))
	handle(a, "POST "+at+"/notes", writeAPI, a.createIssueNote, does("Say something about an issue"))
	handle(a, "GET "+at+"/notes/{note_id}", readAPI.orNobody(), a.getIssueNote, does("Get a note on an issue"))
	handle(a, "PUT "+at+"/notes/{note_id}", writeAPI, a.updateIssueNote, does("Change a note on an issue"))
	handle(a, "DELETE "+at+"/notes/{note_id}", writeAPI, a.deleteIssueNote, does("Delete a note on an issue"))
	handle(a, "GET "+at+"/discussions", readAPI.orNobody(), a.listIssueDiscussions, does("List the discussions of an issue"))
	handle(a, "POST "+at+"/discussions", writeAPI, a.createIssueDiscussion, does("Begin a thread about an issue"))
	handle(a, "GET "+at+"/discussions/{discussion_id}", readAPI.orNobody(), a.getIssueDiscussion, does("Get a discussion of an issue"))
	handle(a, "PUT "+at+"/discussions/{discussion_id}", writeAPI, a.resolveIssueDiscussion, does("Settle a thread about an issue, or open it again"))
	handle(a, "POST "+at+"/discussions/{discussion_id}/notes", writeAPI, a.replyToIssueDiscussion, does("Reply in a discussion of an issue"))
	handle(a, "PUT "+at+"/discussions/{discussion_id}/notes/{note_id}", writeAPI, a.updateDiscussed, does("Change a note of a discussion of an issue"))
	handle(a, "DELETE "+at+"/discussions/{discussion_id}/notes/{note_id}", writeAPI, a.deleteDiscussed, does("Delete a note of a discussion of an issue"))
}

type noteJSON struct {
	ID           int64           `json:"id"`
	Type         *string         `json:"type"`
	Body         string          `json:"body"`
	Attachment   *string         `json:"attachment"`
	Author       *userPublicJSON `json:"author"`
	CreatedAt    stamp           `json:"created_at"`
	UpdatedAt    stamp           `json:"updated_at"`
	System       bool            `json:"system"`
	NoteableID   int64           `json:"noteable_id"`
	NoteableType string          `json:"noteable_type"`
	ProjectID    *int64          `json:"project_id"`
	Resolvable   bool            `json:"resolvable"`
	Resolved     *bool           `json:"resolved,omitempty"`
	ResolvedBy   *userPublicJSON `json:"resolved_by,omitempty"`
	ResolvedAt   *stamp          `json:"resolved_at,omitempty"`
	Confidential bool            `json:"confidential"`
	Internal     bool            `json:"internal"`
	Imported     bool            `json:"imported"`
	ImportedFrom string          `json:"imported_from"`
	NoteableIID  *int64          `json:"noteable_iid"`
	Commands     struct{}        `json:"commands_changes"`
}

func (a *API) toNote(c *call, n *plan.Note) noteJSON {
	now := a.Now()
	form := noteJSON{
		ID: n.ID, Type: textOrNull(n.Type), Body: n.Body, Author: toUserOrNull(c.site, n.Author, now), CreatedAt: toStamp(n.CreatedAt), UpdatedAt: toStamp(n.UpdatedAt),
		System: n.System != "", NoteableID: n.On.ID, NoteableType: string(n.On.Kind), ProjectID: n.ProjectID, Resolvable: n.Resolvable(),
		Confidential: n.Internal, Internal: n.Internal, ImportedFrom: "none",
	}
	if n.OnIID != 0 {
		form.NoteableIID = &n.OnIID
	}
	if form.Resolvable {
		resolved := n.ResolvedAt != nil
		form.Resolved, form.ResolvedBy, form.ResolvedAt = &resolved, toUserOrNull(c.site, n.ResolvedBy, now), toStampOrNull(n.ResolvedAt)
	}
	return form
}

func (a *API) presentNote(c *call, n *plan.Note, err error) (noteJSON, error) {
	if err != nil {
		return noteJSON{}, err
	}
	return a.toNote(c, n), nil
}

// onIssue is the issue whose notes are asked for.
func (a *API) onIssue(c *call, p issueParams) (plan.Noteable, error) {
	return a.Plan.OnIssue(c, c.actor, p.Project, p.Issue)
}

type listIssueNotesParams struct {
	issueParams
	OrderBy string `param:"order_by" enum:"created_at,updated_at" default:"created_at"`
	Sort    string `param:"sort" enum:"asc,desc" default:"desc"`
	Filter  string `param:"activity_filter" enum:"all_notes,only_comments,only_activity"`
	pageParams
}

// listIssueNotes: https://docs.gitlab.com/api/notes/#list-project-issue-notes
func (a *API) listIssueNotes(c *call, p listIssueNotesParams) (page[noteJSON], error) {
	f := plan.NoteFilter{Only: p.Filter, Sort: plan.Sort{By: p.OrderBy, Desc: p.Sort == "desc"}}
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return page[noteJSON]{}, err
	}
	list, err := a.Plan.Notes(c, on, f, p.paging())
	if err != nil {
		return page[noteJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(n *plan.Note) noteJSON { return a.toNote(c, n) }), nil
}

type newNoteParams struct {
	Body         string     `param:"body,required,nonblank"`
	Internal     bool       `param:"internal" aliases:"confidential" doc:"For those alone who read what is confidential."`
	CreatedAt    *time.Time `param:"created_at" doc:"For administrators and Owners."`
	MergeHeadSHA string     `param:"merge_request_diff_head_sha" doc:"Of merge requests; has no meaning here."`
}

func (p *newNoteParams) note() plan.NewNote {
	return plan.NewNote{Body: p.Body, Internal: p.Internal, CreatedAt: p.CreatedAt}
}

type createIssueNoteParams struct {
	issueParams
	newNoteParams
}

// createIssueNote: https://docs.gitlab.com/api/notes/#create-new-issue-note
func (a *API) createIssueNote(c *call, p createIssueNoteParams) (noteJSON, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return noteJSON{}, err
	}
	n, err := a.Plan.CreateNote(c, c.actor, on, p.note())
	return a.presentNote(c, n, err)
}

type issueNoteParams struct {
	issueParams
	Note int64 `param:"note_id"`
}

// getIssueNote: https://docs.gitlab.com/api/notes/#get-single-issue-note
func (a *API) getIssueNote(c *call, p issueNoteParams) (noteJSON, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return noteJSON{}, err
	}
	n, err := a.Plan.Note(c, on, p.Note)
	return a.presentNote(c, n, err)
}

type updateIssueNoteParams struct {
	issueNoteParams
	Body string `param:"body,required,nonblank"`
}

// updateIssueNote: https://docs.gitlab.com/api/notes/#modify-existing-issue-note
func (a *API) updateIssueNote(c *call, p updateIssueNoteParams) (noteJSON, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return noteJSON{}, err
	}
	n, err := a.Plan.UpdateNote(c, c.actor, on, p.Note, p.Body)
	return a.presentNote(c, n, err)
}

// deleteIssueNote: https://docs.gitlab.com/api/notes/#delete-an-issue-note
func (a *API) deleteIssueNote(c *call, p issueNoteParams) (none, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return none{}, err
	}
	return none{}, a.Plan.DeleteNote(c, c.actor, on, p.Note, c.unmodifiedSince())
}

type discussionJSON struct {
	ID         string     `json:"id"`
	Individual bool       `json:"individual_note"`
	Notes      []noteJSON `json:"notes"`
}

func (a *API) toDiscussion(c *call, d *plan.Discussion) discussionJSON {
	return discussionJSON{d.ID, d.Individual(), mapped(d.Notes, func(n *plan.Note) noteJSON { return a.toNote(c, n) })}
}

func (a *API) presentDiscussion(c *call, d *plan.Discussion, err error) (discussionJSON, error) {
	if err != nil {
		return discussionJSON{}, err
	}
	return a.toDiscussion(c, d), nil
}

type listIssueDiscussionsParams struct {
	issueParams
	pageParams
}

// listIssueDiscussions: https://docs.gitlab.com/api/discussions/#list-project-issue-discussion-items
func (a *API) listIssueDiscussions(c *call, p listIssueDiscussionsParams) (page[discussionJSON], error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return page[discussionJSON]{}, err
	}
	list, err := a.Plan.Discussions(c, on, p.paging())
	if err != nil {
		return page[discussionJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(d *plan.Discussion) discussionJSON { return a.toDiscussion(c, d) }), nil
}

// createIssueDiscussion: https://docs.gitlab.com/api/discussions/#create-new-issue-thread
func (a *API) createIssueDiscussion(c *call, p createIssueNoteParams) (discussionJSON, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return discussionJSON{}, err
	}
	first := p.note()
	first.Thread = true
	n, err := a.Plan.CreateNote(c, c.actor, on, first)
	if err != nil {
		return discussionJSON{}, err
	}
	return a.toDiscussion(c, &plan.Discussion{ID: n.Discussion, Notes: []*plan.Note{n}}), nil
}

type issueDiscussionParams struct {
	issueParams
	Discussion string `param:"discussion_id"`
}

// getIssueDiscussion: https://docs.gitlab.com/api/discussions/#get-single-issue-discussion-item
func (a *API) getIssueDiscussion(c *call, p issueDiscussionParams) (discussionJSON, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return discussionJSON{}, err
	}
	d, err := a.Plan.Discussion(c, on, p.Discussion)
	return a.presentDiscussion(c, d, err)
}

type resolveIssueDiscussionParams struct {
	issueDiscussionParams
	Resolved bool `param:"resolved,required"`
}

// resolveIssueDiscussion: https://docs.gitlab.com/api/discussions/#resolve-a-merge-request-thread
func (a *API) resolveIssueDiscussion(c *call, p resolveIssueDiscussionParams) (discussionJSON, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return discussionJSON{}, err
	}
	d, err := a.Plan.Resolve(c, c.actor, on, p.Discussion, p.Resolved)
	return a.presentDiscussion(c, d, err)
}

type replyParams struct {
	issueDiscussionParams
	newNoteParams
}

// replyToIssueDiscussion: https://docs.gitlab.com/api/discussions/#add-note-to-existing-issue-thread
func (a *API) replyToIssueDiscussion(c *call, p replyParams) (noteJSON, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return noteJSON{}, err
	}
	reply := p.note()
	reply.Discussion = p.Discussion
	n, err := a.Plan.CreateNote(c, c.actor, on, reply)
	return a.presentNote(c, n, err)
}

type discussedParams struct {
	issueNoteParams
	Discussion string `param:"discussion_id" doc:"The note alone decides."`
}

type updateDiscussedParams struct {
	discussedParams
	Body string `param:"body,required,nonblank"`
}

// updateDiscussed: https://docs.gitlab.com/api/discussions/#modify-existing-issue-thread-note
func (a *API) updateDiscussed(c *call, p updateDiscussedParams) (noteJSON, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return noteJSON{}, err
	}
	n, err := a.Plan.UpdateNote(c, c.actor, on, p.Note, p.Body)
	return a.presentNote(c, n, err)
}

// deleteDiscussed: https://docs.gitlab.com/api/discussions/#delete-an-issue-thread-note
func (a *API) deleteDiscussed(c *call, p discussedParams) (none, error) {
	on, err := a.onIssue(c, p.issueParams)
	if err != nil {
		return none{}, err
	}
	return none{}, a.Plan.DeleteNote(c, c.actor, on, p.Note, c.unmodifiedSince())
}
