package web

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/plan"
	"svc/internal/plan/duration"
	"svc/internal/project"
	"svc/internal/user"
)

// This file has the pages and actions that issues and merge requests share.

// issuableKind describes issues or merge requests to these pages.
type issuableKind struct {
	commentable
	title  string       // "Issues"
	access project.Part // that readers need
	parts  []string     // that can be edited alone
	events map[string]issuableEvent

	load         func(*visit, project.Ref) (issuable, error)
	save         func(v *visit, ref project.Ref, iid int64, c planChange) error
	subscribe    func(v *visit, ref project.Ref, iid int64, want bool) error
	todo         func(v *visit, ref project.Ref, iid int64) error // adds a to-do item
	participants func(*visit, actor.Actor, project.Ref, int64) ([]*user.User, error)
	remove       func(v *visit, by actor.Actor, ref project.Ref, iid int64, unmodifiedSince *time.Time) error
}

// issuable is the issue or merge request that an address names, with the head of
// its pages. Plans of the head is the permission for the object itself.
type issuable struct {
	planHead
	*plan.Issuable
	Path, Ref string
	DueDate   string
	Weight    *int64
}

// issuableEvent is a change that a button makes.
type issuableEvent struct {
	done  string // the message
	plans bool   // it requires permission to plan
	do    func(v *visit, ref project.Ref, iid int64) error
}

// issuableView is the part of the page of an issue or merge request that both
// have.
type issuableView struct {
	planHead
	Edits        bool // title, description and state
	Deletes      bool
	Text         template.HTML
	Done         int // of the tasks
	Tasks        int
	Participants []*user.User
	Discussions  discussions
	Todo         int64 // the pending to-do item of the user; 0 for none
}

func (w *Web) issuablePages(k issuableKind) {
	w.commentPages(k.commentable)
	w.projectPage("POST "+strings.TrimSuffix(k.at, "/{id}")+"/bulk_update", signedIn, w.bulkUpdate(k))
	w.projectPage("POST "+k.at+"/tasks", signedIn, w.tickTask(k))
	w.projectPage("POST "+k.at+"/turn", signedIn, w.turnIssuable(k))
	w.projectPage("POST "+k.at+"/subscribe", signedIn, w.subscribeIssuable(k))
	w.projectPage("POST "+k.at+"/todo", signedIn, w.toggleTodo(k))
	w.projectPage("POST "+k.at+"/delete", signedIn, w.deleteIssuable(k))
	w.projectPage("GET "+k.at+"/edit/{part}", signedIn, w.editPart(k))
	w.projectPage("POST "+k.at+"/edit/{part}", signedIn, w.savePart(k))
}

// fillIssuable reads the description, the discussions and the participants.
func (w *Web) fillIssuable(v *visit, p *issuableView, k issuableKind, i *plan.Issuable) error {
	text := plan.Text{Source: i.Description}
	if p.Edits {
		text.Task = taskBox
	}
	tasks, err := w.Markup.Tasks(v, i.Description)
	if err != nil {
		return err
	}
	for _, done := range tasks {
		if p.Tasks++; done {
			p.Done++
		}
	}
	on, err := k.find(v, p.Place.Ref)
	if err != nil {
		return err
	}
	var texts []template.HTML
	if p.Discussions, texts, err = w.discussions(v, on, k.commentable, text); err != nil {
		return err
	}
	p.Text = texts[0]
	if p.Todo, err = w.Todos.PendingFor(v, v.actor, i.Target()); err != nil {
		return err
	}
	if p.Edits && p.Discussions.May && i.State != merge.Merged {
		p.Discussions.Event = map[bool]string{true: "reopen", false: "close"}[i.State == plan.Closed]
	}
	p.Participants, err = k.participants(v, v.actor, p.Place.Ref, i.IID)
	return err
}

// taskBox is the checkbox of a task list item: a button of a form elsewhere on
// the page.
func taskBox(n int, done bool) string {
	return fmt.Sprintf(`<button class="task" form="tasks" name="task" value="%d %t" role="checkbox" aria-checked="%t" aria-label="Task %d"></button> `, n, !done, done, n+1)
}

// tickTask checks or unchecks a task of the description.
func (w *Web) tickTask(k issuableKind) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		number, state, _ := strings.Cut(v.text("task"), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return errs.Invalid("The task does not exist.")
		}
		return w.actOn(v, ref, k, "", func(iid int64) error {
			return k.update(v, ref, iid, plan.Fields{Tick: &plan.Tick{Task: n, Done: state == "true"}})
		})
	}
}

// actOn changes the issue or merge request that the address names, and returns
// to its page with a message.
func (w *Web) actOn(v *visit, ref project.Ref, k issuableKind, done string, do func(iid int64) error) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	in, err := w.Projects.RequireView(v, v.actor, ref, k.access)
	if err != nil {
		return err
	}
	to := fmt.Sprintf("/%s/-/%s/%d", in.FullPath, k.path(), iid)
	err = do(iid)
	switch {
	case err == nil && done == "":
		return v.redirect(to)
	case errs.Is(err, errs.KindUnauthorized): // the user is known, so a permission is missing
		err = errs.Forbidden("You don't have permission for this action on this " + k.noun + ".")
	case errs.Is(err, errs.KindNotAllowed), errs.Is(err, errs.KindNotAcceptable):
		err = errs.Conflict("The state of the " + k.noun + " does not allow this. Reload the page.")
	}
	return v.redirectWithFlash(err, done, to)
}

