package web

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// projectPage adds a page of a project. The pattern "GET tree/*" is for the path
// after "/-/".
func (w *Web) projectPage(pattern string, who access, do func(*visit, project.Ref) error) {
	w.below(w.projectPages, "/{project}", pattern, who, do)
}

// groupPage adds a page of a group: "GET settings" is /groups/x/-/settings.
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

// placeKey is the context key of the project or group of a request.
type placeKey struct{}

// uploadPath matches the path of an uploaded file after that of its project.
var uploadPath = regexp.MustCompile(`^(.+)/(uploads/[0-9a-f]{32}/[^/]+)$`)

// splitPlace separates the path of a project or group from that of the page.
// Pipeline badges also have a path without "/-/", which the API documentation uses;
// "badges" is reserved in paths of projects. So have uploaded files: tools append the
// "url" that the API returns for a file to the URL of the project.
func splitPlace(path string) (place, page string, found bool) {
	path = strings.Trim(path, "/")
	if in, image, ok := strings.Cut(path, "/badges/"); ok && !strings.Contains(in+"/", "/-/") && slices.Contains([]string{"pipeline.svg", "coverage.svg"}, image[strings.LastIndex(image, "/")+1:]) {
		return in, "badges/" + image, true
	}
	if m := uploadPath.FindStringSubmatch(path); m != nil && !strings.Contains(m[1]+"/", "/-/") {
		return m[1], m[2], true
	}
	return strings.Cut(path, "/-/")
}

// findPlace serves paths that are in no route table: projects, groups and users, and
// the pages of projects and groups.
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

// noPage responds that a page does not exist.
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

// place serves a path that is in no route table: a user, a group or a project.
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
	if repository, ok := strings.CutSuffix(path, ".git"); ok && repository != "" {
		return v.redirect(w.pageOfRepository(v, repository))
	}
	if group, ok := strings.CutPrefix(path, "groups/"); ok { // the URL that the API returns
		return w.group(v, project.Ref(group))
	}
	if !strings.Contains(path, "/") {
		err := w.group(v, project.Ref(path))
		if !errs.Is(err, errs.KindNotFound) {
			return err
		}
		if _, moved := isMoved(err); moved {
			return err
		}
		err = w.profile(v, user.Ref(path))
		if keys := strings.HasSuffix(path, ".keys") || strings.HasSuffix(path, ".gpg"); keys && errs.Is(err, errs.KindNotFound) {
			return w.userKeys(v, path)
		}
		return err
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

// pageOfRepository returns the URL of the page for a clone URL without ".git":
// of a project, a wiki or a snippet. The page checks whether it exists.
func (w *Web) pageOfRepository(v *visit, path string) string {
	if place, ok := strings.CutSuffix(path, ".wiki"); ok {
		if _, err := w.Projects.RequireGroup(v, v.actor, project.Ref(place), project.NoAccess); err == nil {
			place = "groups/" + place
		}
		return pathTo(place) + "/-/wikis"
	}
	if id, ok := strings.CutPrefix(path, "snippets/"); ok {
		return pathTo("-/snippets", id)
	}
	if in, id, ok := strings.Cut(path, "/snippets/"); ok {
		return pathTo(in) + "/-/snippets" + pathTo(id)
	}
	return pathTo(path)
}

// legacyPages are the first words of pages of a project that once had URLs without
// "/-/". Tools and old texts still link to them.
var legacyPages = map[string]bool{
	"archive": true, "blame": true, "blob": true, "boards": true, "branches": true, "commit": true, "commits": true, "compare": true, "environments": true,
	"find_file": true, "issues": true, "jobs": true, "labels": true, "merge_requests": true, "milestones": true, "pipelines": true, "raw": true,
	"releases": true, "snippets": true, "tags": true, "tree": true, "wikis": true,
}

// withDash returns the URL with "/-/" for a page of a project that was requested
// without it; empty for other URLs. The page checks whether the project exists.
func withDash(u *url.URL) string {
	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	if slices.Contains(parts, "-") {
		return "" // a redirect would lead here again
	}
	for i := 2; i < len(parts); i++ { // after a namespace and a project
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

// pathTo joins the parts of a URL path below a project and escapes them: names of
// files and branches may contain any characters.
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
