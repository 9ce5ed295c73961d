package api

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/go-chi/chi/v5"
)

//go:embed docs
var docs embed.FS

// documentRoutes adds the description of the API for machines and for people.
// It is the same for everybody, so nobody is asked who he is, and no rate
// applies. Each is made when it is asked for first: all routes are then known.
func (a *API) documentRoutes() {
	description := sync.OnceValue(a.document)
	a.asset("/openapi.json", func() *asset { return newAsset("application/json", description().bytes()) })
	a.docsRoutes(sync.OnceValue(func() *docsData { return newDocs(&a.Site, description()) }))
	for name, media := range map[string]string{
		"page.css": "text/css; charset=utf-8",
		"page.js":  "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml",
	} {
		a.asset("/docs/"+name, func() *asset { return newAsset(media, docsFile(name)) })
	}
}

// docsFile gives an embedded file; one that is missing is a fault of the
// program.
func docsFile(name string) []byte {
	text, err := docs.ReadFile("docs/" + name)
	if err != nil {
		panic(err)
	}
	return text
}

// asset serves something that is made once.
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

// asset is a file that is held whole, in both encodings that it is sent in.
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
	_, _ = z.Write(text) // a buffer takes everything
	_ = z.Close()
	return &asset{media: media, plain: text, packed: packed.Bytes(), tag: `W/"` + strconv.FormatUint(xxhash.Sum64(text), 16) + `"`}
}

// docsPolicy lets the page load what this server serves, and nothing else.
const docsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (f *asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Cache-Control", "no-cache") // keep it, but ask whether it is still good
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
	if takesGzip(r.Header.Get("Accept-Encoding")) {
		text = f.packed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text) // a reader that has gone is not our fault
}

func takesGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if name == "gzip" && strings.TrimRight(weight, ".0") != "q=" {
			return true
		}
	}
	return false
}

// docsRoutes serves the pages for people: one that leads to all others, and one
// for each group of endpoints. All in one would be megabytes.
func (a *API) docsRoutes(data func() *docsData) {
	const media = "text/html; charset=utf-8"
	a.asset("/docs", func() *asset { return newAsset(media, data().page(nil)) })
	pages := sync.OnceValue(func() map[string]func() *asset {
		list := map[string]func() *asset{}
		for _, g := range data().Groups {
			list[g.Slug] = sync.OnceValue(func() *asset { return newAsset(media, data().page(g)) })
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

// docsTemplate is part of the program, so a mistake in it is a fault.
var docsTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Parse(string(docsFile("page.html"))))
})

// page renders the page of a group, or that which leads to them.
func (d docsData) page(of *docsGroup) []byte {
	d.Group = of
	if of != nil {
		d.Up = "../"
	}
	var out bytes.Buffer
	if err := docsTemplate().Execute(&out, d); err != nil {
		panic(fmt.Sprintf("the page of the documentation: %v", err))
	}
	return out.Bytes()
}
