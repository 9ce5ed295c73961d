package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"svc/internal/db"
	"svc/internal/plan/duration"
	"svc/internal/project"
	"svc/internal/todo"
	"svc/internal/user"
)

//go:embed templates
var templates embed.FS

// content is the content of a page: a struct for each template.
type content interface {
	view() string  // name of the template
	title() string // title of the document
}

// views are the templates. Each is parsed when it is first shown, so that the
// server starts faster.
type views struct {
	byName map[string]func() *template.Template
}

// get returns a template by its name, or nil.
func (s *views) get(name string) *template.Template {
	if parsed := s.byName[name]; parsed != nil {
		return parsed()
	}
	return nil
}

// parts are templates that others use.
const parts = "templates/parts"

func (w *Web) parseViews() *views {
	base := sync.OnceValue(func() *template.Template {
		shared := template.New("").Funcs(w.funcs())
		for _, file := range templateFiles(parts) {
			template.Must(shared.Parse(w.source(file)))
		}
		return shared
	})
	set := &views{byName: map[string]func() *template.Template{}}
	for _, file := range templateFiles("templates/*") {
		if strings.HasPrefix(file, parts) {
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
		set.byName[name] = sync.OnceValue(func() *template.Template {
			return template.Must(template.Must(base().Clone()).Parse(w.source(file)))
		})
	}
	return set
}

func templateFiles(dir string) []string {
	files, err := fs.Glob(templates, dir+"/*.html")
	if err != nil {
		panic(err) // they are part of the program
	}
	return files
}

// constant is an icon or a file that a template names itself.
var constant = regexp.MustCompile(`\{\{(icon|asset) "([\w.-]+)"\}\}`)

// indentation is a line break with the tabs that follow it.
var indentation = regexp.MustCompile(`\n\t+`)

// source returns the text of a template without its indentation, so that line breaks
// in templates do not make pages larger. A line that starts with tabs continues the
// line before; a space after the tabs is kept. Constants that are the same on every
// page are inserted here: a function call in a template costs more than most
// queries.
func (w *Web) source(file string) string {
	text, err := templates.ReadFile(file)
	if err != nil {
		panic(err) // it is part of the program
	}
	return constant.ReplaceAllStringFunc(indentation.ReplaceAllString(string(text), ""), func(call string) string {
		found := constant.FindStringSubmatch(call)
		if found[1] == "icon" {
			return string(w.icon(found[2]))
		}
		return w.assets.path(found[2])
	})
}

// frame is the data of the layout besides the content.
type frame struct {
	Site         *Site
	Title        string
	User         *user.User // nil if the visitor has not signed in
	Impersonator *user.User // the administrator who impersonates the user
	Flash        *flash
	Theme        string // dark, light, or empty for the system theme
	Path         string // of this page
	Links        template.HTML
	Side         template.HTML // the sidebar, if the page has one
	Within       searchPlace   // what the search box searches
	Wide         bool          // the page uses the whole width of the window
	Now          time.Time
	SignUp       bool
	NoMail       bool
	Unproven     bool // the address of the user is not confirmed
	Page         content
	Counts       todo.Counts // of a signed-in user
	Status       string      // the emoji of their status
	Zone         string      // their time zone
	Tab          int         // tab width; 0 for the default

	Broadcasts []shownBroadcast // messages of administrators

	visit *visit
}

// Token returns the CSRF token for forms. Pages without forms do not ask for it
// and need no cookie.
func (f *frame) Token() string { return f.visit.csrf() }

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// render responds with a page.
func (v *visit) render(status int, c content) error {
	t := v.web.views.get(c.view())
	if t == nil {
		return fmt.Errorf("there is no template %q", c.view())
	}
	settings, err := v.web.Settings.Current(v)
	if err != nil {
		return err
	}
	f := &frame{
		Site: &v.web.Site, Title: c.title(), visit: v, Flash: v.flash, Path: v.r.URL.Path, Now: v.web.Now(),
		SignUp: settings.SignUpEnabled && settings.PasswordForWeb, NoMail: !v.web.Mail.Enabled(), Page: c,
	}
	f.Broadcasts = v.broadcasts()
	if v.session != nil {
		f.User, f.Impersonator = v.session.User, v.session.Impersonator
		f.Unproven = f.User.ConfirmedAt == nil && f.Impersonator == nil
	}
	if f.User != nil {
		if f.Counts, err = v.web.Todos.Counts(v, v.actor); err != nil {
			return err
		}
	}
	f.Links, f.Side = mainLinks(f.Path, f.User != nil, f.Counts), v.sideBar()
	if v.inside != nil {
		f.Within = v.inside.search
	}
	if c, ok := c.(interface{ wide() bool }); ok {
		f.Wide = c.wide()
	}
	if f.User != nil {
		f.Theme, f.Tab, f.Zone = f.User.Appearance.Theme, f.User.Appearance.TabWidth, f.User.Timezone
		f.Status = v.web.statusEmoji(f.User)
	}
	if theme := v.cookie("theme"); theme == "dark" || theme == "light" {
		f.Theme = theme
	}
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	if err := t.ExecuteTemplate(b, "layout", f); err != nil {
		return fmt.Errorf("render %s: %w", c.view(), err)
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// A page and its form tokens are for this visitor only.
	h.Set("Cache-Control", "no-store")
	v.answer(status, b)
	return nil
}

// part renders a part of a page that is cached.
func (w *Web) part(view, name string, data any) (template.HTML, error) {
	var b strings.Builder
	if err := w.views.get(view).ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return template.HTML(b.String()), nil
}

// mainLinks returns the links of the top bar, which contains them twice.
func mainLinks(path string, user bool, n todo.Counts) template.HTML {
	var b strings.Builder
	add := func(name string, to ...string) {
		b.WriteString(`<a href="` + to[0] + `"`)
		if slices.Contains(to, path) {
			b.WriteString(` aria-current="page"`)
		}
		b.WriteString(">" + name + "</a>\n")
	}
	if user {
		add("Projects", "/dashboard/projects", "/", "/dashboard")
		add("Groups", "/dashboard/groups")
		add("Issues"+string(counter("issues", n.Issues)), "/dashboard/issues")
		add("Merge requests"+string(counter("merges", n.Merges)), "/dashboard/merge_requests")
	}
	add("Explore", "/explore", "/explore/projects", "/explore/groups", "/explore/snippets")
	return template.HTML(b.String())
}

// counter is a number in the header, which the script keeps up to date.
func counter(name string, n int) template.HTML {
	text, hidden := strconv.Itoa(n), ""
	if n >= todo.MaxCount {
		text = strconv.Itoa(todo.MaxCount-1) + "+"
	}
	if n == 0 {
		hidden = " hidden"
	}
	return template.HTML(` <span class="counter" data-count="` + name + `"` + hidden + `>` + text + `</span>`)
}

// show responds with a page and status 200.
func (v *visit) show(c content) error { return v.render(http.StatusOK, c) }

// again responds with the page of a form that was refused.
func (v *visit) again(c content) error { return v.render(http.StatusUnprocessableEntity, c) }

func (w *Web) funcs() template.FuncMap {
	return template.FuncMap{
		"asset": w.assets.path,
		"icon":  w.icon,
		"since": w.since,
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"day":   func(t time.Time) string { return t.UTC().Format("2 January 2006") },
		"field": newField, "kind": fieldKind, "hint": fieldHint, "auto": fieldAuto, "place": fieldPlace, "rows": fieldRows,
		"needed": fieldNeeded, "first": fieldFirst, "id": fieldID,
		"choose": newChoice, "tick": newTick, "join": newJoin, "bell": newBell, "secret": newCopied,
		"int": func(n int64) int { return int(n) }, "minutes": func(seconds *int64) int64 { return *seconds / 60 },
		"firstline": func(text string) string { line, _, _ := strings.Cut(text, "\n"); return line },
		"act":       newAction, "look": actionKind, "ask": actionAsk, "about": actionAbout, "sends": actionSends, "symbol": actionSymbol,
		"chip": chip, "below": nameBelow, "editor": newEditor,
		"face": face, "userface": userFace, "projectface": projectFace, "groupface": groupFace, "size": faceSize,
		"portrait": drawFace,
		"counter":  counter, "issuerows": w.drawIssues, "mergerows": w.drawMerges, "pipelinerows": w.drawPipelines, "nodehtml": w.drawNode,
		"notehtml": w.drawNote, "threadshtml": w.drawThreads, "reactionshtml": w.drawReactions,
		"accountmenu": w.drawAccountMenu, "cardshtml": w.drawCards, "detailshtml": w.drawDetails, "descriptionhtml": w.drawDescription, "tasksform": w.drawTasksForm,
		"plural":   plural,
		"duration": duration.Format,
		"words":    words,
		"state":    newState, "took": tookText, "until": w.until, "percent": percent, "weblink": webAddress, "pair": newPair, "refs": newRefs,
		"bytes":        byteSize,
		"link":         pathTo,
		"shown":        shown,
		"message":      shownMessage,
		"brief":        shownMessagePart,
		"archives":     archiveForms,
		"refof":        func(p *project.Project, name string) refOf { return refOf{p, name} },
		"switcher":     newSwitcher,
		"matched":      matchParts,
		"odd":          func(n int) bool { return n%2 == 1 },
		"days":         func(base string, list []commitDay) daysOf { return daysOf{base, list} },
		"trimslash":    func(s string) string { return strings.TrimPrefix(s, "/") },
		"level":        func(l project.Level) string { return l.String() },
		"packagelevel": ruleLevelName,
		"short":        func(id any) string { return shortID(fmt.Sprint(id)) },
		"in": func(list []string, s string) bool {
			for _, e := range list {
				if e == s {
					return true
				}
			}
			return false
		},
	}
}

// icon draws an icon. Icons are decoration: buttons also have a text.
func (w *Web) icon(name string) template.HTML {
	return template.HTML(`<svg class="icon" aria-hidden="true"><use href="` + w.assets.path("icons.svg") + `#` + template.HTMLEscapeString(name) + `"/></svg>`)
}

// since formats the time since an event. The script keeps it up to date.
func (w *Web) since(t any) template.HTML {
	var at time.Time
	switch t := t.(type) {
	case time.Time:
		at = t
	case *time.Time:
		if t == nil {
			return "never"
		}
		at = *t
	}
	stamp := at.UTC().Format(time.RFC3339)
	return template.HTML(`<time datetime="` + stamp + `" data-ago title="` + stamp + `">` + ago(w.Now().Sub(at)) + "</time>")
}

func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return plural(int(d/time.Minute), "minute") + " ago"
	case d < 24*time.Hour:
		return plural(int(d/time.Hour), "hour") + " ago"
	case d < 30*24*time.Hour:
		return plural(int(d/(24*time.Hour)), "day") + " ago"
	case d < 365*24*time.Hour:
		return plural(int(d/(30*24*time.Hour)), "month") + " ago"
	}
	return plural(int(d/(365*24*time.Hour)), "year") + " ago"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func byteSize(n int64) string {
	switch {
	case n < 1<<10:
		return plural(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

func shortID(id string) string { return id[:min(8, len(id))] }

// portrait is the avatar of a user, project or group, or its initial.
type portrait struct {
	Name, URL, Size string
	Hue             int64
}

func face(name, kind string, id int64, file string) portrait {
	p := portrait{Name: name, Hue: id % 8}
	if file != "" {
		p.URL = fmt.Sprintf("/uploads/-/system/%s/avatar/%d/%s", kind, id, file)
	}
	return p
}

// drawFace draws an avatar without a template, because lists have one in each
// row.
func drawFace(p portrait) template.HTML {
	inner := "?"
	for _, r := range p.Name {
		inner = template.HTMLEscapeString(strings.ToUpper(string(r)))
		break
	}
	if p.URL != "" {
		inner = `<img src="` + template.HTMLEscapeString(pathTo(p.URL)) + `" alt="" loading="lazy">`
	}
	return template.HTML(`<span class="face ` + template.HTMLEscapeString(p.Size) + ` h` + strconv.FormatInt(p.Hue, 10) + `" aria-hidden="true">` + inner + "</span>")
}

func userFace(u *user.User) portrait          { return face(u.Name, "user", u.ID, u.Avatar) }
func projectFace(p *project.Project) portrait { return face(p.Name, "project", p.ID, p.Avatar) }
func groupFace(n *project.Namespace) portrait { return face(n.Name, "group", n.ID, n.Avatar) }
func faceSize(size string, p portrait) portrait {
	p.Size = size
	return p
}

// join has the buttons to request access and to leave.
type join struct {
	Frame      *frame
	Base, Name string
	Membership project.MembershipState
}

func newJoin(f *frame, base, name string, s project.MembershipState) join {
	return join{f, base, name, s}
}

// copied is a text with a copy button, usually a secret.
type copied struct{ ID, What, Secret, Text string }

func newCopied(id, what, secret, text string) copied { return copied{id, what, secret, text} }

// pager has the links to the previous and next page of a list.
type pager struct{ Before, After string }

// perPage is the number of rows of a list on a page.
const perPage = 20

func (v *visit) paging() db.Paging {
	return db.Paging{Limit: perPage, Offset: (v.pageNumber() - 1) * perPage}
}

func (v *visit) pager(more bool) pager {
	return pagerOf(v.r.URL.Query(), "page", v.pageNumber(), more)
}

func pagerOf(query url.Values, param string, n int, more bool) pager {
	at := func(n int) string {
		query.Set(param, strconv.Itoa(n))
		return "?" + query.Encode()
	}
	var p pager
	if n > 1 {
		p.Before = at(n - 1)
	}
	if more {
		p.After = at(n + 1)
	}
	return p
}
