package api

import (
	"time"

	"svc/internal/bind"
	"svc/internal/ci/runners"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/patch"
	"svc/internal/project"
)

func (a *API) groupRoutes() {
	a.tag("Groups")
	shapes := returns(projectBasicJSON{}, projectJSON{})
	handle(a, "GET /groups", readAPI.orAnonymous(), a.listGroups, summary("List groups"))
	handle(a, "GET /groups/{id}", readAPI.orAnonymous(), a.getGroup, returns(groupDetailJSON{}, groupWithProjectsJSON{}, groupWithBasicJSON{}), summary("Get a group"))
	handle(a, "POST /groups", writeAPI, a.createGroup, files(maxAvatarUpload), summary("Create a group"))
	handle(a, "PUT /groups/{id}", writeAPI, a.updateGroup, files(maxAvatarUpload), summary("Update a group"))
	handle(a, "DELETE /groups/{id}", writeAPI, a.deleteGroup, summary("Delete a group"))
	handle(a, "POST /groups/{id}/restore", writeAPI, a.restoreGroup, summary("Restore a group marked for deletion"))
	handle(a, "GET /groups/{id}/subgroups", readAPI.orAnonymous(), a.listSubgroups, summary("List subgroups"))
	handle(a, "GET /groups/{id}/descendant_groups", readAPI.orAnonymous(), a.listDescendantGroups, summary("List descendant groups"))
	handle(a, "GET /groups/{id}/projects", readAPI.orAnonymous(), a.listGroupProjects, shapes, summary("List projects in a group"))
	handle(a, "GET /groups/{id}/projects/shared", readAPI.orAnonymous(), a.listSharedProjects, shapes, summary("List shared projects in a group"))
	handle(a, "POST /groups/{id}/projects/{project_id}", writeAPI, a.adoptProject, summary("Transfer a project to a group"))
	handle(a, "POST /groups/{id}/transfer", writeAPI, a.transferGroup, summary("Transfer a group"))
}

// inGroupParams identify a group.
type inGroupParams struct {
	Group project.Ref `param:"id" doc:"Group ID or full path."`
}

type groupFilterParams struct {
	Search         string             `param:"search" max:"1024" doc:"Text in the name or path."`
	SkipGroups     []int64            `param:"skip_groups,csv"`
	Owned          bool               `param:"owned" doc:"Only groups that the current user owns."`
	MinAccessLevel int64              `param:"min_access_level" enum:"5,10,15,20,30,40,50"`
	AllAvailable   *bool              `param:"all_available" doc:"All accessible groups, not only those of the current user. Default is true for administrators."`
	TopLevelOnly   bool               `param:"top_level_only"`
	Visibility     project.Visibility `param:"visibility" enum:"private,internal,public"`
	MarkedOn       *bind.Date         `param:"marked_for_deletion_on" doc:"Only groups marked for deletion on this date, for owners and administrators."`
	Active         *bool              `param:"active" doc:"Only groups that are not marked for deletion; if false, only the others."`
	OrderBy        string             `param:"order_by" enum:"name,path,id" default:"name" doc:"Must be name for keyset pagination."`
	Sort           string             `param:"sort" enum:"asc,desc" default:"asc" doc:"Must be asc for keyset pagination."`
	Statistics     bool               `param:"statistics" doc:"Include statistics (administrators only)."`
	attributeFilterParams
	keysetParams
}

