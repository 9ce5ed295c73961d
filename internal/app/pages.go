package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"svc/internal/config"
	"svc/internal/httpreq"
	"svc/internal/limit"
	"svc/internal/pages"
	"svc/internal/sites"
)

// pagesCache returns the directory where nodes cache sites that are stored in an
// object store.
func (a *App) pagesCache() string { return filepath.Join(a.Config.DataDir, "pages") }

// pagesPlace returns the configured host names, ports and schemes of Pages sites.
func (a *App) pagesPlace() pages.Place {
	p := pages.Place{URL: a.Config.PagesURL, External: a.Config.ExternalURL, TLS: a.Config.PagesTLSAddr != ""}
	p.Served = p.TLS || a.Config.PagesAddr != ""
	if p.URL == "" {
		p.URL = config.DefaultPagesURL(a.Config.PagesAddr)
	}
	if _, port, err := net.SplitHostPort(a.Config.PagesTLSAddr); err == nil && port != "443" {
		p.TLSPort = port
	}
	// A URL with https is used unchanged, for example behind a proxy.
	if u, err := url.Parse(p.URL); err == nil && u.Scheme == "https" {
		p.TLSPort = u.Port()
	}
	return p
}

func (a *App) pagesACME() pages.ACME {
	c := pages.ACME{Directory: a.Config.PagesACMEURL, Email: a.Config.PagesACMEEmail, RootFile: a.Config.PagesACMERoot}
	if host, port, err := net.SplitHostPort(a.Config.PagesAddr); err == nil {
		c.Host = host
		c.Port, _ = strconv.Atoi(port) // valid: chosen by the system, or checked with the configuration
	}
	return c
}

// pagesServer serves Pages sites; listeners that are disabled are nil.
type pagesServer struct {
	plain, secure net.Listener
	http          *http.Server
	https         *http.Server
	handler       *sites.Handler
	proxies       httpreq.Proxies
	gate          *gate
	metrics       *metrics
	log           *slog.Logger
	pace          Pace
}

// PagesAddr returns the address on which sites are served over HTTP, or an empty
// string if that is disabled.
func (s *Server) PagesAddr() string { return addrOf(s.pages.plain) }

// PagesTLSAddr returns the address on which sites are served over TLS, or an empty
// string if that is disabled.
func (s *Server) PagesTLSAddr() string { return addrOf(s.pages.secure) }

