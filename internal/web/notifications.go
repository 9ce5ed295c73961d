package web

import (
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/notify"
	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) notificationPages() {
	w.page("GET /-/user_settings/notifications", signedIn, w.notificationsPage)
	w.page("POST /-/user_settings/notifications", signedIn, w.saveNotifications)
	w.placePage("GET notifications", signedIn, w.placeNotifications)
	w.placePage("POST notifications", signedIn, w.savePlaceNotifications)
	const leave = "/-/sent_notifications/{token}/unsubscribe"
	w.page("GET "+leave, anyone, w.leavePage)
	// Email clients send this request by themselves, without a CSRF token: a caller
	// that knows the URL has the email.
	w.router.Post(leave, w.handler(leave, secretURL, w.unsubscribe))
}

// levelChoice is a level as pages offer it.
type levelChoice struct {
	Level      notify.Level
	Name, Text string
}

func levelChoices(everywhere bool) []levelChoice {
	list := []levelChoice{
		{notify.Watch, "Watch", "Most activity."},
		{notify.Participating, "Participate", "Items that you participate in, and mentions of you."},
		{notify.Mentioned, "On mention", "Only mentions of you."},
		{notify.Custom, "Custom", "Items that you participate in, and the events selected below."},
		{notify.Disabled, "Disabled", "Only items that you subscribed to."},
	}
	if everywhere {
		return list
	}
	return append([]levelChoice{{notify.Global, "Global", "Use the level of the parent group or your global level."}}, list...)
}

// eventGroup is a group of events on a page.
type eventGroup struct {
	Name   string
	Events []eventTick
}

type eventTick struct {
	Event notify.EventType
	Label string
	On    bool
}

// eventGroups are the events that pages offer, grouped by the type of object.
func eventGroups(t notify.Setting) []eventGroup {
	list := []eventGroup{
		{"Issues", []eventTick{
			{Event: notify.NewIssue, Label: "New"}, {Event: notify.CloseIssue, Label: "Closed"}, {Event: notify.ReopenIssue, Label: "Reopened"},
			{Event: notify.ReassignIssue, Label: "Reassigned"}, {Event: notify.IssueDue, Label: "Due today or tomorrow"},
		}},
		{"Merge requests", []eventTick{
			{Event: notify.NewMergeRequest, Label: "New"}, {Event: notify.CloseMergeRequest, Label: "Closed"},
			{Event: notify.ReopenMergeRequest, Label: "Reopened"}, {Event: notify.MergeMergeRequest, Label: "Merged"},
			{Event: notify.ReassignMergeRequest, Label: "Reassigned"}, {Event: notify.ChangeReviewer, Label: "Reviewers changed"},
			{Event: notify.PushToMergeRequest, Label: "Commits pushed"}, {Event: notify.MergeWhenSucceeds, Label: "Set to auto-merge when the pipeline succeeds"},
		}},
		{"Your pipelines", []eventTick{
			{Event: notify.FailedPipeline, Label: "Failed"}, {Event: notify.FixedPipeline, Label: "Fixed"}, {Event: notify.SuccessPipeline, Label: "Passed"},
		}},
		{"Other", []eventTick{{Event: notify.NewNote, Label: "Comments"}, {Event: notify.MovedProject, Label: "Moved projects"}, {Event: notify.NewRelease, Label: "New releases"}}},
	}
	for _, g := range list {
		for i := range g.Events {
			g.Events[i].On = t.Chosen(g.Events[i].Event)
		}
	}
	return list
}

// levelName returns the label of a level.
func levelName(l notify.Level) string {
	for _, c := range levelChoices(false) {
		if c.Level == l {
			return c.Name
		}
	}
	return string(l)
}

// choice has the level and the events of a form.
func (v *visit) choice() notify.Change {
	c := notify.Change{Events: map[notify.EventType]bool{}}
	if level := notify.Level(v.text("level")); level != "" {
		c.Level = &level
	}
	if !v.ticked("events") { // the form has no events
		return c
	}
	for _, g := range eventGroups(notify.Setting{}) {
		for _, e := range g.Events {
			c.Events[e.Event] = v.ticked(string(e.Event))
		}
	}
	return c
}

type notificationsPage struct {
	Form    form
	Setting notify.Setting
	Levels  []levelChoice
	Groups  []eventGroup
	Emails  []option
	Places  []notify.PlaceSetting
	User    *user.User
}

func (notificationsPage) view() string  { return "user/settings_notifications" }
func (notificationsPage) title() string { return "Notifications" }

