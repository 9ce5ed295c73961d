package api

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"svc/internal/activity"
	"svc/internal/alert"
	"svc/internal/audit"
	"svc/internal/badge"
	"svc/internal/board"
	"svc/internal/broadcast"
	"svc/internal/catalog"
	"svc/internal/ci"
	"svc/internal/comment"
	"svc/internal/errortrack"
	"svc/internal/featureflag"
	"svc/internal/hook"
	"svc/internal/instance"
	"svc/internal/invite"
	"svc/internal/lfs"
	"svc/internal/limit"
	"svc/internal/merge"
	"svc/internal/mirror"
	"svc/internal/notify"
	"svc/internal/oauth"
	"svc/internal/packages"
	"svc/internal/pages"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/project/serviceaccount"
	"svc/internal/project/topic"
	"svc/internal/release"
	"svc/internal/repo"
	"svc/internal/repo/pushrule"
	"svc/internal/repo/storagemove"
	"svc/internal/search"
	"svc/internal/securefile"
	"svc/internal/setting"
	"svc/internal/signin"
	"svc/internal/signing"
	"svc/internal/snippet"
	"svc/internal/terraform"
	"svc/internal/todo"
	"svc/internal/transfer"
	"svc/internal/upload"
	"svc/internal/user"
	"svc/internal/wiki"
)

// prefix is the path of the API. Only version 4 exists.
const prefix = "/api/v4"

// maxURI is the limit of a request URI in bytes.
const maxURI = 8 << 10

// maxBody is the default limit of parameters in bytes.
const maxBody = 1 << 20

// Deps are the dependencies of the API.
type Deps struct {
	Users    *user.Service
	Audit    *audit.Service
	Settings *setting.Service
	Projects *project.Service
	Activity *activity.Service
	Notify   *notify.Service
	Repos    *repo.Service
	Moves    *storagemove.Service
	Plan     *plan.Service
	Comments *comment.Service
	Boards   *board.Service
	Uploads  *upload.Service
	Badges   *badge.Service
	Merges   *merge.Service
	LFS      *lfs.Service
	Snippets *snippet.Service
	Wikis    *wiki.Service
	Search   *search.Service
	Releases *release.Service
	CI       *ci.Service
	Packages *packages.Service
	Catalog  *catalog.Service
	Todos    *todo.Service
	Alerts   *alert.Service
	Errors   *errortrack.Service
	Pages    *pages.Service
	Signing  *signing.Service
	OAuth    *oauth.Service
	SignIn   *signin.Service
	Transfer *transfer.Service
	Mirrors  *mirror.Service
	Hooks    *hook.Service

	PushRules   *pushrule.Service
	Topics      *topic.Service
	Terraform   *terraform.Service
	Flags       *featureflag.Service
	Broadcasts  *broadcast.Service
	SecureFiles *securefile.Service
	Invites     *invite.Service

	ServiceAccounts *serviceaccount.Service
	Instance        *instance.Service

	Limits *limit.Limiter
	// Answers limits the memory for responses.
	Answers *limit.Answers
	// Spool copies the output of produce to w through the spool, so that produce
	// does not wait for w as long as the spool has space.
	Spool   func(ctx context.Context, w io.Writer, produce func(context.Context, io.Writer) error) error
	Site    Site
	Log     *slog.Logger
	Now     func() time.Time
	TempDir string // for uploads during a request
}

// Site is the properties of the instance.
type Site struct {
	URL      string // the external URL, without a trailing slash
	Name     string // the name of the service
	Tokens   string // the prefix of tokens
	Cookies  string // the prefix of cookie names, after an underscore
	Backend  string // the name of the external error tracking service
	Tier     Tier
	Hosted   bool
	SSHPort  string // the port for git over SSH; empty for the default
	Version  string // the compatibility level, x.y.z
	Revision string

	host string   // the host name of URL, set by New
	file []string // the header names of describeFile, set by New

	exposed string // the response headers that pages of other origins can read, set by New
}

// Host returns the host name of the external URL.
func (s *Site) Host() string { return s.host }

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "localhost"
	}
	return u.Hostname()
}

// Tier is a subscription tier. Endpoints of a higher tier do not exist.
type Tier int

// The tiers. Each includes the previous one.
const (
	Free Tier = iota
	Premium
	Ultimate
)

// API serves the endpoints of the REST API.
type API struct {
	Deps
	mux       *chi.Mux
	endpoints []*endpoint
	encoders  encoders
	pieces    sync.Pool // buffers for chunks of job logs

	refused    map[string][]refusedParam // by endpoint
	currentTag string                    // the documentation group of the endpoints that are added next: see tag
}

