package api

import (
	"path"
	"strings"

	"svc/internal/bind"
	"svc/internal/upload"
	"svc/internal/wiki"
)

func (a *API) wikiRoutes() {
	a.tag("Wikis")
	read := readAPI.orAnonymous()
	for _, in := range []struct {
		path, kind string
		group      bool
		tier       Tier
	}{{"/projects/{id}", "project", false, Free}, {"/groups/{id}", "group", true, Premium}} {
		m := parentEndpoints{a, in.group}
		one := in.path + "/wikis/{slug}"
		handle(a, "GET "+in.path+"/wikis", read, m.listWikiPages, tier(in.tier), summary("List "+in.kind+" wiki pages"))
		handle(a, "POST "+in.path+"/wikis", writeAPI, m.createWikiPage, tier(in.tier), wikiText, summary("Create a "+in.kind+" wiki page"))
		handle(a, "GET "+one, read, m.getWikiPage, tier(in.tier), summary("Get a "+in.kind+" wiki page"))
		handle(a, "PUT "+one, writeAPI, m.updateWikiPage, tier(in.tier), wikiText, summary("Update a "+in.kind+" wiki page"))
		handle(a, "DELETE "+one, writeAPI, m.deleteWikiPage, tier(in.tier), summary("Delete a "+in.kind+" wiki page"))
		handle(a, "POST "+in.path+"/wikis/attachments", writeAPI, m.attachToWiki, tier(in.tier), files(wiki.MaxAttachment), summary("Upload an attachment to the wiki repository of a "+in.kind))
	}
}

// wikiText is an option for endpoints whose parameters contain a page.
func wikiText(e *endpoint) { e.limits.Body = 16 << 20 }

// wikiPageBasicJSON identifies a page.
type wikiPageBasicJSON struct {
	Format string `json:"format"`
	Slug   string `json:"slug"`
	Title  string `json:"title"`
}

func toWikiPageBasic(p *wiki.Page) wikiPageBasicJSON {
	return wikiPageBasicJSON{string(p.Format), p.Slug, p.Title}
}

type wikiPageJSON struct {
	wikiPageBasicJSON
	Content     *string           `json:"content,omitempty"`
	Encoding    *string           `json:"encoding,omitempty"`
	FrontMatter map[string]string `json:"front_matter,omitzero"`
}

func toWikiPage(p *wiki.Page, content bool) wikiPageJSON {
	out := wikiPageJSON{wikiPageBasicJSON: toWikiPageBasic(p)}
	if content {
		encoding := "UTF-8"
		out.Content, out.Encoding, out.FrontMatter = &p.Content, &encoding, p.Fields
	}
	return out
}

func presentWikiPage(_ *wiki.Wiki, p *wiki.Page, err error) (wikiPageJSON, error) {
	if err != nil {
		return wikiPageJSON{}, err
	}
	return toWikiPage(p, true), nil
}

type listWikiPagesParams struct {
	placeParams
	WithContent bool `param:"with_content" doc:"Include the content of the pages."`
	pageParams
}

