package web

import (
	"context"
	"html/template"
	"strconv"
	"strings"

	"svc/internal/git"
	"svc/internal/markup"
)

// anchored joins the lines of a file, each with an anchor for its number.
func anchored(lines []string, show excerpt) template.HTML {
	var b strings.Builder
	for n := show.First; n <= show.Last; n++ {
		at := strconv.Itoa(n)
		b.WriteString(`<span id="L` + at + `"><a href="#L` + at + `" data-n="` + at + `" aria-label="Line ` + at + `"></a>` + lines[n-1] + "\n</span>")
	}
	return template.HTML(b.String())
}

// highlighted returns the lines of a text as highlighted HTML. id is the blob
// ID of the text, if it has one.
func (w *Web) highlighted(ctx context.Context, name, source string, id git.OID) ([]string, error) {
	return w.Markup.Lines(ctx, markup.Source{Name: name, Text: shownText(strings.ReplaceAll(source, "\r\n", "\n")), ID: string(id)})
}
