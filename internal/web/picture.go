package web

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"svc/internal/blob"
	"svc/internal/errs"
)

func (w *Web) pictureRoutes() {
	w.router.Get("/uploads/-/system/user/avatar/{id}/{name}", w.avatar(w.Users.OpenAvatar))
	for owner, group := range map[string]bool{"project": false, "group": true} {
		w.router.Get("/uploads/-/system/"+owner+"/avatar/{id}/{name}",
			w.avatar(func(ctx context.Context, id int64, name string) (*blob.Object, error) {
				return w.Projects.OpenAvatar(ctx, group, id, name)
			}))
	}
	w.router.Get("/uploads/-/system/topic/avatar/{id}/{name}", w.avatar(w.Topics.OpenAvatar))
}

// avatar serves a picture to anyone who knows its name. Each upload has a
// unique name, so browsers can cache it forever.
func (w *Web) avatar(open func(ctx context.Context, id int64, name string) (*blob.Object, error)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
		if err != nil {
			http.NotFound(rw, r)
			return
		}
		picture, err := open(r.Context(), id, chi.URLParam(r, "name"))
		if errs.Is(err, errs.KindNotFound) || errs.Is(err, errs.KindInvalid) {
			http.NotFound(rw, r)
			return
		}
		if errs.Is(err, errs.KindUnavailable) {
			rw.Header().Set("Retry-After", errs.RetryAfter(err))
			http.Error(rw, "The avatar cannot be read now.", http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			w.Log.ErrorContext(r.Context(), "cannot open an avatar", "path", r.URL.Path, "error", err)
			http.Error(rw, "The avatar cannot be read now.", http.StatusInternalServerError)
			return
		}
		defer picture.Close()
		foreign(rw.Header(), picture.ContentType, "public, max-age=31536000, immutable")
		http.ServeContent(rw, r, "", picture.ModTime, picture)
	}
}
