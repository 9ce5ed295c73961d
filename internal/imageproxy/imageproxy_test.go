package imageproxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/blob"
	"svc/internal/errs"
	"svc/internal/limit"
)

func picture(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb returns a small PNG that declares a number of pixels.
func bomb(t *testing.T, width, height uint32) []byte {
	t.Helper()
	b := picture(t)
	binary.BigEndian.PutUint32(b[16:], width)
	binary.BigEndian.PutUint32(b[20:], height)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

// proxy returns a proxy and its policy.
func proxy(t *testing.T) (*Service, *Policy) {
	t.Helper()
	store, err := blob.Open(t.Context(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	policy := &Policy{Enabled: true, Local: true}
	return New(Deps{
		Store: store, Key: []byte("key"), Site: "https://own.example", Limits: limit.New(limit.Deps{Now: time.Now}), Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Policy: func(context.Context) (Policy, error) { return *policy, nil },
	}), policy
}

// get requests an image like a page does.
func get(t *testing.T, s *Service, address string) (*Image, error) {
	t.Helper()
	lead, err := s.Rewriter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	part := strings.Split(lead(address), "/")
	if len(part) != 5 {
		t.Fatalf("%s is not proxied: %q", address, part)
	}
	return s.Get(t.Context(), part[3], part[4], "1")
}

// icon is the header and directory of an icon with one image, which follows.
const icon = "\x00\x00\x01\x00\x01\x00" + "\x10\x10\x00\x00\x01\x00\x20\x00\x64\x00\x00\x00\x16\x00\x00\x00"

func TestGet(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	answers := map[string]string{
		"/a.png": string(picture(t)), "/wrong.png": "<html><script>alert(1)</script></html>", "/text": "text",
		"/a.svg":    "\ufeff<?xml version=\"1.0\"?>\n<!-- a <b> -->\n<!DOCTYPE svg>\n<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>",
		"/html.svg": "<!-- --><html><svg></svg></html>", "/svgx": "<svgx/>", "/open.svg": "<!-- <svg>",
		"/small.webp": "RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x01\x00\x00....",
		"/huge.webp":  "RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff....",
		"/huge2.webp": "RIFF\x1e\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f\xff\xff\xff\x0f..........",
		"/short.webp": "RIFF\x1e\x00\x00\x00WEBPVP8X",
		"/huge.bmp":   "BM....\x00\x00\x00\x00....\x28\x00\x00\x00\xff\xff\x00\x00\xff\xff\x00\x00....",
		"/small.ico":  icon + string(picture(t)), "/huge.ico": icon + string(bomb(t, 60000, 60000)), "/short.ico": icon[:20], "/far.ico": icon,
		"/bitmap.ico": icon + "\x28\x00\x00\x00\x10\x00\x00\x00\x20\x00\x00\x00", "/wide.ico": icon + "\x28\x00\x00\x00\xff\xff\xff\x7f\x20\x00\x00\x00",
		"/small.avif": "....ftypavif....\x00\x00\x00\x14ispe\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x02", "/none.avif": "....ftypavif....",
		"/huge.avif": "....ftypavis....\x00\x00\x00\x14ispe\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x02ispe\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\xff\xff",
		"/huge.png":  string(bomb(t, 60000, 60000)), "/overflow.png": string(bomb(t, 1<<31-1, 1<<31-1)), "/long.png": string(picture(t)) + strings.Repeat("x", MaxSize),
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/a.png", http.StatusFound)
			return
		}
		body, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "image/png") // the content type is ignored
		_, _ = w.Write([]byte(body))
	}))
	defer site.Close()
	s, _ := proxy(t)
	for path, want := range map[string]string{
		"/a.png": "image/png", "/moved": "image/png", "/a.svg": SVG, "/wrong.png": "", "/text": "", "/small.webp": "image/webp", "/huge.webp": "", "/huge2.webp": "", "/short.webp": "", "/huge.bmp": "", "/html.svg": "", "/svgx": "", "/open.svg": "",
		"/small.ico": "image/x-icon", "/huge.ico": "", "/short.ico": "", "/far.ico": "", "/bitmap.ico": "image/x-icon", "/wide.ico": "",
		"/small.avif": "image/avif", "/none.avif": "", "/huge.avif": "",
		"/huge.png": "", "/overflow.png": "", "/long.png": "", "/none": "",
	} {
		got, err := get(t, s, site.URL+path)
		switch {
		case want == "" && !errs.Is(err, errs.KindNotFound):
			t.Errorf("%s: %v, %v", path, got, err)
		case want != "" && (err != nil || got.Type != want):
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	// Stored images and failed fetches are not fetched again.
	before := asked.Load()
	for _, path := range []string{"/a.png", "/wrong.png"} {
		if got, err := get(t, s, site.URL+path); path == "/a.png" && (err != nil || string(got.Content) != answers[path]) {
			t.Errorf("again: %v, %v", got, err)
		}
	}
	if asked.Load() != before {
		t.Error("a site was asked twice for an image")
	}
	// After a day, images are fetched again.
	s.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	if _, err := get(t, s, site.URL+"/a.png"); err != nil || asked.Load() != before+1 {
		t.Errorf("an old image was not fetched again: %v", err)
	}
	// Local addresses are refused unless the setting allows them.
	s, policy := proxy(t)
	policy.Local = false
	if got, err := get(t, s, site.URL+"/a.png"); !errs.Is(err, errs.KindNotFound) {
		t.Errorf("a local address: %v, %v", got, err)
	}
	// A signature is valid for one URL, and the setting disables the proxy.
	policy.Local = true
	if _, err := s.Get(t.Context(), s.sign("http://a/"), fmt.Sprintf("%x", "http://b/"), "1"); !errs.Is(err, errs.KindNotFound) {
		t.Errorf("a wrong signature: %v", err)
	}
	policy.Enabled = false
	if _, err := s.Get(t.Context(), s.sign(site.URL+"/a.png"), fmt.Sprintf("%x", site.URL+"/a.png"), "1"); !errs.Is(err, errs.KindNotFound) {
		t.Errorf("switched off: %v", err)
	}
}

// TestBudget checks that the fetches of a caller are limited, and that callers that
// wait for the same image share one request.
func TestBudget(t *testing.T) {
	t.Parallel()
	s, policy := proxy(t)
	policy.Local = false // nothing is sent
	now := time.Now()
	s.Limits = limit.New(limit.Deps{Now: func() time.Time { return now }})
	refused := 0
	for i := range 200 {
		_, err := get(t, s, fmt.Sprintf("http://127.0.0.1:1/%d.png", i))
		if _, ok := errors.AsType[limit.Refused](err); ok {
			refused++
		}
	}
	if refused != 200-fetches.Requests {
		t.Errorf("%d were refused", refused)
	}

	s, _ = proxy(t)
	var asked atomic.Int64
	begun, end := make(chan bool), make(chan bool)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		begun <- true
		<-end
		_, _ = w.Write(picture(t))
	}))
	defer site.Close()
	first := make(chan error)
	go func() { _, err := get(t, s, site.URL+"/x"); first <- err }()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(ctx, s.sign(site.URL+"/x"), fmt.Sprintf("%x", site.URL+"/x"), "2"); err == nil {
		t.Error("one who has left got an image")
	}
	close(end)
	if err := <-first; err != nil || asked.Load() != 1 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
}