func addrOf(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// listenPages opens the listeners of Pages sites, unless they are disabled.
func (s *Server) listenPages() error {
	for _, l := range []struct {
		name string
		addr *string
		to   *net.Listener
	}{{"pages_addr", &s.Config.PagesAddr, &s.pages.plain}, {"pages_tls_addr", &s.Config.PagesTLSAddr, &s.pages.secure}} {
		if *l.addr == "" || *l.addr == "off" {
			continue
		}
		listener, err := net.Listen("tcp", *l.addr)
		if err != nil {
			return fmt.Errorf("listen for Pages (%s): %w", l.name, err)
		}
		*l.to, *l.addr = s.gate.listen(listener, false), listener.Addr().String() // the system may have chosen the port
	}
	s.Pages.Place, s.Pages.ACME = s.pagesPlace(), s.pagesACME()
	if warning := s.Config.PagesWarning(); warning != "" {
		s.Log.Warn(warning)
	}
	return nil
}

func (s *Server) closePages() error {
	var faults []error
	for _, l := range []net.Listener{s.pages.plain, s.pages.secure} {
		if l != nil {
			faults = append(faults, l.Close())
		}
	}
	return errors.Join(faults...)
}

// newPages creates the HTTP servers of the listeners.
func (s *Server) newPages(ctx context.Context, m *metrics) error {
	p := &s.pages
	if p.plain == nil && p.secure == nil {
		return nil
	}
	if err := s.Pages.ClearCache(); err != nil {
		return fmt.Errorf("cache of Pages sites: %w", err)
	}
	p.proxies, p.gate, p.metrics, p.log, p.pace = s.Config.TrustedProxies, s.gate, m, s.Log, s.pace
	p.handler = sites.New(sites.Deps{
		Pages: s.Pages, OAuth: s.OAuth, Users: s.Users, Keys: s.Keys, Log: s.Log, Now: s.now, Name: s.Config.ServiceName, External: s.Config.ExternalURL,
		Secure: func(r *http.Request) bool { return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" }, // see ServeHTTP
	})
	if s.Config.PagesCert != "" || s.Config.PagesKey != "" {
		files := &certificateFiles{cert: s.Config.PagesCert, key: s.Config.PagesKey}
		if _, err := files.get(); err != nil {
			return fmt.Errorf("certificate of Pages (pages_cert, pages_key): %w", err)
		}
		p.handler.Default = files.get
	}
	if err := s.OAuth.Builtin(ctx, p.handler.ClientID(), "Pages", p.handler.CallbackURL(), p.handler.Scopes()); err != nil {
		return err
	}
	server := func() *http.Server {
		return &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: quietLog(s.Log)}
	}
	p.http, p.https = server(), server()
	p.https.TLSConfig = p.handler.TLS()
	return nil
}

// run serves on all listeners.
func (p *pagesServer) run(failed chan<- error) {
	if p.plain != nil {
		go func() { failed <- p.http.Serve(p.plain) }()
	}
	if p.secure != nil {
		go func() { failed <- p.https.ServeTLS(p.secure, "", "") }()
	}
}

// stop waits for responses in progress.
func (p *pagesServer) stop(ctx context.Context) error {
	var faults []error
	for _, server := range []*http.Server{p.http, p.https} {
		if server == nil {
			continue
		}
		if err := server.Shutdown(ctx); err != nil {
			faults = append(faults, fmt.Errorf("some requests to Pages sites did not end and were interrupted: %w", err), server.Close())
		}
	}
	return errors.Join(faults...)
}

// ServeHTTP implements http.Handler. It takes the client's address and protocol from
// trusted proxies, and counts and logs requests.
func (p *pagesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	if r.ProtoMajor > 1 {
		end, ok := p.gate.enterRequest(r.RemoteAddr)
		if !ok {
			refuseFull(w, "Too many requests are in progress. Try again in a moment.")
			return
		}
		defer end()
	}
	secure := p.proxies.ForwardedTLS(r)
	r.RemoteAddr = p.proxies.ClientAddr(r)
	if r.Header.Del("X-Forwarded-Proto"); secure {
		r.Header.Set("X-Forwarded-Proto", "https")
	}
	r = r.WithContext(limit.WithAddress(r.Context(), r.RemoteAddr))
	out, end := p.pace.paced(w, r)
	defer end()
	rec := &pagesRecorder{ResponseWriter: out, status: http.StatusOK}
	p.handler.ServeHTTP(rec, r)
	took := time.Since(start)
	p.metrics.request(r.Method, "pages", rec.status, took)
	if p.log.Enabled(r.Context(), slog.LevelInfo) {
		p.log.LogAttrs(r.Context(), slog.LevelInfo, "visit", slog.String("method", r.Method), slog.String("host", r.Host), slog.String("path", r.URL.Path),
			slog.Int("status", rec.status), slog.Duration("duration", took), slog.String("ip", r.RemoteAddr))
	}
}

// pagesRecorder records the status of a response.
type pagesRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *pagesRecorder) WriteHeader(status int) {
	if status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (r *pagesRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// certificateFiles is a certificate in files that another program renews. It is
// reloaded when the files change.
type certificateFiles struct {
	cert, key string

	mu     sync.Mutex
	pair   *tls.Certificate
	looked time.Time
	seen   [2]time.Time // modification times of the files
}

// lookAfter is the minimum time between checks of the files for changes.
const lookAfter = 10 * time.Second

func (c *certificateFiles) get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair != nil && time.Since(c.looked) < lookAfter {
		return c.pair, nil
	}
	c.looked = time.Now()
	var seen [2]time.Time
	for i, name := range []string{c.cert, c.key} {
		if info, err := os.Stat(name); err == nil {
			seen[i] = info.ModTime()
		}
	}
	if c.pair != nil && seen == c.seen {
		return c.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		if c.pair != nil { // only one file of a new pair exists; keep using the old pair
			return c.pair, nil
		}
		return nil, err
	}
	c.pair, c.seen = &pair, seen
	return c.pair, nil
}
