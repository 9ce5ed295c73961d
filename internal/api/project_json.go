package api

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"time"

	"svc/internal/project"
	"svc/internal/repo"
)

// projectNameJSON identifies a project within another object.
type projectNameJSON struct {
	ID                int64   `json:"id"`
	Description       *string `json:"description"`
	Name              string  `json:"name"`
	NameWithNamespace string  `json:"name_with_namespace"`
	Path              string  `json:"path"`
	PathWithNamespace string  `json:"path_with_namespace"`
	CreatedAt         stamp   `json:"created_at"`
}

func toProjectName(p *project.Project) projectNameJSON {
	return projectNameJSON{p.ID, textOrNull(p.Description), p.Name, p.FullName(), p.Path, p.FullPath, toStamp(p.CreatedAt)}
}

// projectBasicJSON is a project for anonymous callers.
type projectBasicJSON struct {
	projectNameJSON
	DefaultBranch  string                 `json:"default_branch"` // of an empty repository: the branch to push first
	TagList        []string               `json:"tag_list"`       // deprecated
	Topics         []string               `json:"topics"`
	SSHURL         string                 `json:"ssh_url_to_repo"`
	HTTPURL        string                 `json:"http_url_to_repo"`
	WebURL         string                 `json:"web_url"`
	ReadmeURL      *string                `json:"readme_url"`
	ForksCount     int64                  `json:"forks_count"`
	AvatarURL      *string                `json:"avatar_url"`
	StarCount      int64                  `json:"star_count"`
	LastActivityAt stamp                  `json:"last_activity_at"`
	Visibility     string                 `json:"visibility"`
	Namespace      namespaceJSON          `json:"namespace"`
	Statistics     *projectStatisticsJSON `json:"statistics,omitempty"`
}

// projectStatisticsJSON is the statistics of a project.
type projectStatisticsJSON struct {
	CommitCount      int64 `json:"commit_count"`
	StorageSize      int64 `json:"storage_size"`
	RepositorySize   int64 `json:"repository_size"`
	WikiSize         int64 `json:"wiki_size"`
	SnippetsSize     int64 `json:"snippets_size"`
	LFSObjectsSize   int64 `json:"lfs_objects_size"`
	JobArtifactsSize int64 `json:"job_artifacts_size"`
	PackagesSize     int64 `json:"packages_size"`
}

// projectJSON is a project for authenticated users.
type projectJSON struct {
	projectBasicJSON
	Links     projectLinksJSON `json:"_links"`
	Owner     *userPublicJSON  `json:"owner,omitempty"`
	CreatorID *int64           `json:"creator_id"`
	EmptyRepo bool             `json:"empty_repo"`
	Archived  bool             `json:"archived"`
	Mirror    bool             `json:"mirror"`

	ImportStatus string  `json:"import_status"`
	ImportError  *string `json:"import_error"`

	ForkedFrom *projectBasicJSON `json:"forked_from_project,omitempty"`

	IssuesAccessLevel        string `json:"issues_access_level"`
	RepositoryAccessLevel    string `json:"repository_access_level"`
	MergeRequestsAccessLevel string `json:"merge_requests_access_level"`
	BuildsAccessLevel        string `json:"builds_access_level"`
	IssuesEnabled            bool   `json:"issues_enabled"`
	MergeRequestsEnabled     bool   `json:"merge_requests_enabled"`
	JobsEnabled              bool   `json:"jobs_enabled"`
	WikiEnabled              bool   `json:"wiki_enabled"`
	SnippetsEnabled          bool   `json:"snippets_enabled"`
	ContainerRegistryEnabled bool   `json:"container_registry_enabled"`
	PackagesEnabled          bool   `json:"packages_enabled"`
	ApprovalsBeforeMerge     int64  `json:"approvals_before_merge"` // deprecated
	projectSettingsJSON

	SharedWithGroups []sharedGroupJSON      `json:"shared_with_groups"`
	Permissions      projectPermissionsJSON `json:"permissions"`
	// For users who can register runners.
	RunnersToken *string `json:"runners_token,omitempty"`
	// For administrators.
	RepositoryStorage string `json:"repository_storage,omitempty"`
}

// projectLinksJSON are API URLs of a project.
type projectLinksJSON struct {
	Self    string `json:"self"`
	Members string `json:"members"`
}

// projectPermissionsJSON is the access levels of the current user.
type projectPermissionsJSON struct {
	ProjectAccess *accessJSON `json:"project_access"`
	GroupAccess   *accessJSON `json:"group_access"`
}

type accessJSON struct {
	AccessLevel int64 `json:"access_level"`
}

// sharedGroupJSON is a group that a project or group is shared with.
type sharedGroupJSON struct {
	GroupID          int64  `json:"group_id"`
	GroupName        string `json:"group_name"`
	GroupFullPath    string `json:"group_full_path"`
	GroupAccessLevel int64  `json:"group_access_level"`
	ExpiresAt        *day   `json:"expires_at"`
}

