package web

import (
	"strconv"
	"time"

	"svc/internal/emoji"
	"svc/internal/user"
)

func (w *Web) preferencePages() {
	w.page("GET /-/user_settings/preferences", signedIn, w.preferenceForm)
	w.page("POST /-/user_settings/preferences", signedIn, w.savePreferences)
	w.page("GET /-/profile/preferences", signedIn, func(v *visit) error { return v.redirect("/-/user_settings/preferences") })
	w.page("GET /-/user_settings/status", signedIn, w.statusForm)
	w.page("POST /-/user_settings/status", signedIn, w.saveStatus)
}

type preferencesPage struct {
	Form       form
	StartPages []option
	Days       []option
}

func (preferencesPage) view() string  { return "user/settings_preferences" }
func (preferencesPage) title() string { return "Preferences" }

// Options of the form.
func (preferencesPage) Themes() []option {
	return []option{{"", "System"}, {"light", "Light"}, {"dark", "Dark"}}
}

func (preferencesPage) Views() []option {
	return []option{{"inline", "Inline"}, {"parallel", "Side by side"}}
}

func (preferencesPage) Tabs() (list []option) {
	for _, n := range user.TabWidths() {
		list = append(list, option{strconv.Itoa(n), plural(n, "space")})
	}
	return list
}

// startPages are the names and paths of the pages that can be the start page.
func startPages() map[string][2]string {
	return map[string][2]string{
		"projects": {"Your projects", "/dashboard/projects"}, "starred": {"Starred projects", "/dashboard/projects?starred=1"},
		"groups": {"Your groups", "/dashboard/groups"}, "issues": {"Assigned issues", "/dashboard/issues"},
		"merge_requests": {"Merge requests", "/dashboard/merge_requests"}, "todos": {"To-do list", "/dashboard/todos"},
		"activity": {"Your activity", ""},
	}
}

func (w *Web) preferenceForm(v *visit) error {
	u := v.session.User
	a := u.Appearance
	f := filled("timezone", u.Timezone, "theme", a.Theme, "start_page", a.StartPage, "diff_view", a.DiffView, "tab_width", strconv.Itoa(a.TabWidth),
		"first_day", strconv.Itoa(a.FirstDay), "file_by_file", on(u.ViewDiffsFileByFile), "whitespace", on(u.ShowWhitespaceInDiffs),
		"identities", on(a.PassIdentities))
	if a.TabWidth == 0 {
		f.Values.Set("tab_width", "4")
	}
	return w.showPreferences(v, f)
}

func (w *Web) showPreferences(v *visit, f form) error {
	p := preferencesPage{Form: f, Days: []option{{"0", "Default (Monday)"}, {"1", "Sunday"}, {"2", "Monday"}, {"7", "Saturday"}}}
	for _, name := range user.StartPages() {
		value := name
		if name == "projects" {
			value = ""
		}
		p.StartPages = append(p.StartPages, option{value, startPages()[name][0]})
	}
	return v.showForm(p, f)
}

func (w *Web) savePreferences(v *visit) error {
	f := v.sent()
	text := func(name string) *string { value := v.text(name); return &value }
	number := func(name string) *int { n := int(v.whole(&f, name)); return &n }
	tick := func(name string) *bool { value := v.ticked(name); return &value }
	c := user.PreferenceChange{
		Timezone: text("timezone"), Theme: text("theme"), StartPage: text("start_page"), DiffView: text("diff_view"), TabWidth: number("tab_width"),
		FirstDay: number("first_day"), ViewDiffsFileByFile: tick("file_by_file"), ShowWhitespaceInDiffs: tick("whitespace"), PassIdentities: tick("identities"),
	}
	if f.bad() {
		return w.showPreferences(v, f)
	}
	if _, err := w.Users.SetPreferences(v, v.actor, c); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showPreferences(v, f)
	}
	// The saved preference replaces the choice in this browser.
	for _, name := range []string{"theme", "diff_view", "diff_w", "diff_single_file"} {
		v.setCookie(name, "", "/", -time.Second)
	}
	return v.done("Your preferences were saved.", "/-/user_settings/preferences")
}

// startPage returns the path of the start page of the user, or an empty string
// for the list of projects.
func startPage(u *user.User) string {
	if u.Appearance.StartPage == "activity" {
		return "/" + u.Username
	}
	if u.Appearance.StartPage == "" || u.Appearance.StartPage == "projects" {
		return ""
	}
	return startPages()[u.Appearance.StartPage][1]
}

type statusPage struct {
	Form   form
	Set    bool
	Common []*emoji.Emoji
	Times  []option
}

func (statusPage) view() string  { return "user/settings_status" }
func (statusPage) title() string { return "Status" }

func (w *Web) statusForm(v *visit) error {
	st := v.session.User.StatusAt(w.Now())
	return w.showStatus(v, filled("emoji", st.Emoji, "message", st.Message, "busy", on(st.Availability == user.Busy)))
}

func (w *Web) showStatus(v *visit, f form) error {
	st := v.session.User.StatusAt(w.Now())
	p := statusPage{Form: f, Set: st.Emoji != "", Times: []option{
		{"", "Never"}, {"30_minutes", "30 minutes"}, {"3_hours", "3 hours"}, {"8_hours", "8 hours"}, {"1_day", "1 day"}, {"3_days", "3 days"}, {"7_days", "7 days"},
		{"30_days", "30 days"},
	}}
	for _, name := range []string{"speech_balloon", "house", "palm_tree", "face_with_thermometer", "coffee", "rocket", "headphones", "calendar", "no_entry", "baby"} {
		if e := emoji.Find(name); e != nil {
			p.Common = append(p.Common, e)
		}
	}
	return v.showForm(p, f)
}

func (w *Web) saveStatus(v *visit) error {
	if v.ticked("clear") {
		_, err := w.Users.SetStatus(v, v.actor, user.StatusChange{})
		return v.redirectWithFlash(err, "Your status was cleared.", "/-/user_settings/status")
	}
	name, message, availability, after := v.text("emoji"), v.text("message"), user.NotSet, user.ClearAfter(v.text("clear_status_after"))
	f := v.sent()
	if name != "" && emoji.Find(name) == nil {
		f.wrong("emoji", "is not a valid emoji name")
		return w.showStatus(v, f)
	}
	if v.ticked("busy") {
		availability = user.Busy
	}
	_, err := w.Users.SetStatus(v, v.actor, user.StatusChange{Emoji: &name, Message: &message, Availability: &availability, ClearAfter: &after})
	if err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showStatus(v, f)
	}
	return v.done("Your status was updated.", "/-/user_settings/status")
}

// statusEmoji is the emoji of a user's status; empty for none.
func (w *Web) statusEmoji(u *user.User) string {
	if e := emoji.Find(u.StatusAt(w.Now()).Emoji); e != nil {
		return e.Text
	}
	return ""
}
