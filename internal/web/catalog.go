package web

import (
	"net/url"
	"strings"

	"svc/internal/catalog"
	"svc/internal/project"
)

func (w *Web) catalogPages() {
	w.page("GET /explore/catalog", anyone, w.catalogList)
	w.page("GET /explore/catalog/*", anyone, w.catalogResource)
}

// catalogPage is the list of the CI/CD Catalog.
type catalogPage struct {
	Resources []*catalog.Resource
	Search    string
	Filtered  bool
	Pager     pager
}

func (catalogPage) view() string  { return "shared/catalog" }
func (catalogPage) title() string { return "CI/CD Catalog" }

func (w *Web) catalogList(v *visit) error {
	p := catalogPage{Search: v.param("search")}
	page, err := w.Catalog.Resources(v, v.actor, p.Search, v.paging())
	if err != nil {
		return err
	}
	p.Resources, p.Pager = page.Items, v.pager(page.More)
	p.Filtered = p.Search != "" || v.pageNumber() > 1
	return v.show(p)
}

// catalogResourcePage is a project in the CI/CD Catalog.
type catalogResourcePage struct {
	Project    *project.Project
	Versions   []*catalog.Version
	Version    *catalog.Version // that is shown
	Components []componentView
	Release    string // path of its release
}

// componentView is a component with the text to include it.
type componentView struct {
	catalog.Component
	Include string
}

func (catalogResourcePage) view() string    { return "shared/catalog_resource" }
func (p catalogResourcePage) title() string { return p.Project.Name + " · CI/CD Catalog" }

func (w *Web) catalogResource(v *visit) error {
	r, versions, err := w.Catalog.Get(v, v.actor, project.Ref(strings.Trim(v.rest(), "/")))
	if err != nil {
		return err
	}
	p := catalogResourcePage{Project: r.Project, Versions: versions, Version: r.Latest}
	for _, one := range versions {
		if one.Name == v.param("version") {
			p.Version = one
		}
	}
	p.Release = pathToRelease(r.Project, p.Version.Name)
	host := w.Site.URL
	if u, err := url.Parse(w.Site.URL); err == nil {
		host = u.Host
	}
	for _, c := range p.Version.Components {
		text := "include:\n  - component: " + host + "/" + r.Project.FullPath + "/" + c.Name + "@" + p.Version.Name
		inputs := ""
		for _, i := range c.Inputs {
			if i.Required {
				inputs += "\n      " + i.Name + ": # required"
			}
		}
		if inputs != "" {
			text += "\n    inputs:" + inputs
		}
		p.Components = append(p.Components, componentView{c, text})
	}
	return v.show(p)
}
