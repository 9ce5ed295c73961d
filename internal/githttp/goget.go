package githttp

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"

	"svc/internal/errs"
	"svc/internal/project"
)

// maxGoGetDepth bounds the prefixes of an import path that are looked up. It is
// more than the depth of any group.
const maxGoGetDepth = 24

// importPath is what the path of a module may consist of, after the host.
var importPath = regexp.MustCompile(`^[A-Za-z0-9._~/-]{1,1000}$`)

// asksGoGet reports whether a request is one of the go command, which wants to
// know the repository of an import path.
func asksGoGet(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !strings.Contains(r.URL.RawQuery, "go-get=1") {
		return false
	}
	path := strings.Trim(r.URL.Path, "/")
	return r.URL.Query().Get("go-get") == "1" && strings.Contains(path, "/") && !strings.Contains(path, "/-/") && importPath.MatchString(path)
}

// goGet answers the go command with the repository of an import path: that of the
// project which the path names or begins with. For a caller who cannot see such a
// project the first two elements are taken to be one, whether it exists or not:
// the go command asks git then, which asks for credentials.
func (x *exchange) goGet() {
	if err := x.authenticate(); err != nil {
		x.refuse(err)
		return
	}
	elements := strings.Split(strings.Trim(x.r.URL.Path, "/"), "/")
	found := strings.Join(elements[:2], "/")
	for n := 2; n <= min(len(elements), maxGoGetDepth); n++ {
		p, err := x.visible(project.Ref(strings.Join(elements[:n], "/")))
		if err == nil {
			found = p.FullPath
			break
		}
		if !errs.IsRefusal(err) {
			x.refuse(err)
			return
		}
	}
	root := strings.TrimSuffix(x.URL, "/")
	_, host, _ := strings.Cut(root, "://")
	x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	noCache(x.w.Header())
	_, _ = fmt.Fprintf(x.w, "<!doctype html><html><head><meta name=\"go-import\" content=\"%s git %s.git\"></head><body>go get %[1]s</body></html>\n",
		html.EscapeString(host+"/"+found), html.EscapeString(root+"/"+found)) // the client may be gone
}

// visible returns a project that the caller can see.
func (x *exchange) visible(ref project.Ref) (*project.Project, error) {
	if x.by.Job != nil {
		_, p, err := x.Jobs.JobOpens(x.r.Context(), x.by, ref)
		return p, err
	}
	return x.Projects.Get(x.r.Context(), x.by, ref)
}
