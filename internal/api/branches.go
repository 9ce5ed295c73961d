package api

import (
	"net/url"
	"strconv"
	"strings"

	"svc/internal/bind"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/repo"
)

func (a *API) branchRoutes() {
	a.tag("Branches")
	read := readAPI.orAnonymous()
	handle(a, "GET /projects/{id}/repository/branches", read, a.listBranches, summary("List repository branches"))
	handle(a, "GET /projects/{id}/repository/branches/{branch}", read, a.getBranch, summary("Get a repository branch"))
	handle(a, "POST /projects/{id}/repository/branches", writeAPI, a.createBranch, summary("Create a repository branch"))
	handle(a, "DELETE /projects/{id}/repository/branches/{branch}", writeAPI, a.deleteBranch, summary("Delete a repository branch"))
	handle(a, "DELETE /projects/{id}/repository/merged_branches", writeAPI, a.deleteMergedBranches, summary("Delete merged branches"))
}

// refPageParams are the pagination parameters of branches and tags.
type refPageParams struct {
	pageParams
	Pagination string `param:"pagination" enum:"keyset,offset,legacy" doc:"Set to keyset for keyset pagination by name."`
	PageToken  string `param:"page_token" doc:"Name after which a keyset page starts, from the Link header."`
}

func (p *refPageParams) keyset() bool { return p.Pagination == "keyset" || p.PageToken != "" }

func (p *refPageParams) paging() db.Paging {
	paging := p.pageParams.paging()
	if p.keyset() {
		paging = db.Paging{Limit: int(p.PerPage), Keyset: true}
	}
	if p.PageToken != "" {
		paging.After = []any{p.PageToken}
	}
	return paging
}

// refPage returns a page of branches or tags.
func refPage[F, T any](p refPageParams, list db.Page[F], to func(F) T) page[T] {
	if !p.keyset() {
		return offsetPage(p.pageParams, list, to)
	}
	return page[T]{items: mapped(list.Items, to), head: func(c *call) {
		if !list.More {
			return
		}
		query := c.pageQuery()
		query.Del("page")
		query.Set("pagination", "keyset")
		query.Set("per_page", strconv.FormatInt(p.PerPage, 10))
		query.Set("page_token", list.Last[0].(string))
		c.w.Header().Set("Link", "<"+c.pageURL(query)+`>; rel="next"`)
	}}
}

type branchesParams struct {
	projectParams
	Search string `param:"search" max:"1024" doc:"Text in the name. Use ^term for names that start with term, and term$ for names that end with it."`
	Regex  string `param:"regex" max:"1024" doc:"RE2 regular expression that the name must match."`
	Sort   string `param:"sort" enum:"name_asc,updated_asc,updated_desc" default:"name_asc"`
	refPageParams
}

func (branchesParams) ParamRules() []bind.Rule { return []bind.Rule{bind.Exclusive("search", "regex")} }

func (p *branchesParams) filter() repo.RefFilter {
	f := repo.RefFilter{Search: p.Search, Regex: p.Regex, Order: repo.ByName}
	if p.Sort != "name_asc" {
		f.Order, f.Desc = repo.ByUpdated, p.Sort == "updated_desc"
	}
	return f
}

type branchJSON struct {
	Name               string     `json:"name"`
	Commit             commitJSON `json:"commit"`
	Merged             bool       `json:"merged"`
	Protected          bool       `json:"protected"`
	DevelopersCanPush  bool       `json:"developers_can_push"`
	DevelopersCanMerge bool       `json:"developers_can_merge"`
	CanPush            bool       `json:"can_push"`
	Default            bool       `json:"default"`
	WebURL             string     `json:"web_url"`
}

func toBranch(c *call, in *project.Project, b repo.Branch) branchJSON {
	return branchJSON{
		Name: b.Name, Commit: toCommit(c, in, b.Commit), Merged: b.Merged, Protected: b.Protected, DevelopersCanPush: b.DevelopersCanPush,
		DevelopersCanMerge: b.DevelopersCanMerge, CanPush: b.CanPush, Default: b.Default,
		WebURL: c.site.URL + "/" + in.FullPath + "/-/tree/" + escapeSegments(b.Name),
	}
}

// escapeSegments escapes a name for a URL and keeps its slashes.
func escapeSegments(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// listBranches: https://docs.gitlab.com/api/branches/#list-all-repository-branches
func (a *API) listBranches(c *call, p branchesParams) (page[branchJSON], error) {
	in, list, err := a.Repos.Branches(c, c.actor, p.Project, p.filter(), p.paging())
	if err != nil {
		return page[branchJSON]{}, err
	}
	return refPage(p.refPageParams, list, func(b repo.Branch) branchJSON { return toBranch(c, in, b) }), nil
}

type branchParams struct {
	projectParams
	Branch string `param:"branch" doc:"Name of the branch."`
}

func presentBranch(c *call, in *project.Project, b *repo.Branch, err error) (branchJSON, error) {
	if err != nil {
		return branchJSON{}, err
	}
	return toBranch(c, in, *b), nil
}

// getBranch: https://docs.gitlab.com/api/branches/#retrieve-a-repository-branch
func (a *API) getBranch(c *call, p branchParams) (branchJSON, error) {
	in, b, err := a.Repos.Branch(c, c.actor, p.Project, p.Branch)
	return presentBranch(c, in, b, err)
}

type createBranchParams struct {
	projectParams
	Branch string `param:"branch,required" doc:"Name of the branch."`
	Ref    string `param:"ref,required" doc:"Branch, tag or commit to create the branch from."`
}

// createBranch: https://docs.gitlab.com/api/branches/#create-a-repository-branch
func (a *API) createBranch(c *call, p createBranchParams) (branchJSON, error) {
	in, b, err := a.Repos.CreateBranch(c, c.actor, p.Project, p.Branch, p.Ref)
	return presentBranch(c, in, b, err)
}

// deleteBranch: https://docs.gitlab.com/api/branches/#delete-a-repository-branch
func (a *API) deleteBranch(c *call, p branchParams) (none, error) {
	return none{}, a.Repos.DeleteBranch(c, c.actor, p.Project, p.Branch)
}

// deleteMergedBranches: https://docs.gitlab.com/api/branches/#delete-all-merged-branches
func (a *API) deleteMergedBranches(c *call, p projectParams) (accepted, error) {
	return accepted{}, a.Repos.DeleteMerged(c, c.actor, p.Project)
}
