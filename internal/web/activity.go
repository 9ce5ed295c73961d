package web

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"svc/internal/activity"
	"svc/internal/db"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/wiki"
)

func (w *Web) activityPages() {
	w.projectPage("GET activity", anyone, w.projectActivity)
	w.groupPage("GET activity", anyone, w.groupActivity)
	w.page("GET /dashboard/activity", signedIn, w.ownActivity)
	w.page("GET /users/{username}/activity", anyone, w.userActivity)
}

// activityPage lists the activity in a project, in a group, or in all projects
// of which the user is a member.
type activityPage struct {
	P      *head
	G      *groupHead
	Kind   string // kind of events to show; empty for all
	Events []eventView
	Pager  pager
}

func (activityPage) view() string { return "shared/activity" }
func (p activityPage) title() string {
	switch {
	case p.P != nil:
		return "Activity · " + p.P.Project.FullName()
	case p.G != nil:
		return "Activity · " + p.G.Group.FullName
	}
	return "Your projects' activity"
}

// Kinds are the kinds of events that the list can be filtered by.
func (activityPage) Kinds() []option {
	return []option{{"", "All"}, {"push", "Pushes"}, {"issue", "Issues"}, {"merge", "Merge requests"}, {"comment", "Comments"}, {"team", "Team"}}
}

// eventFilter reads the filter from the query.
func (v *visit) eventFilter() (activity.Filter, string) {
	kind := v.param("event_filter")
	switch kind {
	case "push":
		return activity.Filter{Action: activity.Pushed}, kind
	case "issue":
		return activity.Filter{TargetTypes: []string{"Issue"}}, kind
	case "merge":
		return activity.Filter{TargetTypes: []string{"MergeRequest"}}, kind
	case "comment":
		return activity.Filter{Action: activity.Commented}, kind
	case "team":
		return activity.Filter{Action: activity.Joined}, kind
	}
	return activity.Filter{}, ""
}

// showActivity responds with a list of events.
func (w *Web) showActivity(v *visit, p activityPage, read func(activity.Filter, db.Paging) (db.Page[*activity.Event], error)) error {
	f, kind := v.eventFilter()
	page, err := read(f, v.paging())
	if err != nil {
		return err
	}
	if p.Events, err = w.eventViews(v, page.Items); err != nil {
		return err
	}
	if p.P != nil { // the page shows the project above
		for i := range p.Events {
			if p.Events[i].What != "" {
				p.Events[i].In = nil
			}
		}
	}
	p.Kind, p.Pager = kind, v.pager(page.More)
	return v.show(p)
}

func (w *Web) projectActivity(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "activity")
	if err != nil {
		return err
	}
	return w.showActivity(v, activityPage{P: &h}, func(f activity.Filter, p db.Paging) (db.Page[*activity.Event], error) {
		return w.Activity.OfProject(v, v.actor, h.in(), f, p)
	})
}

func (w *Web) groupActivity(v *visit, ref project.Ref) error {
	g, err := w.groupHead(v, ref, "activity")
	if err != nil {
		return err
	}
	return w.showActivity(v, activityPage{G: &g}, func(f activity.Filter, p db.Paging) (db.Page[*activity.Event], error) {
		return w.Activity.OfGroup(v, v.actor, ref, f, p)
	})
}

func (w *Web) ownActivity(v *visit) error {
	if err := v.visited(); err != nil {
		return err
	}
	return w.showActivity(v, activityPage{}, func(f activity.Filter, p db.Paging) (db.Page[*activity.Event], error) {
		return w.Activity.OfMemberships(v, v.actor, f, p)
	})
}

// userActivity redirects from the path that GitLab has for the activity of a user.
func (w *Web) userActivity(v *visit) error {
	return v.redirect(pathTo(chi.URLParam(v.r, "username")) + "?tab=activity")
}

// eventView is an event as it is shown: who did what, to which object, and
// where.
type eventView struct {
	*activity.Event
	Verb  string
	What  string // name of the object, if it has one
	Path  string // path of the object; empty if it has no page
	More  string // a sentence about the change
	In    *project.Project
	Icon  string
	Title string // title of the object
}

