package api

import (
	"net/http"
	"time"

	"svc/internal/plan"
	"svc/internal/plan/listing"
	"svc/internal/snippet"
)

func (a *API) noteRoutes() {
	const issue, request, snip = "/projects/{id}/issues/{issue_iid}", "/projects/{id}/merge_requests/{merge_request_iid}", "/projects/{id}/snippets/{snippet_id}"
	noteRoutesOf[issueParams](a, issue, "an issue")
	discussionRoutesOf[issueParams](a, issue, "an issue")
	resolveRouteOf[issueParams](a, issue, "an issue")
	noteRoutesOf[mergeParams](a, request, "a merge request")
	discussionRoutesOf[mergeParams](a, request, "a merge request")
	resolveRouteOf[mergeParams](a, request, "a merge request")
	noteRoutesOf[projectSnippetParams](a, snip, "a snippet")
	discussionRoutesOf[projectSnippetParams](a, snip, "a snippet")
}

// noteTarget identifies an object with notes by path parameters.
type noteTarget interface {
	// on returns the object. NotFound if the actor has no access to it.
	on(a *API, c *call) (plan.Noteable, error)
}

func (p issueParams) on(a *API, c *call) (plan.Noteable, error) {
	return a.Plan.OnIssue(c, c.actor, p.Project, p.Issue)
}

func (p mergeParams) on(a *API, c *call) (plan.Noteable, error) {
	return a.Merges.OnMergeRequest(c, c.actor, p.Project, p.Request)
}

func (p projectSnippetParams) on(a *API, c *call) (plan.Noteable, error) {
	return a.Snippets.OnSnippet(c, c.actor, p.Project, p.Snippet)
}

// noteEndpoints serves the notes and discussions of one type of objects.
type noteEndpoints[T noteTarget] struct{ api *API }

func noteRoutesOf[T noteTarget](a *API, at, what string) {
	a.tag("Notes")
	t := noteEndpoints[T]{a}
	handle(a, "GET "+at+"/notes", readAPI.orAnonymous(), t.listNotes, summary("List notes on "+what))
	handle(a, "POST "+at+"/notes", writeAPI, t.createNote, returns(noteJSON{}), commandsOnly, summary("Create a note on "+what))
	handle(a, "GET "+at+"/notes/{note_id}", readAPI.orAnonymous(), t.getNote, summary("Get a note on "+what))
	handle(a, "PUT "+at+"/notes/{note_id}", writeAPI, t.updateNote, summary("Update a note on "+what))
	handle(a, "DELETE "+at+"/notes/{note_id}", writeAPI, t.deleteNote, summary("Delete a note on "+what))
}

type noteJSON struct {
	ID           int64            `json:"id"`
	Type         *string          `json:"type"`
	Body         string           `json:"body"`
	Attachment   *string          `json:"attachment"`
	Author       *userPublicJSON  `json:"author"`
	CreatedAt    stamp            `json:"created_at"`
	UpdatedAt    stamp            `json:"updated_at"`
	System       bool             `json:"system"`
	NoteableID   *int64           `json:"noteable_id"` // null for commits
	NoteableType string           `json:"noteable_type"`
	ProjectID    *int64           `json:"project_id"`
	CommitID     *string          `json:"commit_id"`
	Position     *positionJSON    `json:"position,omitempty"`
	Resolvable   bool             `json:"resolvable"`
	Resolved     *bool            `json:"resolved,omitempty"`
	ResolvedBy   *userPublicJSON  `json:"resolved_by,omitempty"`
	ResolvedAt   *stamp           `json:"resolved_at,omitempty"`
	Suggestions  []suggestionJSON `json:"suggestions,omitempty"`
	Confidential bool             `json:"confidential"`
	Internal     bool             `json:"internal"`
	Imported     bool             `json:"imported"`
	ImportedFrom string           `json:"imported_from"`
	NoteableIID  *int64           `json:"noteable_iid"`
	Commands     map[string]any   `json:"commands_changes"`
}

func (a *API) toNote(c *call, n *plan.Note) noteJSON {
	now := a.Now()
	out := noteJSON{
		ID: n.ID, Type: textOrNull(n.Type), Body: n.Body, Author: toUserOrNull(c.site, n.Author, now), CreatedAt: toStamp(n.CreatedAt), UpdatedAt: toStamp(n.UpdatedAt),
		System: n.System != "", NoteableID: &n.On.ID, NoteableType: string(n.On.Kind), ProjectID: n.ProjectID, Position: toPosition(n.At()), Resolvable: n.Resolvable(),
		Confidential: n.Internal, Internal: n.Internal, ImportedFrom: "none", CommitID: textOrNull(n.CommitSHA), Suggestions: mapped(n.Suggestions, toSuggestion),
		Commands: map[string]any{},
	}
	if n.Commands != nil {
		out.Commands = n.Commands.Changes
	}
	if n.OnIID != 0 && n.On.Kind != snippet.Kind { // the IID of a snippet is not unique in the project
		out.NoteableIID = &n.OnIID
	}
	if out.Resolvable {
		resolved := n.ResolvedAt != nil
		out.Resolved, out.ResolvedBy, out.ResolvedAt = &resolved, toUserOrNull(c.site, n.ResolvedBy, now), toStampOrNull(n.ResolvedAt)
	}
	return out
}

