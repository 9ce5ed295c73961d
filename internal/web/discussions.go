package web

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/plan/diffnote"
	"svc/internal/project"
)

// commentable describes a kind of objects below a project that have comments.
type commentable struct {
	at   string                                           // "issues/{id}"
	noun string                                           // "issue"
	part string                                           // of planHead
	find func(*visit, project.Ref) (plan.Noteable, error) // returns the object that the address names
	// update changes the object; nil for objects that cannot be closed, whose
	// threads cannot be resolved.
	update func(v *visit, ref project.Ref, iid int64, f plan.Fields) error
	drafts bool // comments can be added to a review
}

// path is the address of the list, below the project.
func (c commentable) path() string { return strings.TrimSuffix(c.at, "/{id}") }

// commentPages are the forms of comments and threads.
func (w *Web) commentPages(c commentable) {
	w.projectPage("POST "+c.at+"/notes", signedIn, w.createNote(c))
	w.projectPage("POST "+c.at+"/discussions/{discussion}", signedIn, w.reply(c))
	if c.update != nil {
		w.projectPage("POST "+c.at+"/discussions/{discussion}/resolve", signedIn, w.resolve(c))
	}
	w.projectPage("GET "+c.at+"/notes/{note}/edit", signedIn, w.editNote(c))
	w.projectPage("POST "+c.at+"/notes/{note}", signedIn, w.updateNote(c))
	w.projectPage("POST "+c.at+"/notes/{note}/delete", signedIn, w.deleteNote(c))
	w.reactionPages(c)
}

// discussions has the discussions of an object, and the permissions of the user.
type discussions struct {
	At      string // URL of the target
	Base    string // "/group/project/-/"
	Noun    string
	Threads []thread
	Total   int // of all pages; 0 when there are too many to count
	Pager   pager
	May     bool
	Settles bool
	Insider bool
	Locked  bool
	Event   string    // close or reopen, if the visitor may
	Given   reactions // to the object itself
	Follow  string    // URL of the form of an issue that continues threads; empty if the visitor may not create it
	Review  string    // label of the button that adds a comment to the review; empty without the button
	Pending []draftView
}

// Blank returns an empty form.
func (discussions) Blank() form { return form{} }

// thread is a discussion on a page.
type thread struct {
	ID       string
	Notes    []noteView
	Settled  *plan.Note // the note about its resolution
	Together bool       // a thread
	Where    string     // position in a diff; empty for other threads
	There    string     // URL of that position
	File     string     // the file of the lines; empty for a whole file
	Left     int        // number of notes that are not shown
	Whole    string     // URL of all notes, if some are not shown
	Drafts   []draftView
}

// noteView is a note as it is shown.
type noteView struct {
	*plan.Note
	Text      template.HTML
	May       bool // the user may change it
	Reactions reactions
}

// perDiscussions is the number of discussions on a page, and maxNotes the
// maximum number of their notes.
const (
	perDiscussions = 50
	maxNotes       = 1000
)

// discussions reads a page of discussions. It also renders texts of the page
// itself and returns their HTML.
func (w *Web) discussions(v *visit, on plan.Noteable, c commentable, texts ...plan.Text) (discussions, []template.HTML, error) {
	base := "/" + on.In.FullPath + "/-/"
	p := discussions{
		At: targetPath(on, c), Base: base, Noun: c.noun, Settles: on.CanResolve(v.actor), Insider: on.Insider, Locked: on.Locked,
		May: on.CanComment(v.actor),
	}
	page, err := w.Plan.Discussions(v, on, db.Paging{Limit: perDiscussions, Offset: (v.pageNumber() - 1) * perDiscussions, Totals: true})
	if err != nil {
		return p, nil, err
	}
	p.Pager, p.Total = v.pager(page.More), page.Total
	var shown []template.HTML
	if p.Threads, shown, err = w.threads(v, on, p.At, page.Items, texts...); err != nil {
		return p, nil, err
	}
	return p, shown, w.fillReactions(v, on, &p)
}

