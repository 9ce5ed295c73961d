package web

import (
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/broadcast"
	"svc/internal/markup"
	"svc/internal/project"
)

func (w *Web) broadcastPages() {
	w.page("POST /-/broadcast_messages/{id}/dismiss", anyone, w.dismissBroadcast)
	w.page("GET /admin/broadcast_messages", admins, w.broadcasts)
	w.page("POST /admin/broadcast_messages", admins, w.createBroadcast)
	w.page("GET /admin/broadcast_messages/{id}/edit", admins, w.editBroadcast)
	w.page("POST /admin/broadcast_messages/{id}", admins, w.updateBroadcast)
	w.page("POST /admin/broadcast_messages/{id}/delete", admins, w.deleteBroadcast)
}

// shownBroadcast is a message on a page.
type shownBroadcast struct {
	*broadcast.Message
	HTML template.HTML
}

// broadcasts returns the messages for the current page that the visitor has not
// dismissed. An error is logged and does not break the page.
func (v *visit) broadcasts() []shownBroadcast {
	list, err := v.web.Broadcasts.Shown(v, v.r.URL.Path, v.level)
	if err != nil {
		v.web.Log.WarnContext(v, "cannot show broadcast messages", "error", err)
		return nil
	}
	var shown []shownBroadcast
	for _, m := range list {
		if m.Dismissable && v.cookie(broadcastCookie(m.ID)) != "" {
			continue
		}
		html, err := v.web.Markup.Markdown(v, m.Text, markup.Options{})
		if err != nil {
			v.web.Log.WarnContext(v, "cannot show broadcast messages", "error", err)
			continue
		}
		shown = append(shown, shownBroadcast{m, template.HTML(html)})
	}
	return shown
}

func broadcastCookie(id int64) string { return "hide_broadcast_message_" + strconv.FormatInt(id, 10) }

// dismissBroadcast hides a message in this browser until it ends.
func (w *Web) dismissBroadcast(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	m, err := w.Broadcasts.Get(v, id)
	if err != nil {
		return err
	}
	if m.Dismissable {
		v.setCookie(broadcastCookie(id), "1", "/", min(max(m.EndsAt.Sub(w.Now()), time.Minute), 365*24*time.Hour))
	}
	return v.redirect(local(v.text("back")))
}

// broadcastsPage is the messages of the instance, with the form of one.
type broadcastsPage struct {
	Messages []*broadcast.Message
	ID       int64 // ID of the message in the form; 0 for a new one
	Form     form
	Now      time.Time
	Pager    pager
}

func (broadcastsPage) view() string  { return "admin/broadcasts" }
func (broadcastsPage) title() string { return "Broadcast messages · Admin area" }

// Types are where messages are shown.
func (broadcastsPage) Types() []option {
	return []option{{string(broadcast.Banner), "Banner"}, {string(broadcast.Notification), "Notification"}}
}

// Themes are the colors of messages.
func (broadcastsPage) Themes() []option {
	var list []option
	for _, name := range broadcast.Themes() {
		list = append(list, option{name, words(strings.ReplaceAll(name, "-", " "))})
	}
	return list
}

// Roles are the roles that a message can be limited to.
func (broadcastsPage) Roles() []option {
	var list []option
	for _, level := range broadcast.Levels() {
		list = append(list, option{strconv.FormatInt(level, 10), project.Level(level).String()})
	}
	return list
}

const clockLayout = "2006-01-02T15:04"

func (w *Web) broadcasts(v *visit) error {
	now := w.Now().UTC()
	f := filled("broadcast_type", "banner", "theme", "indigo", "dismissable", "1",
		"starts_at", now.Format(clockLayout), "ends_at", now.Add(24*time.Hour).Format(clockLayout))
	return w.showBroadcasts(v, 0, f)
}

func (w *Web) showBroadcasts(v *visit, id int64, f form) error {
	found, err := w.Broadcasts.List(v, v.paging())
	if err != nil {
		return err
	}
	f.only("message", "starts_at", "ends_at", "broadcast_type", "theme", "target_path")
	return v.showForm(broadcastsPage{Messages: found.Items, ID: id, Form: f, Now: w.Now(), Pager: v.pager(found.More)}, f)
}

func (w *Web) editBroadcast(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	m, err := w.Broadcasts.Get(v, id)
	if err != nil {
		return err
	}
	f := filled("message", m.Text, "broadcast_type", string(m.Type), "theme", m.Theme, "dismissable", on(m.Dismissable), "target_path", m.Path,
		"starts_at", m.StartsAt.UTC().Format(clockLayout), "ends_at", m.EndsAt.UTC().Format(clockLayout))
	for _, level := range m.Levels {
		f.Values.Add("target_access_levels", strconv.FormatInt(level, 10))
	}
	return w.showBroadcasts(v, id, f)
}

// sentBroadcast reads the form; times are in UTC.
func (v *visit) sentBroadcast(f *form) broadcast.Change {
	text, kind, theme, path, dismissable := v.text("message"), broadcast.Type(v.text("broadcast_type")), v.text("theme"), v.text("target_path"), v.ticked("dismissable")
	levels := []int64{}
	for _, sent := range v.r.PostForm["target_access_levels"] {
		if level, err := strconv.ParseInt(sent, 10, 64); err == nil && !slices.Contains(levels, level) {
			levels = append(levels, level)
		}
	}
	c := broadcast.Change{Text: &text, Type: &kind, Theme: &theme, Path: &path, Dismissable: &dismissable, Levels: &levels}
	for name, to := range map[string]**time.Time{"starts_at": &c.StartsAt, "ends_at": &c.EndsAt} {
		at, err := time.Parse(clockLayout, v.text(name))
		if err != nil {
			if f.Errors == nil {
				f.Errors = map[string][]string{}
			}
			f.Errors[name] = []string{"is invalid"}
			continue
		}
		*to = &at
	}
	return c
}

func (w *Web) createBroadcast(v *visit) error { return w.saveBroadcast(v, 0) }

func (w *Web) updateBroadcast(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return w.saveBroadcast(v, id)
}

func (w *Web) saveBroadcast(v *visit, id int64) error {
	f := v.sent()
	change := v.sentBroadcast(&f)
	if len(f.Errors) > 0 {
		return w.showBroadcasts(v, id, f)
	}
	var err error
	done := "The message was created."
	if id == 0 {
		_, err = w.Broadcasts.Create(v, v.actor, change)
	} else {
		done = "The message was saved."
		_, err = w.Broadcasts.Update(v, v.actor, id, change)
	}
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showBroadcasts(v, id, f)
	}
	return v.done(done, "/admin/broadcast_messages")
}

func (w *Web) deleteBroadcast(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Broadcasts.Delete(v, v.actor, id), "The message was deleted.", "/admin/broadcast_messages")
}
