package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// projectPage adds a page below a project. "GET tree/*" is the part after
// "/-/".
func (w *Web) projectPage(pattern string, who access, do func(*visit, project.Ref) error) {
	w.below(w.projectPages, "/{project}", pattern, who, do)
}

// groupPage adds a page below a group: "GET settings" is /groups/x/-/settings.
func (w *Web) groupPage(pattern string, who access, do func(*visit, project.Ref) error) {
	w.below(w.groupPages, "/groups/{group}", pattern, who, do)
}

func (w *Web) below(table *chi.Mux, place, pattern string, who access, do func(*visit, project.Ref) error) {
	method, path, _ := strings.Cut(pattern, " ")
	name := place + "/-/" + path
	w.pages = append(w.pages, route{method, name, who})
	table.Method(method, "/"+path, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		place := r.Context().Value(placeKey{}).(project.Ref)
		w.handler(name, who, func(v *visit) error { return do(v, place) })(rw, r)
	}))
}

// placeKey is where a request keeps the project or group whose page it wants.
type placeKey struct{}

// splitPlace separates the path of a project or group from the page. The images
// of pipeline badges have an address without "/-/" too, which the documentation
// of the API uses; "badges" is reserved in paths of projects.
func splitPlace(path string) (place, page string, found bool) {
	path = strings.Trim(path, "/")
	if in, image, ok := strings.Cut(path, "/badges/"); ok && !strings.Contains(in+"/", "/-/") && slices.Contains([]string{"pipeline.svg", "coverage.svg"}, image[strings.LastIndex(image, "/")+1:]) {
		return in, "badges/" + image, true
	}
	return strings.Cut(path, "/-/")
}

// findPlace serves what no table has: pages of a project or a group, and
// those themselves.
func (w *Web) findPlace(rw http.ResponseWriter, r *http.Request) {
	place, page, found := splitPlace(r.URL.Path)
	if !found || !validPath(place) {
		w.handler("place", anyone, w.place)(rw, r)
		return
	}
	table := w.projectPages
	if group, ok := strings.CutPrefix(place, "groups/"); ok {
		place, table = group, w.groupPages
	}
	ctx := context.WithValue(r.Context(), placeKey{}, project.Ref(place))
	// A separate router matches the part after "/-/", with its own
	// path parameters.
	routes := chi.NewRouteContext()
	routes.RoutePath = "/" + page
	table.ServeHTTP(rw, r.WithContext(context.WithValue(ctx, chi.RouteCtxKey, routes)))
}

// noPage answers for a page that no table has.
func (w *Web) noPage() http.HandlerFunc {
	return w.handler("place", anyone, func(*visit) error { return errs.NotFound("") })
}

// rest returns the part of the path that matches * in the pattern of a page.
func (v *visit) rest() string { return chi.URLParam(v.r, "*") }

// number returns a number in the path of a page. NotFound if it is not a
// number.
func (v *visit) number(name string) (int64, error) {
	n, err := strconv.ParseInt(chi.URLParam(v.r, name), 10, 64)
	if err != nil || n < 1 {
		return 0, errs.NotFound("")
	}
	return n, nil
}

// place finds what a path names that no table has: a user, a group or a
// project.
func (w *Web) place(v *visit) error {
	path := strings.Trim(v.r.URL.Path, "/")
	if path == "" || !validPath(path) {
		return errs.NotFound("")
	}
	if v.r.Method != http.MethodGet {
		return errs.NotFound("")
	}
	if strings.HasSuffix(v.r.URL.Path, "/") {
		return v.redirect(local(strings.TrimRight(v.r.URL.EscapedPath(), "/")))
	}
	if !strings.Contains(path, "/") {
		err := w.group(v, project.Ref(path))
		if !errs.Is(err, errs.KindNotFound) {
			return err
		}
		if _, moved := isMoved(err); moved {
			return err
		}
		return w.profile(v, user.Ref(path))
	}
	err := w.project(v, project.Ref(path))
	if !errs.Is(err, errs.KindNotFound) {
		return err
	}
	if _, moved := isMoved(err); moved {
		return err
	}
	err = w.group(v, project.Ref(path))
	if !errs.Is(err, errs.KindNotFound) {
		return err
	}
	if _, moved := isMoved(err); moved {
		return err
	}
	if to := withDash(v.r.URL); to != "" {
		return v.redirect(to)
	}
	return err
}

// legacyPages are the first words of pages of a project that had addresses without
// "/-/". Tools and old texts still link to them.
var legacyPages = map[string]bool{
	"archive": true, "blame": true, "blob": true, "boards": true, "branches": true, "commit": true, "commits": true, "compare": true, "environments": true,
	"find_file": true, "issues": true, "jobs": true, "labels": true, "merge_requests": true, "milestones": true, "pipelines": true, "raw": true,
	"releases": true, "snippets": true, "tags": true, "tree": true, "wikis": true,
}

// withDash is the address of a page of a project that was asked for without "/-/";
// empty for other addresses. Whether there is such a project is checked by the page.
func withDash(u *url.URL) string {
	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	for i := 2; i < len(parts); i++ { // behind a namespace and a project
		if legacyPages[parts[i]] {
			to := "/" + strings.Join(parts[:i], "/") + "/-/" + strings.Join(parts[i:], "/")
			if u.RawQuery != "" {
				to += "?" + u.RawQuery
			}
			return local(to)
		}
	}
	return ""
}

// validPath refuses paths that no project or group can have, before the
// database is queried. A number would be interpreted as an ID.
func validPath(path string) bool {
	return len(path) < 4096 && clean(path) && strings.Trim(path, "0123456789") != ""
}

// pathTo joins the parts of an address below a project, each as it must be
// written: names of files and branches may hold anything.
func pathTo(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		for _, segment := range strings.Split(strings.Trim(part, "/"), "/") {
			if segment != "" {
				b.WriteString("/" + url.PathEscape(segment))
			}
		}
	}
	return b.String()
}