// listWikiPages: https://docs.gitlab.com/api/wikis/#list-wiki-pages
func (m parentEndpoints) listWikiPages(c *call, p listWikiPagesParams) (page[wikiPageJSON], error) {
	_, list, err := m.api.Wikis.Pages(c, c.actor, m.at(p.Ref), p.WithContent, p.paging())
	if err != nil {
		return page[wikiPageJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(one *wiki.Page) wikiPageJSON { return toWikiPage(one, p.WithContent) }), nil
}

type wikiPageParams struct {
	placeParams
	Slug string `param:"slug" doc:"Slug of the page, including directories."`
}

type getWikiPageParams struct {
	wikiPageParams
	RenderHTML bool   `param:"render_html" doc:"Return the rendered HTML instead of the source."`
	Version    string `param:"version" doc:"Commit SHA of the page version."`
}

// getWikiPage: https://docs.gitlab.com/api/wikis/#get-a-wiki-page
func (m parentEndpoints) getWikiPage(c *call, p getWikiPageParams) (wikiPageJSON, error) {
	w, found, err := m.api.Wikis.Page(c, c.actor, m.at(p.Ref), p.Slug, p.Version)
	if err == nil && p.RenderHTML {
		found.Content, err = m.api.Wikis.Render(c, c.actor, w, found)
	}
	return presentWikiPage(w, found, err)
}

type createWikiPageParams struct {
	placeParams
	Title   string      `param:"title,required,nonblank" doc:"Title, including directories: dir/page."`
	Content string      `param:"content,required,blank"`
	Format  wiki.Format `param:"format" enum:"markdown,rdoc,asciidoc,org" default:"markdown"`
	Message string      `param:"message" doc:"Commit message."`
}

// createWikiPage: https://docs.gitlab.com/api/wikis/#create-a-new-wiki-page
func (m parentEndpoints) createWikiPage(c *call, p createWikiPageParams) (wikiPageJSON, error) {
	return presentWikiPage(m.api.Wikis.Create(c, c.actor, m.at(p.Ref), wiki.Fields{Title: &p.Title, Content: &p.Content, Format: &p.Format, Message: p.Message}))
}

type updateWikiPageParams struct {
	wikiPageParams
	Title   *string      `param:"title,nonblank" doc:"New title. Without a directory the page stays in its directory; /page moves it to the top."`
	Content *string      `param:"content"`
	Format  *wiki.Format `param:"format" enum:"markdown,rdoc,asciidoc,org"`
	Message string       `param:"message" doc:"Commit message."`
	Version string       `param:"last_commit_sha" doc:"Last known commit SHA of the page."`
}

func (updateWikiPageParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("title", "content", "format")}
}

// updateWikiPage: https://docs.gitlab.com/api/wikis/#edit-an-existing-wiki-page
func (m parentEndpoints) updateWikiPage(c *call, p updateWikiPageParams) (wikiPageJSON, error) {
	f := wiki.Fields{Title: p.Title, Content: p.Content, Format: p.Format, Message: p.Message, Version: p.Version, Since: c.unmodifiedSince()}
	return presentWikiPage(m.api.Wikis.Update(c, c.actor, m.at(p.Ref), p.Slug, f))
}

// deleteWikiPage: https://docs.gitlab.com/api/wikis/#delete-a-wiki-page
func (m parentEndpoints) deleteWikiPage(c *call, p wikiPageParams) (none, error) {
	return none{}, m.api.Wikis.Delete(c, c.actor, m.at(p.Ref), p.Slug, wiki.Fields{Since: c.unmodifiedSince()})
}

type wikiAttachmentParams struct {
	placeParams
	File   *bind.Upload `param:"file,required"`
	Branch string       `param:"branch" doc:"No effect: attachments are committed to the default branch."`
}

type wikiAttachmentJSON struct {
	FileName string       `json:"file_name"`
	FilePath string       `json:"file_path"`
	Branch   string       `json:"branch"`
	Link     wikiLinkJSON `json:"link"`
}

type wikiLinkJSON struct {
	URL      string `json:"url"`
	Markdown string `json:"markdown"`
}

// attachToWiki: https://docs.gitlab.com/api/wikis/#upload-an-attachment-to-the-wiki-repository
func (m parentEndpoints) attachToWiki(c *call, p wikiAttachmentParams) (wikiAttachmentJSON, error) {
	f, err := m.api.Wikis.Attach(c, c.actor, m.at(p.Ref), p.File.Name, p.File.Size, p.File.Open())
	if err != nil {
		return wikiAttachmentJSON{}, err
	}
	text := "[" + f.Name + "](" + f.Path + ")"
	if upload.IsMedia(f.Name) {
		text = "![" + strings.TrimSuffix(f.Name, path.Ext(f.Name)) + "](" + f.Path + ")"
	}
	return wikiAttachmentJSON{f.Name, f.Path, f.Branch, wikiLinkJSON{f.Path, text}}, nil
}
