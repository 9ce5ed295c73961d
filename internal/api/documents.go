package api

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/go-chi/chi/v5"

	"svc/internal/httpreq"
	"svc/internal/openapi"
)

// documentRoutes adds the OpenAPI document and its pages. They are public and the
// same for all callers, so these endpoints neither authenticate nor count
// requests. Each file is generated on its first request, when all routes have been
// added.
func (a *API) documentRoutes() {
	document := sync.OnceValue(a.document)
	a.asset("/openapi.json", func() *asset { return newAsset("application/json", document().JSON()) })
	a.docsRoutes(sync.OnceValue(func() *openapi.Pages { return openapi.NewPages(document()) }))
	for name, media := range map[string]string{
		"page.css": "text/css; charset=utf-8",
		"page.js":  "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml",
	} {
		a.asset("/docs/"+name, func() *asset { return newAsset(media, openapi.File(name)) })
	}
}

// asset adds a route for a file that build generates on the first request.
func (a *API) asset(path string, build func() *asset) {
	once := sync.OnceValue(build)
	serve := func(w http.ResponseWriter, r *http.Request) {
		if to, ok := w.(routed); ok {
			to.SetRoute(path)
		}
		once().serve(w, r)
	}
	a.mux.Get(prefix+path, serve)
	a.mux.Head(prefix+path, serve)
}

// asset is a file in memory, plain and compressed.
type asset struct {
	media  string
	plain  []byte
	packed []byte
	tag    string
}

func newAsset(media string, text []byte) *asset {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = z.Write(text) // writes to a buffer do not fail
	_ = z.Close()
	return &asset{media: media, plain: text, packed: packed.Bytes(), tag: `W/"` + strconv.FormatUint(xxhash.Sum64(text), 16) + `"`}
}

// docsPolicy is the Content-Security-Policy of the pages. They load files from this
// server only.
const docsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (f *asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Cache-Control", "no-cache") // store, but revalidate
	h.Set("Etag", f.tag)
	h.Add("Vary", "Accept-Encoding")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", docsPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	if matches(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	text := f.plain
	if httpreq.AcceptsGzip(r) {
		text = f.packed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text) // the client may have disconnected
}

// docsRoutes adds the HTML pages: the index, and one for each group of endpoints.
func (a *API) docsRoutes(docs func() *openapi.Pages) {
	const media = "text/html; charset=utf-8"
	a.asset("/docs", func() *asset { return newAsset(media, docs().Index()) })
	pages := sync.OnceValue(func() map[string]func() *asset {
		list := map[string]func() *asset{}
		for _, g := range docs().Groups {
			list[g.Slug] = sync.OnceValue(func() *asset { return newAsset(media, docs().Page(g)) })
		}
		return list
	})
	serve := func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages()[chi.URLParam(r, "group")]
		if !ok {
			a.noRoute(w, r)
			return
		}
		if to, ok := w.(routed); ok {
			to.SetRoute("/docs/{group}")
		}
		page().serve(w, r)
	}
	a.mux.Get(prefix+"/docs/{group}", serve)
	a.mux.Head(prefix+"/docs/{group}", serve)
}
