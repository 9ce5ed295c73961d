package api

import (
	"svc/internal/bind"
	"svc/internal/pages"
	"svc/internal/pages/cert"
)

func (a *API) pagesDomainRoutes() {
	a.tag("Pages domains")
	const at = "/projects/{id}/pages/domains"
	handle(a, "GET /pages/domains", readAPI, a.listAllPagesDomains, summary("List all Pages domains"))
	handle(a, "GET "+at, readAPI, a.listPagesDomains, summary("List Pages domains of a project"))
	handle(a, "GET "+at+"/{domain}", readAPI, a.getPagesDomain, summary("Get a Pages domain"))
	handle(a, "POST "+at, writeAPI, a.createPagesDomain, files(2*bind.MaxFileText), summary("Create a Pages domain"))
	handle(a, "PUT "+at+"/{domain}", writeAPI, a.updatePagesDomain, files(2*bind.MaxFileText), summary("Update a Pages domain"))
	handle(a, "DELETE "+at+"/{domain}", writeAPI, a.deletePagesDomain, summary("Delete a Pages domain"))
	handle(a, "PUT "+at+"/{domain}/verify", writeAPI, a.verifyPagesDomain, summary("Verify a Pages domain"))
}

// verificationJSON is the verification of a domain. Without the setting that
// requires it, domains count as verified and stay enabled.
type verificationJSON struct {
	Verified     bool   `json:"verified"`
	Code         string `json:"verification_code"`
	EnabledUntil *stamp `json:"enabled_until"`
}

func toVerification(d *pages.Domain) verificationJSON {
	if !d.Verification {
		return verificationJSON{Verified: true, Code: d.Code}
	}
	return verificationJSON{d.Verified(), d.Code, toStampOrNull(d.EnabledUntil)}
}

// allPagesDomainsJSON is a domain in the list of all domains.
type allPagesDomainsJSON struct {
	Domain    string `json:"domain"`
	URL       string `json:"url"`
	ProjectID int64  `json:"project_id"`
	verificationJSON
	AutoSSL     bool                       `json:"auto_ssl_enabled"`
	Certificate *certificateExpirationJSON `json:"certificate,omitempty"`
	// Expiration is Certificate by the name in the table of the public documentation, whose
	// example has the other.
	Expiration *certificateExpirationJSON `json:"certificate_expiration,omitempty"`
}

type certificateExpirationJSON struct {
	Expired    bool  `json:"expired"`
	Expiration stamp `json:"expiration"`
}

func toAllPagesDomains(d *pages.Domain) allPagesDomainsJSON {
	out := allPagesDomainsJSON{Domain: d.Name, URL: d.URL(), ProjectID: d.ProjectID, verificationJSON: toVerification(d), AutoSSL: d.AutoSSL}
	if d.ExpiresAt != nil {
		out.Certificate = &certificateExpirationJSON{d.Expired, toStamp(*d.ExpiresAt)}
		out.Expiration = out.Certificate
	}
	return out
}

type pagesDomainJSON struct {
	Domain string `json:"domain"`
	URL    string `json:"url"`
	verificationJSON
	AutoSSL     bool             `json:"auto_ssl_enabled"`
	Certificate *certificateJSON `json:"certificate,omitempty"`
}

type certificateJSON struct {
	Subject string `json:"subject"`
	Expired bool   `json:"expired"`
	PEM     string `json:"certificate"`
	Text    string `json:"certificate_text"`
}

func toPagesDomain(d *pages.Domain) pagesDomainJSON {
	out := pagesDomainJSON{Domain: d.Name, URL: d.URL(), verificationJSON: toVerification(d), AutoSSL: d.AutoSSL}
	if chain := d.Chain(); chain != nil {
		leaf := chain.Leaf()
		out.Certificate = &certificateJSON{cert.Subject(leaf.RawSubject), d.Expired, d.Certificate, cert.Text(leaf)}
	}
	return out
}

// listAllPagesDomains: https://docs.gitlab.com/api/pages_domains/#list-all-pages-domains
func (a *API) listAllPagesDomains(c *call, p pageParams) (page[allPagesDomainsJSON], error) {
	return offsetList(p, toAllPagesDomains)(a.Pages.AllDomains(c, c.actor, p.paging()))
}

type listPagesDomainsParams struct {
	projectParams
	pageParams
}

// listPagesDomains: https://docs.gitlab.com/api/pages_domains/#list-pages-domains
func (a *API) listPagesDomains(c *call, p listPagesDomainsParams) (page[pagesDomainJSON], error) {
	return offsetList(p.pageParams, toPagesDomain)(a.Pages.Domains(c, c.actor, p.Project, p.paging()))
}

type pagesDomainParams struct {
	projectParams
	Domain string `param:"domain"`
}

// getPagesDomain: https://docs.gitlab.com/api/pages_domains/#single-pages-domain
func (a *API) getPagesDomain(c *call, p pagesDomainParams) (pagesDomainJSON, error) {
	return presentAs(toPagesDomain)(a.Pages.Domain(c, c.actor, p.Project, p.Domain))
}

// certificateParams are a certificate and its key.
type certificateParams struct {
	Certificate bind.Opt[bind.FileText] `param:"certificate" doc:"Certificate in PEM format, followed by its intermediates from the most to the least specific."`
	Key         bind.Opt[bind.FileText] `param:"key" secret:"true" doc:"Certificate key in PEM format."`
}

func (certificateParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AllOrNone("certificate", "key")}
}

// pair returns the certificate and its key, or nil if no certificate was sent.
func (p *certificateParams) pair() *pages.Certificate {
	if !p.Certificate.Set {
		return nil
	}
	return &pages.Certificate{PEM: string(p.Certificate.Value), Key: string(p.Key.Value)}
}

type newPagesDomainParams struct {
	projectParams
	Domain  string `param:"domain,required"`
	AutoSSL bool   `param:"auto_ssl_enabled" doc:"Obtain and renew a certificate automatically."`
	certificateParams
}

// createPagesDomain: https://docs.gitlab.com/api/pages_domains/#create-new-pages-domain
func (a *API) createPagesDomain(c *call, p newPagesDomainParams) (pagesDomainJSON, error) {
	return presentAs(toPagesDomain)(a.Pages.CreateDomain(c, c.actor, p.Project, pages.NewDomain{Name: p.Domain, AutoSSL: p.AutoSSL, Certificate: p.pair()}))
}

type updatePagesDomainParams struct {
	pagesDomainParams
	AutoSSL *bool `param:"auto_ssl_enabled" doc:"Obtain and renew a certificate automatically."`
	certificateParams
}

// updatePagesDomain: https://docs.gitlab.com/api/pages_domains/#update-pages-domain
func (a *API) updatePagesDomain(c *call, p updatePagesDomainParams) (pagesDomainJSON, error) {
	return presentAs(toPagesDomain)(a.Pages.UpdateDomain(c, c.actor, p.Project, p.Domain, pages.DomainChange{AutoSSL: p.AutoSSL, Certificate: p.pair()}))
}

// deletePagesDomain: https://docs.gitlab.com/api/pages_domains/#delete-pages-domain
func (a *API) deletePagesDomain(c *call, p pagesDomainParams) (none, error) {
	return none{}, a.Pages.DeleteDomain(c, c.actor, p.Project, p.Domain)
}

// verifyPagesDomain: https://docs.gitlab.com/api/pages_domains/#verify-pages-domain
func (a *API) verifyPagesDomain(c *call, p pagesDomainParams) (pagesDomainJSON, error) {
	return presentAs(toPagesDomain)(a.Pages.VerifyDomain(c, c.actor, p.Project, p.Domain))
}
