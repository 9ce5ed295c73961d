package api

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"time"

	"svc/internal/notify"
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
	DefaultBranch string   `json:"default_branch"` // of an empty repository: the branch to push first
	TagList       []string `json:"tag_list"`       // deprecated
	Topics        []string `json:"topics"`
	SSHURL        string   `json:"ssh_url_to_repo"`
	HTTPURL       string   `json:"http_url_to_repo"`
	WebURL        string   `json:"web_url"`
	ReadmeURL     *string  `json:"readme_url"`
	*projectLicenseJSON
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
	// Always 0: svc has no container registry and no pipeline artifacts.
	ContainerRegistrySize int64 `json:"container_registry_size"`
	PipelineArtifactsSize int64 `json:"pipeline_artifacts_size"`
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

	MarkedForDeletionAt *day `json:"marked_for_deletion_at"` // deprecated
	MarkedForDeletionOn *day `json:"marked_for_deletion_on"`

	*attributesJSON

	ImportStatus string  `json:"import_status"`
	ImportError  *string `json:"import_error"`
	ImportType   *string `json:"import_type"`
	ImportURL    *string `json:"import_url"` // without credentials, for users who can change the settings

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

	UpdatedAt             stamp  `json:"updated_at"`
	OpenIssues            *int64 `json:"open_issues_count,omitempty"` // if issues are enabled
	PublicBuilds          bool   `json:"public_builds"`               // deprecated: public_jobs
	EmailsDisabled        bool   `json:"emails_disabled"`             // deprecated: emails_enabled
	RequirementsEnabled   bool   `json:"requirements_enabled"`
	SecurityEnabled       bool   `json:"security_and_compliance_enabled"`
	RestrictVariables     bool   `json:"restrict_user_defined_variables"` // deprecated: ci_pipeline_variables_minimum_override_role
	CanCreateMergeRequest bool   `json:"can_create_merge_request_in"`
	projectFixedJSON

	SharedWithGroups []sharedGroupJSON      `json:"shared_with_groups"`
	Permissions      projectPermissionsJSON `json:"permissions"`
	// For users who can register runners.
	RunnersToken *string `json:"runners_token,omitempty"`
	// For administrators.
	RepositoryStorage string `json:"repository_storage,omitempty"`
}

// projectFixedJSON has fixed values for the fields of features that svc does not
// have. Only the fields of pull mirrors are set, by addMirror.
type projectFixedJSON struct {
	ContainerExpiration           *struct{} `json:"container_expiration_policy"`
	MirrorUserID                  *int64    `json:"mirror_user_id"`
	MirrorTriggerBuilds           bool      `json:"mirror_trigger_builds"`
	OnlyMirrorProtectedBranches   bool      `json:"only_mirror_protected_branches"`
	MirrorOverwrites              bool      `json:"mirror_overwrites_diverged_branches"`
	MirrorBranchRegex             *string   `json:"mirror_branch_regex"`
	AutoDevops                    bool      `json:"auto_devops_enabled"`
	ForkPipelines                 bool      `json:"ci_allow_fork_pipelines_to_run_in_parent_project"`
	MergePipelines                bool      `json:"merge_pipelines_enabled"`
	MergeTrains                   bool      `json:"merge_trains_enabled"`
	MergeTrainsSkip               bool      `json:"merge_trains_skip_train_allowed"`
	MRDefaultTargetSelf           bool      `json:"mr_default_target_self"`
	ExternalLabel                 string    `json:"external_authorization_classification_label"`
	ServiceDesk                   bool      `json:"service_desk_enabled"`
	ServiceDeskAddress            *string   `json:"service_desk_address"`
	MaxArtifactsSize              *int64    `json:"max_artifacts_size"`
	RunnerTokenExpirationInterval *int64    `json:"runner_token_expiration_interval"`
	ComplianceFrameworks          []string  `json:"compliance_frameworks"`
	SecretDetection               bool      `json:"pre_receive_secret_detection_enabled"`
	PreventMergeWithoutJira       bool      `json:"prevent_merge_without_jira_issue"`
	AutoDuoReview                 bool      `json:"auto_duo_code_review_enabled"`
	DeletePipelines               *int64    `json:"ci_delete_pipelines_in_seconds"`
	SubClaim                      []string  `json:"ci_id_token_sub_claim_components"`
	PushWithJobToken              bool      `json:"ci_push_repository_for_job_token_allowed"`
	CancellationRole              string    `json:"ci_restrict_pipeline_cancellation_role"`
	ResourceGroupMode             string    `json:"resource_group_default_process_mode"`
}

func fixedProject() projectFixedJSON {
	return projectFixedJSON{
		ComplianceFrameworks: []string{}, SubClaim: []string{"project_path", "ref_type", "ref"}, CancellationRole: "developer", ResourceGroupMode: "unordered",
	}
}

