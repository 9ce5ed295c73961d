package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"svc/internal/actor"
	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/event"
	"svc/internal/limit"
	"svc/internal/mirror"
	"svc/internal/notify"
)

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
	a.cors(w, r)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if len(r.RequestURI) > maxURI {
		a.writeJSON(w, r, http.StatusRequestURITooLong, messageJSON{"414 Request-URI Too Large"})
		return
	}
	// The encoded path is matched, so that an encoded slash stays in its
	// parameter. Path and RawPath must be consistent, because the links to other
	// pages of a list are built from them.
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
		// The request was triggered by a webhook: see event.WithCause.
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
			a.Log.WarnContext(c, "cannot remove uploaded files", "error", err)
		}
	}()
	c.input = in
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
	if err != nil && e.access.runner {
		err = a.countRefusal(c, err)
	}
	if err != nil {
		a.refuse(c, err)
	}
}

// countRefusal counts a refused request of a client whose credential only its handler
// checks: a runner, an SDK or a monitoring system. Requests with valid credentials are not
// limited, because many such clients share one address.
func (a *API) countRefusal(c *call, err error) error {
	switch errs.KindOf(err) {
	case errs.KindUnauthorized, errs.KindForbidden, errs.KindNotFound:
	default:
		return err
	}
	if err := a.throttle(c); err != nil {
		return err
	}
	err = a.Users.FailedToken(c, c.actor.IP, err)
	if refused, ok := errors.AsType[limit.Refused](err); ok {
		refused.Headers(c.w.Header())
	}
	return err
}

// call is one request: its context, its actor and, for endpoints that stream, the
// raw writer.
type call struct {
	context.Context
	actor actor.Actor
	site  *Site
	route string // the path of the endpoint, with {names}
	rest  string // the parameter for the rest of the path
	input *bind.Input
	r     *http.Request
	w     http.ResponseWriter
	lfs   func(context.Context) bool // whether LFS is enabled on the instance; nil outside of endpoints
	// release releases the slot of a large response; nil for writes.
	release func()
	// mirrors are the pull mirrors of the projects of the result.
	mirrors map[int64]*mirror.Mirror
	// notifications are the levels of the actor in the projects of the result.
	notifications notify.LevelSet
}

// pathParam returns a decoded path parameter. It returns false if the parameter is
// empty or cannot be decoded.
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

// allowed returns the methods that a path supports.
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

// exposedHeaders returns the value of Access-Control-Expose-Headers: the headers of
// all endpoints, and those of files, without repetitions.
func exposedHeaders(file []string) string {
	list := append([]string{
		"Etag", "Link", "RateLimit-Limit", "RateLimit-Observed", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", "X-Next-Page", "X-Page", "X-Per-Page",
		"X-Prev-Page", "X-Request-Id", "X-Runtime", "X-Sentry-Rate-Limits", "X-Total", "X-Total-Pages",
	}, file...)
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

var varyOrigin = []string{"Origin"}

// cors allows pages of other origins to use the API with tokens. Cookies are not
// allowed across origins, so sessions cannot be used this way.
func (a *API) cors(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Vary"] = varyOrigin
	if r.Header.Get("Origin") == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", a.Site.exposed)
	if r.Method != http.MethodOptions {
		return
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "7200")
}
