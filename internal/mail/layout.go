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

// layouts are the templates of an email: plain text and HTML.
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

// execute renders an email as text and as HTML.
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
		return "", "", fmt.Errorf("render email: %w", err)
	}
	if err := f.html.Execute(&h, data); err != nil {
		return "", "", fmt.Errorf("render email: %w", err)
	}
	return t.String(), h.String(), nil
}

// Plain returns plain text as HTML that preserves its line breaks.
func Plain(text string) htmltemplate.HTML {
	return `<div style="white-space:pre-wrap">` + htmltemplate.HTML(htmltemplate.HTMLEscapeString(text)) + `</div>`
}
