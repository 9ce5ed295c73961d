package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"svc/internal/activity"
	"svc/internal/actor"
	"svc/internal/alert"
	"svc/internal/audit"
	"svc/internal/bind"
	"svc/internal/broadcast"
	"svc/internal/catalog"
	"svc/internal/ci"
	"svc/internal/errortrack"
	"svc/internal/event"
	"svc/internal/featureflag"
	"svc/internal/hook"
	"svc/internal/invite"
	"svc/internal/lfs"
	"svc/internal/limit"
	"svc/internal/merge"
	"svc/internal/notify"
	"svc/internal/oauth"
	"svc/internal/packages"
	"svc/internal/pages"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/release"
	"svc/internal/repo"
	"svc/internal/securefile"
	"svc/internal/setting"
	"svc/internal/signing"
	"svc/internal/snippet"
	"svc/internal/terraform"
	"svc/internal/todo"
	"svc/internal/transfer"
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
	Moves    *repo.Mover
	Plan     *plan.Service
	Merges   *merge.Service
	LFS      *lfs.Service
	Snippets *snippet.Service
	Wikis    *wiki.Service
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
	Transfer *transfer.Service
	Hooks    *hook.Service

	Terraform   *terraform.Service
	Flags       *featureflag.Service
	Broadcasts  *broadcast.Service
	SecureFiles *securefile.Service
	Invites     *invite.Service

	Limits *limit.Limiter
	// Answers limits the responses in memory.
	Answers *limit.Answers
	// Spool copies the output of produce to w. produce does not wait for w.
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
	Tokens   string // what tokens start with
	Backend  string // the name of the external error tracking service
	Tier     Tier
	Hosted   bool
	SSHPort  string // of git over SSH; empty for the default
	Version  string // the compatibility level, x.y.z
	Revision string

	host string   // of the URL: see New
	file []string // names of headers: see New
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

// API serves the endpoints.
type API struct {
	Deps
	mux       *chi.Mux
	endpoints []*endpoint
	encoders  encoders
	pieces    sync.Pool // of buffers for logs

	refused    map[string][]refusedParam // by endpoint
	currentTag string                    // of the endpoints that are added: see tag
}