// turnIssuable makes the changes of the buttons at the top: close and reopen,
// lock and unlock the discussion, and the events of the kind.
func (w *Web) turnIssuable(k issuableKind) func(*visit, project.Ref) error {
	yes, no := true, false
	update := func(f plan.Fields) func(*visit, project.Ref, int64) error {
		return func(v *visit, ref project.Ref, iid int64) error { return k.update(v, ref, iid, f) }
	}
	shared := map[string]issuableEvent{
		"close":  {"The " + k.noun + " was closed.", false, update(plan.Fields{Event: "close"})},
		"reopen": {"The " + k.noun + " was reopened.", false, update(plan.Fields{Event: "reopen"})},
		"lock":   {"The discussion was locked to project members.", true, update(plan.Fields{Locked: &yes})},
		"assign": {"You were assigned.", true, w.assignSelf(k)},
		"unlock": {"The discussion was unlocked.", true, update(plan.Fields{Locked: &no})},
	}
	return func(v *visit, ref project.Ref) error {
		name := v.text("event")
		event, ok := shared[name]
		if !ok {
			event, ok = k.events[name]
		}
		if !ok {
			return errs.Invalid("Unknown action for this " + k.noun + ".")
		}
		return w.actOn(v, ref, k, event.done, func(iid int64) error {
			if event.plans {
				i, err := k.load(v, ref)
				if err == nil && !i.Plans {
					err = errs.Forbidden("") // the feature would ignore the field
				}
				if err != nil {
					return err
				}
			}
			return event.do(v, ref, iid)
		})
	}
}

// assignSelf adds the user to the assignees.
func (w *Web) assignSelf(k issuableKind) func(*visit, project.Ref, int64) error {
	return func(v *visit, ref project.Ref, iid int64) error {
		i, err := k.load(v, ref)
		if err != nil {
			return err
		}
		ids := []int64{v.actor.ID}
		for _, u := range i.Assignees {
			ids = append(ids, u.ID)
		}
		return k.save(v, ref, iid, planChange{Fields: plan.Fields{Assignees: &ids}})
	}
}

func (w *Web) subscribeIssuable(k issuableKind) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		want := v.ticked("want")
		done := "You will no longer be notified of changes."
		if want {
			done = "You will be notified of changes."
		}
		return w.actOn(v, ref, k, done, func(iid int64) error { return k.subscribe(v, ref, iid, want) })
	}
}

func (w *Web) deleteIssuable(k issuableKind) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		iid, err := v.number("id")
		if err != nil {
			return err
		}
		if err := k.remove(v, v.actor, ref, iid, nil); err != nil {
			return err
		}
		return w.doneWith(v, ref, "The "+k.noun+" was deleted.", "%s", k.path())
	}
}

// partPage edits one planning field. The script shows its form beside the
// object.
type partPage struct {
	planHead
	List      option // path and title of the list, for the breadcrumbs
	Ref, Path string
	Which     string // labels, assignees, reviewers, milestone, due_date, weight or time
	Form      form
	Choices   []choice
	Goals     []option
}

func (partPage) view() string    { return "project/issue_part" }
func (p partPage) title() string { return words(p.Which) + " of " + p.Ref + " · " + p.Name() }

// loadPart returns the object and the page of the field that the URL names.
// Requires permission to plan the object. NotFound; Forbidden.
func (w *Web) loadPart(v *visit, ref project.Ref, k issuableKind) (partPage, issuable, error) {
	i, err := k.load(v, ref)
	if err != nil {
		return partPage{}, i, err
	}
	if !i.Plans {
		return partPage{}, i, errs.Forbidden("") // the feature would ignore the field
	}
	which := chi.URLParam(v.r, "part")
	if !slices.Contains(k.parts, which) {
		return partPage{}, i, errs.NotFound("")
	}
	return partPage{planHead: i.planHead, List: option{k.path(), k.title}, Ref: i.Ref, Path: i.Path, Which: which}, i, nil
}

// showPart shows the form of a field; goal is the current milestone.
func (w *Web) showPart(v *visit, p partPage, f form, goal *plan.Milestone) (err error) {
	p.Form = f
	switch p.Which {
	case "labels":
		p.Choices, err = w.labelChoices(v, p.Place, f.Values["labels"])
	case "assignees":
		p.Choices, err = w.memberChoices(v, p.Place, f.Values["assignee_ids"])
	case "reviewers":
		p.Choices, err = w.memberChoices(v, p.Place, f.Values["reviewer_ids"])
	case "milestone":
		p.Goals, err = w.goalOptions(v, p.Place, goal)
	}
	if err != nil {
		return err
	}
	return v.showForm(p, f)
}

func (w *Web) editPart(k issuableKind) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		p, i, err := w.loadPart(v, ref, k)
		if err != nil {
			return err
		}
		f := filled("due_date", i.DueDate, "weight", numberOrEmpty(i.Weight), "estimate", duration.Format(i.TimeEstimate))
		fillPlan(f, i.Issuable)
		return w.showPart(v, p, f, i.Milestone)
	}
}

func (w *Web) savePart(k issuableKind) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		p, i, err := w.loadPart(v, ref, k)
		if err != nil {
			return err
		}
		f := v.sent()
		var c planChange
		if v.readPlan(&f, &c, p.Which); f.bad() {
			return w.showPart(v, p, f, i.Milestone)
		}
		if err := k.save(v, ref, i.IID, c); err != nil {
			if err := f.refused(err); err != nil {
				return err
			}
			return w.showPart(v, p, f, i.Milestone)
		}
		return v.redirect(p.Path)
	}
}
