// Package sites serves the sites of Pages over HTTP and TLS: on subdomains of the
// Pages domain, and on custom domains.
package sites

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"svc/internal/actor"
	"svc/internal/errs"
	"svc/internal/httpreq"
	"svc/internal/limit"
	"svc/internal/oauth"
	"svc/internal/pages"
	"svc/internal/secret"
	"svc/internal/user"
)

// Deps are the dependencies of the handler.
type Deps struct {
	Pages *pages.Service
	OAuth *oauth.Service
	Users *user.Service
	Keys  *secret.Keyring
	Log   *slog.Logger
	Now   func() time.Time

	Name     string // of the service
	External string // URL of the instance, where visitors sign in
	// Default returns the certificate for all subdomains of the Pages domain; nil if
	// there is none.
	Default func() (*tls.Certificate, error)
	// Secure reports whether a request came over TLS, also to a trusted proxy.
	Secure func(r *http.Request) bool
}

// Handler serves the sites of Pages.
type Handler struct{ Deps }

// New returns a Handler.
func New(d Deps) *Handler { return &Handler{d} }

// TLS returns the TLS configuration. The certificate of the host is looked up at
// each handshake.
func (d *Handler) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: d.certificate}
}

func (d *Handler) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := hostName(hello.ServerName)
	if name != "" && !strings.HasSuffix(name, "."+d.Pages.Place.Host()) {
		pair, err := d.Pages.Pair(hello.Context(), name)
		if err == nil {
			return pair, nil
		}
		if !errs.Is(err, errs.KindNotFound) {
			d.Log.ErrorContext(hello.Context(), "a certificate is unusable", "host", name, "error", err)
			return nil, errors.New("the certificate is unusable")
		}
	}
	if d.Default == nil {
		return nil, errors.New("no certificate for this host")
	}
	return d.Default()
}

// hostName returns a host without its port, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// ServeHTTP implements http.Handler.
func (d *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := d.serve(w, r)
	if errs.Is(err, errs.KindInvalid) { // only the sign-in returns it
		err = d.Users.FailedToken(r.Context(), httpreq.IP(r), err)
	}
	if err != nil {
		d.refuse(w, r, err)
	}
}

// visit is a request to a site.
type visit struct {
	d     *Handler
	w     http.ResponseWriter
	r     *http.Request
	host  string // without the port
	below bool   // the host is a subdomain of the Pages domain
	match pages.Match
	route *pages.Route
}

func (d *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	name := hostName(r.Host)
	if strings.HasPrefix(r.URL.Path, pages.ChallengePath) && d.Pages.Challenge(w, r) {
		return nil
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return errs.NotAllowed("")
	}
	if name == d.Pages.Place.AuthHost() {
		return d.shared(w, r)
	}
	match, err := d.Pages.Resolve(r.Context(), name, r.URL.Path)
	if err != nil {
		return err
	}
	v := &visit{d: d, w: w, r: r, host: name, below: strings.HasSuffix(name, "."+d.Pages.Place.Host()), match: match}
	// This redirect does not reveal a private site: the existence of a site on a
	// custom domain is public. The sign-in on the domain may need TLS.
	if !v.below && len(match.Routes) > 0 && match.Routes[0].HTTPS && !d.Secure(r) {
		return v.toHTTPS()
	}
	if r.URL.Path == authPath {
		return d.finish(w, r, name)
	}
	return v.answer()
}

