package api

import (
	"svc/internal/badge"
)

func (a *API) badgeRoutes() {
	a.tag("Badges")
	for _, in := range []struct {
		path, kind string
		group      bool
	}{{"/projects/{id}", "project", false}, {"/groups/{id}", "group", true}} {
		m := parentEndpoints{a, in.group}
		handle(a, "GET "+in.path+"/badges", readAPI.orAnonymous(), m.listBadges, summary("List "+in.kind+" badges"))
		handle(a, "POST "+in.path+"/badges", writeAPI, m.createBadge, summary("Add a badge to a "+in.kind))
		handle(a, "GET "+in.path+"/badges/render", readAPI, m.previewBadge, summary("Preview a "+in.kind+" badge"))
		handle(a, "GET "+in.path+"/badges/{badge_id}", readAPI.orAnonymous(), m.getBadge, summary("Get a "+in.kind+" badge"))
		handle(a, "PUT "+in.path+"/badges/{badge_id}", writeAPI, m.updateBadge, summary("Update a "+in.kind+" badge"))
		handle(a, "DELETE "+in.path+"/badges/{badge_id}", writeAPI, m.deleteBadge, summary("Remove a badge from a "+in.kind))
	}
}

type badgePreviewJSON struct {
	LinkURL       string `json:"link_url"`
	ImageURL      string `json:"image_url"`
	RenderedLink  string `json:"rendered_link_url"`
	RenderedImage string `json:"rendered_image_url"`
}

type badgeJSON struct {
	Name *string `json:"name"`
	ID   int64   `json:"id"`
	badgePreviewJSON
	Kind string `json:"kind"`
}

func toBadgePreview(b *badge.Badge) badgePreviewJSON {
	return badgePreviewJSON{b.LinkURL, b.ImageURL, b.RenderedLink, b.RenderedImage}
}

func toBadge(b *badge.Badge) badgeJSON {
	kind := "project"
	if b.GroupID != nil {
		kind = "group"
	}
	return badgeJSON{textOrNull(b.Name), b.ID, toBadgePreview(b), kind}
}

type listBadgesParams struct {
	placeParams
	Name string `param:"name"`
	pageParams
}

// listBadges: https://docs.gitlab.com/api/project_badges/#list-all-badges-of-a-project
func (m parentEndpoints) listBadges(c *call, p listBadgesParams) (page[badgeJSON], error) {
	return offsetList(p.pageParams, toBadge)(m.api.Badges.List(c, c.actor, m.at(p.Ref), p.Name, p.paging()))
}

type badgeParams struct {
	placeParams
	Badge int64 `param:"badge_id"`
}

// getBadge: https://docs.gitlab.com/api/project_badges/#get-a-badge-of-a-project
func (m parentEndpoints) getBadge(c *call, p badgeParams) (badgeJSON, error) {
	return presentAs(toBadge)(m.api.Badges.Get(c, c.actor, m.at(p.Ref), p.Badge))
}

type newBadgeParams struct {
	placeParams
	LinkURL  string  `param:"link_url,required"`
	ImageURL string  `param:"image_url,required"`
	Name     *string `param:"name"`
}

func (p *newBadgeParams) fields() badge.Fields {
	return badge.Fields{Name: p.Name, LinkURL: &p.LinkURL, ImageURL: &p.ImageURL}
}

// previewBadge: https://docs.gitlab.com/api/project_badges/#preview-a-badge-from-a-project
func (m parentEndpoints) previewBadge(c *call, p newBadgeParams) (badgePreviewJSON, error) {
	b, err := m.api.Badges.Preview(c, c.actor, m.at(p.Ref), p.fields())
	if err != nil {
		return badgePreviewJSON{}, err
	}
	return toBadgePreview(b), nil
}

// createBadge: https://docs.gitlab.com/api/project_badges/#add-a-badge-to-a-project
func (m parentEndpoints) createBadge(c *call, p newBadgeParams) (badgeJSON, error) {
	return presentAs(toBadge)(m.api.Badges.Create(c, c.actor, m.at(p.Ref), p.fields()))
}

type updateBadgeParams struct {
	badgeParams
	LinkURL  *string `param:"link_url"`
	ImageURL *string `param:"image_url"`
	Name     *string `param:"name"`
}

// updateBadge: https://docs.gitlab.com/api/project_badges/#edit-a-badge-of-a-project
func (m parentEndpoints) updateBadge(c *call, p updateBadgeParams) (badgeJSON, error) {
	f := badge.Fields{Name: p.Name, LinkURL: p.LinkURL, ImageURL: p.ImageURL}
	return presentAs(toBadge)(m.api.Badges.Update(c, c.actor, m.at(p.Ref), p.Badge, f))
}

// deleteBadge: https://docs.gitlab.com/api/project_badges/#remove-a-badge-from-a-project
func (m parentEndpoints) deleteBadge(c *call, p badgeParams) (none, error) {
	return none{}, m.api.Badges.Delete(c, c.actor, m.at(p.Ref), p.Badge)
}
