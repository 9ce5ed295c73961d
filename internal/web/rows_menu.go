package web

import "html/template"

// drawAccountMenu draws the menus of a signed-in user, which every page has.
func (w *Web) drawAccountMenu(f *frame) template.HTML {
	m := &markupWriter{web: w}
	m.Grow(4 << 10)
	item := func(href, icon, label template.HTML) {
		m.raw(`<a href="`, href, `">`, w.icon(string(icon)), ` `, label, `</a>`)
	}
	m.raw(`<details class="menu"><summary class="round" aria-label="New" title="New">`, w.icon("plus"), `</summary><div class="sheet">`)
	item("/projects/new", "project", "New project")
	item("/groups/new", "group", "New group")
	item("/-/snippets/new", "file", "New snippet")
	m.raw(`</div></details><details class="menu"><summary class="round" aria-label="Your account">`,
		drawFace(faceSize("tiny round-face", userFace(f.User))), `</summary><div class="sheet"><div class="who"><b>`)
	m.text(f.User.Name)
	m.raw(`</b> `)
	m.text(f.Status)
	m.raw(`<br><span class="muted">@`)
	m.text(f.User.Username)
	m.raw(`</span></div><hr>`)
	status := template.HTML("Set status")
	if f.Status != "" {
		status = "Edit status"
	}
	item("/-/user_settings/status", "smile", status)
	m.raw(`<a href="/`)
	m.text(f.User.Username)
	m.raw(`">`, w.icon("user"), ` Profile</a>`)
	item("/-/user_settings/profile", "settings", "Settings")
	item("/-/user_settings/preferences", "screen", "Preferences")
	if f.User.Admin {
		item("/admin", "gauge", "Admin area")
	}
	m.raw(`<button type="button" data-show-keys hidden>`, w.icon("keyboard"), ` Keyboard shortcuts</button><hr><form method="post" action="/users/sign_out">`)
	m.token(f)
	m.raw(`<button>`, w.icon("out"), ` Sign out</button></form></div></details>`)
	return m.html()
}
