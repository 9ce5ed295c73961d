package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/release"
)

func (a *API) releaseRoutes() {
	a.tag("Releases")
	const at = "/projects/{id}/releases"
	read, write := readAPI.orAnonymous().orJob(), writeAPI.orJob()
	handle(a, "GET "+at, read, a.listReleases, summary("List releases"))
	handle(a, "POST "+at, write, a.createRelease, releaseText, summary("Create a release"))
	handle(a, "GET "+at+"/permalink/latest", read, a.latestRelease, redirects, summary("Get the latest release"))
	handle(a, "GET "+at+"/permalink/latest/{suffix_path*}", read, a.latestRelease, redirects, summary("Get a resource of the latest release"))
	handle(a, "GET "+at+"/{tag_name}", read, a.getRelease, summary("Get a release by a tag name"))
	handle(a, "PUT "+at+"/{tag_name}", write, a.updateRelease, releaseText, summary("Update a release"))
	handle(a, "DELETE "+at+"/{tag_name}", write, a.deleteRelease, summary("Delete a release"))
	handle(a, "GET "+at+"/{tag_name}/downloads/{direct_asset_path*}", read, a.downloadReleaseAsset, redirects, summary("Download a release asset"))
	handle(a, "GET /groups/{id}/releases", readAPI.orAnonymous(), a.listGroupReleases, returns(releaseJSON{}, releaseBasicJSON{}), summary("List group releases"))

	a.tag("Release links")
	handle(a, "GET "+at+"/{tag_name}/assets/links", read, a.listReleaseLinks, summary("List links of a release"))
	handle(a, "POST "+at+"/{tag_name}/assets/links", write, a.createReleaseLink, summary("Create a release link"))
	handle(a, "GET "+at+"/{tag_name}/assets/links/{link_id}", read, a.getReleaseLink, summary("Get a release link"))
	handle(a, "PUT "+at+"/{tag_name}/assets/links/{link_id}", write, a.updateReleaseLink, summary("Update a release link"))
	handle(a, "DELETE "+at+"/{tag_name}/assets/links/{link_id}", write, a.deleteReleaseLink, summary("Delete a release link"))
}

// releaseText is an option for endpoints whose parameters contain a description and
// links.
func releaseText(e *endpoint) { e.limits.Body = 4 << 20 }

// redirects documents a redirect.
func redirects(e *endpoint) {
	e.responses = append(e.responses, extraResponse{http.StatusFound, "Found. The Location header has the URL.", nil})
}

// releaseBasicJSON has the fields that come from the release itself.
type releaseBasicJSON struct {
	TagName     *string `json:"tag_name,omitempty"`
	Description string  `json:"description"`
	Name        string  `json:"name"`
	CreatedAt   stamp   `json:"created_at"`
	ReleasedAt  stamp   `json:"released_at"`
	Upcoming    bool    `json:"upcoming_release"`
}

// releaseJSON is a release. It has no tag, commit or source archives for callers who
// cannot read the code.
type releaseJSON struct {
	releaseBasicJSON
	DescriptionHTML *string                `json:"description_html,omitempty"`
	Author          *userPublicJSON        `json:"author,omitempty"`
	Commit          *commitJSON            `json:"commit,omitempty"`
	Milestones      []releaseMilestoneJSON `json:"milestones,omitempty"`
	CommitPath      string                 `json:"commit_path,omitempty"`
	TagPath         string                 `json:"tag_path,omitempty"`
	Assets          releaseAssetsJSON      `json:"assets"`
	Evidences       []struct{}             `json:"evidences"`
	Links           releaseURLsJSON        `json:"_links"`
}

type releaseMilestoneJSON struct {
	milestoneJSON
	IssueStats issueStatsJSON `json:"issue_stats"`
}

type issueStatsJSON struct {
	Total  int64 `json:"total"`
	Closed int64 `json:"closed"`
}

type releaseAssetsJSON struct {
	Count   int                 `json:"count"`
	Sources []releaseSourceJSON `json:"sources,omitempty"`
	Links   []releaseLinkJSON   `json:"links"`
}

type releaseSourceJSON struct {
	Format string `json:"format"`
	URL    string `json:"url"`
}

