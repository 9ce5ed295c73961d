package sites

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"svc/internal/errs"
	"svc/internal/httpreq"
	"svc/internal/pages"
	"svc/internal/pages/pack"
)

// show responds with a file of the site or with a redirect.
func (v *visit) show() error {
	path, ok := plain(v.r)
	if !ok {
		return v.missing()
	}
	version, prefix, rest := v.route.Pick(path[len(v.route.Base):])
	if version == nil {
		return v.missing()
	}
	c, err := v.d.Pages.Open(v.r.Context(), version)
	if err != nil {
		return err
	}
	defer c.Close()
	s := &site{visit: v, content: c, version: version, base: path[:len(v.route.Base)] + prefix}
	return s.answer(path, rest)
}

// plain returns the path of a request. It returns false if programs could interpret
// the path in different ways.
func plain(r *http.Request) (string, bool) {
	path := r.URL.Path
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\\\x00") {
		return "", false
	}
	if raw := r.URL.RawPath; raw != "" {
		lower := strings.ToLower(raw)
		if strings.Contains(lower, "%2f") || strings.Contains(lower, "%5c") {
			return "", false
		}
	}
	if strings.Contains(path, "//") || strings.Contains(path, "/./") || strings.Contains(path, "/../") ||
		strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..") {
		return "", false
	}
	return path, true
}

// site is a request to a version of a site.
type site struct {
	*visit
	content *pages.Content
	version *pages.Version
	base    string // path of the site on the host
}

// answer responds to a request for a path; rest is the path below the base.
func (s *site) answer(path, rest string) error {
	if rest == "" { // relative links on the page would lead out of the site
		return s.toSlash()
	}
	if f, slash := s.find(rest); f != nil {
		return s.file(f, http.StatusOK)
	} else if slash {
		return s.toSlash()
	}
	scheme := "http"
	if s.d.Secure(s.r) {
		scheme = "https"
	}
	if to, ok := s.content.Rules.Find(scheme, s.host, path); ok {
		if to.Status != http.StatusOK {
			if !strings.Contains(to.To, "?") {
				to.To += query(s.r)
			}
			return s.leave(to.To, to.Status)
		}
		if f := s.rewritten(to.To); f != nil {
			return s.file(f, http.StatusOK)
		}
	}
	err := s.missing()
	if f := s.content.Find("404.html"); f != nil && errs.Is(err, errs.KindNotFound) {
		return s.file(f, http.StatusNotFound)
	}
	return err
}

// find returns the file for a path. slash reports whether the path is a directory
// with an index, without a trailing slash.
func (s *site) find(rest string) (f *pack.File, slash bool) {
	name := strings.TrimPrefix(rest, "/")
	if name == "" || strings.HasSuffix(name, "/") {
		return s.content.Find(name + "index.html"), false
	}
	if f := s.content.Find(name); f != nil {
		return f, false
	}
	if s.content.Dir(name) && s.content.Find(name+"/index.html") != nil {
		return nil, true
	}
	return s.content.Find(name + ".html"), false
}

// rewritten returns the file that a rule with status 200 serves.
func (s *site) rewritten(to string) *pack.File {
	u, err := url.Parse(to)
	if err != nil {
		return nil
	}
	rest, within := strings.CutPrefix(u.Path, s.base)
	if !within || rest != "" && rest[0] != '/' {
		return nil
	}
	f, slash := s.find(rest)
	if slash {
		f, _ = s.find(rest + "/")
	}
	return f
}

func (s *site) toSlash() error {
	return s.leave(s.r.URL.EscapedPath()+"/"+query(s.r), http.StatusFound)
}

// file sends a file, compressed if the client accepts it.
func (s *site) file(f *pack.File, status int) error {
	h := s.w.Header()
	kind := pack.Type(f.Name)
	if kind != "" {
		h["Content-Type"] = []string{kind}
	}
	if s.route.Open() {
		h["Cache-Control"] = cacheAll
		h["Access-Control-Allow-Origin"] = anyOrigin
	} else {
		h["Cache-Control"] = cacheOwn
		h["Vary"] = varyCookie
	}
	part, tag := f.Plain, f.Tag
	if kind != "" && (f.Brotli != nil || f.Gzip != nil) { // else the type is detected from the content
		h.Add("Vary", "Accept-Encoding")
		if copied, encoding := s.encoded(f); copied != nil {
			part, tag = *copied, tag+"-"+encoding
			h["Content-Encoding"] = []string{encoding}
			h["Content-Length"] = []string{strconv.FormatInt(part.Size, 10)}
		}
	}
	body := s.content.Read(part)
	if status != http.StatusOK {
		h["Content-Length"] = []string{strconv.FormatInt(part.Size, 10)}
		s.w.WriteHeader(status)
		if s.r.Method != http.MethodHead {
			_, _ = io.Copy(s.w, body) // fails if the client disconnects
		}
		return nil
	}
	h["Etag"] = []string{`"` + tag + `"`}
	http.ServeContent(s.w, s.r, "", s.version.At, body)
	return nil
}

// Header values that many responses share.
var (
	cacheAll   = []string{"max-age=600"}
	cacheOwn   = []string{"private, no-cache"}
	anyOrigin  = []string{"*"}
	varyCookie = []string{"Cookie"}
)

// encoded returns the compressed copy that the client prefers, with its content
// coding. It returns nil for range requests, which refer to the uncompressed file.
func (s *site) encoded(f *pack.File) (*pack.Part, string) {
	accept := s.r.Header.Get("Accept-Encoding")
	if accept == "" || s.r.Header.Get("Range") != "" {
		return nil, ""
	}
	br, gz := httpreq.Encodings(accept)
	switch {
	case f.Brotli != nil && br > 0 && (br >= gz || f.Gzip == nil):
		return f.Brotli, "br"
	case f.Gzip != nil && gz > 0:
		return f.Gzip, "gzip"
	}
	return nil, ""
}