func TestRewriter(t *testing.T) {
	t.Parallel()
	s, policy := proxy(t)
	policy.Allowed = []string{"img.example.org", "*.example.net"}
	lead, err := s.Rewriter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"/g/p/-/raw/main/a.png": "/g/p/-/raw/main/a.png", "https://own.example/a.png": "/a.png", "": "",
		"https://own.example//evil.example/a.png": "/evil.example/a.png", `https://own.example/\evil.example/a.png`: "/evil.example/a.png",
		`/\evil.example/a.png`: "proxy", `\\evil.example/a.png`: "proxy", "/": "/",
		"https://img.example.org/a.png": "https://img.example.org/a.png", "https://a.b.example.net/x": "https://a.b.example.net/x",
		"http://img.example.org/a.png": "proxy", "https://evilexample.net/x": "proxy", "https://img.example.org.evil/x": "proxy", "//cdn.example/x.png": "proxy",
		"https://user@img.example.org/x": "proxy", "data:image/png;base64,AAAA": "", "javascript:alert(1)": "", "ftp://example.org/x": "",
		"https://example.org/" + strings.Repeat("x", maxURL): "", "http://%zz": "",
	} {
		got := lead(address)
		if strings.HasPrefix(got, "/-/image_proxy/") {
			got = "proxy"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if got, _ := s.Sources(t.Context()); got != " https://img.example.org https://*.example.net" {
		t.Errorf("sources: %q", got)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	s, _ := proxy(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(picture(t)) }))
	defer site.Close()
	for i := range 3 {
		if _, err := get(t, s, fmt.Sprintf("%s/%d", site.URL, i)); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int) {
		for _, err := range s.Store.List(t.Context(), Prefix) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	for _, at := range []struct {
		after time.Duration
		want  int
	}{{0, 3}, {keptFor + time.Hour, 0}} {
		s.Now = func() time.Time { return time.Now().Add(at.after) }
		if err := s.Sweep(t.Context()); err != nil || count() != at.want {
			t.Errorf("after %v: %d are kept, %v", at.after, count(), err)
		}
	}
	if s.stored != 0 {
		t.Errorf("%d bytes are counted", s.stored)
	}
	// If the storage limit is reached, images are served but not stored.
	s.Now, s.stored = time.Now, maxStored
	if got, err := get(t, s, site.URL+"/9"); err != nil || got == nil || count() != 0 {
		t.Errorf("without room: %v, %v", got, err)
	}
}

func FuzzKind(f *testing.F) {
	f.Add([]byte("<svg>"))
	f.Add([]byte("<!----><?x?><svg "))
	f.Fuzz(func(t *testing.T, content []byte) {
		if kind := Kind(content); kind == "text/html" || strings.HasPrefix(kind, "text/") {
			t.Errorf("%q", kind)
		}
	})
}
