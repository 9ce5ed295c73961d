package api

import (
	"svc/internal/project"
	"svc/internal/repo"
)

func (a *API) protectedTagRoutes() {
	a.tag("Protected tags")
	handle(a, "GET /projects/{id}/protected_tags", readAPI, a.listProtectedTags, summary("List protected tags"))
	handle(a, "POST /projects/{id}/protected_tags", writeAPI, a.protectTag, summary("Protect repository tags"))
	handle(a, "GET /projects/{id}/protected_tags/{name}", readAPI, a.getProtectedTag, summary("Get a protected tag or wildcard protected tag"))
	handle(a, "DELETE /projects/{id}/protected_tags/{name}", writeAPI, a.unprotectTag, summary("Unprotect repository tags"))
}

type protectedTagJSON struct {
	Name               string          `json:"name"`
	CreateAccessLevels []refAccessJSON `json:"create_access_levels"`
}

func toProtectedTag(p *repo.Protected) protectedTagJSON {
	return protectedTagJSON{Name: p.Name, CreateAccessLevels: mapped(p.Of(repo.CreateRef), toRefAccess)}
}

// listProtectedTags: https://docs.gitlab.com/api/protected_tags/#list-protected-tags
func (a *API) listProtectedTags(c *call, p protectedRefsParams) (page[protectedTagJSON], error) {
	return offsetList(p.pageParams, toProtectedTag)(a.Repos.ProtectedRefs(c, c.actor, p.Project, repo.TagRef, p.Search, p.paging()))
}

// getProtectedTag: https://docs.gitlab.com/api/protected_tags/#get-a-protected-tag-or-wildcard-protected-tag
func (a *API) getProtectedTag(c *call, p protectedRefParams) (protectedTagJSON, error) {
	return presentAs(toProtectedTag)(a.Repos.ProtectedRef(c, c.actor, p.Project, repo.TagRef, p.Name))
}

type protectTagParams struct {
	projectParams
	Name            string            `param:"name,required" doc:"Name, or a wildcard with *."`
	CreateLevel     *int64            `param:"create_access_level" enum:"0,30,40,60" doc:"Access level allowed to create. Default is Maintainer."`
	AllowedToCreate []refAccessParams `param:"allowed_to_create" max:"100"`
}

// protectTag: https://docs.gitlab.com/api/protected_tags/#add-a-protected-tag
func (a *API) protectTag(c *call, p protectTagParams) (protectedTagJSON, error) {
	n := repo.NewProtected{Name: p.Name}
	if p.CreateLevel != nil {
		n.Access = append(n.Access, repo.RefAccess{Action: repo.CreateRef, Level: project.Level(*p.CreateLevel)})
	}
	for _, one := range p.AllowedToCreate {
		if change, ok := one.change(c.site, repo.CreateRef); ok {
			n.Access = append(n.Access, change.RefAccess)
		}
	}
	return presentAs(toProtectedTag)(a.Repos.Protect(c, c.actor, p.Project, repo.TagRef, n))
}

// unprotectTag: https://docs.gitlab.com/api/protected_tags/#delete-a-protected-tag
func (a *API) unprotectTag(c *call, p protectedRefParams) (none, error) {
	return none{}, a.Repos.Unprotect(c, c.actor, p.Project, repo.TagRef, p.Name)
}
