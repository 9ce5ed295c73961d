package api

import (
	"strconv"
	"time"

	"svc/internal/bind"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/mirror"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

func (a *API) projectRoutes() {
	a.tag("Projects")
	shapes := returns(projectBasicJSON{}, projectJSON{})
	handle(a, "GET /projects", readAPI.orAnonymous(), a.listProjects, shapes, summary("List projects"))
	handle(a, "GET /projects/{id}", readAPI.orAnonymous().orJob(), a.getProject, shapes, summary("Get a project"))
	handle(a, "POST /projects", writeAPI, a.createProject, returns(projectJSON{}), files(maxAvatarUpload), summary("Create a project"))
	handle(a, "POST /projects/user/{user_id}", writeAPI, a.createProjectFor, returns(projectJSON{}), files(maxAvatarUpload), summary("Create a project for a user"))
	handle(a, "PUT /projects/{id}", writeAPI, a.updateProject, returns(projectJSON{}), files(maxAvatarUpload), summary("Update a project"))
	handle(a, "DELETE /projects/{id}", writeAPI, a.deleteProject, summary("Delete a project"))
	handle(a, "POST /projects/{id}/restore", writeAPI, a.restoreProject, returns(projectJSON{}), summary("Restore a project marked for deletion"))
	handle(a, "GET /projects/{id}/forks", readAPI.orAnonymous(), a.listForks, shapes, summary("List forks of a project"))
	handle(a, "GET /users/{user_id}/projects", readAPI.orAnonymous(), a.listUserProjects, shapes, summary("List projects of a user"))
	handle(a, "GET /users/{user_id}/starred_projects", readAPI.orAnonymous(), a.listStarredProjects, shapes, summary("List projects starred by a user"))
	handle(a, "GET /users/{user_id}/contributed_projects", readAPI.orAnonymous(), a.listContributedProjects, shapes, summary("List projects a user has contributed to"))
}

// projectParams identify a project.
type projectParams struct {
	Project project.Ref `param:"id" doc:"Project ID or full path."`
}

// projectFilterParams are the filters of all lists of projects.
type projectFilterParams struct {
	Archived           *bool              `param:"archived"`
	Visibility         project.Visibility `param:"visibility" enum:"private,internal,public"`
	Search             string             `param:"search" max:"1024" doc:"Text in the name or path."`
	SearchNamespaces   bool               `param:"search_namespaces" doc:"Include ancestor namespaces in the search."`
	Membership         bool               `param:"membership" doc:"Only projects that the current user is a member of."`
	Owned              bool               `param:"owned" doc:"Only projects that the current user owns."`
	Starred            bool               `param:"starred" doc:"Only projects that the current user starred."`
	MinAccessLevel     int64              `param:"min_access_level" enum:"10,15,20,30,40,50"`
	Topic              []string           `param:"topic,csv" max:"10" doc:"Only projects with all of these topics."`
	TopicID            int64              `param:"topic_id" doc:"Only projects with the topic of this ID."`
	Language           string             `param:"with_programming_language" doc:"Only projects that use this programming language in the default branch."`
	LastActivityAfter  *time.Time         `param:"last_activity_after"`
	LastActivityBefore *time.Time         `param:"last_activity_before"`
	UpdatedAfter       *time.Time         `param:"updated_after"`
	UpdatedBefore      *time.Time         `param:"updated_before"`
	WithIssues         bool               `param:"with_issues_enabled"`
	WithMergeRequests  bool               `param:"with_merge_requests_enabled"`
	Storage            string             `param:"repository_storage" doc:"Only projects on this repository storage (administrators only)."`
	IDAfter            int64              `param:"id_after"`
	IDBefore           int64              `param:"id_before"`
	PendingDelete      bool               `param:"include_pending_delete" doc:"Also projects marked for deletion that the current user owns; all for administrators."`
	MarkedOn           *bind.Date         `param:"marked_for_deletion_on" doc:"Only projects marked for deletion on this date, for owners and administrators."`
	Active             *bool              `param:"active" doc:"Only projects that are neither archived nor marked for deletion; if false, only the others."`
	OrderBy            string             `param:"order_by" enum:"id,name,path,created_at,updated_at,last_activity_at,star_count" default:"created_at"`
	Sort               string             `param:"sort" enum:"asc,desc" default:"desc"`
	Simple             bool               `param:"simple" doc:"Only the basic fields."`
	Statistics         bool               `param:"statistics"`
	attributeFilterParams
	keysetParams
}

func (p *projectFilterParams) filter() project.Filter {
	f := project.Filter{
		MarkedOn: dateTime(p.MarkedOn), Active: p.Active, Archived: p.Archived, Visibility: p.Visibility, Search: p.Search, Deep: p.SearchNamespaces, Membership: p.Membership, Owned: p.Owned,
		Starred: p.Starred, MinLevel: project.Level(p.MinAccessLevel), Topics: p.Topic, TopicID: p.TopicID, Language: p.Language,
		ActiveAt: [2]*time.Time{p.LastActivityAfter, p.LastActivityBefore}, UpdatedAt: [2]*time.Time{p.UpdatedAfter, p.UpdatedBefore},
		IDAfter: p.IDAfter, IDBefore: p.IDBefore, WithIssues: p.WithIssues, WithMergeRequests: p.WithMergeRequests, Storage: p.Storage,
		Attributes: p.Attributes,
	}
	if p.PendingDelete || p.Active != nil && !*p.Active {
		f.Marked = project.WithMarked
	}
	return f
}

func (p *projectFilterParams) order() project.Sort {
	return project.Sort{By: p.OrderBy, Desc: p.Sort == "desc"}
}

// projectList returns a page of projects. Links of keyset pages contain id_after or
// id_before, which are also filters.
func (a *API) projectList(c *call, p *projectFilterParams, list func(db.Paging) (db.Page[*project.Project], error)) (page[any], error) {
	paging, err := p.paging(keyset{object: "Project", columns: []string{"id"}, allowed: p.OrderBy == "id"})
	if err != nil {
		return page[any]{}, err
	}
	found, err := list(paging)
	if err != nil {
		return page[any]{}, err
	}
	if p.Statistics {
		if err := a.fillArtifacts(c, found.Items...); err != nil {
			return page[any]{}, err
		}
	}
	now := a.Now()
	var open map[int64]*int64
	if !p.Simple {
		if open, err = a.related(c, found.Items...); err != nil {
			return page[any]{}, err
		}
	}
	attributes, err := p.attributesOf(a, c, false, mapped(found.Items, func(one *project.Project) int64 { return one.ID }))
	if err != nil {
		return page[any]{}, err
	}
	to := func(one *project.Project) any {
		shown := toProject(c, one, p.Simple, p.Statistics, now)
		if full, ok := shown.(projectJSON); ok {
			full.OpenIssues, full.attributesJSON = open[one.ID], attributes[one.ID]
			return full
		}
		return shown
	}
	if !paging.Keyset {
		return offsetPage(p.pageParams, found, to), nil
	}
	return page[any]{items: mapped(found.Items, to), head: func(c *call) {
		if !found.More {
			return
		}
		name := "id_after"
		if p.Sort == "desc" {
			name = "id_before"
		}
		query := c.pageQuery()
		query.Del("cursor")
		query.Set(name, strconv.FormatInt(found.Items[len(found.Items)-1].ID, 10))
		query.Set("per_page", strconv.FormatInt(p.PerPage, 10))
		c.w.Header().Set("Link", "<"+c.pageURL(query)+`>; rel="next"`)
	}}, nil
}

// listProjects: https://docs.gitlab.com/api/projects/#list-all-projects
func (a *API) listProjects(c *call, p projectFilterParams) (page[any], error) {
	return a.projectList(c, &p, func(paging db.Paging) (db.Page[*project.Project], error) {
		return a.Projects.List(c, c.actor, p.filter(), p.order(), paging)
	})
}

type userProjectsParams struct {
	User user.Ref `param:"user_id" doc:"User ID or username."`
	projectFilterParams
}

// listUserProjects: https://docs.gitlab.com/api/projects/#list-a-users-projects
func (a *API) listUserProjects(c *call, p userProjectsParams) (page[any], error) {
	return a.projectList(c, &p.projectFilterParams, func(paging db.Paging) (db.Page[*project.Project], error) {
		return a.Projects.UserProjects(c, c.actor, p.User, p.filter(), p.order(), paging)
	})
}

// listStarredProjects: https://docs.gitlab.com/api/project_starring/#list-projects-starred-by-a-user
func (a *API) listStarredProjects(c *call, p userProjectsParams) (page[any], error) {
	return a.projectList(c, &p.projectFilterParams, func(paging db.Paging) (db.Page[*project.Project], error) {
		return a.Projects.StarredProjects(c, c.actor, p.User, p.filter(), p.order(), paging)
	})
}

// listContributedProjects: https://docs.gitlab.com/api/projects/#list-projects-a-user-has-contributed-to
func (a *API) listContributedProjects(c *call, p userProjectsParams) (page[any], error) {
	return a.projectList(c, &p.projectFilterParams, func(paging db.Paging) (db.Page[*project.Project], error) {
		return a.Repos.ContributedProjects(c, c.actor, p.User, p.filter(), p.order(), paging)
	})
}

type forksParams struct {
	projectParams
	projectFilterParams
}

// listForks: https://docs.gitlab.com/api/project_forks/#list-forks-of-a-project
func (a *API) listForks(c *call, p forksParams) (page[any], error) {
	return a.projectList(c, &p.projectFilterParams, func(paging db.Paging) (db.Page[*project.Project], error) {
		return a.Projects.Forks(c, c.actor, p.Project, p.filter(), p.order(), paging)
	})
}

type getProjectParams struct {
	projectParams
	Statistics bool `param:"statistics" doc:"Include statistics. Requires the Reporter role or higher."`
	License    bool `param:"license" doc:"Include the license of the repository."`

	WithAttributes bool `param:"with_custom_attributes" doc:"Include custom attributes (administrators only)."`
}

// getProject: https://docs.gitlab.com/api/projects/#retrieve-a-project
func (a *API) getProject(c *call, p getProjectParams) (any, error) {
	found, err := a.Projects.GetMarked(c, c.actor, p.Project)
	if err != nil {
		return nil, err
	}
	if c.actor.Job != nil && c.actor.Job.ProjectID != found.ID { // a job token only gives access to its own project
		return nil, errs.Unauthorized("")
	}
	if p.Statistics {
		if err := a.fillArtifacts(c, found); err != nil {
			return nil, err
		}
	}
	shown, err := a.wholeProject(c, found, p.Statistics)
	if err != nil {
		return nil, err
	}
	var license *projectLicenseJSON
	if p.License {
		if license, err = a.projectLicense(c, found); err != nil {
			return nil, err
		}
	}
	full, ok := shown.(projectJSON)
	if !ok {
		basic := shown.(projectBasicJSON)
		basic.projectLicenseJSON = license
		return basic, nil
	}
	full.projectLicenseJSON = license
	attributes, err := attributeFilterParams{WithAttributes: p.WithAttributes}.attributesOf(a, c, false, []int64{found.ID})
	if err != nil {
		return nil, err
	}
	full.attributesJSON = attributes[found.ID]
	return full, nil
}

// fillArtifacts adds the sizes of artifacts, packages and LFS objects to the
// statistics of projects.
func (a *API) fillArtifacts(c *call, list ...*project.Project) error {
	ids := make([]int64, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	artifacts, err := a.CI.Artifacts.Sizes(c, ids)
	if err != nil {
		return err
	}
	packages, err := a.Packages.Sizes(c, ids)
	if err != nil {
		return err
	}
	objects, err := a.LFS.Sizes(c, ids)
	for _, p := range list {
		p.Statistics.ArtifactsSize, p.Statistics.PackagesSize, p.Statistics.LFSSize = artifacts[p.ID], packages[p.ID], objects[p.ID]
	}
	return err
}

// projectFieldParams are the attributes for create and update.
type projectFieldParams struct {
	Description *string                `param:"description"`
	Visibility  *project.Visibility    `param:"visibility" enum:"private,internal,public"`
	Topics      *[]string              `param:"topics,csv" aliases:"tag_list"`
	Storage     *string                `param:"repository_storage,nonblank" doc:"Administrators only."`
	Avatar      bind.Opt[*bind.Upload] `param:"avatar" doc:"Image file: PNG, JPEG, GIF or WebP, at most 200 KiB. Empty to remove the avatar."`
	projectSettingParams
}

func (p *projectFieldParams) fields() project.Fields {
	return project.Fields{
		Description: p.Description, Topics: p.Topics, Storage: p.Storage,
		Issues: either(p.Issues, toFeature(p.IssuesEnabled)), Repository: p.Repository,
		MergeRequests: either(p.MergeRequests, toFeature(p.MergeRequestsEnabled)), Builds: either(p.Builds, toFeature(p.JobsEnabled)),
		Settings: p.apply, Avatar: toAvatarFile(p.Avatar.Value), RemoveAvatar: p.Avatar.Null,
	}
}

type createProjectParams struct {
	Name        string `param:"name" doc:"Name of the project. Default is derived from the path."`
	Path        string `param:"path" doc:"Path of the project. Default is derived from the name."`
	NamespaceID *int64 `param:"namespace_id" doc:"Namespace ID. Default is the namespace of the current user."`
	Readme      bool   `param:"initialize_with_readme" doc:"Create the first commit, with a README file."`
	Branch      string `param:"default_branch" doc:"Name of the default branch. Default is the setting of the group, or main."`
	ImportURL   string `param:"import_url" doc:"URL of a repository to import: http, https, ssh or git. It may contain a username and password, which are not stored after the import. Cannot be combined with initialize_with_readme."`
	// Additions to the public API.
	ImportAuthMethod string             `param:"import_auth_method" enum:"ssh_public_key,password" doc:"Authentication method of the import. For ssh_public_key, GET /projects/:id/import returns the public key."`
	ImportHostKeys   bind.Opt[[]string] `param:"import_host_keys" max:"10" doc:"Public host keys of the SSH server, as in a known_hosts file. Required for ssh URLs."`
	projectFieldParams
	projectMirrorParams
}

func (createProjectParams) ParamRules() []bind.Rule {
	return []bind.Rule{bind.AtLeastOne("name", "path")}
}

// createProject: https://docs.gitlab.com/api/projects/#create-a-project
func (a *API) createProject(c *call, p createProjectParams) (any, error) {
	made, err := a.newProject(c, p.project(), &p)
	return a.presentProject(c, made, err)
}

// newProject creates a project, or imports it if the parameters have a URL.
func (a *API) newProject(c *call, n project.NewProject, p *createProjectParams) (*project.Project, error) {
	wants := p.Mirror != nil && *p.Mirror
	if p.ImportURL == "" && wants {
		return nil, errs.InvalidField("import_url", "can't be blank if mirror is true")
	}
	if p.ImportURL == "" {
		return a.Repos.Create(c, c.actor, n, repo.FirstFiles{README: p.Readme})
	}
	if p.Readme {
		return nil, errs.InvalidField("import_url", "cannot be combined with initialize_with_readme")
	}
	from := mirror.Source{URL: p.ImportURL, AuthMethod: mirror.AuthMethod(p.ImportAuthMethod), HostKeys: p.ImportHostKeys.Value}
	if wants {
		f := p.mirrorFields()
		from.Mirror = &f
	}
	return a.Mirrors.Create(c, c.actor, n, from)
}

func (p *createProjectParams) project() project.NewProject {
	return project.NewProject{Name: p.Name, Path: p.Path, NamespaceID: p.NamespaceID, Visibility: p.Visibility, Branch: p.Branch, Fields: p.fields()}
}

type createProjectForParams struct {
	UserID int64 `param:"user_id"`
	createProjectParams
}

// createProjectFor: https://docs.gitlab.com/api/projects/#create-a-project-for-a-user
func (a *API) createProjectFor(c *call, p createProjectForParams) (any, error) {
	n := p.project()
	n.For = &p.UserID
	made, err := a.newProject(c, n, &p.createProjectParams)
	return a.presentProject(c, made, err)
}

type updateProjectParams struct {
	projectParams
	Name          *string `param:"name,nonblank"`
	Path          *string `param:"path,nonblank" doc:"New path. The old path redirects to it."`
	DefaultBranch *string `param:"default_branch,nonblank"`
	ImportURL     *string `param:"import_url" doc:"URL of the repository that the project mirrors, which may contain credentials. Needs mirror."`
	MirrorUserID  *int64  `param:"mirror_user_id" doc:"ID of the user who is the author of pulled changes. For administrators."`
	projectFieldParams
	projectMirrorParams
}

// updateProject: https://docs.gitlab.com/api/projects/#update-a-project
func (a *API) updateProject(c *call, p updateProjectParams) (any, error) {
	change := project.Change{Name: p.Name, Path: p.Path, Visibility: p.Visibility, Fields: p.fields()}
	change.DefaultBranch = p.DefaultBranch
	if err := a.saveMirror(c, &p); err != nil {
		return nil, err
	}
	made, err := a.Projects.Update(c, c.actor, p.Project, change)
	return a.presentProject(c, made, err)
}

// deletionParams are the parameters to permanently delete a group or project that is
// marked for deletion.
type deletionParams struct {
	Permanently bool   `param:"permanently_remove" doc:"Delete immediately. The group or project must be marked for deletion."`
	FullPath    string `param:"full_path" doc:"Full path, to confirm permanently_remove."`
}

func (p deletionParams) deletion(c *call) project.Deletion {
	return project.Deletion{Permanently: p.Permanently, FullPath: p.FullPath, UnmodifiedSince: c.unmodifiedSince()}
}

type deleteProjectParams struct {
	projectParams
	deletionParams
}

// deleteProject: https://docs.gitlab.com/api/projects/#delete-a-project
func (a *API) deleteProject(c *call, p deleteProjectParams) (accepted, error) {
	return accepted{}, a.Projects.Delete(c, c.actor, p.Project, p.deletion(c))
}

// restoreProject: https://docs.gitlab.com/api/projects/#restore-a-project
func (a *API) restoreProject(c *call, p projectParams) (any, error) {
	found, err := a.Projects.Restore(c, c.actor, p.Project)
	return a.presentProject(c, found, err)
}