func (a *API) presentNote(c *call, n *plan.Note, err error) (noteJSON, error) {
	if err != nil {
		return noteJSON{}, err
	}
	return a.toNote(c, n), nil
}

// noteCommandsJSON is the result of a note that has only quick actions.
type noteCommandsJSON struct {
	Changes map[string]any `json:"commands_changes"`
	Summary []string       `json:"summary"`
}

// commandsOnly documents the response to a note that has only quick actions.
var commandsOnly = response(http.StatusAccepted, "The note has only quick actions. They were applied, and no note was created.", noteCommandsJSON{})

// presentNewNote is presentNote for a note that can have quick actions.
func (a *API) presentNewNote(c *call, n *plan.Note, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if n.ID == 0 {
		return withStatus{http.StatusAccepted, noteCommandsJSON{n.Commands.Changes, n.Commands.Summary()}}, nil
	}
	return a.toNote(c, n), nil
}

type listNotesParams[T noteTarget] struct {
	On      T      `param:"*"`
	OrderBy string `param:"order_by" enum:"created_at,updated_at" default:"created_at"`
	Sort    string `param:"sort" enum:"asc,desc" default:"desc"`
	Filter  string `param:"activity_filter" enum:"all_notes,only_comments,only_activity"`
	pageParams
}

// listNotes: https://docs.gitlab.com/api/notes/#list-project-issue-notes
func (t noteEndpoints[T]) listNotes(c *call, p listNotesParams[T]) (page[noteJSON], error) {
	f := plan.NoteFilter{Only: p.Filter, Sort: listing.Sort{By: p.OrderBy, Desc: p.Sort == "desc"}}
	on, err := p.On.on(t.api, c)
	if err != nil {
		return page[noteJSON]{}, err
	}
	list, err := t.api.Plan.Notes(c, on, f, p.paging())
	if err != nil {
		return page[noteJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(n *plan.Note) noteJSON { return t.api.toNote(c, n) }), nil
}

type newNoteParams struct {
	Body         string     `param:"body,required,nonblank"`
	Internal     bool       `param:"internal" aliases:"confidential" doc:"Whether the note is internal."`
	CreatedAt    *time.Time `param:"created_at" doc:"Requires administrator access or the Owner role."`
	MergeHeadSHA string     `param:"merge_request_diff_head_sha" doc:"For the quick action /merge: the expected head of the merge request."`
}

func (p *newNoteParams) note() plan.NewNote {
	return plan.NewNote{Body: p.Body, Internal: p.Internal, CreatedAt: p.CreatedAt, HeadSHA: p.MergeHeadSHA}
}

type createNoteParams[T noteTarget] struct {
	On T `param:"*"`
	newNoteParams
}

// createNote: https://docs.gitlab.com/api/notes/#create-new-issue-note
func (t noteEndpoints[T]) createNote(c *call, p createNoteParams[T]) (any, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return nil, err
	}
	n, err := t.api.Plan.CreateNote(c, c.actor, on, p.note())
	return t.api.presentNewNote(c, n, err)
}

type noteParams[T noteTarget] struct {
	On   T     `param:"*"`
	Note int64 `param:"note_id"`
}

// getNote: https://docs.gitlab.com/api/notes/#get-single-issue-note
func (t noteEndpoints[T]) getNote(c *call, p noteParams[T]) (noteJSON, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return noteJSON{}, err
	}
	n, err := t.api.Plan.Note(c, on, p.Note)
	return t.api.presentNote(c, n, err)
}

type updateNoteParams[T noteTarget] struct {
	noteParams[T]
	Body string `param:"body,required,nonblank"`
}

// updateNote: https://docs.gitlab.com/api/notes/#modify-existing-issue-note
func (t noteEndpoints[T]) updateNote(c *call, p updateNoteParams[T]) (noteJSON, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return noteJSON{}, err
	}
	n, err := t.api.Plan.UpdateNote(c, c.actor, on, p.Note, p.Body)
	return t.api.presentNote(c, n, err)
}

// deleteNote: https://docs.gitlab.com/api/notes/#delete-an-issue-note
func (t noteEndpoints[T]) deleteNote(c *call, p noteParams[T]) (none, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return none{}, err
	}
	return none{}, t.api.Plan.DeleteNote(c, c.actor, on, p.Note, c.unmodifiedSince())
}
