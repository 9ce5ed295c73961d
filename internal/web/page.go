package web

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"svc/internal/httpreq"
	"svc/internal/markup"
	"svc/internal/memo"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/limit"
	"svc/internal/project"
	"svc/internal/user"
)

// access is the group of users who may open a page. The feature checks what they may
// do there.
type access int

const (
	anyone     access = iota
	signedIn          // others sign in first
	visitor           // visitors who have not signed in; others are redirected to the start page
	unfinished        // like signedIn, also while the password has to be changed
	admins            // administrators; others get 404
	sender            // like signedIn; the body is a file, not a form
	uploader          // like signedIn; the body is a form with a large file, which the page reads
	files             // like signedIn; the body is a form with files, or with the content of several files
	secretURL         // anyone who knows the URL, which is a secret; no CSRF token is required
	poster            // anyone; the body is a form of an identity provider, which the page verifies
)

// route is a row of a route table.
type route struct {
	method, path string
	who          access
}

// page adds a page: "GET /users/sign_in".
func (w *Web) page(pattern string, who access, do func(*visit) error) {
	method, path, _ := strings.Cut(pattern, " ")
	w.pages = append(w.pages, route{method, path, who})
	w.router.Method(method, path, w.handler(path, who, do))
}

// visit is a request: its context, its actor, and methods to respond.
type visit struct {
	context.Context
	web     *Web
	w       http.ResponseWriter
	r       *http.Request
	actor   actor.Actor
	session *user.Session // nil if the visitor has not signed in
	bearer  bool          // the visitor sent an access token: see acceptToken
	visitor string        // value of the visitor's cookie
	token   string        // of the forms of this page, once there is one
	flash   *flash        // to be shown on this page
	file    io.Reader     // of an uploader; nil when none was chosen
	inside  *sideBar      // of the project or group that the page is in
	applies bool          // the visitor may apply the suggestions on this page
	level   int64         // the role of the visitor in the project or group of the page
	release func()        // releases the slot of a large page; nil for a write
}

// handler has what all pages share.
func (w *Web) handler(name string, who access, do func(*visit) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		// The context is not replaced later, because database reads watch it.
		ctx := markup.WithShownPage(r.Context())
		if who != secretURL && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			ctx = memo.With(ctx)
		}
		v := &visit{Context: ctx, web: w, w: rw, r: r}
		w.headers(rw.Header())
		w.allowImages(v)
		if to, ok := rw.(interface{ SetRoute(string) }); ok {
			to.SetRoute(name)
		}
		if err := v.serve(who, do); err != nil {
			v.fail(err)
		}
	}
}

func (v *visit) serve(who access, do func(*visit) error) error {
	if err := v.identify(); err != nil {
		return err
	}
	if !clean(v.r.URL.Path) || !isText(v.r.URL.Query()) {
		return errs.NotFound("")
	}
	v.flash = v.takeFlash()
	if who == secretURL || who == poster {
		return do(v)
	}
	if v.r.Method != http.MethodGet && v.r.Method != http.MethodHead {
		check := v.checkForm
		switch who {
		case sender:
			check = v.checkHeader
		case uploader:
			check = v.checkUpload
		case files:
			check = v.checkFiles
		}
		if err := check(); err != nil {
			return err
		}
	}
	if !isText(v.r.PostForm) {
		return errs.Invalid("The text is not valid UTF-8.")
	}
	switch {
	case who == visitor && v.session != nil:
		return v.redirect("/")
	case (who == signedIn || who == unfinished || who == admins || who == sender || who == uploader || who == files) && v.session == nil:
		return v.askToSignIn()
	case who == admins && !v.actor.Admin:
		return errs.NotFound("")
	case v.session != nil && v.session.User.MustChangePassword && v.session.Impersonator == nil && who != unfinished:
		return v.redirect("/-/user_settings/password/edit")
	}
	if v.r.Method != http.MethodGet && v.r.Method != http.MethodHead {
		return do(v)
	}
	return v.web.Answers.Read(v, func(release func()) error {
		v.release = release
		return do(v)
	})
}

