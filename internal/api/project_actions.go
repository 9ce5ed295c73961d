package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/ci/runners"
	"svc/internal/notify"
	"svc/internal/project"
)

func (a *API) projectActionRoutes() {
	a.tag("Projects")
	shape := returns(projectJSON{})
	handle(a, "POST /projects/{id}/archive", writeAPI, a.archiveProject, shape, summary("Archive a project"))
	handle(a, "POST /projects/{id}/unarchive", writeAPI, a.unarchiveProject, shape, summary("Unarchive a project"))
	handle(a, "PUT /projects/{id}/transfer", writeAPI, a.transferProject, shape, summary("Transfer a project"))
	handle(a, "POST /projects/{id}/star", writeAPI, a.starProject, shape, summary("Star a project"))
	handle(a, "POST /projects/{id}/unstar", writeAPI, a.unstarProject, shape, summary("Unstar a project"))
	handle(a, "GET /projects/{id}/starrers", readAPI.orAnonymous(), a.listStarrers, summary("List users who starred a project"))
	handle(a, "POST /projects/{id}/share", writeAPI, a.shareProject, summary("Share a project with a group"))
	handle(a, "DELETE /projects/{id}/share/{group_id}", writeAPI, a.unshareProject, summary("Delete a shared project link in a group"))
	a.tag("Groups")
	handle(a, "POST /groups/{id}/share", writeAPI, a.shareGroup, summary("Invite a group to a group"))
	handle(a, "DELETE /groups/{id}/share/{group_id}", writeAPI, a.unshareGroup, summary("Delete a group share"))
}

// presentProject returns the representation of a project after an action.
func (a *API) presentProject(c *call, p *project.Project, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return a.wholeProject(c, p, false)
}

// wholeProject returns the representation of a single project. It includes the
// registration token for users who can register runners.
func (a *API) wholeProject(c *call, p *project.Project, statistics bool) (any, error) {
	open, err := a.related(c, p)
	if err != nil {
		return nil, err
	}
	shown := toProject(c, p, false, statistics, a.Now())
	full, ok := shown.(projectJSON)
	if !ok {
		return shown, nil
	}
	full.OpenIssues = open[p.ID]
	if p.MarkedAt != nil || !p.Can(c.actor).RegisterRunners {
		return full, nil
	}
	full.RunnersToken, err = a.runnersToken(c, runners.Owner{Project: project.RefTo(p.ID)})
	return full, err
}

// related stores in c the pull mirrors of projects and the notification levels of
// the actor in them. It returns the number of open issues of each project.
func (a *API) related(c *call, list ...*project.Project) (map[int64]*int64, error) {
	if c.actor.Anonymous() {
		return nil, nil
	}
	var err error
	if c.notifications, err = a.Notify.LevelsOf(c, c.actor, list...); err != nil {
		return nil, err
	}
	if c.mirrors, err = a.Mirrors.PullMirrors(c, mapped(list, func(p *project.Project) int64 { return p.ID })...); err != nil {
		return nil, err
	}
	return a.Plan.OpenCounts(c, c.actor, list)
}

// notificationNumber returns the number of a notification level, as used in
// permissions.
func notificationNumber(l notify.Level) int64 {
	return map[notify.Level]int64{
		notify.Disabled: 0, notify.Participating: 1, notify.Watch: 2, notify.Global: 3, notify.Mentioned: 4, notify.Custom: 5,
	}[l]
}

// projectLicenseJSON is the license of the repository of a project, for requests
// with license=true.
type projectLicenseJSON struct {
	LicenseURL *string      `json:"license_url"`
	License    *licenseJSON `json:"license"`
}

// projectLicense returns the license of the repository of a project. Without a
// license, or for users who cannot read the repository, its fields are null.
func (a *API) projectLicense(c *call, p *project.Project) (*projectLicenseJSON, error) {
	if p.MarkedAt != nil {
		return &projectLicenseJSON{}, nil
	}
	l, err := a.Repos.License(c, c.actor, project.RefTo(p.ID))
	if err != nil || l == nil {
		return &projectLicenseJSON{}, err
	}
	return &projectLicenseJSON{
		textOrNull(a.Site.URL + "/" + p.FullPath + "/-/blob/" + p.DefaultBranch + "/" + l.Path),
		&licenseJSON{Key: l.Key, Name: l.Name, HTMLURL: textOrNull(l.URL)},
	}, nil
}

// licenseJSON is the license of a repository.
type licenseJSON struct {
	Key       string  `json:"key"`
	Name      string  `json:"name"`
	Nickname  *string `json:"nickname"`
	HTMLURL   *string `json:"html_url"`
	SourceURL *string `json:"source_url"`
}

// archiveProject: https://docs.gitlab.com/api/projects/#archive-a-project
func (a *API) archiveProject(c *call, p projectParams) (any, error) {
	found, err := a.Projects.SetArchived(c, c.actor, p.Project, true)
	return a.presentProject(c, found, err)
}

// unarchiveProject: https://docs.gitlab.com/api/projects/#unarchive-a-project
func (a *API) unarchiveProject(c *call, p projectParams) (any, error) {
	found, err := a.Projects.SetArchived(c, c.actor, p.Project, false)
	return a.presentProject(c, found, err)
}

type transferProjectParams struct {
	projectParams
	Namespace project.Ref `param:"namespace,required" doc:"Namespace ID or path."`
}

