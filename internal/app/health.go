package app

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// checkTimeout is the time limit of a readiness check. A load balancer treats a
// slower response as a failure.
const checkTimeout = 5 * time.Second

// watched are the paths of the health and metrics endpoints.
var watched = map[string]bool{"/-/liveness": true, "/-/health": true, "/-/readiness": true, "/-/metrics": true}

// health returns the handler of the health and metrics endpoints.
func (s *Server) health(m *metrics) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/liveness", func(w http.ResponseWriter, _ *http.Request) {
		writeState(w, http.StatusOK, map[string]any{"status": "ok"})
	})
	mux.HandleFunc("GET /-/health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(s.Config.ServiceName + " OK\n"))
	})
	mux.HandleFunc("GET /-/readiness", s.readiness)
	mux.Handle("GET /-/metrics", m.handler())
	return mux
}

// readiness reports whether the node can serve requests and, if not, the reason. A
// node is ready if it can reach the database, has disk space and is not stopping.
// The state of the object store and the mail server is included, but does not affect
// readiness: all nodes share them, and most requests do not need them. Error details
// are only logged, because they may contain host names; for a full disk, the
// response names the purpose of the directory instead of its path.
func (s *Server) readiness(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	status, checks := http.StatusOK, s.dependencies.states()
	checks["database"] = stateOK
	if err := s.DB.Ping(ctx); err != nil {
		s.Log.ErrorContext(r.Context(), "not ready", "part", "database", "error", err)
		status, checks["database"] = http.StatusServiceUnavailable, stateFailed
	}
	checks["disk"] = stateOK
	if err := s.spaceLeft(); err != nil {
		s.Log.ErrorContext(r.Context(), "not ready", "part", "disk", "error", err)
		status, checks["disk"] = http.StatusServiceUnavailable, err.Error()
	}
	state := stateOK
	if s.stopping.Load() {
		status, state = http.StatusServiceUnavailable, "stopping"
	} else if status != http.StatusOK {
		state = stateFailed
	}
	writeState(w, status, map[string]any{"status": state, "checks": checks})
}

func writeState(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
