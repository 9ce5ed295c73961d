package web

import (
	"strconv"

	"svc/internal/errs"
	"svc/internal/project"
)

// settingsPage adds a page to the settings of projects and of groups, because most
// pages are the same for both. The pattern "GET settings/members" is for the path
// after "/-/".
func (w *Web) settingsPage(pattern string, do func(*visit, project.Place) error) {
	w.placePage(pattern, signedIn, do)
}

// placePage adds a page to projects and to groups.
func (w *Web) placePage(pattern string, who access, do func(*visit, project.Place) error) {
	w.projectPage(pattern, who, ofProject(do))
	w.groupPage(pattern, who, ofGroup(do))
}

// ofGroup adapts a handler of a place to groups.
func ofGroup(do func(*visit, project.Place) error) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error { return do(v, project.Place{Ref: ref, Group: true}) }
}

// ofProject adapts a handler of a place to projects.
func ofProject(do func(*visit, project.Place) error) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error { return do(v, project.Place{Ref: ref}) }
}

// settingsPages adds redirects: to the first page of the settings, and from the
// paths of GitLab.
func (w *Web) settingsPages() {
	for _, pattern := range []string{"GET settings", "GET edit"} {
		w.settingsPage(pattern, func(v *visit, in project.Place) error { return v.redirect(settingsOf(in, "general")) })
	}
	w.settingsPage("GET settings/repository", func(v *visit, in project.Place) error { return v.redirect(settingsOf(in, "protected")) })
	w.generalPages()
	w.advancedPages()
	w.memberPages()
	w.placeTokenPages()
	w.serviceAccountPages()
	w.deployPages()
	w.variablePages()
	w.runnerPages()
	w.protectedPages()
	w.ciSettingsPages()
	w.mergeSettingsPages()
	w.groupMergeSettingsPages()
	w.alertSettingsPages()
	w.hookPages()
	w.mirrorPages()
	w.integrationPages()
	w.settingsPage("GET hooks", func(v *visit, in project.Place) error { return v.redirect(settingsOf(in, "hooks")) })
	w.joinPages()
}

// settingsOf returns the URL of a settings page.
func settingsOf(in project.Place, page string) string {
	return pathTo(placePath(in)) + "/-/settings/" + page
}

// placePath returns the path of the pages of a project or group.
func placePath(in project.Place) string {
	if in.Group {
		return "groups/" + string(in.Ref)
	}
	return string(in.Ref)
}

// setup has the common data of settings pages: the head of the project or
// group, and the base URL.
type setup struct {
	P     *head
	G     *groupHead
	Place project.Place
	Base  string // URL of the settings, with a trailing slash
	Part  string // current page
	Owner bool   // the visitor is an Owner
	may   project.Setup
}

// Name returns the name of the project or group.
func (s setup) Name() string {
	if s.G != nil {
		return s.G.Group.FullName
	}
	return s.P.Project.FullName()
}

// Thing returns "project" or "group".
func (s setup) Thing() string {
	if s.G != nil {
		return "group"
	}
	return "project"
}

// Path is the full path.
func (s setup) Path() string {
	if s.G != nil {
		return s.G.Group.FullPath
	}
	return s.P.Project.FullPath
}

// setup returns the common data of settings pages. Requires the role Maintainer
// in a project and Owner in a group.
func (w *Web) setup(v *visit, in project.Place, part string) (setup, error) {
	s := setup{Place: in, Part: part, Base: settingsOf(in, "")}
	may, err := w.Projects.Setup(v, v.actor, in)
	if err != nil {
		return s, err
	}
	s.Owner, s.may = may.Owner, may
	if in.Group {
		g, err := w.groupHead(v, in.Ref, "settings")
		s.G = &g
		return s, err
	}
	h, err := w.head(v, in.Ref, "settings")
	if err != nil {
		return s, err
	}
	s.P = &h
	return s, nil
}

// Levels are the roles that the visitor may assign.
func (s setup) Levels() []option {
	var list []option
	for _, l := range s.may.Levels() {
		list = append(list, option{strconv.FormatInt(int64(l), 10), l.String()})
	}
	return list
}

// sentLevel reads a role of a form. The feature refuses invalid ones.
func (v *visit) sentLevel(name string) project.Level {
	n, err := strconv.ParseInt(v.text(name), 10, 64)
	if err != nil {
		return -1
	}
	return project.Level(n)
}

// named returns the user that a field of a form names.
func (w *Web) named(v *visit, username string) (int64, error) {
	u, err := w.findUser(v, username)
	if errs.Is(err, errs.KindNotFound) {
		return 0, errs.InvalidField("username", "is not an existing username")
	}
	if err != nil {
		return 0, err
	}
	return u.ID, nil
}