func toShared(s project.Share) sharedGroupJSON {
	return sharedGroupJSON{s.GroupID, s.GroupName, s.GroupPath, int64(s.Level), toDayOrNull(s.ExpiresAt)}
}

// toProject returns the representation for the caller: basic for anonymous callers
// and for simple lists.
func toProject(c *call, p *project.Project, simple, statistics bool, now time.Time) any {
	basic := toProjectBasic(c.site, p)
	if statistics && p.Can(c.actor).SeeStatistics {
		basic.Statistics = &projectStatisticsJSON{
			CommitCount: p.Statistics.CommitCount, RepositorySize: p.Statistics.RepositorySize, WikiSize: p.Statistics.WikiSize, SnippetsSize: p.Statistics.SnippetsSize,
			LFSObjectsSize: p.Statistics.LFSSize, JobArtifactsSize: p.Statistics.ArtifactsSize, PackagesSize: p.Statistics.PackagesSize, StorageSize: p.Statistics.Storage(),
		}
	}
	if simple || c.actor.Anonymous() {
		return basic
	}
	return toProjectFull(c, p, basic, now)
}

func toProjectBasic(site *Site, p *project.Project) projectBasicJSON {
	out := projectBasicJSON{
		projectNameJSON: toProjectName(p), DefaultBranch: cmp.Or(p.DefaultBranch, p.InitialBranch, repo.UsualBranch), TagList: p.Topics, Topics: p.Topics,
		SSHURL: sshURL(site, p.FullPath), HTTPURL: site.URL + "/" + p.FullPath + ".git", WebURL: site.URL + "/" + p.FullPath,
		AvatarURL: pictureURL(site, "project", p.ID, p.Avatar), ForksCount: p.Forks, StarCount: p.Stars, LastActivityAt: toStamp(p.LastActivityAt), Visibility: string(p.Visibility),
		Namespace: toNamespace(site, &p.Namespace),
	}
	if p.Readme != "" && p.DefaultBranch != "" {
		address := site.URL + "/" + p.FullPath + "/-/blob/" + p.DefaultBranch + "/" + p.Readme
		out.ReadmeURL = &address
	}
	return out
}

func toProjectFull(c *call, p *project.Project, basic projectBasicJSON, now time.Time) projectJSON {
	self := fmt.Sprintf("%s%s/projects/%d", c.site.URL, prefix, p.ID)
	out := projectJSON{
		projectBasicJSON: basic,
		Links:            projectLinksJSON{Self: self, Members: self + "/members"},
		CreatorID:        p.CreatorID, EmptyRepo: p.DefaultBranch == "", Archived: p.Archived, ImportStatus: string(p.Import), ImportError: textOrNull(p.ImportError),
		IssuesAccessLevel: string(p.Issues), RepositoryAccessLevel: string(p.Repository),
		MergeRequestsAccessLevel: string(p.MergeRequests), BuildsAccessLevel: string(p.Builds),
		IssuesEnabled: p.Issues != project.Disabled, MergeRequestsEnabled: p.MergeRequests != project.Disabled, JobsEnabled: p.Builds != project.Disabled,
		WikiEnabled: p.Settings.Wiki != project.Disabled, SnippetsEnabled: p.Settings.Snippets != project.Disabled,
		ContainerRegistryEnabled: p.Settings.ContainerRegistry != project.Disabled, PackagesEnabled: p.Settings.PackageRegistry != project.Disabled,
		ApprovalsBeforeMerge: p.Settings.Approvals.BeforeMerge,
		projectSettingsJSON:  projectSettingsJSON(p.Settings),
		SharedWithGroups:     mapped(p.Shares, toShared),
		Permissions:          projectPermissionsJSON{ProjectAccess: toAccess(p.Access.Direct), GroupAccess: toAccess(p.Access.Group)},
	}
	out.LFSEnabled = out.LFSEnabled && (c.lfs == nil || c.lfs(c))
	if p.Owner != nil {
		owner := toUserPublic(c.site, p.Owner, now)
		out.Owner = &owner
	}
	if p.ForkedFrom != nil {
		from := toProjectBasic(c.site, p.ForkedFrom)
		out.ForkedFrom = &from
	}
	if c.actor.Admin {
		out.RepositoryStorage = p.Storage
	}
	return out
}

func toAccess(level project.Level) *accessJSON {
	if !level.Granted() {
		return nil
	}
	return &accessJSON{int64(level)}
}

// namespaceURL returns the URL of the page of a namespace.
func namespaceURL(site *Site, n *project.Namespace) string {
	if n.Kind == project.GroupNamespace {
		return site.URL + "/groups/" + n.FullPath
	}
	return site.URL + "/" + n.FullPath
}

// sshURL returns the SSH URL of a repository. The short form has no port.
func sshURL(site *Site, path string) string {
	if site.SSHPort == "" || site.SSHPort == "22" {
		return "git@" + site.Host() + ":" + path + ".git"
	}
	u := url.URL{Scheme: "ssh", User: url.User("git"), Host: net.JoinHostPort(site.Host(), site.SSHPort), Path: "/" + path + ".git"}
	return u.String()
}
