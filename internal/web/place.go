package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"svc/internal/activity"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/notify"
	"svc/internal/project"
	"svc/internal/user"
)

// projectPage adds a page below a project: "GET tree/*" is what stands behind
// "/-/" there.
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

// splitPlace tells the path of a project or group from the page of it.
func splitPlace(path string) (place, page string, found bool) {
	return strings.Cut(strings.Trim(path, "/"), "/-/")
}

// findPlace serves what no table has: pages of a project or a group, and
// those themselves.
func (w *Web) findPlace(rw http.ResponseWriter, r *http.Request) {
	place, page, found := splitPlace(r.URL.Path)
	if !found || !validPath(place) {
		w.handler("place", anybody, w.place)(rw, r)
		return
	}
	table := w.projectPages
	if group, ok := strings.CutPrefix(place, "groups/"); ok {
		place, table = group, w.groupPages
	}
	ctx := context.WithValue(r.Context(), placeKey{}, project.Ref(place))
	// A table of its own matches what is behind "/-/", with what it takes from
	// the path as parameters of its own.
	routes := chi.NewRouteContext()
	routes.RoutePath = "/" + page
	table.ServeHTTP(rw, r.WithContext(context.WithValue(ctx, chi.RouteCtxKey, routes)))
}

// noPage answers for a page that no table has.
func (w *Web) noPage() http.HandlerFunc {
	return w.handler("place", anybody, func(*visit) error { return errs.NotFound("") })
}

// rest is what the * of a page's pattern stands for.
func (v *visit) rest() string { return chi.URLParam(v.r, "*") }

// number is a number in the path of a page; what is none is not found.
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
	return w.group(v, project.Ref(path))
}

// validPath refuses what can be no path of ours before the database is asked.
// A number would be taken for an id.
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

// profileView is what is shown of a user.
type profileView struct {
	User     *user.User
	Whole    bool // not only the name
	Self     bool
	Tab      string // projects or activity
	Projects []*project.Project
	Events   []eventView
	Calendar *calendar
	Pager    pager
}

func (profileView) view() string    { return "user/profile" }
func (p profileView) title() string { return p.User.Name }

func (w *Web) profile(v *visit, ref user.Ref) error {
	u, err := w.Users.Find(v, v.actor, ref)
	if err != nil {
		return err
	}
	if u.Kind == user.Ghost || !strings.EqualFold(u.Username, string(ref)) {
		return errs.NotFound("User")
	}
	p := profileView{User: u, Whole: user.MayReadProfile(v.actor, u), Self: v.actor.Is(u.ID)}
	if p.Whole {
		if p.Calendar, err = w.calendar(v, u); err != nil {
			return err
		}
	}
	if p.Tab = v.param("tab"); p.Tab == "activity" && p.Whole {
		page, err := w.Activity.OfProfile(v, v.actor, u, activity.Filter{}, v.paging())
		if err != nil {
			return err
		}
		if p.Events, err = w.eventViews(v, page.Items); err != nil {
			return err
		}
		p.Pager = v.pager(page.More)
		return v.show(p)
	}
	p.Tab = "projects"
	found, err := w.Projects.UserProjects(v, v.actor, ref, project.Filter{}, orders()[""], v.paging())
	if err != nil {
		return err
	}
	p.Projects, p.Pager = found.Items, v.pager(found.More)
	return v.show(p)
}

// groupHead is what every page of a group begins with.
type groupHead struct {
	Group    *project.Namespace
	Parents  []crumb
	Tab      string // projects, subgroups, members or settings
	MayAdd   bool
	MayNest  bool
	MaySet   bool // the visitor may change its settings
	MayPlan  bool // and its labels, milestones and boards
	Wiki     bool // he may read its wiki
	SignedIn bool
}

func (w *Web) groupHead(v *visit, ref project.Ref, tab string) (groupHead, error) {
	n, err := w.Projects.Group(v, v.actor, ref)
	if err != nil {
		return groupHead{}, err
	}
	h := groupHead{Group: n, Parents: above(crumbs(n.FullPath, n.FullName)), Tab: tab, SignedIn: v.session != nil}
	may, err := w.Projects.RightsIn(v, v.actor, n)
	h.MayAdd, h.MayNest, h.MaySet, h.MayPlan = may.AddProjects, may.AddGroups, may.ChangeSettings, may.Plan
	if err == nil {
		h.Wiki, err = w.Wikis.Sees(v, v.actor, n)
	}
	return h, err
}

// groupView is a group with what is in it.
type groupView struct {
	groupHead
	Subgroups         []*project.Namespace
	Projects          []*project.Project
	Members           []*project.Member
	Pager             pager
	Search            string
	Standing          project.MembershipState
	NotificationLevel notify.Level // of the visitor, in this project or group
}

// crumb is a step of the way to a page.
type crumb struct{ Name, Path string }

func (groupView) view() string    { return "group/group" }
func (p groupView) title() string { return p.Group.FullName }

func (w *Web) group(v *visit, ref project.Ref) error {
	h, err := w.groupHead(v, ref, v.param("tab"))
	if err != nil {
		return err
	}
	p := groupView{groupHead: h, Search: v.param("search")}
	if h.SignedIn {
		at := project.Place{Ref: ref, Group: true}
		if p.Standing, err = w.Projects.MembershipState(v, v.actor, at); err != nil {
			return err
		}
		if p.NotificationLevel, err = w.Notify.LevelAt(v, v.actor, at); err != nil {
			return err
		}
	}
	more := false
	switch p.Tab {
	case "subgroups":
		var page db.Page[*project.Namespace]
		page, err = w.Projects.Subgroups(v, v.actor, ref, false, project.GroupsFilter{AllAvailable: true, Search: p.Search}, project.Sort{By: "name"}, v.paging())
		p.Subgroups, more = page.Items, page.More
	case "members":
		var page db.Page[*project.Member]
		page, err = w.Projects.Members(v, v.actor, project.Place{Ref: ref, Group: true}, project.MemberFilter{All: true, Query: p.Search}, v.paging())
		p.Members, more = page.Items, page.More
	default:
		p.Tab = "projects"
		var page db.Page[*project.Project]
		page, err = w.Projects.GroupProjects(v, v.actor, ref, project.GroupFilter{WithShared: true}, project.Filter{Search: p.Search}, orders()[""], v.paging())
		p.Projects, more = page.Items, page.More
	}
	if err != nil {
		return err
	}
	p.Pager = v.pager(more)
	return v.show(p)
}

// above leaves out the last step.
func above(list []crumb) []crumb { return list[:len(list)-1] }

// crumbs are the steps to a group: the names of all above it, and its own.
func crumbs(fullPath, fullName string) []crumb {
	paths, names := strings.Split(fullPath, "/"), strings.Split(fullName, " / ")
	var list []crumb
	for i := range paths {
		name := paths[i]
		if len(names) == len(paths) {
			name = names[i]
		}
		list = append(list, crumb{name, "/" + strings.Join(paths[:i+1], "/")})
	}
	return list
}