// transferProject: https://docs.gitlab.com/api/projects/#transfer-a-project-to-a-new-namespace
func (a *API) transferProject(c *call, p transferProjectParams) (any, error) {
	found, err := a.Projects.Transfer(c, c.actor, p.Project, p.Namespace)
	return a.presentProject(c, found, err)
}

// starProject: https://docs.gitlab.com/api/project_starring/#star-a-project
func (a *API) starProject(c *call, p projectParams) (unchanged[any], error) {
	found, changed, err := a.Projects.Star(c, c.actor, p.Project)
	out, err := a.presentProject(c, found, err)
	return unchanged[any]{out, !changed}, err
}

// unstarProject: https://docs.gitlab.com/api/project_starring/#unstar-a-project
func (a *API) unstarProject(c *call, p projectParams) (unchanged[any], error) {
	found, changed, err := a.Projects.Unstar(c, c.actor, p.Project)
	out, err := a.presentProject(c, found, err)
	return unchanged[any]{out, !changed}, err
}

type starrersParams struct {
	projectParams
	Search string `param:"search" max:"1024"`
	pageParams
}

type starrerJSON struct {
	StarredSince stamp          `json:"starred_since"`
	User         userPublicJSON `json:"user"`
}

// listStarrers: https://docs.gitlab.com/api/project_starring/#list-users-who-starred-a-project
func (a *API) listStarrers(c *call, p starrersParams) (page[starrerJSON], error) {
	list, err := a.Projects.Starrers(c, c.actor, p.Project, p.Search, p.paging())
	if err != nil {
		return page[starrerJSON]{}, err
	}
	now := a.Now()
	return offsetPage(p.pageParams, list, func(s project.Starrer) starrerJSON {
		return starrerJSON{toStamp(s.Since), toUserPublic(c.site, s.User, now)}
	}), nil
}

type shareParams struct {
	GroupID     int64      `param:"group_id,required" doc:"ID of the invited group."`
	GroupAccess int64      `param:"group_access,required" doc:"Maximum role of the members of the invited group."`
	ExpiresAt   *bind.Date `param:"expires_at"`
}

func (p *shareParams) share() project.NewShare {
	return project.NewShare{GroupID: p.GroupID, Level: project.Level(p.GroupAccess), ExpiresAt: dateText(p.ExpiresAt)}
}

// dateText returns a date in the format that features store, or an empty string if d
// is nil.
func dateText(d *bind.Date) string {
	if d == nil {
		return ""
	}
	return d.Time().Format(time.DateOnly)
}

// dateChange converts a date parameter to a change: nil keeps the current date, an
// empty string removes it.
func dateChange(o bind.Opt[bind.Date]) *string {
	if !o.Set {
		return nil
	}
	text := ""
	if !o.Null {
		text = dateText(&o.Value)
	}
	return &text
}

// dateTime returns the start of a date, or nil if d is nil.
func dateTime(d *bind.Date) *time.Time {
	if d == nil {
		return nil
	}
	t := d.Time()
	return &t
}

type shareProjectParams struct {
	projectParams
	shareParams
}

// shareJSON is a share of a project with a group.
type shareJSON struct {
	ID          int64 `json:"id"`
	ProjectID   int64 `json:"project_id"`
	GroupID     int64 `json:"group_id"`
	GroupAccess int64 `json:"group_access"`
	ExpiresAt   *day  `json:"expires_at"`
}

// shareProject: https://docs.gitlab.com/api/projects/#share-a-project-with-a-group
func (a *API) shareProject(c *call, p shareProjectParams) (shareJSON, error) {
	s, err := a.Projects.ShareWith(c, c.actor, project.Place{Ref: p.Project}, p.share())
	if err != nil {
		return shareJSON{}, err
	}
	return shareJSON{s.ID, s.SourceID, s.GroupID, int64(s.Level), toDayOrNull(s.ExpiresAt)}, nil
}

type unshareProjectParams struct {
	projectParams
	GroupID int64 `param:"group_id"`
}

// unshareProject: https://docs.gitlab.com/api/projects/#delete-a-shared-project-link-in-a-group
func (a *API) unshareProject(c *call, p unshareProjectParams) (none, error) {
	return none{}, a.Projects.Unshare(c, c.actor, project.Place{Ref: p.Project}, p.GroupID)
}

type shareGroupParams struct {
	inGroupParams
	shareParams
}

// shareGroup: https://docs.gitlab.com/api/groups/#create-a-link-to-share-a-group-with-another-group
func (a *API) shareGroup(c *call, p shareGroupParams) (groupDetailJSON, error) {
	if _, err := a.Projects.ShareWith(c, c.actor, project.Place{Ref: p.Group, Group: true}, p.share()); err != nil {
		return groupDetailJSON{}, err
	}
	n, err := a.Projects.Group(c, c.actor, p.Group)
	return presentGroup(c, n, err)
}

type unshareGroupParams struct {
	inGroupParams
	GroupID int64 `param:"group_id"`
}

// unshareGroup: https://docs.gitlab.com/api/groups/#delete-the-link-that-shares-a-group-with-another-group
func (a *API) unshareGroup(c *call, p unshareGroupParams) (none, error) {
	return none{}, a.Projects.Unshare(c, c.actor, project.Place{Ref: p.Group, Group: true}, p.GroupID)
}
