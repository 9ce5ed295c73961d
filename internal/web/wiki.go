package web

import (
	"html/template"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/wiki"
)

func (w *Web) wikiPages() {
	w.placePage("GET wikis", anyone, func(v *visit, in project.Place) error { return v.redirect(wikiAt(in, wiki.Home)) })
	w.placePage("GET wikis/pages", anyone, w.wikiList)
	w.placePage("GET wikis/new", signedIn, w.newWikiForm)
	w.placePage("POST wikis", signedIn, w.newWikiPage)
	w.placePage("GET wikis/*", anyone, w.wikiRead)
	w.placePage("POST wikis/*", signedIn, w.wikiWrite)
}

// wikiAt returns the URL of a wiki page.
func wikiAt(in project.Place, parts ...string) string {
	return pathTo(append([]string{placePath(in), "-", "wikis"}, parts...)...)
}

// wikiHead has the common data of the pages of a wiki.
type wikiHead struct {
	P        *head
	G        *groupHead
	Wiki     *wiki.Wiki
	Base     string // URL of the wiki
	MayWrite bool
	Clone    cloneURLs
}

// Name returns the name of the project or group.
func (h wikiHead) Name() string {
	if h.G != nil {
		return h.G.Group.FullName
	}
	return h.P.Project.FullName()
}

func (w *Web) wikiHead(v *visit, in project.Place) (wikiHead, error) {
	found, err := w.Wikis.Wiki(v, v.actor, in)
	if err != nil {
		return wikiHead{}, err
	}
	h := wikiHead{Wiki: found, Base: wikiAt(in), MayWrite: found.MayWrite, Clone: w.cloneURLs(found.Clone())}
	if in.Group {
		g, err := w.groupHead(v, in.Ref, "wiki")
		h.G = &g
		return h, err
	}
	p, err := w.head(v, in.Ref, "wiki")
	h.P = &p
	return h, err
}

// wikiView is a page of a wiki.
type wikiView struct {
	wikiHead
	Page    *wiki.Page // nil if it does not exist
	Slug    string
	At      string // its address
	Text    template.HTML
	Side    template.HTML // of the sidebar page
	Pages   []*wiki.Page  // in its stead
	More    bool
	Version string // the old version that is shown
}

func (wikiView) view() string { return "shared/wiki" }

func (p wikiView) title() string {
	if p.Page == nil {
		return "Wiki · " + p.Name()
	}
	return p.Page.Title + " · Wiki · " + p.Name()
}

// actionOf splits the action from the path of a page.
func actionOf(rest string) (slug, action string) {
	slug = strings.Trim(rest, "/")
	dir, last := path.Split(slug)
	switch last {
	case "edit", "history", "diff", "delete":
		if dir != "" {
			return strings.TrimSuffix(dir, "/"), last
		}
	}
	return slug, ""
}

// wikiRead shows a page.
func (w *Web) wikiRead(v *visit, in project.Place) error {
	slug, action := actionOf(v.rest())
	switch {
	case strings.HasPrefix(slug, "uploads/"):
		return w.wikiFile(v, in, strings.Trim(v.rest(), "/"))
	case action == "edit" && v.session == nil:
		return v.askToSignIn()
	case action == "edit":
		return w.editWikiForm(v, in, slug)
	case action == "history":
		return w.wikiHistory(v, in, slug)
	case action == "diff":
		return w.wikiDiff(v, in, slug)
	case action == "delete":
		return errs.NotFound("")
	}
	h, err := w.wikiHead(v, in)
	if err != nil {
		return err
	}
	p := wikiView{wikiHead: h, Slug: slug, At: wikiAt(in, slug), Version: v.param("version_id")}
	_, p.Page, err = w.Wikis.Page(v, v.actor, in, slug, p.Version)
	if errs.Is(err, errs.KindNotFound) && p.Version == "" && (h.MayWrite || slug == wiki.Home) {
		err = nil // it can be written, or the wiki is empty
	}
	if err != nil {
		return err
	}
	if p.Page != nil {
		text, err := w.Wikis.Render(v, v.actor, h.Wiki, p.Page)
		if err != nil {
			return err
		}
		p.Text = template.HTML(text) // Render has cleaned it
	}
	if err := w.wikiSide(v, in, &p); err != nil {
		return err
	}
	if p.Page == nil && slug != wiki.Home {
		return v.render(http.StatusNotFound, p)
	}
	return v.show(p)
}

