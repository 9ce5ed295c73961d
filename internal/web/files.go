package web

import (
	"html/template"
	"strings"
	"time"

	"svc/internal/git"
	"svc/internal/repo"
)

// fileTable draws the rows of a directory. It is drawn once for each commit, so
// times are dates, which the script turns into relative times. It does not use a
// template, which would take most of the time of the page.
func (w *Web) fileTable(at spot, v *repo.View) template.HTML {
	folder, file, module := string(w.icon("folder")), string(w.icon("file")), string(w.icon("module"))
	link := func(kind string, e git.Entry) string {
		return template.HTMLEscapeString(pathTo(at.project, "-", kind, at.ref, e.Path))
	}
	var b strings.Builder
	for _, e := range v.Entries {
		name := "<span>" + template.HTMLEscapeString(shown(e.Name)) + "</span>"
		switch e.Type {
		case git.TypeTree:
			b.WriteString(`<tr class="dir"><td><a href="` + link("tree", e) + `">` + folder + name + "</a></td>")
		case git.TypeCommit:
			b.WriteString(`<tr><td><span class="row">` + module + name + "</span></td>")
		default:
			b.WriteString(`<tr><td><a href="` + link("blob", e) + `">` + file + name + "</a></td>")
		}
		if c := v.Last[e.Name]; c != nil {
			title, when := template.HTMLEscapeString(shown(c.Title)), c.Committer.When.UTC()
			b.WriteString(`<td class="what" title="` + title + `">` + title + `</td>` +
				`<td class="when"><time datetime="` + when.Format(time.RFC3339) + `" data-ago>` + when.Format("2 Jan 2006") + "</time></td>")
		}
		b.WriteString("</tr>\n")
	}
	return template.HTML(b.String())
}