func (w *Web) notificationsPage(v *visit) error { return w.showNotifications(v, filled()) }

func (w *Web) showNotifications(v *visit, f form) error {
	t, err := w.Notify.Everywhere(v, v.actor)
	if err != nil {
		return err
	}
	p := notificationsPage{Form: f, Setting: t, Levels: levelChoices(true), Groups: eventGroups(t), User: v.session.User}
	if !f.bad() {
		p.Form = filled("notification_email", t.Email, "own_acts", on(t.OwnActivity))
	}
	if p.Places, err = w.Notify.Places(v, v.actor); err != nil {
		return err
	}
	emails, err := w.Users.OwnEmails(v, v.actor, allOf())
	if err != nil {
		return err
	}
	p.Emails = []option{{p.User.Email, p.User.Email}}
	for _, e := range emails.Items {
		if e.ConfirmedAt != nil {
			p.Emails = append(p.Emails, option{e.Address, e.Address})
		}
	}
	return v.showForm(p, f)
}

func (w *Web) saveNotifications(v *visit) error {
	c := v.choice()
	email, own := v.text("notification_email"), v.ticked("own_acts")
	if strings.EqualFold(email, v.session.User.Email) {
		email = "" // the primary address, even if that changes
	}
	c.Email, c.OwnActivity = &email, &own
	if _, err := w.Notify.SetEverywhere(v, v.actor, c); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		f.only("notification_email")
		return w.showNotifications(v, f)
	}
	return v.done("Your notification settings were saved.", "/-/user_settings/notifications")
}

// bell is the button with the notification level of a project or group.
type bell struct {
	Frame  *frame
	Base   string // path of the place, for its pages
	Level  notify.Level
	Levels []levelChoice
}

func newBell(f *frame, base string, l notify.Level) bell {
	return bell{f, base, l, levelChoices(false)}
}

// Name returns the label of the level.
func (b bell) Name() string { return levelName(b.Level) }

// Token is the CSRF token of the form.
func (b bell) Token() string { return b.Frame.Token() }

type placeNotificationsPage struct {
	P       *head // one of these
	G       *groupHead
	Name    string
	Action  string
	Setting notify.Setting
	Levels  []levelChoice
	Groups  []eventGroup
}

func (placeNotificationsPage) view() string    { return "shared/notifications" }
func (p placeNotificationsPage) title() string { return "Notifications · " + p.Name }

func (w *Web) placeNotifications(v *visit, in project.Place) error {
	t, err := w.Notify.At(v, v.actor, in)
	if err != nil {
		return err
	}
	p := placeNotificationsPage{Action: pathTo(placePath(in)) + "/-/notifications", Setting: t, Levels: levelChoices(false), Groups: eventGroups(t)}
	if in.Group {
		h, err := w.groupHead(v, in.Ref, "notifications")
		if err != nil {
			return err
		}
		p.G, p.Name = &h, h.Group.FullName
		return v.show(p)
	}
	h, err := w.head(v, in.Ref, "notifications")
	if err != nil {
		return err
	}
	p.P, p.Name = &h, h.Project.FullName()
	return v.show(p)
}

func (w *Web) savePlaceNotifications(v *visit, in project.Place) error {
	c := v.choice()
	_, err := w.Notify.SetAt(v, v.actor, in, c)
	to := pathTo(string(in.Ref))
	if v.ticked("events") || c.Level != nil && *c.Level == notify.Custom { // custom events can be selected
		to = pathTo(placePath(in)) + "/-/notifications"
	}
	return v.redirectWithFlash(err, "Your notification settings were saved.", to)
}

// leavePage asks a user who followed a link in an email whether to unsubscribe.
// It is a form, because scanners of email follow links but send no forms.
type leavePage struct {
	Leaving *notify.Unsubscription
	Action  string
	Done    bool
}

func (leavePage) view() string  { return "user/leave" }
func (leavePage) title() string { return "Unsubscribe" }

func (w *Web) leavePage(v *visit) error { return w.showLeave(v, false) }

func (w *Web) showLeave(v *visit, done bool) error {
	token := chi.URLParam(v.r, "token")
	l, err := w.Notify.Unsubscription(v, v.actor, token)
	if err != nil {
		return err
	}
	return v.show(leavePage{Leaving: l, Action: "/-/sent_notifications/" + token + "/unsubscribe", Done: done})
}

func (w *Web) unsubscribe(v *visit) error {
	if err := w.Notify.Unsubscribe(v, chi.URLParam(v.r, "token")); err != nil {
		return err
	}
	return w.showLeave(v, true)
}
