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
	"svc/internal/ci"
	"svc/internal/errortrack"
	"svc/internal/limit"
	"svc/internal/merge"
	"svc/internal/notify"
	"svc/internal/oauth"
	"svc/internal/pages"
	"svc/internal/plan"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/setting"
	"svc/internal/signing"
	"svc/internal/snippet"
	"svc/internal/transfer"
	"svc/internal/user"
	"svc/internal/wiki"
)

// prefix is where the API lives; only version 4 exists.
const prefix = "/api/v4"

// maxURI is the longest request line that is answered, in bytes.
const maxURI = 8 << 10

// maxBody is how many bytes of parameters an endpoint takes unless it says
// otherwise.
const maxBody = 1 << 20

// Deps are what the API needs.
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
	Snippets *snippet.Service
	Wikis    *wiki.Service
	CI       *ci.Service
	Alerts   *alert.Service
	Errors   *errortrack.Service
	Pages    *pages.Service
	Signing  *signing.Service
	OAuth    *oauth.Service
	Transfer *transfer.Service

	Limits *limit.Limiter
	// Answers bounds the answers that are in memory.
	Answers *limit.Answers
	// Spool writes to w what produce writes, which does not wait for w.
	Spool   func(ctx context.Context, w io.Writer, produce func(context.Context, io.Writer) error) error
	Site    Site
	Log     *slog.Logger
	Now     func() time.Time
	TempDir string // where uploads lie during a request
}

// Site is what the API knows of the installation.
type Site struct {
	URL      string // the external address, without a slash at its end
	Name     string // the service's own name
	Backend  string // the name of the external service for errors
	Tier     Tier
	Hosted   bool
	SSHPort  string // of git over SSH; empty for the usual one
	Version  string // the compatibility level, x.y.z
	Revision string

	host string   // in the URL: see New
	file []string // Names of headers: see New
}

// Host is the name of the machine in the external address.
func (s *Site) Host() string { return s.host }

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "localhost"
	}
	return u.Hostname()
}

// Tier is an edition; a feature of a higher one is as if it were not there.
type Tier int

// The tiers, each with all of the one before.
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
	forms     encoders
	pieces    sync.Pool // of buffers for logs

	currentTag string // of the endpoints that are added: see tag
}

