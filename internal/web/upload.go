package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"svc/internal/project"
)

func (w *Web) uploadPages() {
	w.page("GET /-/project/{id}/uploads/{secret}/{name}", anyone, func(v *visit) error {
		id, err := v.number("id")
		if err != nil {
			return err
		}
		return w.upload(v, project.RefTo(id))
	})
	w.projectPage("GET uploads/{secret}/{name}", anyone, w.upload)
}

// upload serves a file that a text of a project links to. Images are shown; other
// files are downloaded, because users uploaded them.
func (w *Web) upload(v *visit, in project.Ref) error {
	u, file, err := w.Uploads.Open(v, v.actor, in, 0, chi.URLParam(v.r, "secret"))
	if err != nil {
		return err
	}
	defer file.Close()
	foreignFile(v.w.Header(), u.Name, "private, max-age=3600")
	http.ServeContent(v.w, v.r, "", file.ModTime, file)
	return nil
}