// fillReactions reads the reactions to an object and to the comments of a page.
func (w *Web) fillReactions(v *visit, on plan.Noteable, p *discussions) error {
	var ids []int64
	for _, t := range p.Threads {
		for _, n := range t.Notes {
			if n.System == "" {
				ids = append(ids, n.ID)
			}
		}
	}
	found, err := w.Plan.Reactions(v, v.actor, on.Target, ids)
	if err != nil {
		return err
	}
	p.Given = newReactions(p.At+"/react", "react", found[0], p.May, true)
	for _, t := range p.Threads {
		for i := range t.Notes {
			n := &t.Notes[i]
			n.Reactions = newReactions(fmt.Sprintf("%s/notes/%d/react", p.At, n.ID), fmt.Sprintf("react-%d", n.ID), found[n.ID], p.May, false)
		}
	}
	return nil
}

// threads prepares discussions for the page of their target, and renders the
// texts with them.
func (w *Web) threads(v *visit, on plan.Noteable, at string, list []*plan.Discussion, texts ...plan.Text) ([]thread, []template.HTML, error) {
	shown := len(texts)
	_, thing, _ := strings.Cut(at, "/-/")
	whole := fmt.Sprintf("/api/v4/projects/%d/%s", on.In.ID, thing)
	for i := range texts {
		texts[i].Whole = whole
	}
	counts := make([]int, len(list)) // of the notes that are shown
	for i, d := range list {
		room := maxNotes - (len(texts) - shown) - (len(list) - i - 1) // one for each following discussion
		counts[i] = min(len(d.Notes), max(room, 1))
		for _, n := range d.Notes[:counts[i]] {
			texts = append(texts, plan.Text{Source: n.Body, Whole: fmt.Sprintf("%s/notes/%d", whole, n.ID), Suggestion: w.suggestion(v, at, n)})
		}
	}
	ref := project.RefTo(on.In.ID)
	html, err := w.Plan.RenderAll(v, v.actor, &ref, texts...)
	if err != nil {
		return nil, nil, err
	}
	safe := make([]template.HTML, len(html)) // markup has cleaned it
	for i, text := range html {
		safe[i] = template.HTML(text)
	}
	next := shown
	var threads []thread
	for i, d := range list {
		one := thread{ID: d.ID}
		for _, n := range d.Notes[:counts[i]] {
			one.Notes = append(one.Notes, noteView{Note: n, Text: safe[next], May: on.CanEdit(v.actor, n)})
			next++
		}
		if one.Left = len(d.Notes) - counts[i]; one.Left > 0 {
			one.Whole = fmt.Sprintf("%s/discussions/%s", whole, d.ID)
		}
		if len(d.Notes) > 0 {
			first := d.Notes[0]
			if one.Together = first.Together(); one.Together && first.ResolvedAt != nil {
				one.Settled = first
			}
			if position := first.Position; position != nil {
				one.Where, one.There = positionText(position), fmt.Sprintf("%s/diffs?note=%d#note_%[2]d", at, first.ID)
				if position.Type == diffnote.OnText {
					one.File = position.NewPath
				}
			}
			threads = append(threads, one)
		}
	}
	return threads, safe[:shown], nil
}

// positionText names a position in a diff.
func positionText(p *diffnote.Position) string {
	text := rangeText(p)
	switch {
	case text != "":
		return p.NewPath + ", " + text
	case p.NewLine != nil:
		return fmt.Sprintf("%s, line %d", p.NewPath, *p.NewLine)
	case p.OldLine != nil:
		return fmt.Sprintf("%s, old line %d", p.OldPath, *p.OldLine)
	}
	return p.NewPath
}

// targetPath returns the URL of an object with comments.
func targetPath(on plan.Noteable, c commentable) string {
	return fmt.Sprintf("/%s/-/%s/%d", on.In.FullPath, c.path(), on.IID)
}

