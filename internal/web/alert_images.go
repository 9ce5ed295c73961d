package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/alert"
	"svc/internal/errs"
	"svc/internal/project"
)

func (w *Web) alertImagePages() {
	w.projectPage("POST alert_management/{id}/images", files, w.addMetricImage)
	w.projectPage("POST alert_management/{id}/images/{image}/delete", signedIn, w.deleteMetricImage)
	w.page("GET /uploads/-/system/alert_metric_image/file/{image}/{name}", signedIn, w.metricImage)
}

func (w *Web) addMetricImage(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	file, header, err := v.r.FormFile("file")
	switch {
	case errors.Is(err, http.ErrMissingFile), errors.Is(err, http.ErrNotMultipart):
		err = errs.Invalid("Choose a file.")
	case err != nil:
		err = errs.Invalid("The image cannot be read.").Because(err)
	default:
		defer file.Close()
		address, text := strings.TrimSpace(v.text("url")), strings.TrimSpace(v.text("url_text"))
		_, err = w.Alerts.AddMetricImage(v, v.actor, ref, iid, header.Filename, file, alert.MetricImageFields{URL: &address, URLText: &text})
	}
	return v.redirectWithFlash(err, "The image was uploaded.", w.alertAt(v, ref, iid))
}

func (w *Web) deleteMetricImage(v *visit, ref project.Ref) error {
	iid, err := v.number("id")
	if err != nil {
		return err
	}
	image, err := v.number("image")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Alerts.DeleteMetricImage(v, v.actor, ref, iid, image), "The image was deleted.", w.alertAt(v, ref, iid))
}

// metricImage serves an image of an alert to users who can see the alert.
func (w *Web) metricImage(v *visit) error {
	id, err := v.number("image")
	if err != nil {
		return err
	}
	m, file, err := w.Alerts.OpenMetricImage(v, v.actor, id, chi.URLParam(v.r, "name"))
	if err != nil {
		return err
	}
	defer file.Close()
	foreignFile(v.w.Header(), m.Name, "private, max-age=3600")
	http.ServeContent(v.w, v.r, "", file.ModTime, file)
	return nil
}
