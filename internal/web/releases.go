package web

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/release"
	"svc/internal/repo"
)

func (w *Web) releasePages() {
	w.projectPage("GET releases", anyone, w.releases)
	w.projectPage("GET releases.atom", anyone, w.releaseFeed)
	w.projectPage("GET releases/new", signedIn, w.newRelease)
	w.projectPage("POST releases", signedIn, w.createRelease)
	w.projectPage("POST releases/update", signedIn, w.updateRelease)
	w.projectPage("POST releases/delete", signedIn, w.deleteRelease)
	w.projectPage("GET releases/permalink/latest", anyone, w.latestRelease)
	w.projectPage("GET releases/permalink/latest/*", anyone, w.latestRelease)
	// Tags can contain slashes, so the suffix of the path is parsed separately.
	w.projectPage("GET releases/*", anyone, w.release)
	w.projectPage("GET badges/release.svg", anyone, w.releaseBadge)
}

// releaseView is a release with its notes as HTML.
type releaseView struct {
	*release.Release
	Text       template.HTML
	Page       string
	Upcoming   bool
	Historical bool
	Change     bool // the visitor may edit and delete it
	Goals      []goalRow
	Sources    []releaseSource
	Groups     []linkGroup
	Count      int // of assets
}

// releaseSource is an archive of the source code.
type releaseSource struct{ Format, URL string }

// linkGroup is the links of one type.
type linkGroup struct {
	Label string
	Links []releaseLink
}

type releaseLink struct {
	release.Link
	To       string
	External bool
}

// pathToRelease returns the URL of a page of a release.
func pathToRelease(p *project.Project, tag string, more ...string) string {
	return pathTo(p.FullPath) + "/-/releases/" + strings.Join(append([]string{url.PathEscape(tag)}, more...), "/")
}

func (w *Web) releaseViews(v *visit, p *project.Project, list []*release.Release) ([]releaseView, error) {
	texts := make([]plan.Text, len(list))
	for i, r := range list {
		texts[i] = plan.Text{Source: r.Description}
	}
	html, err := w.renderAll(v, project.Place{Ref: project.RefTo(p.ID)}, texts...)
	if err != nil {
		return nil, err
	}
	views := make([]releaseView, len(list))
	for i, r := range list {
		one := releaseView{Release: r, Text: html[i], Upcoming: r.Upcoming(w.Now()), Historical: r.Historical(), Count: len(r.Links)}
		if r.Code {
			one.Page = pathToRelease(p, r.Tag)
			for _, a := range archiveForms() {
				one.Sources = append(one.Sources, releaseSource{string(a.Form),
					pathTo(p.FullPath) + "/-/archive" + pathTo(r.Tag) + "/" + url.PathEscape(p.Path+"-"+strings.ReplaceAll(r.Tag, "/", "-")) + "." + string(a.Form)})
			}
			one.Count += len(one.Sources)
			if one.Change, err = w.Releases.MayChange(v, v.actor, p, r.Tag); err != nil {
				return nil, err
			}
		}
		for _, m := range r.Milestones {
			one.Goals = append(one.Goals, goalRow{Milestone: m, Counts: r.Issues[m.ID], Page: milestonePath(m)})
		}
		one.Groups = w.linkGroups(p, r)
		views[i] = one
	}
	return views, nil
}

func (w *Web) linkGroups(p *project.Project, r *release.Release) []linkGroup {
	var groups []linkGroup
	for _, kind := range []struct{ name, label string }{{"package", "Packages"}, {"image", "Images"}, {"runbook", "Runbooks"}, {"other", "Other"}} {
		g := linkGroup{Label: kind.label}
		for _, l := range r.Links {
			if l.Type != kind.name {
				continue
			}
			one := releaseLink{Link: l, To: l.URL, External: !strings.HasPrefix(l.URL, w.Site.URL+"/")}
			if l.Path != "" && r.Code {
				one.To = pathToRelease(p, r.Tag, "downloads") + l.Path
			}
			g.Links = append(g.Links, one)
		}
		if len(g.Links) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

type releasesPage struct {
	head
	List   []releaseView
	Total  int
	Oldest bool // first
	Pager  pager
	Adds   bool
}

func (releasesPage) view() string    { return "project/releases" }
func (p releasesPage) title() string { return "Releases · " + p.Project.FullName() }

const releasesPerPage = 10

func (w *Web) releases(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "releases")
	if err != nil {
		return err
	}
	p := releasesPage{head: h, Oldest: v.param("sort") == "released_at_asc"}
	pg := db.Paging{Limit: releasesPerPage, Offset: (v.pageNumber() - 1) * releasesPerPage, Totals: true}
	in, page, err := w.Releases.List(v, v.actor, h.in(), release.Filter{Asc: p.Oldest}, pg)
	if err != nil {
		return err
	}
	if p.List, err = w.releaseViews(v, in, page.Items); err != nil {
		return err
	}
	p.Adds = w.Releases.Can(v.actor, in).Create && in.DefaultBranch != ""
	p.Total, p.Pager = page.Total, v.pager(page.More)
	return v.show(p)
}

type releasePage struct {
	head
	Release releaseView
}

func (releasePage) view() string { return "project/release" }
func (p releasePage) title() string {
	return p.Release.Name + " · Releases · " + p.Project.FullName()
}

// release shows a release, its form, or redirects to one of its assets.
func (w *Web) release(v *visit, ref project.Ref) error {
	tag := v.rest()
	if name, ok := strings.CutSuffix(tag, "/edit"); ok {
		return w.editRelease(v, ref, name)
	}
	if name, path, ok := strings.Cut(tag, "/downloads/"); ok {
		if err := v.acceptToken(); err != nil {
			return err
		}
		l, err := w.Releases.Asset(v, v.actor, ref, name, path)
		if err != nil {
			return err
		}
		http.Redirect(v.w, v.r, l.URL, http.StatusFound)
		return nil
	}
	h, err := w.head(v, ref, "releases")
	if err != nil {
		return err
	}
	in, r, err := w.Releases.Get(v, v.actor, h.in(), tag)
	if err != nil {
		return err
	}
	views, err := w.releaseViews(v, in, []*release.Release{r})
	if err != nil {
		return err
	}
	return v.show(releasePage{head: h, Release: views[0]})
}

// latestRelease redirects to the latest release, or to a path below it.
func (w *Web) latestRelease(v *visit, ref project.Ref) error {
	p, r, err := w.Releases.Latest(v, v.actor, ref)
	if err != nil {
		return err
	}
	to := pathToRelease(p, r.Tag)
	if more := v.rest(); more != "" {
		to += pathTo(more)
	}
	http.Redirect(v.w, v.r, to, http.StatusFound)
	return nil
}

// releaseBadge is an image with the latest release.
func (w *Web) releaseBadge(v *visit, ref project.Ref) error {
	p, err := w.Projects.RequireView(v, v.actor, ref, project.ReleasePart)
	if err != nil {
		return err
	}
	newest, _, err := w.Releases.Newest(v, v.actor, p)
	if err != nil {
		return err
	}
	label, value, color := "Latest Release", "none", "#e05d44"
	if key := v.param("key_text"); key != "" && len(key) <= 64 {
		label = key
	}
	if newest != nil {
		value, color = newest.Tag, "#3076af"
		if v.param("value") == "name" {
			value = newest.Name
		}
	}
	foreign(v.w.Header(), "image/svg+xml; charset=utf-8", "private, no-cache")
	_, _ = v.w.Write([]byte(drawBadge(label, value, color)))
	return nil
}

// releaseForm is the form of a new or an existing release.
type releaseForm struct {
	head
	Tag     string // of the release that is edited
	Form    form
	Links   []linkField
	Goals   []choice
	Tags    []string // that exist, newest first
	Base    string
	Uploads bool
	Look    template.HTML
}

// linkField is a row of the form for a link.
type linkField struct {
	N                   int
	ID                  string
	Name, URL, Path     string
	Type                string
	NameError, URLError string
}

// Types are the types of links.
func (linkField) Types() []option {
	return []option{{"other", "Other"}, {"package", "Package"}, {"image", "Image"}, {"runbook", "Runbook"}}
}

func (releaseForm) view() string { return "project/release_form" }
func (p releaseForm) title() string {
	if p.Tag == "" {
		return "New release · " + p.Project.FullName()
	}
	return "Edit release · " + p.Project.FullName()
}

// freeLinks is the number of empty rows for links in a form.
const freeLinks = 3

func (w *Web) newRelease(v *visit, ref project.Ref) error {
	f := filled("tag_name", v.param("tag_name"), "name", v.param("name"))
	return w.showRelease(v, ref, "", f, nil, nil)
}

func (w *Web) editRelease(v *visit, ref project.Ref, tag string) error {
	if v.session == nil {
		return v.askToSignIn()
	}
	_, r, err := w.Releases.Get(v, v.actor, ref, tag)
	if err != nil {
		return err
	}
	f := filled("name", r.Name, "description", r.Description, "released_at", r.ReleasedAt.UTC().Format(time.DateOnly))
	var goals []string
	for _, m := range r.Milestones {
		goals = append(goals, strconv.FormatInt(m.ID, 10))
	}
	var links []linkField
	for _, l := range slices.Backward(r.Links) {
		links = append(links, linkField{ID: strconv.FormatInt(l.ID, 10), Name: l.Name, URL: l.URL, Path: l.Path, Type: l.Type})
	}
	return w.showRelease(v, ref, tag, f, links, goals)
}

func (w *Web) showRelease(v *visit, ref project.Ref, tag string, f form, links []linkField, goals []string) error {
	h, err := w.head(v, ref, "releases")
	if err != nil {
		return err
	}
	in, err := w.Projects.RequireView(v, v.actor, h.in(), project.ReleasePart)
	if err != nil {
		return err
	}
	may := w.Releases.Can(v.actor, in).Create
	if tag != "" && may {
		if may, err = w.Releases.MayChange(v, v.actor, in, tag); err != nil {
			return err
		}
	}
	if !may {
		return errs.Forbidden("")
	}
	if tag == "" && v.r.Method == http.MethodGet {
		f.Values.Set("ref", h.Project.DefaultBranch)
	}
	f.only("name", "tag_name", "ref", "description", "released_at")
	p := releaseForm{head: h, Tag: tag, Form: f, Links: links, Base: pathTo(h.Project.FullPath) + "/-/", Uploads: true}
	for range freeLinks {
		p.Links = append(p.Links, linkField{Type: "other"})
	}
	for i := range p.Links {
		p.Links[i].N = i + 1
	}
	if p.Goals, err = w.releaseGoals(v, h, goals); err != nil {
		return err
	}
	if tag == "" {
		if p.Tags, err = w.tagNames(v, h); err != nil {
			return err
		}
	}
	if v.r.PostForm.Get("preview") != "" {
		if p.Look, err = w.preview(v, project.Place{Ref: h.in()}, f.Get("description")); err != nil {
			return err
		}
	}
	return v.showForm(p, f)
}

// releaseGoals are the milestones that a release can have.
func (w *Web) releaseGoals(v *visit, h head, chosen []string) ([]choice, error) {
	if !h.Issues && !h.Merges {
		return nil, nil
	}
	page, err := w.Plan.Milestones(v, v.actor, project.Place{Ref: h.in()}, plan.MilestoneFilter{Ancestors: true}, db.Paging{Limit: 100})
	if err != nil {
		return nil, err
	}
	var list []choice
	for _, m := range page.Items {
		id := strconv.FormatInt(m.ID, 10)
		on := slices.Contains(chosen, id)
		if !on && m.State != plan.ActiveMilestone {
			continue
		}
		list = append(list, choice{Value: id, Label: m.Title, On: on})
	}
	return list, nil
}

// tagNames are the newest tags.
func (w *Web) tagNames(v *visit, h head) ([]string, error) {
	_, page, err := w.Repos.Tags(v, v.actor, h.in(), repo.RefFilter{Order: repo.ByUpdated, Desc: true}, db.Paging{Limit: 50})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range page.Items {
		names = append(names, t.Name)
	}
	return names, nil
}

// sentLinks returns the submitted links, without empty rows.
func (v *visit) sentLinks() []linkField {
	var list []linkField
	at := func(name string, i int) string {
		if all := v.r.PostForm[name]; i < len(all) {
			return strings.TrimSpace(all[i])
		}
		return ""
	}
	for i := range min(len(v.r.PostForm["link_name"]), release.MaxLinks) {
		l := linkField{ID: at("link_id", i), Name: at("link_name", i), URL: at("link_url", i), Path: at("link_path", i), Type: cmp.Or(at("link_type", i), "other")}
		if l.Name != "" || l.URL != "" {
			list = append(list, l)
		}
	}
	return list
}

func (l linkField) fields() release.LinkFields {
	return release.LinkFields{Name: &l.Name, URL: &l.URL, Path: &l.Path, Type: &l.Type}
}

// sentRelease returns the submitted release.
func (v *visit) sentRelease(f *form) release.Fields {
	name, text := v.text("name"), v.prose("description")
	fields := release.Fields{Name: &name, Description: &text}
	if day := v.text("released_at"); day != "" {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			f.wrong("released_at", "is not a date")
		}
		fields.ReleasedAt = &at
	}
	ids := []int64{}
	for _, text := range v.r.PostForm["milestone_ids"] {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	fields.MilestoneIDs = &ids
	return fields
}

func (w *Web) createRelease(v *visit, ref project.Ref) error {
	f, links := v.sent(), v.sentLinks()
	n := release.NewRelease{Fields: v.sentRelease(&f), Tag: v.text("tag_name"), Ref: v.text("ref"), TagMessage: v.text("tag_message")}
	for _, l := range links {
		n.Links = append(n.Links, l.fields())
	}
	if !f.bad() && !v.ticked("preview") && !v.ticked("more") {
		p, r, err := w.Releases.Create(v, v.actor, ref, n)
		if err == nil {
			return v.done("The release "+r.Name+" was created.", pathToRelease(p, r.Tag))
		}
		if err := f.refused(err); err != nil {
			return err
		}
	}
	return w.showRelease(v, ref, "", f, links, v.r.PostForm["milestone_ids"])
}

func (w *Web) updateRelease(v *visit, ref project.Ref) error {
	f, links, tag := v.sent(), v.sentLinks(), v.text("tag")
	fields := v.sentRelease(&f)
	if !f.bad() && !v.ticked("preview") && !v.ticked("more") {
		p, err := w.saveRelease(v, ref, tag, fields, links)
		if err == nil {
			return v.done("The release was updated.", pathToRelease(p, tag))
		}
		if err := f.refused(err); err != nil {
			return err
		}
	}
	return w.showRelease(v, ref, tag, f, links, v.r.PostForm["milestone_ids"])
}

// saveRelease changes a release and replaces its links by those of the form.
func (w *Web) saveRelease(v *visit, ref project.Ref, tag string, fields release.Fields, links []linkField) (*project.Project, error) {
	_, was, err := w.Releases.Get(v, v.actor, ref, tag)
	if err != nil {
		return nil, err
	}
	if fields.ReleasedAt != nil && fields.ReleasedAt.Format(time.DateOnly) == was.ReleasedAt.UTC().Format(time.DateOnly) {
		fields.ReleasedAt = nil // the form has no time of day
	}
	list := make([]release.LinkFields, len(links))
	ids := make([]int64, len(links))
	for i, l := range links {
		list[i] = l.fields()
		if id, err := strconv.ParseInt(l.ID, 10, 64); err == nil {
			ids[i] = id
		}
	}
	if err := w.Releases.SetLinks(v, v.actor, ref, tag, ids, list); err != nil {
		return nil, err
	}
	p, _, err := w.Releases.Update(v, v.actor, ref, tag, fields)
	return p, err
}

func (w *Web) deleteRelease(v *visit, ref project.Ref) error {
	tag := v.text("tag")
	p, r, err := w.Releases.Delete(v, v.actor, ref, tag)
	if err != nil {
		return err
	}
	return v.done(fmt.Sprintf("The release %s was deleted. Its tag %s was kept.", r.Name, tag), pathTo(p.FullPath)+"/-/releases")
}
