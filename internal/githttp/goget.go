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

// maxGoGetDepth is the maximum number of prefixes of an import path that are looked
// up. It exceeds the maximum depth of groups.
const maxGoGetDepth = 24

// importPath matches the valid paths of modules, without the host.
var importPath = regexp.MustCompile(`^[A-Za-z0-9._~/-]{1,1000}$`)

// asksGoGet reports whether a request is from the go command, which asks for the
// repository of an import path.
func asksGoGet(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !strings.Contains(r.URL.RawQuery, "go-get=1") {
		return false
	}
	path := strings.Trim(r.URL.Path, "/")
	return r.URL.Query().Get("go-get") == "1" && strings.Contains(path, "/") && !strings.Contains(path, "/-/") && importPath.MatchString(path)
}

// goGet responds to the go command with the repository of an import path: that of
// the project whose path is the import path or a prefix of it. If the caller can see
// no such project, the first two elements are returned as the project, whether it
// exists or not: the go command then runs git, which asks for credentials.
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
		html.EscapeString(host+"/"+found), html.EscapeString(root+"/"+found)) // the client may have disconnected
}

// visible returns a project that the caller can see.
func (x *exchange) visible(ref project.Ref) (*project.Project, error) {
	if x.by.Job != nil {
		_, p, err := x.Jobs.JobOpens(x.r.Context(), x.by, ref)
		return p, err
	}
	return x.Projects.Get(x.r.Context(), x.by, ref)
}