type releaseLinkJSON struct {
	ID             int64  `json:"id"`
	Name           string `json:"name"`
	URL            string `json:"url"`
	DirectAssetURL string `json:"direct_asset_url"`
	LinkType       string `json:"link_type"`
}

type releaseURLsJSON struct {
	ClosedIssues        string `json:"closed_issues_url,omitempty"`
	ClosedMergeRequests string `json:"closed_merge_requests_url,omitempty"`
	Edit                string `json:"edit_url,omitempty"`
	MergedMergeRequests string `json:"merged_merge_requests_url,omitempty"`
	OpenedIssues        string `json:"opened_issues_url,omitempty"`
	OpenedMergeRequests string `json:"opened_merge_requests_url,omitempty"`
	Self                string `json:"self,omitempty"`
}

func toReleaseBasic(r *release.Release, now time.Time) releaseBasicJSON {
	out := releaseBasicJSON{
		Description: r.Description, Name: r.DisplayName(), CreatedAt: toStamp(r.CreatedAt), ReleasedAt: toStamp(r.ReleasedAt), Upcoming: r.Upcoming(now),
	}
	if r.Code {
		out.TagName = &r.Tag
	}
	return out
}

func toRelease(c *call, r *release.Release, now time.Time) releaseJSON {
	out := releaseJSON{releaseBasicJSON: toReleaseBasic(r, now), Evidences: []struct{}{}}
	if r.Author != nil {
		author := toUserPublic(c.site, r.Author, now)
		out.Author = &author
	}
	out.Assets.Links = mapped(r.Links, func(l release.Link) releaseLinkJSON { return toReleaseLink(c.site, r, &l) })
	out.Assets.Count = len(r.Links)
	for _, m := range r.Milestones {
		n := r.Issues[m.ID]
		out.Milestones = append(out.Milestones, releaseMilestoneJSON{toMilestone(c.site, m, now), issueStatsJSON{n.All, n.Closed}})
	}
	if !r.Code {
		return out
	}
	base := "/" + r.Project.FullPath + "/-/"
	if r.Commit != nil {
		commit := toCommit(c, r.Project, r.Commit)
		out.Commit = &commit
		out.CommitPath = base + "commit/" + r.SHA
	}
	out.TagPath = base + "tags/" + escapeTag(r.Tag)
	name := r.Project.Path + "-" + strings.ReplaceAll(r.Tag, "/", "-")
	for _, format := range []string{"zip", "tar.gz", "tar.bz2", "tar"} {
		out.Assets.Sources = append(out.Assets.Sources, releaseSourceJSON{format, c.site.URL + base + "archive/" + escapeTag(r.Tag) + "/" + url.PathEscape(name) + "." + format})
	}
	out.Assets.Count += len(out.Assets.Sources)
	out.Links = releaseURLs(c.site.URL+base, r)
	return out
}

func releaseURLs(base string, r *release.Release) releaseURLsJSON {
	list := func(kind, state string) string {
		return base + kind + "?" + url.Values{"release_tag": {r.Tag}, "scope": {"all"}, "state": {state}}.Encode()
	}
	self := base + "releases/" + url.PathEscape(r.Tag)
	return releaseURLsJSON{
		ClosedIssues: list("issues", "closed"), ClosedMergeRequests: list("merge_requests", "closed"), Edit: self + "/edit",
		MergedMergeRequests: list("merge_requests", "merged"), OpenedIssues: list("issues", "opened"), OpenedMergeRequests: list("merge_requests", "opened"), Self: self,
	}
}

// escapeTag escapes a tag for a path that keeps its slashes.
func escapeTag(tag string) string { return (&url.URL{Path: tag}).EscapedPath() }

func toReleaseLink(site *Site, r *release.Release, l *release.Link) releaseLinkJSON {
	out := releaseLinkJSON{ID: l.ID, Name: l.Name, URL: l.URL, DirectAssetURL: l.URL, LinkType: l.Type}
	if l.Path != "" {
		out.DirectAssetURL = site.URL + "/" + r.Project.FullPath + "/-/releases/" + url.PathEscape(r.Tag) + "/downloads" + l.Path
	}
	return out
}