// projectLinksJSON is the API URLs of a project.
type projectLinksJSON struct {
	Self          string  `json:"self"`
	Issues        *string `json:"issues,omitempty"`         // if they are enabled
	MergeRequests *string `json:"merge_requests,omitempty"` // if they are enabled
	RepoBranches  string  `json:"repo_branches"`
	Labels        string  `json:"labels"`
	Events        string  `json:"events"`
	Members       string  `json:"members"`
	ClusterAgents string  `json:"cluster_agents"`
}

func toProjectLinks(site *Site, p *project.Project) projectLinksJSON {
	self := fmt.Sprintf("%s%s/projects/%d", site.URL, prefix, p.ID)
	links := projectLinksJSON{
		Self: self, RepoBranches: self + "/repository/branches", Labels: self + "/labels", Events: self + "/events", Members: self + "/members",
		ClusterAgents: self + "/cluster_agents",
	}
	if p.Issues != project.Disabled {
		links.Issues = textOrNull(self + "/issues")
	}
	if p.MergeRequests != project.Disabled {
		links.MergeRequests = textOrNull(self + "/merge_requests")
	}
	return links
}

// projectPermissionsJSON is the access levels of the current user.
type projectPermissionsJSON struct {
	ProjectAccess *accessJSON `json:"project_access"`
	GroupAccess   *accessJSON `json:"group_access"`
}

type accessJSON struct {
	AccessLevel       int64 `json:"access_level"`
	NotificationLevel int64 `json:"notification_level"`
}

// sharedGroupJSON is a group that a project or group is shared with.
type sharedGroupJSON struct {
	GroupID          int64  `json:"group_id"`
	GroupName        string `json:"group_name"`
	GroupFullPath    string `json:"group_full_path"`
	GroupAccessLevel int64  `json:"group_access_level"`
	ExpiresAt        *day   `json:"expires_at"`
	MemberRoleID     *int64 `json:"member_role_id"` // there are no custom roles
}

func toShared(s project.Share) sharedGroupJSON {
	return sharedGroupJSON{s.GroupID, s.GroupName, s.GroupPath, int64(s.Level), toDayOrNull(s.ExpiresAt), nil}
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
	out := projectJSON{
		projectBasicJSON: basic,
		Links:            toProjectLinks(c.site, p),
		CreatorID:        p.CreatorID, EmptyRepo: p.DefaultBranch == "", Archived: p.Archived, ImportStatus: string(p.Import), ImportError: textOrNull(p.ImportError),
		IssuesAccessLevel: string(p.Issues), RepositoryAccessLevel: string(p.Repository),
		MergeRequestsAccessLevel: string(p.MergeRequests), BuildsAccessLevel: string(p.Builds),
		IssuesEnabled: p.Issues != project.Disabled, MergeRequestsEnabled: p.MergeRequests != project.Disabled, JobsEnabled: p.Builds != project.Disabled,
		WikiEnabled: p.Settings.Wiki != project.Disabled, SnippetsEnabled: p.Settings.Snippets != project.Disabled,
		ContainerRegistryEnabled: false, // svc has no container registry
		PackagesEnabled:          p.Settings.PackageRegistry != project.Disabled,
		ApprovalsBeforeMerge:     p.Settings.Approvals.BeforeMerge,
		projectSettingsJSON:      projectSettingsJSON(p.Settings),
		SharedWithGroups:         mapped(p.Shares, toShared),
		MarkedForDeletionAt:      dateOrNull(p.MarkedAt), MarkedForDeletionOn: dateOrNull(p.MarkedAt),
		Permissions: projectPermissionsJSON{
			ProjectAccess: toAccess(p.Access.Direct, c.notifications.Project(p.ID)), GroupAccess: toAccess(p.Access.Group, c.notifications.Group(p.NamespaceID)),
		},
		UpdatedAt: toStamp(p.UpdatedAt), PublicBuilds: p.Settings.PublicJobs, EmailsDisabled: !p.Settings.EmailsEnabled,
		RequirementsEnabled: p.Settings.Requirements != project.Disabled, SecurityEnabled: p.Settings.SecurityAndCompliance != project.Disabled,
		RestrictVariables: p.Settings.CIPipelineVariablesMinimumOverrideRole != "developer", CanCreateMergeRequest: p.Can(c.actor).CreateMergeRequests,
		projectFixedJSON: fixedProject(),
	}
	out.ImportType = textOrNull(p.ImportType)
	if p.Can(c.actor).Configure {
		out.ImportURL = textOrNull(p.ImportURL)
	}
	out.addMirror(c.mirrors[p.ID], p.Can(c.actor).Configure)
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

func toAccess(level project.Level, notifications notify.Level) *accessJSON {
	if !level.Granted() {
		return nil
	}
	return &accessJSON{int64(level), notificationNumber(notifications)}
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
