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

// layouts are the two ways in which a letter is laid out.
type layouts struct {
	text *texttemplate.Template
	html *htmltemplate.Template
}

func parseLayouts() *layouts {
	return &layouts{
		text: texttemplate.Must(texttemplate.ParseFS(templates, "templates/email.txt")),
		html: htmltemplate.Must(htmltemplate.ParseFS(templates, "templates/email.html")),
	}
}

// execute lays a letter out as text and as HTML.
func (f *layouts) execute(name, site string, l Email) (text, html string, err error) {
	data := struct {
		Email
		Service string
		Site    string
		Link    string
		Leave   string
		Manage  string
	}{Email: l, Service: name, Site: site}
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
