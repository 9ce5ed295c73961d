package web

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
)

func (w *Web) imagePages() {
	w.page("GET /-/image_proxy/{signature}/{url}", anyone, w.proxiedImage)
}

// proxiedImage serves an image of another site.
func (w *Web) proxiedImage(v *visit) error {
	caller := v.ip()
	if v.session != nil {
		caller = strconv.FormatInt(v.session.User.ID, 10)
	}
	image, err := w.Images.Get(v, chi.URLParam(v.r, "signature"), chi.URLParam(v.r, "url"), caller)
	if err != nil {
		return err
	}
	h := v.w.Header()
	foreign(h, image.Type, "public, max-age=86400")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Length", strconv.Itoa(len(image.Content)))
	v.w.WriteHeader(http.StatusOK)
	return v.web.Spool(v, v.w, func(_ context.Context, out io.Writer) error {
		_, err := out.Write(image.Content)
		return err
	})
}

// allowImages lets a page load images of the hosts that administrators allow. When
// the settings cannot be read, it loads none of them.
func (w *Web) allowImages(v *visit) {
	if sources, err := w.Images.Sources(v); err == nil && sources != "" {
		h := v.w.Header()
		h.Set("Content-Security-Policy", h.Get("Content-Security-Policy")+"; img-src 'self'"+sources)
	}
}