// groupList returns a page of groups.
func (a *API) groupList(c *call, p *groupFilterParams, all bool, list func(project.GroupsFilter, project.Sort, db.Paging) (db.Page[*project.Namespace], error)) (page[groupJSON], error) {
	k := keyset{object: "Group", columns: []string{"name", "id"}, allowed: p.OrderBy == "name" && p.Sort == "asc"}
	paging, err := p.paging(k)
	if err != nil {
		return page[groupJSON]{}, err
	}
	f := project.GroupsFilter{
		Search: p.Search, Skip: p.SkipGroups, Owned: p.Owned, MinLevel: project.Level(p.MinAccessLevel),
		TopLevelOnly: p.TopLevelOnly, Visibility: p.Visibility, AllAvailable: all,
		MarkedOn: dateTime(p.MarkedOn), Attributes: p.Attributes,
	}
	if p.Active != nil && !*p.Active {
		f.Marked = project.OnlyMarked
	}
	patch.Set(&f.AllAvailable, p.AllAvailable)
	found, err := list(f, project.Sort{By: p.OrderBy, Desc: p.Sort == "desc"}, paging)
	if err != nil {
		return page[groupJSON]{}, err
	}
	var sizes map[int64]*groupStatisticsJSON
	if p.Statistics {
		if sizes, err = a.groupStatistics(c, found.Items); err != nil {
			return page[groupJSON]{}, err
		}
	}
	attributes, err := p.attributesOf(a, c, true, mapped(found.Items, func(n *project.Namespace) int64 { return n.ID }))
	if err != nil {
		return page[groupJSON]{}, err
	}
	return keysetPage(p.keysetParams, k, found, func(n *project.Namespace) groupJSON {
		shown := toGroup(c.site, n)
		shown.Statistics, shown.attributesJSON = sizes[n.ID], attributes[n.ID]
		return shown
	}), nil
}

// groupStatistics returns the storage statistics of groups, for administrators.
func (a *API) groupStatistics(c *call, list []*project.Namespace) (map[int64]*groupStatisticsJSON, error) {
	ids := make([]int64, len(list))
	for i, n := range list {
		ids[i] = n.ID
	}
	sums, err := a.Projects.GroupStatistics(c, c.actor, ids)
	if len(sums) == 0 || err != nil {
		return nil, err
	}
	artifacts, err := a.CI.Artifacts.GroupSizes(c, ids)
	if err != nil {
		return nil, err
	}
	packages, err := a.Packages.GroupSizes(c, ids)
	if err != nil {
		return nil, err
	}
	objects, err := a.LFS.GroupSizes(c, ids)
	shown := make(map[int64]*groupStatisticsJSON, len(sums))
	for id, s := range sums {
		s.ArtifactsSize, s.PackagesSize, s.LFSSize = artifacts[id], packages[id], objects[id]
		shown[id] = &groupStatisticsJSON{
			StorageSize: s.Storage(), RepositorySize: s.RepositorySize, WikiSize: s.WikiSize, SnippetsSize: s.SnippetsSize,
			LFSObjectsSize: s.LFSSize, JobArtifactsSize: s.ArtifactsSize, PackagesSize: s.PackagesSize,
		}
	}
	return shown, err
}

// listGroups: https://docs.gitlab.com/api/groups/#list-all-groups
func (a *API) listGroups(c *call, p groupFilterParams) (page[groupJSON], error) {
	return a.groupList(c, &p, c.actor.Admin, func(f project.GroupsFilter, order project.Sort, paging db.Paging) (db.Page[*project.Namespace], error) {
		return a.Projects.Groups(c, c.actor, f, order, paging)
	})
}

type subgroupsParams struct {
	inGroupParams
	groupFilterParams
}

// listSubgroups: https://docs.gitlab.com/api/groups/#list-subgroups
func (a *API) listSubgroups(c *call, p subgroupsParams) (page[groupJSON], error) {
	return a.groupList(c, &p.groupFilterParams, true, func(f project.GroupsFilter, order project.Sort, paging db.Paging) (db.Page[*project.Namespace], error) {
		return a.Projects.Subgroups(c, c.actor, p.Group, false, f, order, paging)
	})
}

// listDescendantGroups: https://docs.gitlab.com/api/groups/#list-descendant-groups
func (a *API) listDescendantGroups(c *call, p subgroupsParams) (page[groupJSON], error) {
	return a.groupList(c, &p.groupFilterParams, true, func(f project.GroupsFilter, order project.Sort, paging db.Paging) (db.Page[*project.Namespace], error) {
		return a.Projects.Subgroups(c, c.actor, p.Group, true, f, order, paging)
	})
}

type groupProjectsParams struct {
	inGroupParams
	IncludeSubgroups bool `param:"include_subgroups"`
	WithShared       bool `param:"with_shared" default:"true" doc:"Include projects shared with the group."`
	projectFilterParams
}

// listGroupProjects: https://docs.gitlab.com/api/groups/#list-projects
func (a *API) listGroupProjects(c *call, p groupProjectsParams) (page[any], error) {
	return a.projectList(c, &p.projectFilterParams, func(paging db.Paging) (db.Page[*project.Project], error) {
		return a.Projects.GroupProjects(c, c.actor, p.Group, project.GroupFilter{Subgroups: p.IncludeSubgroups, WithShared: p.WithShared}, p.filter(), p.order(), paging)
	})
}

