package web

import (
	"crypto/rand"
	"net/http"
)

func (w *Web) sandboxPages() {
	w.page("GET /-/sandbox/mermaid", anyone, w.mermaidFrame)
}

// mermaidFrame is the page of the frame in which a diagram is drawn. A diagram
// is a text of a user that a large library interprets, so the frame has its own
// origin and no cookies, and loads only two scripts.
func (w *Web) mermaidFrame(v *visit) error {
	nonce := rand.Text()
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write([]byte(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Diagram</title>
<style>body { margin: 0 } #out svg { max-width: 100%; height: auto; display: block; margin: 0 auto }</style></head>
<body><main id="out"></main>
<script nonce="` + nonce + `" src="` + w.assets.path("mermaid.min.js") + `"></script>
<script nonce="` + nonce + `" src="` + w.assets.path("diagram.js") + `"></script>
</body></html>
`))
	return nil
}