// eventViews describes events that the visitor can see.
func (w *Web) eventViews(v *visit, list []*activity.Event) ([]eventView, error) {
	var ids, noteIDs []int64
	for _, e := range list {
		if e.ProjectID != nil {
			ids = append(ids, *e.ProjectID)
		}
		if e.Action == activity.Commented && e.TargetID != nil {
			noteIDs = append(noteIDs, *e.TargetID)
		}
	}
	projects, err := w.Projects.Among(v, v.actor, ids)
	if err != nil {
		return nil, err
	}
	byID := map[int64]*project.Project{}
	for _, p := range projects {
		byID[p.ID] = p
	}
	notes, err := w.Plan.NotesOf(v, noteIDs)
	if err != nil {
		return nil, err
	}
	var views []eventView
	refs := map[string]bool{} // refs that exist
	for _, e := range list {
		one := eventView{Event: e, Verb: string(e.Action), Icon: "info"}
		if e.ProjectID != nil {
			if one.In = byID[*e.ProjectID]; one.In == nil {
				continue // it was deleted since
			}
		}
		one.describe(notes)
		if e.Push != nil && one.Path != "" {
			key := one.Path + " " + e.Push.RefType
			if _, known := refs[key]; !known {
				if refs[key], err = w.Repos.HasRef(v, one.In, e.Push.Ref, e.Push.RefType == "tag"); err != nil {
					return nil, err
				}
			}
			if !refs[key] {
				one.Path = "" // deleted since
			}
		}
		views = append(views, one)
	}
	return views, nil
}

// describe sets the texts of an event.
func (e *eventView) describe(notes map[int64]*plan.Note) {
	base := "/-/" // of things outside of projects
	if e.In != nil {
		base = "/" + e.In.FullPath + "/-/"
	}
	switch {
	case e.Push != nil:
		e.describePush(base)
	case e.Action == activity.Commented:
		e.Icon, e.Verb, e.Title = "talk", "commented on", e.TargetTitle
		if n := notes[*e.TargetID]; n != nil {
			e.More = beginning(n.Body)
			e.What, e.Path = thingName(string(n.On.Kind), n.OnIID, base)
			if e.Path != "" {
				e.Path += fmt.Sprintf("#note_%d", n.ID)
			}
		}
		if e.What == "" {
			e.What = strings.ToLower(apart(e.Subject.Type))
		}
	case e.TargetType == "Project":
		e.Icon, e.Verb = "project", "created the project"
	case e.TargetType == "":
		e.Icon = "users"
		e.Verb = map[activity.Action]string{activity.Joined: "joined", activity.Left: "left", activity.Expired: "was removed due to membership expiration from"}[e.Action]
	default:
		e.Icon, e.Title = "issue", e.TargetTitle
		e.Verb = map[activity.Action]string{activity.Created: "opened", activity.Destroyed: "deleted"}[e.Action]
		if e.TargetType == "Snippet" || e.TargetType == wiki.TargetType {
			e.Icon = "file"
		}
		if e.Verb == "" || e.Icon == "file" && e.Action == activity.Created {
			e.Verb = string(e.Action)
		}
		iid := int64(0)
		if e.TargetIID != nil {
			iid = *e.TargetIID
		}
		e.What, e.Path = thingName(e.TargetType, iid, base)
		if e.Action == activity.Destroyed {
			e.Path = ""
		}
	}
}

// describePush sets the texts of a push.
func (e *eventView) describePush(base string) {
	p := e.Push
	e.Icon, e.More = "commit", p.CommitTitle
	e.Verb = map[activity.PushAction]string{activity.RefCreated: "pushed a new", activity.RefPushed: "pushed to", activity.RefRemoved: "removed"}[p.Action] + " " + p.RefType
	e.What = shown(p.Ref)
	if p.Ref == "" {
		e.What = plural(p.RefCount, "ref")
		return
	}
	if p.Action != activity.RefRemoved {
		e.Path = base + "commits" + pathTo(p.Ref)
	}
	if p.CommitCount > 1 {
		e.More = plural(p.CommitCount, "commit") + ", latest: " + shown(p.CommitTitle)
	}
}

// thingName returns the name and the path of an object of a project.
func thingName(kind string, iid int64, base string) (name, path string) {
	for _, k := range []struct{ kind, word, sign, page string }{
		{"Issue", "issue", "#", "issues"}, {"MergeRequest", "merge request", "!", "merge_requests"}, {"Milestone", "milestone", "%", "milestones"},
		{"Snippet", "snippet", "$", "snippets"},
	} {
		if k.kind == kind && iid > 0 {
			return fmt.Sprintf("%s %s%d", k.word, k.sign, iid), fmt.Sprintf("%s%s/%d", base, k.page, iid)
		}
	}
	if kind == wiki.TargetType {
		return "wiki page", ""
	}
	return strings.ToLower(apart(kind)), ""
}

// apart puts spaces between the words of a name like MergeRequest.
func apart(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// beginning returns the first characters of a text.
func beginning(text string) string {
	const most = 160
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