// New returns the API with the routes of all resources.
func New(d Deps) *API {
	a := &API{Deps: d, mux: chi.NewMux(), pieces: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	a.refused = refusedParams(parametersText)
	a.Site.host, a.Site.file = hostOf(d.Site.URL), fileHeaders(d.Site.Name)
	a.Site.exposed = exposedHeaders(a.Site.file)
	for _, routes := range []func(){
		a.metadataRoutes,
		a.statisticsRoutes,
		a.userRoutes,
		a.userStateRoutes,
		a.userTokenRoutes,
		a.userSignInRoutes,
		a.userEmailRoutes,
		a.userKeyRoutes,
		a.gpgKeyRoutes,
		a.userFollowRoutes,
		a.userStatusRoutes,
		a.userPreferenceRoutes,
		a.userAttributeRoutes,
		a.serviceAccountRoutes,
		a.userAvatarRoutes,
		a.projectRoutes,
		a.projectActionRoutes,
		a.projectStorageRoutes,
		a.storageMoveRoutes,
		a.repositoryRoutes,
		a.changelogRoutes,
		a.branchRoutes,
		a.tagRoutes,
		a.releaseRoutes,
		a.catalogRoutes,
		a.commitRoutes,
		a.commitCommentRoutes,
		a.commitDiscussionRoutes,
		a.commitStatusRoutes,
		a.repositoryFileRoutes,
		a.submoduleRoutes,
		a.protectedBranchRoutes,
		a.groupProtectedBranchRoutes,
		a.protectedTagRoutes,
		a.pushRuleRoutes,
		a.groupPushRuleRoutes,
		a.languageRoutes,
		a.topicRoutes,
		a.projectForkRoutes,
		a.projectUserRoutes,
		a.projectAvatarRoutes,
		a.projectTokenRoutes,
		a.deployTokenRoutes,
		a.deployKeyRoutes,
		a.groupRoutes,
		a.groupImportExportRoutes, a.projectImportRoutes, a.projectExportRoutes, a.bulkImportRoutes,
		a.memberRoutes,
		a.namespaceRoutes,
		a.settingRoutes, a.planLimitRoutes, a.projectAliasRoutes, a.remoteMirrorRoutes, a.pullMirrorRoutes,
		a.instanceVariableRoutes,
		a.auditEventRoutes,
		a.eventRoutes,
		a.notificationRoutes,
		a.labelRoutes,
		a.milestoneRoutes,
		a.issueRoutes,
		a.issueLinkRoutes,
		a.noteRoutes,
		a.draftNoteRoutes,
		a.suggestionRoutes,
		a.awardRoutes,
		a.todoRoutes,
		a.mergeRequestRoutes,
		a.mergeChangeRoutes,
		a.mergeAcceptRoutes,
		a.mergeDependencyRoutes, a.mergeContextRoutes,
		a.timeTrackingRoutes,
		a.resourceEventRoutes,
		a.approvalRoutes,
		a.approvalSettingRoutes,
		a.projectTemplateRoutes,
		a.boardRoutes,
		a.badgeRoutes,
		a.hookRoutes,
		a.integrationRoutes,
		a.projectUploadRoutes,
		a.markdownRoutes,
		a.snippetRoutes,
		a.wikiRoutes,
		a.searchRoutes,
		a.pipelineRoutes,
		a.jobRoutes,
		a.ciLintRoutes,
		a.ciTemplateRoutes,
		a.placeVariableRoutes,
		a.triggerRoutes,
		a.pipelineScheduleRoutes,
		a.environmentRoutes,
		a.deploymentRoutes,
		a.resourceGroupRoutes,
		a.runnerRoutes,
		a.runnerCallRoutes,
		a.runnerJobRoutes,
		a.jobLogRoutes,
		a.jobArtifactRoutes,
		a.jobTokenScopeRoutes,
		a.clusterAgentRoutes,
		a.alertIntegrationRoutes,
		a.alertRoutes,
		a.alertMetricImageRoutes,
		a.testReportRoutes,
		a.errorTrackingRoutes,
		a.errorCollectorRoutes,
		a.pagesRoutes,
		a.pagesDomainRoutes,
		a.terraformStateRoutes,
		a.featureFlagRoutes,
		a.protectedEnvironmentRoutes,
		a.freezePeriodRoutes,
		a.broadcastMessageRoutes,
		a.secureFileRoutes,
		a.fileTemplateRoutes,
		a.placeAttributeRoutes,
		a.invitationRoutes,
		a.packageRoutes,
		a.packageRuleRoutes,
		a.genericPackageRoutes,
		a.npmPackageRoutes,
		a.pypiPackageRoutes,
		a.applicationRoutes,
		a.documentRoutes,
		a.openIDRoutes,
		a.oauthRoutes,
	} {
		a.tag("")
		routes()
	}
	a.mux.NotFound(func(w http.ResponseWriter, r *http.Request) { a.noRoute(w, r) })
	a.mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) { a.wrongMethod(w, r) })
	return a
}