// clean reports whether a string is valid text: databases do not store other
// strings, and some refuse to search for them.
func clean(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

// isText is clean for all submitted values.
func isText(values url.Values) bool {
	for name, list := range values {
		if !clean(name) || slices.ContainsFunc(list, func(s string) bool { return !clean(s) }) {
			return false
		}
	}
	return true
}

// headers sets the security headers of pages: no other hosts, no inline scripts
// and styles, no frames.
func (w *Web) headers(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding, Cookie")
	if w.secure() {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// askToSignIn redirects to the sign-in page, which redirects back: to the page of a
// form that was sent, if there is one. A stream of events is answered with 401: the
// script of a page that is still open does not ask again then.
func (v *visit) askToSignIn() error {
	if v.r.Header.Get("Accept") == "text/event-stream" {
		v.w.Header().Set("Cache-Control", "no-store")
		http.Error(v.w, "Sign in first.", http.StatusUnauthorized)
		return nil
	}
	to := v.r.URL
	if v.r.Method != http.MethodGet {
		var err error
		if to, err = url.Parse(v.r.Referer()); err != nil || to.Host != v.r.Host {
			return v.redirect("/users/sign_in")
		}
	}
	return v.redirect("/users/sign_in?return_to=" + url.QueryEscape(to.RequestURI()))
}

// redirect redirects to another page, with GET.
func (v *visit) redirect(to string) error {
	v.w.Header().Set("Cache-Control", "no-store")
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// local returns a path on this site that is safe to redirect to; anything else
// becomes the start page. Browsers treat \ as / and ignore tabs and line
// breaks.
func local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\t\r\n") {
		return "/"
	}
	return path
}

// ip is the IP address of the client.
func (v *visit) ip() string { return httpreq.IP(v.r) }

// param is a value of the query.
func (v *visit) param(name string) string { return v.r.URL.Query().Get(name) }

// pageNumber returns the requested page of a list, from 1.
func (v *visit) pageNumber() int { return v.pageOf("page") }

// pageOf is pageNumber for a list whose page has another parameter.
func (v *visit) pageOf(param string) int {
	n, err := strconv.Atoi(v.param(param))
	if err != nil {
		return 1
	}
	return min(max(n, 1), 1000)
}

// fail responds with an error. Only here do errors become status codes.
func (v *visit) fail(err error) {
	e, _ := errs.As(err)
	if v.Err() != nil && (e == nil || e.Kind == errs.KindUnavailable) {
		return // the client disconnected or is too slow; this is not an error of the server
	}
	if moved, ok := errors.AsType[*project.Moved](err); ok && v.r.Method == http.MethodGet {
		v.w.Header().Set("Cache-Control", "no-store") // another project or group may get the old path
		http.Redirect(v.w, v.r, movedTo(v.r, moved), http.StatusMovedPermanently)
		return
	}
	refused, tooMany := errors.AsType[limit.Refused](err)
	switch {
	case tooMany:
		refused.Headers(v.w.Header())
		v.problem(http.StatusTooManyRequests, "Too many requests", "Wait a minute, then try again.")
	case e == nil:
		v.web.Log.ErrorContext(v, "request failed", "method", v.r.Method, "path", v.r.URL.Path, "error", err)
		v.problem(http.StatusInternalServerError, "Something went wrong", "The server log has the details. Try again, or contact an administrator.")
	case e.Kind == errs.KindUnauthorized && v.bearer:
		v.problem(http.StatusUnauthorized, "Not authenticated", "The access token is not valid.")
	case e.Kind == errs.KindUnauthorized && v.session == nil:
		_ = v.askToSignIn() // a redirect does not fail
	case e.Kind == errs.KindNotFound, e.Kind == errs.KindUnauthorized:
		v.problem(http.StatusNotFound, "Page not found", "The page does not exist, or you don't have access.")
	case e.Kind == errs.KindForbidden:
		v.problem(http.StatusForbidden, "Not allowed", textOr(e, "You don't have permission to do this."))
	case e.Kind == errs.KindTooLarge:
		v.problem(http.StatusRequestEntityTooLarge, "Too large", textOr(e, "The request is too large."))
	case e.Kind == errs.KindUnavailable:
		v.w.Header().Set("Retry-After", errs.RetryAfter(e))
		v.problem(http.StatusServiceUnavailable, "Temporarily unavailable", textOr(e, "Try again later."))
	case e.Kind == errs.KindConflict:
		v.problem(http.StatusConflict, "Conflict", textOr(e, "The request conflicts with the current state. Reload the page, then try again."))
	default:
		v.problem(http.StatusUnprocessableEntity, "Invalid request", textOr(e, "Check your input, then try again."))
	}
}

func textOr(e *errs.Error, otherwise string) string {
	if text := sentence(e); text != "" {
		return text
	}
	return otherwise
}

// movedTo returns the URL of the same page of a moved object. Pages of groups are
// below their path or below /groups.
func movedTo(r *http.Request, m *project.Moved) string {
	under := ""
	rest, ok := strings.CutPrefix(r.URL.Path, "/"+string(m.From))
	if !ok {
		under = "/groups"
		rest = strings.TrimPrefix(r.URL.Path, "/groups/"+string(m.From))
	}
	to := url.URL{Path: under + "/" + m.Path + rest, RawQuery: r.URL.RawQuery}
	return to.String()
}

// problemPage says that something cannot be shown or done.
type problemPage struct {
	Status int
	Head   string
	Text   string
	Public bool // not signed in
}

func (problemPage) view() string    { return "shared/problem" }
func (p problemPage) title() string { return p.Head }

func (v *visit) problem(status int, head, text string) {
	if status == http.StatusTooManyRequests && v.w.Header().Get("Retry-After") == "" {
		v.w.Header().Set("Retry-After", "60")
	}
	err := v.render(status, problemPage{Status: status, Head: head, Text: text, Public: v.session == nil})
	if err == nil {
		return
	}
	if !errs.Is(err, errs.KindUnavailable) { // the layout needs the service that is unavailable
		v.web.Log.ErrorContext(v, "cannot render an error page", "error", err)
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = fmt.Fprintf(v.w, "<!DOCTYPE html>\n<title>%[1]s</title>\n<h1>%[1]s</h1>\n<p>%[2]s</p>\n", html.EscapeString(head), html.EscapeString(text))
}
