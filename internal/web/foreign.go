package web

import (
	"mime"
	"net/http"
	"path"
	"strings"

	"svc/internal/imageproxy"
)

// foreign sets the headers of a file from users or their jobs so that browsers
// never treat it as a page of this site.
func foreign(h http.Header, media, cache string) {
	h.Set("Content-Type", media)
	policy := "default-src 'none'; sandbox"
	if media == imageproxy.SVG { // its styles are in it
		policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", cache)
}

// foreignFile is foreign for a file: images are shown, other files are
// downloaded.
func foreignFile(h http.Header, name, cache string) {
	media, how := imageKind(name), "inline"
	if media == "" {
		media, how = "application/octet-stream", "attachment"
	}
	foreign(h, media, cache)
	h.Set("Content-Disposition", disposition(how, name))
}

// disposition returns the header by which browsers show or download a file, with
// its name.
func disposition(how, name string) string {
	return mime.FormatMediaType(how, map[string]string{"filename": name})
}

// imageKind returns the type of a file that browsers show as an image. SVG can
// contain scripts, which the policy of foreign blocks.
func imageKind(name string) string {
	return map[string]string{
		".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".ico": "image/x-icon", ".avif": "image/avif", ".bmp": "image/bmp", ".svg": imageproxy.SVG,
	}[strings.ToLower(path.Ext(name))]
}
