package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"svc/internal/httpreq"

	"github.com/go-chi/chi/v5"
)

//go:embed static
var static embed.FS

// assets are the static files of pages. The name of each contains a hash of its
// content, so that browsers can cache it forever.
type assets struct {
	names  map[string]string // app.css -> app-1f2e3d4c.css
	byName map[string]asset
}

type asset struct {
	kind string
	text []byte        // nil if it is stored compressed
	gzip func() []byte // empty if it would not be shorter
}

// loadAssets returns the assets. They are part of the program, so all servers of a
// process share them. A file is compressed when it is requested for the first
// time: all of them together take longer than the rest of a start.
var loadAssets = sync.OnceValue(func() *assets {
	a := &assets{names: map[string]string{}, byName: map[string]asset{}}
	entries, err := static.ReadDir("static")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(text)
		ext := path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext) + "-" + hex.EncodeToString(sum[:4]) + ext
		a.names[e.Name()] = name
		a.byName[name] = asset{
			kind: map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}[ext],
			text: text, gzip: sync.OnceValue(func() []byte { return compress(text) }),
		}
	}
	a.loadVendor()
	return a
})

// loadVendor adds the third-party libraries, which are stored compressed.
func (a *assets) loadVendor() {
	files, err := fs.Glob(static, "static/vendor/*.js.gz")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, file := range files {
		packed, err := static.ReadFile(file)
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(packed)
		of := strings.TrimSuffix(path.Base(file), ".gz")
		name := strings.TrimSuffix(of, ".js") + "-" + hex.EncodeToString(sum[:4]) + ".js"
		a.names[of] = name
		a.byName[name] = asset{kind: "text/javascript; charset=utf-8", gzip: func() []byte { return packed }}
	}
}

func compress(text []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(text)                                  // writes to memory do not fail
	_ = z.Close()
	if b.Len() >= len(text) {
		return nil
	}
	return b.Bytes()
}

// path returns the URL of a file. An unknown name is a mistake in a template,
// which the tests find.
func (a *assets) path(name string) string { return "/assets/" + a.names[name] }

func (w *Web) assetRoutes() {
	w.router.Get("/assets/{name}", w.asset)
	w.router.Get("/favicon.ico", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, w.assets.path("favicon.svg"), http.StatusFound)
	})
	w.router.Get("/robots.txt", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = rw.Write([]byte("User-agent: *\nDisallow: /api/\nDisallow: /-/\nDisallow: /users/\nDisallow: /*/-/\n"))
	})
}

func (w *Web) asset(rw http.ResponseWriter, r *http.Request) {
	a, ok := w.assets.byName[chi.URLParam(r, "name")]
	if !ok {
		http.NotFound(rw, r)
		return
	}
	h := rw.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	text := a.text
	if httpreq.AcceptsGzip(r) && len(a.gzip()) > 0 {
		h.Set("Content-Encoding", "gzip")
		text = a.gzip()
	}
	if text == nil { // decompressed for a client that does not accept gzip
		unpacked, err := gzip.NewReader(bytes.NewReader(a.gzip()))
		if err == nil {
			_, _ = io.Copy(rw, unpacked)
		}
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = rw.Write(text)
}
