// Package web is the interface for browsers: pages rendered on the server,
// their forms, and static files. Route tables (method, path, access, handler)
// are at the top of the file with the handlers; page.go has what all pages
// share.
package web

import (
	"context"
	"io"
	"log/slog"
	"net/http"
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
	"svc/internal/imageproxy"
	"svc/internal/instance"
	"svc/internal/invite"
	"svc/internal/lfs"
	"svc/internal/limit"
	"svc/internal/mail"
	"svc/internal/markup"
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
	"svc/internal/secret"
	"svc/internal/securefile"
	"svc/internal/setting"
	"svc/internal/signin"
	"svc/internal/snippet"
	"svc/internal/terraform"
	"svc/internal/todo"
	"svc/internal/transfer"
	"svc/internal/upload"
	"svc/internal/user"
	"svc/internal/web/joblog"
	"svc/internal/wiki"
)

// Deps are the dependencies of the pages.
type Deps struct {
	Users    *user.Service
	Projects *project.Service
	Activity *activity.Service
	Repos    *repo.Service
	Moves    *storagemove.Service
	Markup   *markup.Renderer
	Images   *imageproxy.Service
	Plan     *plan.Service
	Comments *comment.Service
	Boards   *board.Service
	Uploads  *upload.Service
	Badges   *badge.Service
	Snippets *snippet.Service
	Wikis    *wiki.Service
	Search   *search.Service
	Transfer *transfer.Service
	Mirrors  *mirror.Service
	Hooks    *hook.Service
	Notify   *notify.Service
	CI       *ci.Service
	Todos    *todo.Service
	Alerts   *alert.Service
	Pages    *pages.Service
	Merges   *merge.Service
	Releases *release.Service
	LFS      *lfs.Service
	Packages *packages.Service
	Catalog  *catalog.Service
	Errors   *errortrack.Service
	Settings *setting.Service
	OAuth    *oauth.Service
	SignIn   *signin.Service
	Audit    *audit.Service
	Instance *instance.Service

	PushRules   *pushrule.Service
	Topics      *topic.Service
	Terraform   *terraform.Service
	Flags       *featureflag.Service
	Broadcasts  *broadcast.Service
	SecureFiles *securefile.Service
	Invites     *invite.Service

	ServiceAccounts *serviceaccount.Service

	Mail    *mail.Sender
	Keys    *secret.Keyring
	Limits  *limit.Limiter
	Answers *limit.Answers
	Log     *slog.Logger
	Now     func() time.Time
	Site    Site

	// Spool writes the output of produce to w. produce does not wait for w.
	Spool func(ctx context.Context, w io.Writer, produce func(context.Context, io.Writer) error) error

	// Health returns the latest health checks of this node, oldest first. It is
	// nil if there are none.
	Health func() []Sample
}

// Site has the properties of the instance that pages show.
type Site struct {
	URL     string // without a slash at the end
	Name    string
	Cookies string // prefix of the names of cookies
	SSHHost string
	SSHPort string // empty without Git over SSH
	Version string
}

// Web serves pages.
type Web struct {
	Deps
	router *chi.Mux
	// Pages of a project or group, by the path after "/-/".
	projectPages, groupPages *chi.Mux
	assets                   *assets
	views                    *views
	pages                    []route
	rendered                 *texts // parts of the pages of files and directories
	painted                  *texts // highlighted files and diffs
	drawn                    *texts // pages
	logs                     *joblog.Cache
	visitors                 []byte // key of the CSRF tokens of visitors who have not signed in
}

// New builds the routes.
func New(d Deps) *Web {
	w := &Web{Deps: d, router: chi.NewRouter(), projectPages: chi.NewRouter(), groupPages: chi.NewRouter(), assets: loadAssets(), rendered: newTexts(), painted: newTexts(), drawn: newTexts(), visitors: d.Keys.Derive("web visitors")}
	w.logs = joblog.NewCache(maxLogIndex)
	w.views = w.parseViews()
	w.assetRoutes()
	w.pictureRoutes()
	w.homePages()
	w.signInPages()
	w.passwordPages()
	w.registrationPages()
	w.newPages()
	w.profilePages()
	w.preferencePages()
	w.notificationPages()
	w.securityPages()
	w.providerPages()
	w.credentialPages()
	w.applicationPages()
	w.oauthPages()
	w.codePages()
	w.uploadPages()
	w.imagePages()
	w.sandboxPages()
	w.planPages()
	w.todoPages()
	w.snippetPages()
	w.wikiPages()
	w.releasePages()
	w.catalogPages()
	w.searchPages()
	w.mergePages()
	w.pipelinePages()
	w.jobPages()
	w.artifactPages()
	w.packagePages()
	w.schedulePages()
	w.environmentPages()
	w.terraformPages()
	w.pathLockPages()
	w.featureFlagPages()
	w.broadcastPages()
	w.environmentSettingsPages()
	w.secureFilePages()
	w.invitePages()
	w.alertPages()
	w.errorPages()
	w.settingsPages()
	w.sitePages()
	w.adminPages()
	w.router.NotFound(w.findPlace)
	w.router.MethodNotAllowed(w.findPlace)
	for _, table := range []*chi.Mux{w.projectPages, w.groupPages} {
		table.NotFound(w.noPage())
		table.MethodNotAllowed(w.noPage())
	}
	return w
}

// Router returns the routes.
func (w *Web) Router() chi.Routes { return w.router }

// ServeHTTP implements http.Handler. HEAD is handled as GET, without the body.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		get := *r
		get.Method = http.MethodGet
		r = &get
	}
	w.router.ServeHTTP(rw, r)
}

// secure reports whether users connect by HTTPS.
func (w *Web) secure() bool { return len(w.Site.URL) > 8 && w.Site.URL[:8] == "https://" }