// createNote adds a note, starts a thread, or closes the object, with a note or
// without.
func (w *Web) createNote(c commentable) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		on, err := c.find(v, ref)
		if err != nil {
			return err
		}
		to, body, event := targetPath(on, c), v.text("note"), v.text("event")
		if v.ticked("preview") {
			return w.showWriting(v, on, c, writing{Action: to + "/notes", Form: v.sent(), Looks: true, Internal: v.ticked("internal"), Insider: on.Insider})
		}
		if v.ticked("review") && c.drafts {
			return w.addDraft(v, ref, on, c, to+"/notes", merge.NewDraft{Body: body})
		}
		if body != "" || event == "" {
			n, err := w.Plan.CreateNote(v, v.actor, on, plan.NewNote{Body: body, Internal: v.ticked("internal") && on.Insider, Thread: v.ticked("thread")})
			if err != nil {
				return w.writeAgain(v, on, c, writing{Action: to + "/notes", Insider: on.Insider, Internal: v.ticked("internal")}, err)
			}
			v.flashCommands(n.Commands)
			if n.ID != 0 {
				if to, err = w.noteAddress(v, on, to, n); err != nil {
					return err
				}
			}
		}
		if event == "" || c.update == nil {
			return v.redirect(to)
		}
		return v.redirectWithFlash(c.update(v, ref, on.IID, plan.Fields{Event: event}), map[string]string{"close": "The " + c.noun + " was closed.", "reopen": "The " + c.noun + " was reopened."}[event], to)
	}
}

// noteAddress returns the URL of a note that was just created, on the last
// page.
func (w *Web) noteAddress(v *visit, on plan.Noteable, at string, n *plan.Note) (string, error) {
	page, err := w.Plan.Discussions(v, on, db.Paging{Limit: 1, Totals: true})
	if err != nil {
		return "", err
	}
	if last := (page.Total + perDiscussions - 1) / perDiscussions; last > 1 {
		at = fmt.Sprintf("%s?page=%d", at, last)
	}
	return fmt.Sprintf("%s#note_%d", at, n.ID), nil
}

func (w *Web) reply(c commentable) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		on, err := c.find(v, ref)
		if err != nil {
			return err
		}
		id, to := chi.URLParam(v.r, "discussion"), targetPath(on, c)
		if v.ticked("review") && c.drafts {
			return w.addDraft(v, ref, on, c, to+"/discussions/"+id, merge.NewDraft{Body: v.text("note"), Discussion: id, Resolve: v.ticked("resolve")})
		}
		n, err := w.Plan.CreateNote(v, v.actor, on, plan.NewNote{Body: v.text("note"), Discussion: id})
		if err != nil {
			return w.writeAgain(v, on, c, writing{Action: to + "/discussions/" + id}, err)
		}
		if v.ticked("resolve") && on.Resolver {
			if _, err := w.Plan.Resolve(v, v.actor, on, id, true); err != nil {
				return err
			}
		}
		v.flashCommands(n.Commands)
		if n.ID == 0 {
			return v.redirect(to)
		}
		return v.redirect(v.backTo(to, n.ID))
	}
}

// flashCommands shows on the next page what quick actions did.
func (v *visit) flashCommands(out *plan.Outcome) {
	if out == nil {
		return
	}
	kind := "ok"
	if len(out.Refused) > 0 {
		kind = "bad"
	}
	text := strings.Join(out.Summary(), " ")
	const most = 1000 // it is sent as a cookie
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	v.setFlash(kind, text)
}

// doneWithCommands is done for a text that can have quick actions.
func (v *visit) doneWithCommands(text string, out *plan.Outcome, to string) error {
	if out == nil {
		return v.done(text, to)
	}
	v.flashCommands(out)
	return v.redirect(to)
}