// releaseActor returns the actor whose permissions apply in a project. A job token
// may have fewer permissions than its user. Forbidden for writes with a job token of
// another project.
func (a *API) releaseActor(c *call, ref project.Ref) (actor.Actor, error) {
	if c.actor.Job == nil {
		return c.actor, nil
	}
	by, p, err := a.CI.JobOpens(c, c.actor, ref)
	if err == nil && p.ID != c.actor.Job.ProjectID && c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return by, errs.Forbidden("A job token can change releases of its own project only.")
	}
	return by, err
}

// presentRelease returns the representation of a release, with the description as
// HTML if html is true.
func (a *API) presentRelease(c *call, by actor.Actor, r *release.Release, html bool) (releaseJSON, error) {
	out := toRelease(c, r, a.Now())
	if html {
		ref := project.RefTo(r.ProjectID)
		list, err := a.Plan.RenderAll(c, by, &ref, plan.Text{Source: r.Description})
		if err != nil {
			return out, err
		}
		out.DescriptionHTML = &list[0]
	}
	return out, nil
}

type listReleasesParams struct {
	projectParams
	OrderBy       string     `param:"order_by" enum:"released_at,created_at" default:"released_at"`
	Sort          string     `param:"sort" enum:"asc,desc" default:"desc"`
	HTML          bool       `param:"include_html_description" doc:"Include the description as HTML."`
	UpdatedBefore *time.Time `param:"updated_before"`
	UpdatedAfter  *time.Time `param:"updated_after"`
	pageParams
}

// listReleases: https://docs.gitlab.com/api/releases/#list-releases
func (a *API) listReleases(c *call, p listReleasesParams) (page[releaseJSON], error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return page[releaseJSON]{}, err
	}
	f := release.Filter{ByCreated: p.OrderBy == "created_at", Asc: p.Sort == "asc", UpdatedAt: [2]*time.Time{p.UpdatedAfter, p.UpdatedBefore}}
	in, list, err := a.Releases.List(c, by, p.Project, f, p.paging())
	if err != nil {
		return page[releaseJSON]{}, err
	}
	var html []string
	if p.HTML && len(list.Items) > 0 {
		ref := project.RefTo(in.ID)
		texts := mapped(list.Items, func(r *release.Release) plan.Text { return plan.Text{Source: r.Description} })
		if html, err = a.Plan.RenderAll(c, by, &ref, texts...); err != nil {
			return page[releaseJSON]{}, err
		}
	}
	now, i := a.Now(), 0
	return offsetPage(p.pageParams, list, func(r *release.Release) releaseJSON {
		out := toRelease(c, r, now)
		if html != nil {
			out.DescriptionHTML = &html[i]
		}
		i++
		return out
	}), nil
}

type releaseParams struct {
	projectParams
	Tag string `param:"tag_name" doc:"Tag of the release."`
}

type getReleaseParams struct {
	releaseParams
	HTML bool `param:"include_html_description" doc:"Include the description as HTML."`
}

// getRelease: https://docs.gitlab.com/api/releases/#get-a-release-by-a-tag-name
func (a *API) getRelease(c *call, p getReleaseParams) (releaseJSON, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return releaseJSON{}, err
	}
	_, r, err := a.Releases.Get(c, by, p.Project, p.Tag)
	if err != nil {
		return releaseJSON{}, err
	}
	return a.presentRelease(c, by, r, p.HTML)
}

type latestReleaseParams struct {
	projectParams
	Suffix string `param:"suffix_path" doc:"Path below the release, such as downloads/bin/app."`
}

// latestRelease: https://docs.gitlab.com/api/releases/#get-the-latest-release
func (a *API) latestRelease(c *call, p latestReleaseParams) (streamed, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return streamed{}, err
	}
	in, r, err := a.Releases.Latest(c, by, p.Project)
	if err != nil {
		return streamed{}, err
	}
	to := c.site.URL + prefix + "/projects/" + strconv.FormatInt(in.ID, 10) + "/releases/" + url.PathEscape(r.Tag)
	if suffix := strings.Trim(p.Suffix, "/"); suffix != "" {
		to += "/" + (&url.URL{Path: suffix}).EscapedPath()
	}
	if query := c.pageQuery().Encode(); query != "" {
		to += "?" + query
	}
	return c.redirect(to)
}

