package web

import (
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/project"
)

func (w *Web) uploadPages() {
	w.page("GET /-/project/{id}/uploads/{secret}/{name}", anybody, w.upload)
}

// upload serves a file that a text of a project links to, to those who see the
// project. Pictures are shown, everything else is saved: it is somebody's.
func (w *Web) upload(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	u, file, err := w.Plan.OpenUpload(v, v.actor, project.RefTo(id), 0, chi.URLParam(v.r, "secret"))
	if err != nil {
		return err
	}
	defer file.Close()
	h := v.w.Header()
	media, way := mediaOf(u.Name), "inline"
	if media == "" {
		media, way = "application/octet-stream", "attachment"
	}
	h.Set("Content-Type", media)
	h.Set("Content-Disposition", mime.FormatMediaType(way, map[string]string{"filename": u.Name}))
	h.Set("Cache-Control", "private, max-age=3600")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	http.ServeContent(v.w, v.r, "", file.ModTime, file)
	return nil
}

// mediaOf is the type of a picture that browsers show and do not run; empty for
// anything else.
func mediaOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	}
	return ""
}
