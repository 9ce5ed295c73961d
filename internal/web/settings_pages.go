package web

import (
	"svc/internal/errs"
	"svc/internal/pages"
	"svc/internal/project"
)

func (w *Web) sitePages() {
	w.projectPage("GET pages", signedIn, ofProject(w.sites))
	w.projectPage("POST pages", signedIn, ofProject(w.changeSites))
	w.projectPage("POST pages/delete", signedIn, ofProject(w.unpublish))
	w.projectPage("POST pages/domains", signedIn, ofProject(w.addDomain))
	w.projectPage("POST pages/domains/update", signedIn, ofProject(w.changeDomain))
	w.projectPage("POST pages/domains/verify", signedIn, ofProject(w.verifyDomain))
	w.projectPage("POST pages/domains/delete", signedIn, ofProject(w.removeDomain))
	w.page("GET /admin/pages_domains", admins, w.adminDomains)
}

// sitesPage is the Pages of a project.
type sitesPage struct {
	setup
	Form    form // how the sites are shown
	New     form // another domain
	Off     bool // nothing is shown
	Site    *pages.Overview
	Domains []domainRow
	Access  []option
	Primary []option // domains, and none
	Auto    bool     // certificates can be issued
	Pager   pager
}

// domainRow is a domain with the state of its certificate.
type domainRow struct {
	*pages.Domain
	Subject     string
	RecordName  string
	RecordValue string
}

func newDomainRow(d *pages.Domain) domainRow {
	row := domainRow{Domain: d}
	if chain := d.Chain(); chain != nil {
		row.Subject = chain.Leaf().Subject.CommonName
	}
	row.RecordName, row.RecordValue = d.Record()
	return row
}

func (sitesPage) view() string    { return "project/settings_pages" }
func (p sitesPage) title() string { return "Pages · " + p.Name() }

func pagesOf(in project.Place) string { return pathTo(placePath(in)) + "/-/pages" }

func (w *Web) sites(v *visit, in project.Place) error { return w.showSites(v, in, filled()) }

func (w *Web) showSites(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "pages")
	if err != nil {
		return err
	}
	f.only("domain", "certificate", "key")
	p := sitesPage{setup: s, New: f, Auto: w.Pages.ACME.On(), Off: s.P.Project.Settings.Pages == project.Disabled, Access: []option{
		{string(project.Everyone), "Everyone"}, {string(project.Enabled), "Everyone with access"},
		{string(project.MembersOnly), "Only project members"}, {string(project.Disabled), "Disabled"},
	}, Primary: []option{{"", "None"}}}
	p.Form = filled("pages_access_level", string(s.P.Project.Settings.Pages))
	if p.Off {
		return v.showForm(p, f)
	}
	if p.Site, err = w.Pages.Overview(v, v.actor, in.Ref); err != nil {
		return err
	}
	page, err := w.Pages.Domains(v, v.actor, in.Ref, v.paging())
	if err != nil {
		return err
	}
	for _, d := range page.Items {
		p.Domains = append(p.Domains, newDomainRow(d))
		p.Primary = append(p.Primary, option{d.Name, d.Name})
	}
	p.Pager = v.pager(page.More)
	p.Form.Values.Set("https_only", on(p.Site.HTTPSOnly))
	p.Form.Values.Set("unique_domain", on(p.Site.UniqueDomain))
	p.Form.Values.Set("primary_domain", p.Site.PrimaryDomain)
	return v.showForm(p, f)
}

// changeSites changes how the sites are shown.
func (w *Web) changeSites(v *visit, in project.Place) error {
	s, err := w.setup(v, in, "pages")
	if err != nil {
		return err
	}
	was, access := s.P.Project.Settings.Pages, project.Feature(v.text("pages_access_level"))
	if was != project.Disabled && access != project.Disabled {
		primary := v.text("primary_domain")
		c := pages.Change{HTTPSOnly: new(v.ticked("https_only")), UniqueDomain: new(v.ticked("unique_domain")), PrimaryDomain: &primary}
		if _, err := w.Pages.Update(v, v.actor, in.Ref, c); err != nil {
			return v.redirectWithFlash(err, "", pagesOf(in))
		}
	}
	if access != was {
		_, err = w.Projects.Update(v, v.actor, in.Ref, project.Change{Fields: project.Fields{
			Settings: func(set *project.Settings) { set.Pages = access },
		}})
	}
	return v.redirectWithFlash(err, "The Pages settings were saved.", pagesOf(in))
}

func (w *Web) unpublish(v *visit, in project.Place) error {
	return v.redirectWithFlash(w.Pages.Unpublish(v, v.actor, in.Ref), "The site was removed. The next deployment publishes it again.", pagesOf(in))
}

// sentCertificate returns the certificate and key of a form; nil if both fields are
// empty.
func (v *visit) sentCertificate() *pages.Certificate {
	c := pages.Certificate{PEM: v.text("certificate"), Key: v.text("key")}
	if c == (pages.Certificate{}) {
		return nil
	}
	return &c
}

func (w *Web) addDomain(v *visit, in project.Place) error {
	_, err := w.Pages.CreateDomain(v, v.actor, in.Ref, pages.NewDomain{
		Name: v.text("domain"), AutoSSL: v.ticked("auto_ssl_enabled"), Certificate: v.sentCertificate(),
	})
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		f.Values.Del("key") // it is not sent back
		return w.showSites(v, in, f)
	}
	return v.done("The domain was added.", pagesOf(in))
}

// changeDomain replaces or removes the certificate of a domain, or requests one.
func (w *Web) changeDomain(v *visit, in project.Place) error {
	c := pages.DomainChange{Certificate: v.sentCertificate()}
	switch v.text("do") {
	case "auto":
		c = pages.DomainChange{AutoSSL: new(true)}
	case "manual":
		c = pages.DomainChange{AutoSSL: new(false)}
	case "remove":
		c = pages.DomainChange{Certificate: &pages.Certificate{}}
	}
	if c == (pages.DomainChange{}) {
		return v.redirectWithFlash(errs.Invalid("A certificate and its key are required."), "", pagesOf(in))
	}
	_, err := w.Pages.UpdateDomain(v, v.actor, in.Ref, v.text("domain"), c)
	return v.redirectWithFlash(err, "The domain was updated.", pagesOf(in))
}

func (w *Web) verifyDomain(v *visit, in project.Place) error {
	_, err := w.Pages.VerifyDomain(v, v.actor, in.Ref, v.text("domain"))
	return v.redirectWithFlash(err, "The domain was verified.", pagesOf(in))
}

func (w *Web) removeDomain(v *visit, in project.Place) error {
	return v.redirectWithFlash(w.Pages.DeleteDomain(v, v.actor, in.Ref, v.text("domain")), "The domain was removed.", pagesOf(in))
}

// domainsPage is the domains of all projects.
type domainsPage struct {
	Domains []domainRow
	Pager   pager
}

func (domainsPage) view() string  { return "admin/domains" }
func (domainsPage) title() string { return "Pages domains · Admin area" }

func (w *Web) adminDomains(v *visit) error {
	page, err := w.Pages.AllDomains(v, v.actor, v.paging())
	if err != nil {
		return err
	}
	p := domainsPage{Pager: v.pager(page.More)}
	for _, d := range page.Items {
		p.Domains = append(p.Domains, newDomainRow(d))
	}
	return v.show(p)
}