type sharedProjectsParams struct {
	inGroupParams
	projectFilterParams
}

// listSharedProjects: https://docs.gitlab.com/api/groups/#list-shared-projects
func (a *API) listSharedProjects(c *call, p sharedProjectsParams) (page[any], error) {
	return a.projectList(c, &p.projectFilterParams, func(paging db.Paging) (db.Page[*project.Project], error) {
		return a.Projects.GroupProjects(c, c.actor, p.Group, project.GroupFilter{OnlyShared: true}, p.filter(), p.order(), paging)
	})
}

type getGroupParams struct {
	inGroupParams
	WithProjects   bool `param:"with_projects" default:"true" doc:"Include up to 100 projects of the group."`
	WithAttributes bool `param:"with_custom_attributes" doc:"Include custom attributes (administrators only)."`
}

// attributes returns the custom attributes of the group, if they were requested.
func (p getGroupParams) attributes(a *API, c *call, n *project.Namespace) (*attributesJSON, error) {
	found, err := attributeFilterParams{WithAttributes: p.WithAttributes}.attributesOf(a, c, true, []int64{n.ID})
	return found[n.ID], err
}

// getGroup: https://docs.gitlab.com/api/groups/#retrieve-a-group
func (a *API) getGroup(c *call, p getGroupParams) (any, error) {
	if !p.WithProjects {
		return a.getGroupAlone(c, p)
	}
	n, own, shared, err := a.Projects.GroupWithProjects(c, c.actor, p.Group)
	if errs.Is(err, errs.KindNotFound) { // the group may be marked for deletion
		return a.getGroupAlone(c, p)
	}
	if err != nil {
		return nil, err
	}
	token, err := a.groupRunnersToken(c, n)
	if err != nil {
		return nil, err
	}
	group := groupDetailJSON{groupJSON: toGroup(c.site, n), SharedWithGroups: mapped(n.Shares, toShared), RunnersToken: token}
	if group.attributesJSON, err = p.attributes(a, c, n); err != nil {
		return nil, err
	}
	return toGroupWithProjects(c, group, own, shared, a.Now()), nil
}

// getGroupAlone returns a group without its projects, also if it is marked for
// deletion.
func (a *API) getGroupAlone(c *call, p getGroupParams) (any, error) {
	n, err := a.Projects.GroupMarked(c, c.actor, p.Group)
	shown, err := presentGroup(c, n, err)
	if err == nil {
		shown.attributesJSON, err = p.attributes(a, c, n)
	}
	if err == nil && n.MarkedAt == nil {
		shown.RunnersToken, err = a.groupRunnersToken(c, n)
	}
	return shown, err
}

// groupRunnersToken returns the registration token of the group, or nil if the user
// cannot register runners in the group.
func (a *API) groupRunnersToken(c *call, n *project.Namespace) (*string, error) {
	if c.actor.Anonymous() {
		return nil, nil
	}
	return a.runnersToken(c, runners.Owner{Group: project.RefTo(n.ID)})
}

type adoptProjectParams struct {
	inGroupParams
	Project project.Ref `param:"project_id" doc:"Project ID or full path."`
}

// adoptProject: https://docs.gitlab.com/api/groups/#transfer-a-project-to-a-group
func (a *API) adoptProject(c *call, p adoptProjectParams) (groupDetailJSON, error) {
	n, err := a.Projects.Adopt(c, c.actor, p.Group, p.Project)
	return presentGroup(c, n, err)
}

