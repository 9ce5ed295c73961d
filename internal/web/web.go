// Package web is the door for browsers.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"

	"svc/internal/blob"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// Deps are what the pages need.
type Deps struct {
	Users    *user.Service
	Projects *project.Service
	Log      *slog.Logger
}

// Web serves pages.
type Web struct {
	Deps
	mux *http.ServeMux
}

// New builds the routes.
func New(d Deps) *Web {
	w := &Web{Deps: d, mux: http.NewServeMux()}
	w.mux.HandleFunc("GET /uploads/-/system/user/avatar/{id}/{name}", w.avatar(d.Users.OpenAvatar))
	for owner, group := range map[string]bool{"project": false, "group": true} {
		w.mux.HandleFunc("GET /uploads/-/system/"+owner+"/avatar/{id}/{name}",
			w.avatar(func(ctx context.Context, id int64, name string) (*blob.Object, error) {
				return d.Projects.OpenAvatar(ctx, group, id, name)
			}))
	}
	w.mux.HandleFunc("GET /uploads/-/system/topic/avatar/{id}/{name}", w.avatar(d.Projects.OpenTopicAvatar))
	w.mux.HandleFunc("GET /robots.txt", w.robots)
	w.mux.HandleFunc("GET /{$}", w.home)
	return w
}

// ServeHTTP implements http.Handler.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) { w.mux.ServeHTTP(rw, r) }

// home leads to what there is to see.
func (w *Web) home(rw http.ResponseWriter, r *http.Request) {
	http.Redirect(rw, r, "/api/v4/docs", http.StatusFound)
}

func (w *Web) robots(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = rw.Write([]byte("User-agent: *\nDisallow: /api/\nDisallow: /-/\n"))
}

// avatar serves a picture to anybody who knows its name. Each upload has a
// name of its own, so that it may be kept for ever.
func (w *Web) avatar(open func(ctx context.Context, id int64, name string) (*blob.Object, error)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			http.NotFound(rw, r)
			return
		}
		picture, err := open(r.Context(), id, r.PathValue("name"))
		if errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindInvalid) {
			http.NotFound(rw, r)
			return
		}
		if err != nil {
			w.Log.ErrorContext(r.Context(), "open avatar", "path", r.URL.Path, "error", err)
			http.Error(rw, "The picture can not be read now.", http.StatusInternalServerError)
			return
		}
		defer picture.Close()
		h := rw.Header()
		h.Set("Content-Type", picture.ContentType)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
		http.ServeContent(rw, r, "", picture.ModTime, picture)
	}
}
