package api

import "svc/internal/pages"

func (a *API) pagesRoutes() {
	a.tag("Pages")
	const at = "/projects/{id}/pages"
	handle(a, "GET "+at, readAPI, a.getPages, summary("Get Pages settings of a project"))
	handle(a, "PATCH "+at, writeAPI, a.updatePages, summary("Update Pages settings of a project"))
	handle(a, "DELETE "+at, writeAPI, a.deletePages, summary("Unpublish Pages"))
	handle(a, "GET /projects/{id}/pages_access", readAPI.orAnonymous(), a.getPagesAccess, summary("Check access to the Pages of a project"))
}

type pagesJSON struct {
	URL           string                `json:"url"`
	UniqueDomain  bool                  `json:"is_unique_domain_enabled"`
	ForceHTTPS    bool                  `json:"force_https"`
	Deployments   []pagesDeploymentJSON `json:"deployments"`
	PrimaryDomain *string               `json:"primary_domain"`
}

type pagesDeploymentJSON struct {
	CreatedAt     stamp  `json:"created_at"`
	URL           string `json:"url"`
	PathPrefix    string `json:"path_prefix"`
	RootDirectory string `json:"root_directory"`
}

func presentPages(o *pages.Overview, err error) (pagesJSON, error) {
	if err != nil {
		return pagesJSON{}, err
	}
	out := pagesJSON{
		URL: o.URL, UniqueDomain: o.UniqueDomain, ForceHTTPS: o.HTTPSOnly, Deployments: []pagesDeploymentJSON{}, PrimaryDomain: textOrNull(o.PrimaryDomain),
	}
	for _, s := range o.Sites {
		out.Deployments = append(out.Deployments, pagesDeploymentJSON{toStamp(s.CreatedAt), s.URL, s.Prefix, s.Root})
	}
	return out, nil
}

// getPages: https://docs.gitlab.com/api/pages/#get-pages-settings-for-a-project
func (a *API) getPages(c *call, p projectParams) (pagesJSON, error) {
	return presentPages(a.Pages.Overview(c, c.actor, p.Project))
}

type updatePagesParams struct {
	projectParams
	UniqueDomain  *bool   `param:"pages_unique_domain_enabled" doc:"Whether the site uses a unique domain."`
	HTTPSOnly     *bool   `param:"pages_https_only" doc:"Whether requests are redirected to HTTPS if there is a certificate."`
	PrimaryDomain *string `param:"pages_primary_domain" doc:"Domain that all other domains of the project redirect to; empty for none."`
}

// updatePages: https://docs.gitlab.com/api/pages/#update-pages-settings-for-a-project
func (a *API) updatePages(c *call, p updatePagesParams) (pagesJSON, error) {
	change := pages.Change{UniqueDomain: p.UniqueDomain, HTTPSOnly: p.HTTPSOnly, PrimaryDomain: p.PrimaryDomain}
	return presentPages(a.Pages.Update(c, c.actor, p.Project, change))
}

// deletePages: https://docs.gitlab.com/api/pages/#unpublish-pages
func (a *API) deletePages(c *call, p projectParams) (none, error) {
	return none{}, a.Pages.Unpublish(c, c.actor, p.Project)
}

// pagesAccessJSON is the response if access is granted.
type pagesAccessJSON struct{}

// getPagesAccess is used by Pages servers to check access.
func (a *API) getPagesAccess(c *call, p projectParams) (pagesAccessJSON, error) {
	return pagesAccessJSON{}, a.Pages.Access(c, c.actor, p.Project)
}