// New builds the API: every resource adds its routes.
func New(d Deps) *API {
	a := &API{Deps: d, mux: chi.NewMux(), pieces: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	a.Site.host, a.Site.file = hostOf(d.Site.URL), fileHeaders(d.Site.Name)
	for _, routes := range []func(){
		a.metadataRoutes,
		a.userRoutes,
		a.userStateRoutes,
		a.userTokenRoutes,
		a.userSignInRoutes,
		a.userEmailRoutes,
		a.userKeyRoutes,
		a.userFollowRoutes,
		a.userStatusRoutes,
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
		a.projectPeopleRoutes,
		a.projectAvatarRoutes,
		a.projectTokenRoutes,
		a.deployTokenRoutes,
		a.deployKeyRoutes,
		a.groupRoutes,
		a.groupTransferRoutes,
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
		a.mergeRequestRoutes,
		a.mergeChangeRoutes,
		a.mergeAcceptRoutes,
		a.boardRoutes,
		a.badgeRoutes,
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

// endpoint is one line of the table of routes.
type endpoint struct {
	method  string
	path    string // below the prefix, with {names}
	access  access
	tier    Tier
	hosted  hosting
	layout  *bind.Layout
	result  reflect.Type
	forms   []any // the shapes of a result whose type does not tell
	status  int
	summary string
	tag     string // its group in the documentation
	limits  bind.Limits
	most    func(context.Context) (int64, error) // in place of limits.File, where that is a setting
	names   []string                             // of the path's parameters
	rest    string                               // the parameter that takes all that is left of the path
	also    []answerNote
	serve   func(c *call, bind func(into any) error) (any, error)
}

// hosting says on which installations an endpoint exists.
type hosting int

const (
	anywhere hosting = iota
	selfManaged
)

// option is a further word about an endpoint.
type option func(*endpoint)

// status is for endpoints that do not answer as their method usually does.
func status(code int) option { return func(e *endpoint) { e.status = code } }

// Tier is for endpoints that a lower edition does not have.
func tier(t Tier) option { return func(e *endpoint) { e.tier = t } }

// onlySelfManaged is for endpoints that a hosted installation does not have.
func onlySelfManaged(e *endpoint) { e.hosted = selfManaged }

// forms names the shapes of a result that depends on who asks.
func forms(shapes ...any) option { return func(e *endpoint) { e.forms = shapes } }

// files is for endpoints that take uploads, up to so many bytes.
func files(bytes int64) option { return func(e *endpoint) { e.limits.File = bytes } }

// filesWithin is files where the number is a setting; 0 is no limit.
func filesWithin(most func(context.Context) (int64, error)) option {
	return func(e *endpoint) { e.limits.File, e.most = 1<<50, most }
}

// raw leaves the body to the handler.
func raw(e *endpoint) { e.limits.Raw = true }

// answerNote is an answer that an endpoint gives beside the usual ones.
type answerNote struct {
	status int
	text   string
	body   any // its shape; nil for none
}

// also is for endpoints that have answers of their own.
func also(status int, text string, body any) option {
	return func(e *endpoint) { e.also = append(e.also, answerNote{status, text, body}) }
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
	if at := strings.LastIndex(path, "{"); strings.HasSuffix(path, "*}") { // {name*} takes slashes too
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
	a.endpoints = append(a.endpoints, e)
	if !a.serves(e) {
		return
	}
	serve := func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, e) }
	a.mux.MethodFunc(method, prefix+pattern, serve)
	if bare, ok := strings.CutSuffix(pattern, "/"); ok { // who writes by hand leaves it out
		a.mux.MethodFunc(method, prefix+bare, serve)
	}
	if method == http.MethodGet {
		a.mux.MethodFunc(http.MethodHead, prefix+pattern, serve)
	}
}

// Bind fills the parameters of an endpoint from a request and checks them.
func (e *endpoint) bind(in *bind.Input, into any) error {
	if err := e.layout.Bind(in, into); err != nil {
		return err
	}
	if c, ok := into.(checked); ok {
		return c.check()
	}
	return nil
}

// checked is a parameters struct with rules that tags can not say.
type checked interface{ check() error }

func pathNames(path string) []string {
	var names []string
	for part := range strings.SplitSeq(path, "/") {
		if _, name, ok := strings.Cut(part, "{"); ok { // archive.{format} is one too
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// Router has the routes, for those who need their patterns.
func (a *API) Router() chi.Routes { return a.mux }

// ServeHTTP answers everything below /api, and what OpenIDPath and AlertPath
// name.
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
	// Matching goes by the path as it was sent, so that an encoded slash
	// stays inside its parameter.
	r.URL.RawPath = r.URL.EscapedPath()
	if raw, ok := strings.CutSuffix(r.URL.RawPath, ".json"); ok && !a.matches(r.Method, r.URL.RawPath) && a.matches(r.Method, raw) {
		r.URL.RawPath = raw
	}
	a.mux.ServeHTTP(w, r)
}

// matches reports whether there is a route.
func (a *API) matches(method, path string) bool {
	return a.mux.Match(chi.NewRouteContext(), method, path)
}

// routed is the writer of a server that wants to know which route was taken,
// for its metrics and its log.
type routed interface {
	SetRoute(route string)
	SetUser(username string)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, e *endpoint) {
	c := &call{Context: r.Context(), r: r, w: w, site: &a.Site, route: e.path, rest: e.rest}
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
	answer := func(release func()) error {
		c.release = release
		result, err := e.serve(c, func(into any) error { return e.bind(in, into) })
		if err == nil {
			a.present(c, e, result)
		}
		return err
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		err = a.Answers.Read(c, answer)
	} else {
		err = answer(nil)
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
	rest  string // the name that takes all that is left of the path
	r     *http.Request
	w     http.ResponseWriter
	// release gives back the slot of a large answer; nil for a write.
	release func()
}

// pathParam gives a segment of the path, decoded. A segment that can not be
// decoded is no value.
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

// unmodifiedSince is the time of the header If-Unmodified-Since, or nil.
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

func (a *API) wrongMethod(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		if a.matches(method, r.URL.RawPath) {
			allowed = append(allowed, method)
		}
	}
	w.Header().Set("Allow", strings.Join(append(allowed, "OPTIONS"), ", "))
	a.writeJSON(w, r, http.StatusMethodNotAllowed, errorJSON{"405 Not Allowed"})
}

var varyOrigin = []string{"Origin"}

// cors lets pages of other origins use the API with tokens. Cookies are not
// allowed across origins, so nobody's session can be used this way.
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