// groupFieldParams are the attributes for create and update.
type groupFieldParams struct {
	Description                               *string             `param:"description"`
	Visibility                                *project.Visibility `param:"visibility" enum:"private,internal,public"`
	ProjectCreationLevel                      *string             `param:"project_creation_level" enum:"noone,owner,maintainer,developer,administrator"`
	SubgroupCreationLevel                     *string             `param:"subgroup_creation_level" enum:"owner,maintainer"`
	RequestAccessEnabled                      *bool               `param:"request_access_enabled"`
	ShareWithGroupLock                        *bool               `param:"share_with_group_lock"`
	MembershipLock                            *bool               `param:"membership_lock"`
	LFSEnabled                                *bool               `param:"lfs_enabled"`
	EmailsEnabled                             *bool               `param:"emails_enabled"`
	MentionsDisabled                          *bool               `param:"mentions_disabled"`
	DefaultBranch                             *string             `param:"default_branch"`
	SharedRunnersSetting                      *string             `param:"shared_runners_setting" enum:"enabled,disabled_and_overridable,disabled_and_unoverridable"`
	WikiAccessLevel                           *project.Feature    `param:"wiki_access_level" enum:"disabled,private,enabled"`
	EmailsDisabled                            *bool               `param:"emails_disabled" doc:"Deprecated: use emails_enabled."`
	PreventForking                            *bool               `param:"prevent_forking_outside_group" doc:"Whether projects of the group can be forked only into the top-level group and its subgroups."`
	OnlyAllowMergeIfPipelineSucceeds          *bool               `param:"only_allow_merge_if_pipeline_succeeds" doc:"Whether merge requests of all projects of the group need a successful pipeline."`
	AllowMergeOnSkippedPipeline               *bool               `param:"allow_merge_on_skipped_pipeline" doc:"Whether skipped pipelines count as successful in all projects of the group."`
	OnlyAllowMergeIfAllDiscussionsAreResolved *bool               `param:"only_allow_merge_if_all_discussions_are_resolved" doc:"Whether merge requests of all projects of the group need all threads to be resolved."`
	BranchProtection                          *int64              `param:"default_branch_protection" enum:"0,1,2,3,4" doc:"Deprecated: use default_branch_protection_defaults."`

	BranchProtectionDefaults *branchProtectionParams `param:"default_branch_protection_defaults" doc:"Protection of the default branch of new projects."`
	Avatar                   bind.Opt[*bind.Upload]  `param:"avatar" doc:"Image file: PNG, JPEG, GIF or WebP, at most 200 KiB. Empty to remove the avatar."`
}

func (p *groupFieldParams) apply(g *project.GroupSettings) {
	if p.EmailsDisabled != nil {
		g.EmailsEnabled = !*p.EmailsDisabled
	}
	patch.Set(&g.PreventForkingOutsideGroup, p.PreventForking)
	patch.Set(&g.OnlyAllowMergeIfPipelineSucceeds, p.OnlyAllowMergeIfPipelineSucceeds)
	patch.Set(&g.AllowMergeOnSkippedPipeline, p.AllowMergeOnSkippedPipeline)
	patch.Set(&g.OnlyAllowMergeIfAllDiscussionsAreResolved, p.OnlyAllowMergeIfAllDiscussionsAreResolved)
	if p.BranchProtection != nil {
		level := project.ProtectionOf(int(*p.BranchProtection))
		g.BranchProtection = &level
	}
	if p.BranchProtectionDefaults != nil {
		g.BranchProtection = p.BranchProtectionDefaults.change(g.BranchProtection)
	}
	patch.Set(&g.ProjectCreationLevel, p.ProjectCreationLevel)
	patch.Set(&g.SubgroupCreationLevel, p.SubgroupCreationLevel)
	patch.Set(&g.RequestAccessEnabled, p.RequestAccessEnabled)
	patch.Set(&g.ShareWithGroupLock, p.ShareWithGroupLock)
	patch.Set(&g.MembershipLock, p.MembershipLock)
	patch.Set(&g.LFSEnabled, p.LFSEnabled)
	patch.Set(&g.EmailsEnabled, p.EmailsEnabled)
	patch.Set(&g.MentionsDisabled, p.MentionsDisabled)
	patch.Set(&g.DefaultBranch, p.DefaultBranch)
	patch.Set(&g.SharedRunnersSetting, p.SharedRunnersSetting)
	patch.Set(&g.WikiAccessLevel, p.WikiAccessLevel)
}

type createGroupParams struct {
	Name     string `param:"name,required"`
	Path     string `param:"path,required"`
	ParentID *int64 `param:"parent_id" doc:"ID of the parent group; none for a top-level group."`
	groupFieldParams
}

// createGroup: https://docs.gitlab.com/api/groups/#create-a-group
func (a *API) createGroup(c *call, p createGroupParams) (groupDetailJSON, error) {
	n := project.NewGroup{Name: p.Name, Path: p.Path, ParentID: p.ParentID, Visibility: p.Visibility, Change: p.apply, Avatar: toAvatarFile(p.Avatar.Value)}
	patch.Set(&n.Description, p.Description)
	made, err := a.Projects.CreateGroup(c, c.actor, n)
	return presentGroup(c, made, err)
}

