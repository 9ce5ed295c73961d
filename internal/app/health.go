package app

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// checkTimeout bounds a readiness check: a part that takes longer is as good
// as gone for a load balancer.
const checkTimeout = 5 * time.Second

// watched are the paths that health answers.
var watched = map[string]bool{"/-/liveness": true, "/-/health": true, "/-/readiness": true, "/-/metrics": true}

// health answers the questions of those who watch the server.
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

// readiness reports whether requests can be answered, and if not, which part
// stands in the way. A node is ready while it reaches the database, has room on
// its disks and is not stopping. The object store and the mail server are reported
// only: all nodes share them, and most requests do not need them. The reasons go
// to the log: they may name hosts. Which disk is nearly full is said in the
// answer, by the name of what it holds.
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