// redirect sends a redirect to another URL.
func (c *call) redirect(to string) (streamed, error) {
	c.w.Header().Set("Location", to)
	c.w.Header().Set("Content-Length", "0")
	c.w.WriteHeader(http.StatusFound)
	return streamed{}, nil
}

type releaseAssetParams struct {
	releaseParams
	Path string `param:"direct_asset_path" doc:"Path of the asset, as in its direct_asset_path."`
}

// downloadReleaseAsset: https://docs.gitlab.com/api/releases/#download-a-release-asset
func (a *API) downloadReleaseAsset(c *call, p releaseAssetParams) (streamed, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return streamed{}, err
	}
	l, err := a.Releases.Asset(c, by, p.Project, p.Tag, p.Path)
	if err != nil {
		return streamed{}, err
	}
	return c.redirect(l.URL)
}

type releaseFieldParams struct {
	Name         *string    `param:"name" doc:"Name of the release. Default is the tag."`
	Description  *string    `param:"description" doc:"Description in Markdown."`
	Milestones   *[]string  `param:"milestones" doc:"Titles of milestones."`
	MilestoneIDs *[]int64   `param:"milestone_ids" doc:"IDs of milestones. Cannot be used with milestones."`
	ReleasedAt   *time.Time `param:"released_at" doc:"Release date. A date in the future is an upcoming release, one in the past a historical release."`
}

func (p *releaseFieldParams) fields() release.Fields {
	return release.Fields{Name: p.Name, Description: p.Description, ReleasedAt: p.ReleasedAt, Milestones: p.Milestones, MilestoneIDs: p.MilestoneIDs}
}

type releaseLinkParams struct {
	Name       *string `param:"name,required" doc:"Name of the link, unique in the release."`
	URL        *string `param:"url,required" doc:"URL of the link, unique in the release."`
	DirectPath *string `param:"direct_asset_path" aliases:"filepath" doc:"Path of the permanent URL of the asset."`
	Type       *string `param:"link_type" enum:"other,runbook,image,package"`
}

func (p *releaseLinkParams) fields() release.LinkFields {
	return release.LinkFields{Name: p.Name, URL: p.URL, Path: p.DirectPath, Type: p.Type}
}

type releaseAssetsParams struct {
	Links []releaseLinkParams `param:"links"`
}

type createReleaseParams struct {
	projectParams
	Tag        string              `param:"tag_name,required" doc:"Tag of the release."`
	TagMessage string              `param:"tag_message" doc:"Message of a new annotated tag."`
	Ref        string              `param:"ref" doc:"Branch, tag or commit to create the tag from, if it does not exist."`
	Assets     releaseAssetsParams `param:"assets"`
	releaseFieldParams
}

// createRelease: https://docs.gitlab.com/api/releases/#create-a-release
func (a *API) createRelease(c *call, p createReleaseParams) (releaseJSON, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return releaseJSON{}, err
	}
	_, r, err := a.Releases.Create(c, by, p.Project, release.NewRelease{
		Fields: p.fields(), Tag: p.Tag, TagMessage: p.TagMessage, Ref: p.Ref,
		Links: mapped(p.Assets.Links, func(l releaseLinkParams) release.LinkFields { return l.fields() }),
	})
	if err != nil {
		return releaseJSON{}, err
	}
	return a.presentRelease(c, by, r, false)
}

type updateReleaseParams struct {
	releaseParams
	releaseFieldParams
}

// updateRelease: https://docs.gitlab.com/api/releases/#update-a-release
func (a *API) updateRelease(c *call, p updateReleaseParams) (releaseJSON, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return releaseJSON{}, err
	}
	_, r, err := a.Releases.Update(c, by, p.Project, p.Tag, p.fields())
	if err != nil {
		return releaseJSON{}, err
	}
	return a.presentRelease(c, by, r, false)
}

// deleteRelease: https://docs.gitlab.com/api/releases/#delete-a-release
func (a *API) deleteRelease(c *call, p releaseParams) (releaseJSON, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return releaseJSON{}, err
	}
	_, r, err := a.Releases.Delete(c, by, p.Project, p.Tag)
	if err != nil {
		return releaseJSON{}, err
	}
	return a.presentRelease(c, by, r, false)
}