type updateGroupParams struct {
	inGroupParams
	Name *string `param:"name,nonblank"`
	Path *string `param:"path,nonblank" doc:"New path. Old paths redirect to the new ones."`
	groupFieldParams
}

// updateGroup: https://docs.gitlab.com/api/groups/#update-group-attributes
func (a *API) updateGroup(c *call, p updateGroupParams) (groupDetailJSON, error) {
	n, err := a.Projects.UpdateGroup(c, c.actor, p.Group, project.GroupChange{
		Name: p.Name, Path: p.Path, Description: p.Description, Visibility: p.Visibility, Settings: p.apply,
		Avatar: toAvatarFile(p.Avatar.Value), RemoveAvatar: p.Avatar.Null,
	})
	return presentGroup(c, n, err)
}

type deleteGroupParams struct {
	inGroupParams
	deletionParams
}

// deleteGroup: https://docs.gitlab.com/api/groups/#delete-a-group
func (a *API) deleteGroup(c *call, p deleteGroupParams) (accepted, error) {
	return accepted{}, a.Projects.DeleteGroup(c, c.actor, p.Group, p.deletion(c))
}

// restoreGroup: https://docs.gitlab.com/api/groups/#restore-a-group
func (a *API) restoreGroup(c *call, p inGroupParams) (groupDetailJSON, error) {
	n, err := a.Projects.RestoreGroup(c, c.actor, p.Group)
	return presentGroup(c, n, err)
}

type transferGroupParams struct {
	inGroupParams
	GroupID *int64 `param:"group_id" doc:"ID of the new parent group. Omit to make the group a top-level group."`
}

// transferGroup: https://docs.gitlab.com/api/groups/#transfer-a-group
func (a *API) transferGroup(c *call, p transferGroupParams) (groupDetailJSON, error) {
	n, err := a.Projects.TransferGroup(c, c.actor, p.Group, p.GroupID)
	return presentGroup(c, n, err)
}

// groupJSON is a group in lists.
type groupJSON struct {
	ID                               int64   `json:"id"`
	WebURL                           string  `json:"web_url"`
	Name                             string  `json:"name"`
	Path                             string  `json:"path"`
	Description                      string  `json:"description"`
	Visibility                       string  `json:"visibility"`
	AvatarURL                        *string `json:"avatar_url"`
	FullName                         string  `json:"full_name"`
	FullPath                         string  `json:"full_path"`
	CreatedAt                        stamp   `json:"created_at"`
	ParentID                         *int64  `json:"parent_id"`
	ProjectCreationLevel             string  `json:"project_creation_level"`
	SubgroupCreationLevel            string  `json:"subgroup_creation_level"`
	RequestAccessEnabled             bool    `json:"request_access_enabled"`
	TwoFactorGracePeriod             int64   `json:"two_factor_grace_period"`
	ShareWithGroupLock               bool    `json:"share_with_group_lock"`
	MembershipLock                   bool    `json:"membership_lock"`
	LFSEnabled                       bool    `json:"lfs_enabled"`
	EmailsEnabled                    bool    `json:"emails_enabled"`
	EmailsDisabled                   bool    `json:"emails_disabled"` // deprecated
	MentionsDisabled                 bool    `json:"mentions_disabled"`
	DefaultBranch                    *string `json:"default_branch"`
	SharedRunnersSetting             string  `json:"shared_runners_setting"`
	WikiAccessLevel                  string  `json:"wiki_access_level"`
	OnlyAllowMergeIfPipelineSucceeds bool    `json:"only_allow_merge_if_pipeline_succeeds"`
	AllowMergeOnSkipped              bool    `json:"allow_merge_on_skipped_pipeline"`
	DiscussionsResolved              bool    `json:"only_allow_merge_if_all_discussions_are_resolved"`
	MarkedForDeletionOn              *day    `json:"marked_for_deletion_on"`
	PreventForking                   bool    `json:"prevent_forking_outside_group"`

	DefaultBranchProtection         int64                `json:"default_branch_protection"` // deprecated
	DefaultBranchProtectionDefaults branchProtectionJSON `json:"default_branch_protection_defaults"`
	groupFixedJSON

	Statistics *groupStatisticsJSON `json:"statistics,omitempty"`
	*attributesJSON
}

