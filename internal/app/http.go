package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"svc/internal/api"
	"svc/internal/httpreq"
	"svc/internal/limit"
)

// handler returns the HTTP handler of the server. It selects the interface for each
// path and adds what all responses have in common.
func (s *Server) handler(metrics *metrics) http.Handler {
	rest, pages := s.interfaces(s.sampler.list)
	s.SecretRoutes = secretRoutes(rest.Router(), pages.Router())
	if l, ok := s.Log.Handler().(requestLog); ok {
		l.mask.Store(newPathMask(s.Config.ServiceName, s.SecretRoutes))
	}
	repositories := s.newGitHTTP(metrics)
	health := s.health(metrics)
	return &front{
		server: s, metrics: metrics,
		route: func(r *http.Request) http.Handler {
			switch path := r.URL.Path; {
			case strings.HasPrefix(path, "/api/"), api.OpenIDPath(path), api.AlertPath(path):
				return rest
			case watched[path]:
				return health
			case repositories.Serves(r):
				return repositories
			}
			return pages
		},
	}
}

// front is the outermost handler. It sets request IDs and headers, and writes the
// log and metrics.
type front struct {
	server  *Server
	metrics *metrics
	route   func(r *http.Request) http.Handler
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refuseSpare(w, r) {
		return
	}
	start := time.Now()
	id := requestID(r.Header.Get("X-Request-Id"))
	addr := httpreq.Proxies(f.server.Config.TrustedProxies).ClientAddr(r)
	r = r.WithContext(limit.WithAddress(withRequestID(r.Context(), id), addr))
	r.RemoteAddr = addr
	out, end := f.server.pace.paced(w, r)
	rec := &recorder{ResponseWriter: out, ctx: r.Context(), start: start, status: http.StatusOK, route: "none"}
	h := w.Header()
	h["X-Request-Id"] = []string{id}
	h["X-Content-Type-Options"] = nosniff
	h["X-Frame-Options"] = sameOrigin
	h["Referrer-Policy"] = strictOrigin
	defer func() {
		abort := f.recovered(rec, r, recover())
		end()
		if r.Context().Err() != nil && (!rec.wrote || rec.status >= http.StatusInternalServerError) {
			rec.status, abort = statusClientLeft, true
		}
		took := time.Since(start)
		f.metrics.request(r.Method, rec.route, rec.status, took)
		f.server.sampler.answered(rec.route, h.Get("Content-Type"), took)
		f.server.Log.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", rec.status),
			slog.Int64("bytes", rec.bytes), slog.Duration("duration", took), slog.String("user", rec.user), slog.String("ip", r.RemoteAddr),
			slog.Bool("cut", abort))
		if abort { // the client must notice that the response is incomplete
			panic(http.ErrAbortHandler)
		}
	}()
	f.route(r).ServeHTTP(rec, r)
}

// statusClientLeft is the status, in the log and the metrics, of a request whose
// client disconnected before the response. It is not an error of the server.
const statusClientLeft = 499

// Constant header values, which are allocated once.
var (
	nosniff      = []string{"nosniff"}
	sameOrigin   = []string{"SAMEORIGIN"}
	strictOrigin = []string{"strict-origin-when-cross-origin"}
)

// recovered handles the result of recover. It reports whether the connection must be
// closed, because a part of the response was already sent.
func (f *front) recovered(rec *recorder, r *http.Request, p any) (abort bool) {
	if p == nil {
		return false
	}
	if p == http.ErrAbortHandler {
		return true
	}
	f.server.Log.ErrorContext(r.Context(), "request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if rec.wrote {
		return true
	}
	rec.Header().Set("Content-Type", "application/json")
	rec.WriteHeader(http.StatusInternalServerError)
	_, _ = rec.Write([]byte(`{"message":"500 Internal Server Error"}`))
	return false
}

// recorder records the status and size of the response, and adds headers that depend
// on them.
type recorder struct {
	http.ResponseWriter
	ctx    context.Context // of the request
	start  time.Time
	status int
	bytes  int64
	wrote  bool
	route  string
	user   string
}

// SetRoute records the pattern of the route, for metrics.
func (r *recorder) SetRoute(route string) { r.route = route }

// SetUser records the user of the request, for the log.
func (r *recorder) SetUser(username string) { r.user = username }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if !r.wrote && status >= 200 {
		r.wrote, r.status = true, status
		limit.EndReads(r.ctx)
		r.Header()["X-Runtime"] = []string{strconv.FormatFloat(time.Since(r.start).Seconds(), 'f', 6, 64)}
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	if !r.wrote {
		r.WriteHeader(http.StatusOK)
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// requestID returns the request ID that a client or proxy sent, if it is valid, so
// that their log and the log of the server can be correlated. Otherwise it returns a
// new one.
func requestID(sent string) string {
	if len(sent) >= 8 && len(sent) <= 128 && strings.Trim(sent, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == "" {
		return sent
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

type requestIDKey struct{}

func withRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// quietLog returns the error log of net/http, which mostly has messages about broken
// connections, at level DEBUG.
func quietLog(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }
