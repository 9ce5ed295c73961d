package web

import (
	"html/template"
	"strings"

	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/wiki"
)

// wikiForm is the form of a page of a wiki.
type wikiForm struct {
	wikiHead
	Page    *wiki.Page // nil for a new one
	Form    form
	To      string // URL of the form
	Back    string
	Preview template.HTML
}

func (wikiForm) view() string { return "shared/wiki_form" }

func (p wikiForm) title() string {
	if p.Page == nil {
		return "New page · Wiki · " + p.Name()
	}
	return "Edit " + p.Page.Title + " · Wiki · " + p.Name()
}

// Formats are the markup formats of pages.
func (wikiForm) Formats() []option {
	return []option{{"markdown", "Markdown"}, {"rdoc", "RDoc"}, {"asciidoc", "AsciiDoc"}, {"org", "Org"}}
}

func (w *Web) wikiForm(v *visit, in project.Place) (wikiForm, error) {
	h, err := w.wikiHead(v, in)
	if err != nil {
		return wikiForm{}, err
	}
	if !h.MayWrite {
		return wikiForm{}, errs.Forbidden("You are not allowed to edit this wiki.")
	}
	return wikiForm{wikiHead: h, To: wikiAt(in), Back: wikiAt(in, wiki.Home)}, nil
}

func (w *Web) newWikiForm(v *visit, in project.Place) error {
	p, err := w.wikiForm(v, in)
	if err != nil {
		return err
	}
	p.Form = filled("title", v.param("title"), "format", "markdown")
	return v.show(p)
}

// wikiEdit is the form of an existing page.
func (w *Web) wikiEdit(v *visit, in project.Place, slug string) (wikiForm, error) {
	p, err := w.wikiForm(v, in)
	if err != nil {
		return p, err
	}
	_, p.Page, err = w.Wikis.Page(v, v.actor, in, slug, "")
	p.To, p.Back = wikiAt(in, slug), wikiAt(in, slug)
	return p, err
}

func (w *Web) editWikiForm(v *visit, in project.Place, slug string) error {
	p, err := w.wikiEdit(v, in, slug)
	if err != nil {
		return err
	}
	p.Form = filled("title", p.Page.Slug, "content", p.Page.Content, "format", string(p.Page.Format), "version", string(p.Page.Version))
	return v.show(p)
}

// sentPage returns the submitted page.
func (v *visit) sentPage(was string) wiki.Fields {
	title, content, format := "/"+strings.TrimPrefix(v.text("title"), "/"), lines(v.sent().Get("content"), was), wiki.Format(v.text("format"))
	f := wiki.Fields{Title: &title, Content: &content, Message: v.text("message"), Version: v.text("version")}
	switch format {
	case wiki.Markdown, wiki.RDoc, wiki.ASCIIDoc, wiki.Org:
		f.Format = &format
	}
	return f
}

func (w *Web) newWikiPage(v *visit, in project.Place) error {
	p, err := w.wikiForm(v, in)
	if err != nil {
		return err
	}
	f := v.sentPage("")
	if v.text("do") == "preview" {
		return w.previewPage(v, p, f)
	}
	_, made, err := w.Wikis.Create(v, v.actor, in, f)
	if err == nil {
		return v.done("The page was created.", wikiAt(in, made.Slug))
	}
	return p.refused(v, err)
}

func (p wikiForm) refused(v *visit, err error) error {
	p.Form = v.sent()
	if err := p.Form.refused(err); err != nil {
		return err
	}
	p.Form.only("title", "content")
	return v.again(p)
}

// previewPage shows the form again, with a preview of the page.
func (w *Web) previewPage(v *visit, p wikiForm, f wiki.Fields) error {
	page := wiki.Page{Slug: strings.TrimPrefix(*f.Title, "/"), Format: wiki.Markdown, Content: *f.Content}
	if f.Format != nil {
		page.Format = *f.Format
	} else if p.Page != nil {
		page.Format = p.Page.Format
	}
	text, err := w.Wikis.Render(v, v.actor, p.Wiki, &page)
	if err != nil {
		return err
	}
	p.Form, p.Preview = v.sent(), template.HTML(text) // Render has cleaned it
	return v.show(p)
}

// wikiWrite changes or deletes a page.
func (w *Web) wikiWrite(v *visit, in project.Place) error {
	slug, action := actionOf(v.rest())
	if action == "delete" {
		err := w.Wikis.Delete(v, v.actor, in, slug, wiki.Fields{Version: v.text("version")})
		return v.redirectWithFlash(err, "The page was deleted. Its history is kept.", wikiAt(in, "pages"))
	}
	if action != "" {
		return errs.NotFound("")
	}
	p, err := w.wikiEdit(v, in, slug)
	if err != nil {
		return err
	}
	f := v.sentPage(p.Page.Content)
	if v.text("do") == "preview" {
		return w.previewPage(v, p, f)
	}
	_, made, err := w.Wikis.Update(v, v.actor, in, slug, f)
	if err == nil {
		return v.done("The page was updated.", wikiAt(in, made.Slug))
	}
	return p.refused(v, err)
}
