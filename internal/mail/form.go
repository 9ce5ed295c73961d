package mail

import (
	"bytes"
	"embed"
	"fmt"
	htmltemplate "html/template"
	texttemplate "text/template"
)

//go:embed templates
var templates embed.FS

// forms are the two ways in which a letter is laid out.
type forms struct {
	text *texttemplate.Template
	html *htmltemplate.Template
}

func parseForms() *forms {
	return &forms{
		text: texttemplate.Must(texttemplate.ParseFS(templates, "templates/letter.txt")),
		html: htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/letter.html")),
	}
}

// write lays a letter out as text and as HTML.
func (f *forms) write(name, site string, l Letter) (text, html string, err error) {
	data := struct {
		Letter
		Service string
		Site    string
		Link    string
		Leave   string
		Manage  string
	}{Letter: l, Service: name, Site: site}
	if l.Path != "" {
		data.Link = site + l.Path
	}
	if l.Unsubscribe != "" {
		data.Leave = site + l.Unsubscribe
	}
	if l.Choose != "" {
		data.Manage = site + l.Choose
	}
	var t, h bytes.Buffer
	if err := f.text.Execute(&t, data); err != nil {
		return "", "", fmt.Errorf("lay out letter: %w", err)
	}
	if err := f.html.Execute(&h, data); err != nil {
		return "", "", fmt.Errorf("lay out letter: %w", err)
	}
	return t.String(), h.String(), nil
}

// Plain is a text as a letter shows it that no markup was made of.
func Plain(text string) htmltemplate.HTML {
	return `<div style="white-space:pre-wrap">` + htmltemplate.HTML(htmltemplate.HTMLEscapeString(text)) + `</div>`
}