// groupStatisticsJSON is the storage size of a group and its subgroups.
type groupStatisticsJSON struct {
	StorageSize      int64 `json:"storage_size"`
	RepositorySize   int64 `json:"repository_size"`
	WikiSize         int64 `json:"wiki_size"`
	LFSObjectsSize   int64 `json:"lfs_objects_size"`
	JobArtifactsSize int64 `json:"job_artifacts_size"`
	SnippetsSize     int64 `json:"snippets_size"`
	PackagesSize     int64 `json:"packages_size"`
}

// groupDetailJSON is a single group.
type groupDetailJSON struct {
	groupJSON
	SharedWithGroups []sharedGroupJSON `json:"shared_with_groups"`
	RunnersToken     *string           `json:"runners_token,omitempty"` // for users who can register runners
}

// groupWithProjectsJSON is a group with its projects, for authenticated users.
type groupWithProjectsJSON struct {
	groupDetailJSON
	Projects       []projectJSON `json:"projects"` // deprecated
	SharedProjects []projectJSON `json:"shared_projects"`
}

// groupWithBasicJSON is a group with its projects, for anonymous callers.
type groupWithBasicJSON struct {
	groupDetailJSON
	Projects       []projectBasicJSON `json:"projects"`
	SharedProjects []projectBasicJSON `json:"shared_projects"`
}

func toGroupWithProjects(c *call, group groupDetailJSON, own, shared []*project.Project, now time.Time) any {
	basic := func(p *project.Project) projectBasicJSON { return toProjectBasic(c.site, p) }
	if c.actor.Anonymous() {
		return groupWithBasicJSON{group, mapped(own, basic), mapped(shared, basic)}
	}
	full := func(p *project.Project) projectJSON { return toProjectFull(c, p, basic(p), now) }
	return groupWithProjectsJSON{group, mapped(own, full), mapped(shared, full)}
}

func presentGroup(c *call, n *project.Namespace, err error) (groupDetailJSON, error) {
	if err != nil {
		return groupDetailJSON{}, err
	}
	return groupDetailJSON{groupJSON: toGroup(c.site, n), SharedWithGroups: mapped(n.Shares, toShared)}, nil
}

func toGroup(site *Site, n *project.Namespace) groupJSON {
	g := &n.Settings
	return groupJSON{
		ID: n.ID, WebURL: namespaceURL(site, n), Name: n.Name, Path: n.Path, Description: n.Description, Visibility: string(n.Visibility),
		AvatarURL: namespacePicture(site, n), FullName: n.FullName, FullPath: n.FullPath, CreatedAt: toStamp(n.CreatedAt), ParentID: n.ParentID,
		ProjectCreationLevel: g.ProjectCreationLevel, SubgroupCreationLevel: g.SubgroupCreationLevel, RequestAccessEnabled: g.RequestAccessEnabled,
		TwoFactorGracePeriod: g.TwoFactorGracePeriod,
		ShareWithGroupLock:   g.ShareWithGroupLock, MembershipLock: g.MembershipLock,
		LFSEnabled: g.LFSEnabled, EmailsEnabled: g.EmailsEnabled, EmailsDisabled: !g.EmailsEnabled, MentionsDisabled: g.MentionsDisabled,
		DefaultBranch: textOrNull(g.DefaultBranch), SharedRunnersSetting: g.SharedRunnersSetting,
		WikiAccessLevel: string(g.WikiAccessLevel), OnlyAllowMergeIfPipelineSucceeds: g.OnlyAllowMergeIfPipelineSucceeds,
		AllowMergeOnSkipped: g.AllowMergeOnSkippedPipeline, DiscussionsResolved: g.OnlyAllowMergeIfAllDiscussionsAreResolved,
		MarkedForDeletionOn: dateOrNull(n.MarkedAt), PreventForking: g.PreventForkingOutsideGroup,
		DefaultBranchProtection: int64(n.Protection().Level()), DefaultBranchProtectionDefaults: toBranchProtection(n.Protection()),
		groupFixedJSON: groupFixedJSON{LDAPLinks: []struct{}{}, SAMLLinks: []struct{}{}},
	}
}
