package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/comment"
	"svc/internal/errs"
)

func (a *API) commitDiscussionRoutes() {
	a.tag("Discussions")
	const at = "/projects/{id}/repository/commits/{sha}/discussions"
	const one = at + "/{discussion_id}"
	handle(a, "GET "+at, readAPI.orAnonymous(), a.listCommitDiscussions, summary("List discussion items of a commit"))
	handle(a, "POST "+at, writeAPI, a.createCommitDiscussion, summary("Create a thread on a commit"))
	handle(a, "GET "+one, readAPI.orAnonymous(), a.getCommitDiscussion, summary("Get a discussion item of a commit"))
	handle(a, "GET "+one+"/notes", readAPI.orAnonymous(), a.listCommitNotes, summary("List notes of a thread on a commit"))
	handle(a, "POST "+one+"/notes", writeAPI, a.createCommitNote, summary("Add a note to a thread on a commit"))
	handle(a, "GET "+one+"/notes/{note_id}", readAPI.orAnonymous(), a.getCommitNote, summary("Get a thread note on a commit"))
	handle(a, "PUT "+one+"/notes/{note_id}", writeAPI, a.updateCommitNote, summary("Update a thread note on a commit"))
	handle(a, "DELETE "+one+"/notes/{note_id}", writeAPI, a.deleteCommitNote, summary("Delete a thread note on a commit"))
}

// emptyTree is the ID of the empty tree, which a commit without a parent is compared
// with.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// toCommitNote returns a comment on a commit as a note. Threads on commits cannot
// be resolved.
func (a *API) toCommitNote(c *call, of *comment.Comment) noteJSON {
	now := a.Now()
	out := noteJSON{
		ID: of.ID, Body: of.Note, Author: toUserOrNull(c.site, of.Author, now), CreatedAt: toStamp(of.CreatedAt), UpdatedAt: toStamp(of.UpdatedAt),
		NoteableType: "Commit", ProjectID: &of.ProjectID, CommitID: &of.SHA, ImportedFrom: "none", Commands: map[string]any{},
	}
	if of.Thread {
		kind := "DiscussionNote"
		if of.Path != "" {
			kind = "DiffNote"
		}
		out.Type = &kind
	}
	if of.Path != "" {
		p := &positionJSON{BaseSHA: of.Base, StartSHA: of.Base, HeadSHA: of.SHA, OldPath: of.OldPath, NewPath: of.Path, Type: "text"}
		if p.BaseSHA == "" {
			p.BaseSHA, p.StartSHA = emptyTree, emptyTree
		}
		if p.OldPath == "" {
			p.OldPath = p.NewPath
		}
		p.NewLine = &of.Line
		if of.LineType == "old" {
			p.OldLine, p.NewLine = &of.Line, nil
		}
		out.Position = p
	}
	return out
}

func (a *API) presentCommitNote(c *call, of *comment.Comment, err error) (noteJSON, error) {
	if err != nil {
		return noteJSON{}, err
	}
	return a.toCommitNote(c, of), nil
}

func (a *API) toCommitDiscussion(c *call, d *comment.Discussion) discussionJSON {
	return discussionJSON{d.ID, !d.Comments[0].Thread, mapped(d.Comments, func(one *comment.Comment) noteJSON { return a.toCommitNote(c, one) })}
}