// backTo returns the page of the discussions that a form was on.
func (v *visit) backTo(at string, note int64) string {
	if page := v.text("page"); page != "" && page != "1" && len(page) < 5 && clean(page) {
		at += "?page=" + template.URLQueryEscaper(page)
	}
	return fmt.Sprintf("%s#note_%d", at, note)
}

func (w *Web) resolve(c commentable) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		on, err := c.find(v, ref)
		if err != nil {
			return err
		}
		d, err := w.Plan.Resolve(v, v.actor, on, chi.URLParam(v.r, "discussion"), v.ticked("resolved"))
		if err != nil {
			return v.redirectWithFlash(err, "", targetPath(on, c))
		}
		return v.redirect(v.backTo(targetPath(on, c), d.Notes[0].ID))
	}
}

// writing is the page of a comment that is edited, was refused, or is previewed.
type writing struct {
	planHead
	Action   string
	Back     string
	Head     string
	Form     form
	Looks    bool // show the preview
	Preview  template.HTML
	Insider  bool
	Internal bool
	Review   bool // it is added to a review
}

func (writing) view() string    { return "shared/writing" }
func (p writing) title() string { return p.Head + " · " + p.Name() }

func (w *Web) showWriting(v *visit, on plan.Noteable, c commentable, p writing) error {
	h, err := w.planHead(v, project.Place{Ref: project.RefTo(on.In.ID)}, c.part)
	if err != nil {
		return err
	}
	p.planHead, p.Back = h, targetPath(on, c)
	if p.Head == "" {
		p.Head = "Comment on " + on.Title
	}
	if p.Looks {
		if p.Preview, err = w.previewOn(v, h.Place, on.Commands, p.Form.Get("note")); err != nil {
			return err
		}
	}
	return v.showForm(p, p.Form)
}

// writeAgain shows a text that was refused.
func (w *Web) writeAgain(v *visit, on plan.Noteable, c commentable, p writing, fault error) error {
	p.Form = v.sent()
	if err := p.Form.refused(fault); err != nil {
		return err
	}
	return w.showWriting(v, on, c, p)
}

// note returns the note that the URL names.
func (w *Web) note(v *visit, ref project.Ref, c commentable) (plan.Noteable, *plan.Note, error) {
	on, err := c.find(v, ref)
	if err != nil {
		return on, nil, err
	}
	id, err := v.number("note")
	if err != nil {
		return on, nil, err
	}
	n, err := w.Plan.Note(v, on, id)
	return on, n, err
}

func (w *Web) editNote(c commentable) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		on, n, err := w.note(v, ref, c)
		if err != nil {
			return err
		}
		if !on.CanEdit(v.actor, n) {
			return errs.Forbidden("")
		}
		return w.showWriting(v, on, c, writing{Head: "Edit comment", Action: fmt.Sprintf("%s/notes/%d", targetPath(on, c), n.ID), Form: filled("note", n.Body)})
	}
}

func (w *Web) updateNote(c commentable) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		on, n, err := w.note(v, ref, c)
		if err != nil {
			return err
		}
		p := writing{Head: "Edit comment", Action: fmt.Sprintf("%s/notes/%d", targetPath(on, c), n.ID)}
		if v.ticked("preview") {
			p.Form, p.Looks = v.sent(), true
			on.Commands = nil // editing a comment runs no quick actions
			return w.showWriting(v, on, c, p)
		}
		if _, err := w.Plan.UpdateNote(v, v.actor, on, n.ID, v.text("note")); err != nil {
			return w.writeAgain(v, on, c, p, err)
		}
		return v.done("The comment was updated.", fmt.Sprintf("%s#note_%d", targetPath(on, c), n.ID))
	}
}

func (w *Web) deleteNote(c commentable) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		on, n, err := w.note(v, ref, c)
		if err != nil {
			return err
		}
		if err := w.Plan.DeleteNote(v, v.actor, on, n.ID, nil); err != nil {
			return err
		}
		return v.done("The comment was deleted.", targetPath(on, c))
	}
}