// answer serves the first of the sites that the visitor may see. On subdomains of
// the Pages domain, responses do not reveal whether a private site exists: visitors
// must sign in for sites that do not exist too, and get NotFound for sites that they
// may not see.
func (v *visit) answer() error {
	for _, route := range v.match.Routes {
		v.route = route
		if !route.Open() && (v.below || route.Elsewhere == "") {
			by, err := v.d.visitor(v.r, v.host)
			if err != nil {
				return err
			}
			if by.Anonymous() {
				return v.d.begin(v.w, v.r, v.host)
			}
			err = v.d.Pages.Admit(v.r.Context(), by, route)
			if errs.Is(err, errs.KindNotFound) {
				continue
			}
			if err != nil {
				return err
			}
		}
		switch {
		case route.HTTPS && !v.d.Secure(v.r):
			return v.toHTTPS()
		case route.Elsewhere != "":
			rest := strings.TrimPrefix(escapedBelow(v.r, route.Base), "/")
			return v.leave(route.Elsewhere+"/"+rest+query(v.r), http.StatusPermanentRedirect)
		}
		return v.show()
	}
	return v.missing()
}

// missing responds to a request for a path that does not exist. The path could be in
// a private site, so anonymous visitors must sign in first. It returns NotFound for
// signed-in visitors, on custom domains, and if all sites of the host are public and
// one of them contains the path.
func (v *visit) missing() error {
	open := len(v.match.Routes) > 0 && !v.match.Private
	if !v.below || open || v.route != nil && v.route.Base != "" {
		return errs.NotFound("")
	}
	by, err := v.d.visitor(v.r, v.host)
	if err != nil {
		return err
	}
	if by.Anonymous() {
		return v.d.begin(v.w, v.r, v.host)
	}
	return errs.NotFound("")
}

// toHTTPS redirects to the same URL over TLS.
func (v *visit) toHTTPS() error {
	place := v.d.Pages.Place
	port := place.TLSPort
	if strings.HasSuffix(v.host, "."+place.Host()) {
		_, port, _ = strings.Cut(strings.TrimPrefix(place.URL, "https://"), ":")
	}
	if port != "" {
		port = ":" + port
	}
	return v.leave("https://"+v.host+port+v.r.URL.EscapedPath()+query(v.r), http.StatusMovedPermanently)
}

func query(r *http.Request) string {
	if r.URL.RawQuery == "" {
		return ""
	}
	return "?" + r.URL.RawQuery
}

// escapedBelow returns the escaped path of a request below a base.
func escapedBelow(r *http.Request, base string) string {
	path := r.URL.EscapedPath()
	for range strings.Count(base, "/") {
		_, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		path = "/" + rest
	}
	return path
}

// leave redirects to a URL.
func (v *visit) leave(to string, status int) error {
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(status)
	return nil
}

// visitor returns the user who is signed in on this host. The actor is anonymous
// without a session, or if the session has expired.
func (d *Handler) visitor(r *http.Request, host string) (actor.Actor, error) {
	token := d.unsealCookie(r, "", sessionPlace(host))
	if token == "" {
		return actor.Actor{}, nil
	}
	by, err := d.Users.TryToken(r.Context(), token, httpreq.IP(r))
	if errs.Is(err, errs.KindUnauthorized) || errs.Is(err, errs.KindForbidden) {
		return actor.Actor{}, nil
	}
	limit.Identify(r.Context(), by.Account())
	return by, err
}

// refuse responds with an error page. Its status is 404 also without permission.
func (d *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	if refused, ok := errors.AsType[limit.Refused](err); ok {
		refused.Headers(w.Header())
		problem(w, r, http.StatusTooManyRequests)
		return
	}
	switch errs.KindOf(err) {
	case errs.KindNotFound, errs.KindForbidden, errs.KindUnauthorized:
		status = http.StatusNotFound
	case errs.KindInvalid:
		status = http.StatusBadRequest
	case errs.KindNotAllowed:
		status = http.StatusMethodNotAllowed
	case errs.KindUnavailable:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", errs.RetryAfter(err))
	}
	if status == http.StatusInternalServerError {
		if errors.Is(err, context.Canceled) {
			return // the client has disconnected
		}
		d.Log.ErrorContext(r.Context(), "a site could not be shown", "host", r.Host, "path", r.URL.Path, "error", err)
	}
	problem(w, r, status)
}