type listGroupReleasesParams struct {
	Group  project.Ref `param:"id" doc:"Group ID or full path."`
	Sort   string      `param:"sort" enum:"asc,desc" default:"desc"`
	Simple bool        `param:"simple" doc:"Return only some fields."`
	pageParams
}

// listGroupReleases: https://docs.gitlab.com/api/group_releases/#list-group-releases
func (a *API) listGroupReleases(c *call, p listGroupReleasesParams) (page[any], error) {
	list, err := a.Releases.OfGroup(c, c.actor, p.Group, p.Sort == "asc", !p.Simple, p.paging())
	if err != nil {
		return page[any]{}, err
	}
	now := a.Now()
	return offsetPage(p.pageParams, list, func(r *release.Release) any {
		if p.Simple {
			return toReleaseBasic(r, now)
		}
		return toRelease(c, r, now)
	}), nil
}

type listReleaseLinksParams struct {
	releaseParams
	pageParams
}

// listReleaseLinks: https://docs.gitlab.com/api/releases/links/#list-links-of-a-release
func (a *API) listReleaseLinks(c *call, p listReleaseLinksParams) (page[releaseLinkJSON], error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return page[releaseLinkJSON]{}, err
	}
	r, list, err := a.Releases.Links(c, by, p.Project, p.Tag, p.paging())
	if err != nil {
		return page[releaseLinkJSON]{}, err
	}
	return offsetPage(p.pageParams, list, func(l release.Link) releaseLinkJSON { return toReleaseLink(c.site, r, &l) }), nil
}

type oneReleaseLinkParams struct {
	releaseParams
	Link int64 `param:"link_id"`
}

func presentReleaseLink(c *call, r *release.Release, l *release.Link, err error) (releaseLinkJSON, error) {
	if err != nil {
		return releaseLinkJSON{}, err
	}
	return toReleaseLink(c.site, r, l), nil
}

// getReleaseLink: https://docs.gitlab.com/api/releases/links/#get-a-release-link
func (a *API) getReleaseLink(c *call, p oneReleaseLinkParams) (releaseLinkJSON, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return releaseLinkJSON{}, err
	}
	r, l, err := a.Releases.Link(c, by, p.Project, p.Tag, p.Link)
	return presentReleaseLink(c, r, l, err)
}

type createReleaseLinkParams struct {
	releaseParams
	releaseLinkParams
}

// createReleaseLink: https://docs.gitlab.com/api/releases/links/#create-a-release-link
func (a *API) createReleaseLink(c *call, p createReleaseLinkParams) (releaseLinkJSON, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return releaseLinkJSON{}, err
	}
	r, l, err := a.Releases.CreateLink(c, by, p.Project, p.Tag, p.fields())
	return presentReleaseLink(c, r, l, err)
}

type updateReleaseLinkParams struct {
	oneReleaseLinkParams
	Name       *string `param:"name" doc:"Name of the link, unique in the release."`
	URL        *string `param:"url" doc:"URL of the link, unique in the release."`
	DirectPath *string `param:"direct_asset_path" aliases:"filepath" doc:"Path of the permanent URL of the asset."`
	Type       *string `param:"link_type" enum:"other,runbook,image,package"`
}

func (updateReleaseLinkParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("name", "url")}
}

// updateReleaseLink: https://docs.gitlab.com/api/releases/links/#update-a-release-link
func (a *API) updateReleaseLink(c *call, p updateReleaseLinkParams) (releaseLinkJSON, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return releaseLinkJSON{}, err
	}
	f := release.LinkFields{Name: p.Name, URL: p.URL, Path: p.DirectPath, Type: p.Type}
	r, l, err := a.Releases.UpdateLink(c, by, p.Project, p.Tag, p.Link, f)
	return presentReleaseLink(c, r, l, err)
}

// deleteReleaseLink: https://docs.gitlab.com/api/releases/links/#delete-a-release-link
func (a *API) deleteReleaseLink(c *call, p oneReleaseLinkParams) (releaseLinkJSON, error) {
	by, err := a.releaseActor(c, p.Project)
	if err != nil {
		return releaseLinkJSON{}, err
	}
	r, l, err := a.Releases.DeleteLink(c, by, p.Project, p.Tag, p.Link)
	return presentReleaseLink(c, r, l, err)
}
