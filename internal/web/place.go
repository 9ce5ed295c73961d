package web

import (
	"net/http"
	"net/url"
	"strings"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/user"
)

// projectActions are the pages below a project: what stands behind "/-/".
func (w *Web) projectActions() map[string]func(*visit, project.Ref, string) error {
	return map[string]func(*visit, project.Ref, string) error{
		"GET tree":    w.tree,
		"GET blob":    w.blob,
		"GET raw":     w.raw,
		"POST star":   w.star,
		"POST unstar": w.unstar,
	}
}

// place finds what a path names that no table has: a user, a group, a project
// or a page of a project.
func (w *Web) place(v *visit) error {
	path := strings.Trim(v.r.URL.Path, "/")
	if path == "" || !validPath(path) {
		return errs.NotFound("")
	}
	if before, action, found := strings.Cut(path, "/-/"); found {
		return w.action(v, project.Ref(before), action)
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

func (w *Web) action(v *visit, ref project.Ref, rest string) error {
	name, argument, _ := strings.Cut(rest, "/")
	do := w.projectActions()[v.r.Method+" "+name]
	if do == nil {
		return errs.NotFound("")
	}
	if v.r.Method == http.MethodPost && v.session == nil {
		return v.askToSignIn()
	}
	return do(v, ref, argument)
}

// validPath refuses what can be no path of ours before the database is asked.
// A number would be taken for an id.
func validPath(path string) bool {
	return len(path) < 4096 && !strings.ContainsRune(path, 0) && strings.Trim(strings.SplitN(path, "/-/", 2)[0], "0123456789") != ""
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
	Projects []*project.Project
	Pager    pager
}

func (profileView) view() string    { return "profile" }
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
	found, err := w.Projects.UserProjects(v, v.actor, ref, project.Filter{}, orders()[""], v.paging())
	if err != nil {
		return err
	}
	p.Projects, p.Pager = found.Items, v.pager(found.More)
	return v.show(p)
}

// groupView is a group with what is in it.
type groupView struct {
	Group     *project.Namespace
	Parents   []crumb
	Tab       string // projects, subgroups or members
	Subgroups []*project.Namespace
	Projects  []*project.Project
	Members   []*project.Member
	Pager     pager
	Search    string
	MayAdd    bool
	MayNest   bool
	SignedIn  bool
}

// crumb is a step of the way to a page.
type crumb struct{ Name, Path string }

func (groupView) view() string    { return "group" }
func (p groupView) title() string { return p.Group.FullName }

func (w *Web) group(v *visit, ref project.Ref) error {
	n, err := w.Projects.Group(v, v.actor, ref)
	if err != nil {
		return err
	}
	p := groupView{Group: n, Parents: above(crumbs(n.FullPath, n.FullName)), Search: v.param("search"), Tab: v.param("tab"), SignedIn: v.session != nil}
	if v.session != nil {
		level, err := w.Projects.LevelIn(v, v.actor, n.ID)
		if err != nil {
			return err
		}
		p.MayAdd = v.actor.Admin || level >= project.Developer
		p.MayNest = v.actor.Admin || level >= project.Maintainer
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
