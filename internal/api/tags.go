package api

import (
	"svc/internal/project"
	"svc/internal/release"
	"svc/internal/repo"
)

func (a *API) tagRoutes() {
	a.tag("Tags")
	read := readAPI.orAnonymous()
	handle(a, "GET /projects/{id}/repository/tags", read, a.listTags, summary("List repository tags"))
	handle(a, "GET /projects/{id}/repository/tags/{tag_name}", read, a.getTag, summary("Get a repository tag"))
	handle(a, "GET /projects/{id}/repository/tags/{tag_name}/signature", read, a.getTagSignature, signatures, summary("Get the signature of a tag"))
	handle(a, "POST /projects/{id}/repository/tags", writeAPI, a.createTag, summary("Create a repository tag"))
	handle(a, "DELETE /projects/{id}/repository/tags/{tag_name}", writeAPI, a.deleteTag, summary("Delete a repository tag"))
}

type tagsParams struct {
	projectParams
	Search  string `param:"search" max:"1024" doc:"Text in the name. Use ^term for names that start with term, and term$ for names that end with it."`
	OrderBy string `param:"order_by" enum:"name,updated,version" default:"updated"`
	Sort    string `param:"sort" enum:"asc,desc" default:"desc"`
	refPageParams
}

type tagJSON struct {
	Name      string          `json:"name"`
	Message   *string         `json:"message"`
	Target    string          `json:"target"`
	Commit    *commitJSON     `json:"commit"`
	Release   *tagReleaseJSON `json:"release"`
	Protected bool            `json:"protected"`
	CreatedAt *stamp          `json:"created_at"`
}

// tagReleaseJSON is the release of a tag.
type tagReleaseJSON struct {
	TagName     string `json:"tag_name"`
	Description string `json:"description"`
}

func toTag(c *call, in *project.Project, t repo.Tag, of map[string]release.Summary) tagJSON {
	out := tagJSON{Name: t.Name, Message: textOrNull(t.Message), Target: string(t.Target), Protected: t.Protected}
	if t.Commit != nil {
		commit := toCommit(c, in, t.Commit)
		out.Commit = &commit
	}
	if r, ok := of[t.Name]; ok {
		out.Release = &tagReleaseJSON{r.Tag, r.Description}
	}
	if t.CreatedAt != nil {
		at := toGitStamp(*t.CreatedAt)
		out.CreatedAt = &at
	}
	return out
}

// listTags: https://docs.gitlab.com/api/tags/#list-all-project-repository-tags
func (a *API) listTags(c *call, p tagsParams) (page[tagJSON], error) {
	f := repo.RefFilter{Search: p.Search, Order: repo.RefOrder(p.OrderBy), Desc: p.Sort == "desc"}
	in, list, err := a.Repos.Tags(c, c.actor, p.Project, f, p.paging())
	if err != nil {
		return page[tagJSON]{}, err
	}
	of, err := a.Releases.OfTags(c, c.actor, in, mapped(list.Items, func(t repo.Tag) string { return t.Name }))
	if err != nil {
		return page[tagJSON]{}, err
	}
	return refPage(p.refPageParams, list, func(t repo.Tag) tagJSON { return toTag(c, in, t, of) }), nil
}

type tagParams struct {
	projectParams
	Tag string `param:"tag_name" doc:"Name of the tag."`
}

func (a *API) presentTag(c *call, in *project.Project, t *repo.Tag, err error) (tagJSON, error) {
	if err != nil {
		return tagJSON{}, err
	}
	of, err := a.Releases.OfTags(c, c.actor, in, []string{t.Name})
	if err != nil {
		return tagJSON{}, err
	}
	return toTag(c, in, *t, of), nil
}

// getTag: https://docs.gitlab.com/api/tags/#retrieve-a-repository-tag
func (a *API) getTag(c *call, p tagParams) (tagJSON, error) {
	in, t, err := a.Repos.Tag(c, c.actor, p.Project, p.Tag)
	return a.presentTag(c, in, t, err)
}

// getTagSignature: https://docs.gitlab.com/api/tags/#retrieve-the-x509-signature-of-a-tag
func (a *API) getTagSignature(c *call, p tagParams) (any, error) {
	return presentSignature(a.Repos.TagSignature(c, c.actor, p.Project, p.Tag))
}

type createTagParams struct {
	projectParams
	Tag     string `param:"tag_name,required" doc:"Name of the tag."`
	Ref     string `param:"ref,required" doc:"Branch, tag or commit to create the tag from."`
	Message string `param:"message" doc:"Message of an annotated tag."`
}

// createTag: https://docs.gitlab.com/api/tags/#create-a-tag
func (a *API) createTag(c *call, p createTagParams) (tagJSON, error) {
	in, t, err := a.Repos.CreateTag(c, c.actor, p.Project, repo.NewTag{Name: p.Tag, From: p.Ref, Message: p.Message})
	return a.presentTag(c, in, t, err)
}

// deleteTag: https://docs.gitlab.com/api/tags/#delete-a-tag
func (a *API) deleteTag(c *call, p tagParams) (none, error) {
	return none{}, a.Repos.DeleteTag(c, c.actor, p.Project, p.Tag)
}