// listCommitDiscussions: https://docs.gitlab.com/api/discussions/#list-project-commit-discussion-items
func (a *API) listCommitDiscussions(c *call, p commitCommentsParams) (page[discussionJSON], error) {
	list, err := a.Comments.Discussions(c, c.actor, p.Project, p.SHA, p.paging())
	if err != nil {
		return page[discussionJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(d *comment.Discussion) discussionJSON { return a.toCommitDiscussion(c, d) }), nil
}

type createCommitDiscussionParams struct {
	commitParams
	Body      string          `param:"body,required,nonblank"`
	CreatedAt *time.Time      `param:"created_at" doc:"Requires administrator access or the Owner role."`
	Position  *positionParams `param:"position" doc:"Changed line in the diff of the commit."`
}

func (p *createCommitDiscussionParams) check() error {
	at := p.Position
	switch {
	case at == nil:
	case at.Type != "text":
		return bind.Invalid("position[position_type] must be text")
	case at.NewLine == nil && at.OldLine == nil:
		return bind.Invalid("position[new_line] is missing")
	}
	return nil
}

// createCommitDiscussion: https://docs.gitlab.com/api/discussions/#create-a-new-commit-thread
func (a *API) createCommitDiscussion(c *call, p createCommitDiscussionParams) (discussionJSON, error) {
	n := comment.NewComment{Note: p.Body, Thread: true, CreatedAt: p.CreatedAt}
	if at := p.Position; at != nil {
		n.Path, n.LineType = at.NewPath, "new"
		if n.Path == "" {
			n.Path = at.OldPath
		}
		if at.NewLine != nil {
			n.Line = *at.NewLine
		} else {
			n.Line, n.LineType = *at.OldLine, "old"
		}
	}
	made, err := a.Comments.Create(c, c.actor, p.Project, p.SHA, n)
	if err != nil {
		return discussionJSON{}, err
	}
	return a.toCommitDiscussion(c, &comment.Discussion{ID: made.Discussion, Comments: []*comment.Comment{made}}), nil
}

type commitDiscussionParams struct {
	commitParams
	Discussion string `param:"discussion_id" doc:"ID of the thread."`
}

// getCommitDiscussion: https://docs.gitlab.com/api/discussions/#get-single-commit-discussion-item
func (a *API) getCommitDiscussion(c *call, p commitDiscussionParams) (discussionJSON, error) {
	d, err := a.Comments.Discussion(c, c.actor, p.Project, p.SHA, p.Discussion)
	if err != nil {
		return discussionJSON{}, err
	}
	return a.toCommitDiscussion(c, d), nil
}

// listCommitNotes returns the notes of a thread, the oldest first. The list is not
// paginated, because a thread is always read completely.
func (a *API) listCommitNotes(c *call, p commitDiscussionParams) ([]noteJSON, error) {
	d, err := a.getCommitDiscussion(c, p)
	return d.Notes, err
}

type createCommitNoteParams struct {
	commitDiscussionParams
	Body      string     `param:"body,required,nonblank"`
	CreatedAt *time.Time `param:"created_at" doc:"Requires administrator access or the Owner role."`
}

// createCommitNote: https://docs.gitlab.com/api/discussions/#add-note-to-existing-commit-thread
func (a *API) createCommitNote(c *call, p createCommitNoteParams) (noteJSON, error) {
	made, err := a.Comments.Reply(c, c.actor, p.Project, p.SHA, p.Discussion, p.Body, p.CreatedAt)
	return a.presentCommitNote(c, made, err)
}

type commitNoteParams struct {
	commitDiscussionParams
	Note int64 `param:"note_id"`
}

// getCommitNote returns a note of a thread. NotFound if the note does not exist or
// belongs to another thread.
func (a *API) getCommitNote(c *call, p commitNoteParams) (noteJSON, error) {
	d, err := a.Comments.Discussion(c, c.actor, p.Project, p.SHA, p.Discussion)
	if err != nil {
		return noteJSON{}, err
	}
	for _, n := range d.Comments {
		if n.ID == p.Note {
			return a.toCommitNote(c, n), nil
		}
	}
	return noteJSON{}, errs.NotFound("Note")
}

type updateCommitNoteParams struct {
	commitNoteParams
	Body string `param:"body,required,nonblank"`
}

// updateCommitNote: https://docs.gitlab.com/api/discussions/#modify-an-existing-commit-thread-note
func (a *API) updateCommitNote(c *call, p updateCommitNoteParams) (noteJSON, error) {
	n, err := a.Comments.Update(c, c.actor, p.Project, p.SHA, p.Discussion, p.Note, p.Body)
	return a.presentCommitNote(c, n, err)
}

// deleteCommitNote: https://docs.gitlab.com/api/discussions/#delete-a-commit-thread-note
func (a *API) deleteCommitNote(c *call, p commitNoteParams) (none, error) {
	return none{}, a.Comments.Delete(c, c.actor, p.Project, p.SHA, p.Discussion, p.Note, c.unmodifiedSince())
}
