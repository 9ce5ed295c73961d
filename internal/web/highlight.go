package web

import (
	"context"
	"html/template"
	"strconv"
	"strings"

	"svc/internal/git"
	"svc/internal/markup"
)

// anchored joins lines of a file, each with an anchor that has its number.
func anchored(lines []string, show excerpt) template.HTML {
	var b strings.Builder
	for n := show.First; n <= show.Last; n++ {
		at := strconv.Itoa(n)
		b.WriteString(`<span id="L` + at + `"><a href="#L` + at + `" data-n="` + at + `" aria-label="Line ` + at + `"></a>` + lines[n-1] + "\n</span>")
	}
	return template.HTML(b.String())
}

// highlighted highlights a text and gives its lines as HTML. id is that of its
// content, if it has one.
func (w *Web) highlighted(ctx context.Context, name, source string, id git.OID) ([]string, error) {
	return w.Markup.Lines(ctx, markup.Source{Name: name, Text: shownText(strings.ReplaceAll(source, "\r\n", "\n")), ID: string(id)})
}