// maxSide is the maximum number of pages listed in the sidebar.
const maxSide = 50

// wikiSide returns the sidebar of a page.
func (w *Web) wikiSide(v *visit, in project.Place, p *wikiView) error {
	_, side, err := w.Wikis.Page(v, v.actor, in, wiki.Sidebar, "")
	if err == nil {
		text, err := w.Wikis.Render(v, v.actor, p.Wiki, side)
		p.Side = template.HTML(text) // Render has cleaned it
		return err
	}
	if !errs.Is(err, errs.KindNotFound) {
		return err
	}
	_, list, err := w.Wikis.Pages(v, v.actor, in, false, db.Paging{Limit: maxSide})
	p.Pages, p.More = list.Items, list.More
	return err
}

// wikiFile sends an attachment: images are shown, other files are downloaded.
func (w *Web) wikiFile(v *visit, in project.Place, name string) error {
	f, err := w.Wikis.File(v, v.actor, in, name)
	if err != nil {
		return err
	}
	content, err := f.Open(v)
	if err != nil {
		return err
	}
	defer content.Close()
	h := v.w.Header()
	foreignFile(h, f.Name, "private, max-age=60")
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	v.w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(v.w, content)
	return nil
}

// wikiListPage lists the pages of a wiki, or the versions of one page.
type wikiListPage struct {
	wikiHead
	Page     *wiki.Page // whose versions they are; nil for all pages
	At       string
	Pages    []*wiki.Page
	Versions []*git.Commit
	Pager    pager
}

func (wikiListPage) view() string { return "shared/wiki_list" }

func (p wikiListPage) title() string {
	if p.Page != nil {
		return "History of " + p.Page.Title + " · Wiki · " + p.Name()
	}
	return "Pages · Wiki · " + p.Name()
}

func (w *Web) wikiList(v *visit, in project.Place) error {
	h, err := w.wikiHead(v, in)
	if err != nil {
		return err
	}
	_, list, err := w.Wikis.Pages(v, v.actor, in, false, v.paging())
	if err != nil {
		return err
	}
	return v.show(wikiListPage{wikiHead: h, Pages: list.Items, Pager: v.pager(list.More)})
}

func (w *Web) wikiHistory(v *visit, in project.Place, slug string) error {
	h, err := w.wikiHead(v, in)
	if err != nil {
		return err
	}
	_, page, list, err := w.Wikis.Versions(v, v.actor, in, slug, v.paging())
	if err != nil {
		return err
	}
	return v.show(wikiListPage{wikiHead: h, Page: page, At: wikiAt(in, slug), Versions: list.Items, Pager: v.pager(list.More)})
}

// wikiDiffPage shows the changes of a commit to a wiki.
type wikiDiffPage struct {
	wikiHead
	Slug   string
	At     string
	Commit byline
	Diff   diffView
}

func (wikiDiffPage) view() string { return "shared/wiki_diff" }

func (p wikiDiffPage) title() string { return p.Commit.Title + " · Wiki · " + p.Name() }

func (w *Web) wikiDiff(v *visit, in project.Place, slug string) error {
	h, err := w.wikiHead(v, in)
	if err != nil {
		return err
	}
	_, commit, d, err := w.Wikis.Diff(v, v.actor, in, v.param("version_id"))
	if err != nil {
		return err
	}
	p := wikiDiffPage{wikiHead: h, Slug: slug, At: wikiAt(in, slug), Commit: byline{Commit: commit}}
	if p.Diff, err = v.diffView(diffSource{files: d.Files}); err != nil {
		return err
	}
	return v.showDiff(p, p.Diff)
}

// cloneURLs are the addresses of an auxiliary repository for git clients.
type cloneURLs struct {
	HTTP string
	SSH  string // empty if the server has no SSH
}

func (w *Web) cloneURLs(path string) cloneURLs {
	urls := cloneURLs{HTTP: w.Site.URL + "/" + path + ".git"}
	if w.Site.SSHPort != "" {
		urls.SSH = sshAddress(w.Site, path)
	}
	return urls
}
