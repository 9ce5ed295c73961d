package web

import (
	"context"
	"html/template"
	"net/url"
	"path"
	"strings"

	"svc/internal/markup"
)

// spot is the location of a text in a repository, which its links are relative
// to.
type spot struct {
	project string // full path
	ref     string
	dir     string
}

func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdown", ".mkd":
		return true
	}
	return false
}

// renderText renders a README or a similar file to HTML.
func (w *Web) renderText(ctx context.Context, name, source string, at spot) (template.HTML, error) {
	if !isMarkdown(name) {
		return template.HTML(markup.Plain(source)), nil
	}
	html, err := w.Markup.Markdown(ctx, source, markup.Options{
		Link: func(to string, image bool) string {
			if image {
				return at.resolve(to, "raw")
			}
			return at.resolve(to, "blob")
		},
		LinkKey:   at.project + ":" + at.ref + ":" + at.dir,
		Highlight: true,
	})
	return template.HTML(html), err
}

// description renders the description of a project or group to HTML.
func (w *Web) description(ctx context.Context, source string) (template.HTML, error) {
	if source == "" {
		return "", nil
	}
	html, err := w.Markup.Markdown(ctx, source, markup.Options{})
	return template.HTML(html), err
}

// resolve returns the URL on this site of a link that is relative to the text.
func (p spot) resolve(to, kind string) string {
	if strings.HasPrefix(to, "#") {
		return "#" + markup.HeadingPrefix + strings.TrimPrefix(to, "#")
	}
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || strings.HasPrefix(to, "//") || u.Path == "" {
		return to
	}
	at := path.Join("/", p.dir, u.Path)
	if strings.HasPrefix(u.Path, "/") {
		at = path.Clean(u.Path)
	}
	resolved := pathTo(p.project, "-", kind, p.ref, at)
	if u.Fragment != "" {
		resolved += "#" + markup.HeadingPrefix + u.EscapedFragment()
	}
	return resolved
}
