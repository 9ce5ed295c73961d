package api

import (
	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/plan"
)

func discussionRoutesOf[T noteTarget](a *API, at, what string) {
	a.tag("Discussions")
	t := noteEndpoints[T]{a}
	const one = "/discussions/{discussion_id}"
	handle(a, "GET "+at+"/discussions", readAPI.orAnonymous(), t.listDiscussions, summary("List discussion items of "+what))
	handle(a, "POST "+at+"/discussions", writeAPI, t.createDiscussion, returns(discussionJSON{}), commandsOnly, summary("Create a thread on "+what))
	handle(a, "GET "+at+one, readAPI.orAnonymous(), t.getDiscussion, summary("Get a discussion item of "+what))
	handle(a, "POST "+at+one+"/notes", writeAPI, t.reply, returns(noteJSON{}), commandsOnly, summary("Add a note to a thread on "+what))
	handle(a, "GET "+at+one+"/notes", readAPI.orAnonymous(), t.listDiscussed, summary("List notes of a thread on "+what))
	handle(a, "GET "+at+one+"/notes/{note_id}", readAPI.orAnonymous(), t.getDiscussed, summary("Get a thread note on "+what))
	handle(a, "PUT "+at+one+"/notes/{note_id}", writeAPI, t.updateDiscussed, summary("Update or resolve a thread note on "+what))
	handle(a, "DELETE "+at+one+"/notes/{note_id}", writeAPI, t.deleteDiscussed, summary("Delete a thread note on "+what))
}

// resolveRouteOf adds the route for noteables with resolvable threads.
func resolveRouteOf[T noteTarget](a *API, at, what string) {
	a.tag("Discussions")
	handle(a, "PUT "+at+"/discussions/{discussion_id}", writeAPI, noteEndpoints[T]{a}.resolveDiscussion, summary("Resolve or reopen a thread on "+what))
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

type listDiscussionsParams[T noteTarget] struct {
	On T `param:"*"`
	pageParams
}

// listDiscussions: https://docs.gitlab.com/api/discussions/#list-project-issue-discussion-items
func (t noteEndpoints[T]) listDiscussions(c *call, p listDiscussionsParams[T]) (page[discussionJSON], error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return page[discussionJSON]{}, err
	}
	list, err := t.api.Plan.Discussions(c, on, p.paging())
	if err != nil {
		return page[discussionJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(d *plan.Discussion) discussionJSON { return t.api.toDiscussion(c, d) }), nil
}

type createDiscussionParams[T noteTarget] struct {
	createNoteParams[T]
	Position *positionParams `param:"position" doc:"Position in the diff of a merge request."`
	CommitID string          `param:"commit_id" doc:"SHA of the commit of a merge request that the thread is about."`
}

// createDiscussion: https://docs.gitlab.com/api/discussions/#create-a-new-thread-in-the-merge-request-diff
func (t noteEndpoints[T]) createDiscussion(c *call, p createDiscussionParams[T]) (any, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return nil, err
	}
	first := p.note()
	first.Thread, first.Position, first.CommitSHA = true, p.Position.position(), p.CommitID
	n, err := t.api.Plan.CreateNote(c, c.actor, on, first)
	if err != nil || n.ID == 0 {
		return t.api.presentNewNote(c, n, err)
	}
	return t.api.toDiscussion(c, &plan.Discussion{ID: n.Discussion, Notes: []*plan.Note{n}}), nil
}

type discussionParams[T noteTarget] struct {
	On         T      `param:"*"`
	Discussion string `param:"discussion_id"`
}

// getDiscussion: https://docs.gitlab.com/api/discussions/#get-single-issue-discussion-item
func (t noteEndpoints[T]) getDiscussion(c *call, p discussionParams[T]) (discussionJSON, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return discussionJSON{}, err
	}
	d, err := t.api.Plan.Discussion(c, on, p.Discussion)
	return t.api.presentDiscussion(c, d, err)
}

type resolveDiscussionParams[T noteTarget] struct {
	discussionParams[T]
	Resolved bool `param:"resolved,required"`
}

// resolveDiscussion: https://docs.gitlab.com/api/discussions/#resolve-a-merge-request-thread
func (t noteEndpoints[T]) resolveDiscussion(c *call, p resolveDiscussionParams[T]) (discussionJSON, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return discussionJSON{}, err
	}
	d, err := t.api.Plan.Resolve(c, c.actor, on, p.Discussion, p.Resolved)
	return t.api.presentDiscussion(c, d, err)
}

type replyParams[T noteTarget] struct {
	discussionParams[T]
	newNoteParams
}

// reply: https://docs.gitlab.com/api/discussions/#add-note-to-existing-issue-thread
func (t noteEndpoints[T]) reply(c *call, p replyParams[T]) (any, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return nil, err
	}
	reply := p.note()
	reply.Discussion = p.Discussion
	n, err := t.api.Plan.CreateNote(c, c.actor, on, reply)
	return t.api.presentNewNote(c, n, err)
}

type discussedParams[T noteTarget] struct {
	noteParams[T]
	Discussion string `param:"discussion_id" doc:"ID of the thread."`
}

// listDiscussed returns the notes of a thread, the oldest first. The list is not
// paginated, because a thread is always read completely.
func (t noteEndpoints[T]) listDiscussed(c *call, p discussionParams[T]) ([]noteJSON, error) {
	d, err := t.getDiscussion(c, p)
	return d.Notes, err
}

// getDiscussed returns a note of a thread. NotFound if the note does not exist or
// belongs to another thread.
func (t noteEndpoints[T]) getDiscussed(c *call, p discussedParams[T]) (noteJSON, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return noteJSON{}, err
	}
	n, err := t.api.Plan.Note(c, on, p.Note)
	if err == nil && n.Discussion != p.Discussion {
		err = errs.NotFound("Note")
	}
	return t.api.presentNote(c, n, err)
}

type updateDiscussedParams[T noteTarget] struct {
	discussedParams[T]
	Body     *string `param:"body,nonblank"`
	Resolved *bool   `param:"resolved" doc:"Resolve or reopen the note."`
}

func (p *updateDiscussedParams[T]) ParamRules() []bind.Rule {
	return []bind.Rule{bind.ExactlyOne("body", "resolved")}
}

// updateDiscussed: https://docs.gitlab.com/api/discussions/#modify-an-existing-merge-request-thread-note
func (t noteEndpoints[T]) updateDiscussed(c *call, p updateDiscussedParams[T]) (noteJSON, error) {
	on, err := p.On.on(t.api, c)
	if err != nil {
		return noteJSON{}, err
	}
	var n *plan.Note
	if p.Resolved != nil {
		n, err = t.api.Plan.ResolveNote(c, c.actor, on, p.Note, *p.Resolved)
	} else {
		n, err = t.api.Plan.UpdateNote(c, c.actor, on, p.Note, *p.Body)
	}
	return t.api.presentNote(c, n, err)
}

// deleteDiscussed: https://docs.gitlab.com/api/discussions/#delete-an-issue-thread-note
func (t noteEndpoints[T]) deleteDiscussed(c *call, p discussedParams[T]) (none, error) {
	return t.deleteNote(c, p.noteParams)
}