// New returns the API with the routes of all resources.
func New(d Deps) *API {
	a := &API{Deps: d, mux: chi.NewMux(), pieces: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	a.refused = refusedParams(parametersText)
	a.Site.host, a.Site.file = hostOf(d.Site.URL), fileHeaders(d.Site.Name)
	for _, routes := range []func(){
		a.metadataRoutes,
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
		a.commitStatusRoutes,
		a.repositoryFileRoutes,
		a.protectedBranchRoutes,
		a.protectedTagRoutes,
		a.pushRuleRoutes,
		a.languageRoutes,
		a.topicRoutes,
		a.projectForkRoutes,
		a.projectUserRoutes,
		a.projectAvatarRoutes,
		a.projectTokenRoutes,
		a.deployTokenRoutes,
		a.deployKeyRoutes,
		a.groupRoutes,
		a.groupImportExportRoutes,
		a.memberRoutes,
		a.namespaceRoutes,
		a.settingRoutes,
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
		a.timeTrackingRoutes,
		a.approvalRoutes,
		a.projectTemplateRoutes,
		a.boardRoutes,
		a.badgeRoutes,
		a.hookRoutes,
		a.integrationRoutes,
		a.projectUploadRoutes,
		a.markdownRoutes,
		a.snippetRoutes,
		a.wikiRoutes,
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

// endpoint is an entry of the route table.
type endpoint struct {
	method    string
	path      string // below the prefix, with {names}
	access    access
	tier      Tier
	hosted    hosting
	layout    *bind.Layout
	result    reflect.Type
	returns   []any // the types of a result that depends on the caller
	status    int
	summary   string
	tag       string // its group in the documentation
	limits    bind.Limits
	most      func(context.Context) (int64, error) // replaces limits.File if the limit is a setting
	names     []string                             // of the path parameters
	rest      string                               // the parameter for the rest of the path
	responses []extraResponse
	refused   []refusedParam
	serve     func(c *call, bind func(into any) error) (any, error)
}

// hosting is the kind of instances that have an endpoint.
type hosting int

const (
	anywhere hosting = iota
	selfManaged
)

// option changes an endpoint.
type option func(*endpoint)

// status sets the status of success, if it is not that of the method.
func status(code int) option { return func(e *endpoint) { e.status = code } }

// tier sets the lowest tier that has the endpoint.
func tier(t Tier) option { return func(e *endpoint) { e.tier = t } }

// onlySelfManaged removes the endpoint from hosted instances.
func onlySelfManaged(e *endpoint) { e.hosted = selfManaged }

// returns sets the types of a result that depends on the caller.
func returns(shapes ...any) option { return func(e *endpoint) { e.returns = shapes } }

// files allows uploads with a limit in bytes.
func files(bytes int64) option { return func(e *endpoint) { e.limits.File = bytes } }

// filesWithin is files with a limit from the settings; 0 means no limit.
func filesWithin(most func(context.Context) (int64, error)) option {
	return func(e *endpoint) { e.limits.File, e.most = 1<<50, most }
}

// raw leaves the request body to the handler.
func raw(e *endpoint) { e.limits.Raw = true }

// extraResponse is an additional response of an endpoint.
type extraResponse struct {
	status int
	text   string
	body   any // a value of its type; nil without a body
}

// response documents an additional response.
func response(status int, text string, body any) option {
	return func(e *endpoint) { e.responses = append(e.responses, extraResponse{status, text, body}) }
}

// summary is the title of an endpoint in the documentation: the imperative of the
// public docs, such as "Retry a job".
func summary(text string) option { return func(e *endpoint) { e.summary = text } }

// tag sets the group of the endpoints that are added next, in the documentation.
// Each resource calls it before its first route.
func (a *API) tag(name string) { a.currentTag = name }

// handle adds an endpoint: "METHOD /path", the allowed callers, and the handler.
// It is instantiated for each handler, so it contains only what needs the
// handler's types; add does the rest.
func handle[P, R any](a *API, route string, acc access, h func(*call, P) (R, error), opts ...option) {
	a.add(route, &endpoint{
		access: acc, result: reflect.TypeFor[R](), tag: a.currentTag,
		serve: func(c *call, bind func(into any) error) (any, error) {
			p := new(P)
			if err := bind(p); err != nil {
				return nil, err
			}
			return h(c, *p)
		},
	}, reflect.TypeFor[P](), opts)
}

// add adds an endpoint to the routes. Its parameters are a struct of the type
// params. An invalid route is a bug, so it panics.
func (a *API) add(route string, e *endpoint, params reflect.Type, opts []option) {
	method, path, ok := strings.Cut(route, " ")
	if !ok {
		panic("route " + route + ": want METHOD /path")
	}
	if e.tag == "" {
		panic("route " + route + ": no tag")
	}
	pattern := path
	if at := strings.LastIndex(path, "{"); strings.HasSuffix(path, "*}") { // {name*} matches slashes too
		e.rest = path[at+1 : len(path)-2]
		pattern, path = path[:at]+"*", path[:at]+"{"+e.rest+"}"
	}
	e.method, e.path, e.names = method, path, pathNames(path)
	e.status = http.StatusOK
	e.limits = bind.Limits{Body: maxBody, TempDir: a.TempDir}
	if method == http.MethodPost {
		e.status = http.StatusCreated
	}
	for _, o := range opts {
		o(e)
	}
	var err error
	if e.layout, err = bind.NewLayout(params, e.names...); err != nil {
		panic(fmt.Sprintf("route %s: %v", route, err))
	}
	e.refused = e.unbound(a.refused[method+" "+path])
	a.endpoints = append(a.endpoints, e)
	if !a.serves(e) {
		return
	}
	serve := func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, e) }
	a.mux.MethodFunc(method, prefix+pattern, serve)
	if bare, ok := strings.CutSuffix(pattern, "/"); ok { // the trailing slash is optional
		a.mux.MethodFunc(method, prefix+bare, serve)
	}
	if method == http.MethodGet {
		a.mux.MethodFunc(http.MethodHead, prefix+pattern, serve)
	}
}

// bind sets the parameters of an endpoint from a request and validates them.
func (e *endpoint) bind(in *bind.Input, into any) error {
	if err := e.layout.Bind(in, into); err != nil {
		return err
	}
	if err := e.refuse(in); err != nil {
		return err
	}
	if c, ok := into.(checked); ok {
		return c.check()
	}
	return nil
}

// checked is a parameters struct with rules that tags cannot express.
type checked interface{ check() error }

func pathNames(path string) []string {
	var names []string
	for part := range strings.SplitSeq(path, "/") {
		if _, name, ok := strings.Cut(part, "{"); ok { // also in archive.{format}
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// Router returns the routes with their patterns.
func (a *API) Router() chi.Routes { return a.mux }

// ServeHTTP serves the paths below /api and those of OpenIDPath and AlertPath.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if AlertPath(r.URL.Path) {
		a.takeAlerts(w, r)
		return
	}
	if OpenIDPath(r.URL.Path) {
		a.serveOAuth(w, r)
		return
	}
	cors(w, r)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if len(r.RequestURI) > maxURI {
		a.writeJSON(w, r, http.StatusRequestURITooLong, messageJSON{"414 Request-URI Too Large"})
		return
	}
	// The encoded path is matched, so that an encoded slash stays in its
	// parameter. Both forms of the path must belong together: links to other
	// pages of a list are made of them.
	r.URL.RawPath = r.URL.EscapedPath()
	for _, suffix := range []string{"/", ".json"} {
		raw, ok := strings.CutSuffix(r.URL.RawPath, suffix)
		if ok && len(a.allowed(r.URL.RawPath)) == 0 && (suffix == "/" || a.matches(r.Method, raw)) {
			r.URL.RawPath, r.URL.Path = raw, strings.TrimSuffix(r.URL.Path, suffix)
		}
	}
	a.mux.ServeHTTP(w, r)
}

// matches reports whether a route exists.
func (a *API) matches(method, path string) bool {
	return a.mux.Match(chi.NewRouteContext(), method, path)
}

// routed is a response writer that records the route for metrics and logs.
type routed interface {
	SetRoute(route string)
	SetUser(username string)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, e *endpoint) {
	c := &call{Context: r.Context(), r: r, w: w, site: &a.Site, route: e.path, rest: e.rest, lfs: a.LFS.Allowed}
	if cause := r.Header.Get(eventUUIDHeader); cause != "" && isUUID(cause) {
		// The receiver of a webhook sends the request: see event.WithCause.
		c.Context = event.WithCause(c.Context, cause)
	}
	if to, ok := w.(routed); ok {
		to.SetRoute(e.path)
	}
	if err := a.admit(c, e); err != nil {
		a.refuse(c, err)
		return
	}
	if to, ok := w.(routed); ok {
		to.SetUser(c.actor.Username)
	}
	limits := e.limits
	if e.most != nil {
		most, err := e.most(c)
		if err != nil {
			a.refuse(c, err)
			return
		}
		if most > 0 {
			limits.File = most
		}
	}
	in, err := bind.ReadInput(r, w, c.pathParam, limits)
	if err != nil {
		a.refuse(c, err)
		return
	}
	defer func() {
		if err := in.Close(); err != nil {
			a.Log.WarnContext(c, "remove uploads", "error", err)
		}
	}()
	respond := func(release func()) error {
		c.release = release
		result, err := e.serve(c, func(into any) error { return e.bind(in, into) })
		if err == nil {
			a.present(c, e, result)
		}
		return err
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		err = a.Answers.Read(c, respond)
	} else {
		err = respond(nil)
	}
	if err != nil {
		a.refuse(c, err)
	}
}

// call is one request: its context, its actor and, for the few endpoints
// that stream, the raw writer.
type call struct {
	context.Context
	actor actor.Actor
	site  *Site
	route string // the path of the endpoint, with {names}
	rest  string // the parameter for the rest of the path
	r     *http.Request
	w     http.ResponseWriter
	lfs   func(context.Context) bool // whether LFS is enabled on the instance; nil for few calls
	// release releases the slot of a large response; nil for writes.
	release func()
	// notifications are the levels of the actor in the projects of the result.
	notifications notify.LevelSet
}

// pathParam returns a decoded path parameter. One that cannot be decoded has no
// value.
func (c *call) pathParam(name string) (string, bool) {
	raw := chi.URLParam(c.r, name)
	if name == c.rest && name != "" {
		raw = chi.URLParam(c.r, "*")
	}
	if raw == "" {
		return "", false
	}
	text, err := url.PathUnescape(raw)
	return text, err == nil
}

// unmodifiedSince returns the time of the If-Unmodified-Since header, or nil.
func (c *call) unmodifiedSince() *time.Time {
	at, err := http.ParseTime(c.r.Header.Get("If-Unmodified-Since"))
	if err != nil {
		return nil
	}
	return &at
}

func (a *API) noRoute(w http.ResponseWriter, r *http.Request) {
	a.writeJSON(w, r, http.StatusNotFound, errorJSON{"404 Not Found"})
}

// allowed returns the methods of a path.
func (a *API) allowed(path string) []string {
	var methods []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		if a.matches(method, path) {
			methods = append(methods, method)
		}
	}
	return methods
}

func (a *API) wrongMethod(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", strings.Join(append(a.allowed(r.URL.RawPath), "OPTIONS"), ", "))
	a.writeJSON(w, r, http.StatusMethodNotAllowed, errorJSON{"405 Not Allowed"})
}

var varyOrigin = []string{"Origin"}

// cors allows pages of other origins to use the API with tokens. Cookies are not
// allowed across origins, so sessions cannot be used this way.
func cors(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Vary"] = varyOrigin
	if r.Header.Get("Origin") == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "ETag, Link, RateLimit-Limit, RateLimit-Observed, RateLimit-Remaining, RateLimit-Reset, "+
		"Retry-After, X-Next-Page, X-Page, X-Per-Page, X-Prev-Page, X-Request-Id, X-Runtime, X-Sentry-Rate-Limits, X-Total, X-Total-Pages")
	if r.Method != http.MethodOptions {
		return
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "7200")
}
