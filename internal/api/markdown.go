package api

import (
	"html"
	"strings"

	"svc/internal/project"
)

func (a *API) markdownRoutes() {
	a.tag("Markdown")
	handle(a, "POST /markdown", writeAPI, a.renderMarkdown, summary("Render Markdown text as HTML"))
}

type markdownParams struct {
	Text    string       `param:"text,required,blank"`
	GFM     *bool        `param:"gfm" doc:"Whether to render GitLab Flavored Markdown. Default is true; false returns the escaped text."`
	Project *project.Ref `param:"project" doc:"Project used to resolve references to issues, labels and commits."`
}

type markdownJSON struct {
	HTML string `json:"html"`
}

// renderMarkdown: https://docs.gitlab.com/api/markdown/#render-an-arbitrary-markdown-document
func (a *API) renderMarkdown(c *call, p markdownParams) (markdownJSON, error) {
	if p.GFM != nil && !*p.GFM {
		return markdownJSON{"<p>" + strings.ReplaceAll(html.EscapeString(p.Text), "\n", "<br>\n") + "</p>"}, nil
	}
	text, err := a.Plan.Render(c, c.actor, p.Project, p.Text)
	return markdownJSON{text}, err
}
