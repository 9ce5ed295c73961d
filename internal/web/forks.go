package web

import (
	"fmt"
	"strconv"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/merge"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) forkPages() {
	w.projectPage("GET forks", anyone, w.forks)
	w.projectPage("GET forks/new", signedIn, w.newFork)
	w.projectPage("POST forks", signedIn, w.createFork)
	w.projectPage("POST forks/sync", signedIn, w.syncFork)
}

// forkView is the source of a fork, for the page of the project.
type forkView struct {
	Source   *project.Project // nil if the user cannot see it
	State    *repo.Upstream   // nil if the branches cannot be compared
	Proposes bool             // the user may create merge requests in the source
}

// forkView returns the source of a fork, or nil for other projects.
func (w *Web) forkView(v *visit, p *project.Project) (*forkView, error) {
	if p.ForkedFromID == nil {
		return nil, nil
	}
	source, err := w.Projects.Summary(v, v.actor, project.RefTo(*p.ForkedFromID))
	if errs.Is(err, errs.KindNotFound) {
		return &forkView{}, nil
	}
	if err != nil {
		return nil, err
	}
	f := &forkView{Source: source}
	if p.DefaultBranch == "" {
		return f, nil
	}
	f.State, err = w.Repos.Upstream(v, v.actor, project.RefTo(p.ID))
	if err != nil && !errs.IsRefusal(err) && !errs.Is(err, errs.KindUnavailable) {
		return nil, err
	}
	f.Proposes = v.session != nil && merge.CheckSource(v.actor, p) == nil && merge.CheckTarget(v.actor, source) == nil
	return f, nil
}

// forksPage lists the forks of a project.
type forksPage struct {
	head
	List     []*project.Project
	Search   string
	Sort     string
	Pager    pager
	Filtered bool
}

func (forksPage) view() string    { return "project/forks" }
func (p forksPage) title() string { return "Forks · " + p.Project.FullName() }

func (w *Web) forks(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "overview")
	if err != nil {
		return err
	}
	p := forksPage{head: h, Search: v.param("search"), Sort: v.param("sort")}
	order, ok := orders()[p.Sort]
	if !ok {
		order, p.Sort = orders()[""], ""
	}
	found, err := w.Projects.Forks(v, v.actor, h.in(), project.Filter{Search: p.Search, Deep: true}, order, v.paging())
	if err != nil {
		return err
	}
	p.List, p.Pager, p.Filtered = found.Items, v.pager(found.More), p.Search != "" || v.pageNumber() > 1
	return v.show(p)
}

// newForkPage is the form to fork a project.
type newForkPage struct {
	head
	Form         form
	Places       []*project.Namespace
	Visibilities []project.Visibility // visibilities that the fork can have
}

func (newForkPage) view() string    { return "project/new_fork" }
func (p newForkPage) title() string { return "Fork project · " + p.Project.FullName() }

// Offers reports whether the fork may have a visibility.
func (p newForkPage) Offers(name string) bool {
	for _, v := range p.Visibilities {
		if string(v) == name {
			return true
		}
	}
	return false
}

func (w *Web) newFork(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "overview")
	if err != nil {
		return err
	}
	return w.showNewFork(v, h, filled("name", h.Project.Name, "path", h.Project.Path, "description", h.Project.Description,
		"namespace_id", strconv.FormatInt(v.session.User.NamespaceID, 10), "visibility", string(h.Project.CodeVisibility()), "branches", "all"))
}

func (w *Web) showNewFork(v *visit, h head, f form) error {
	if !h.MayFork {
		return errs.Forbidden("You can't fork this project.")
	}
	p := newForkPage{head: h}
	for _, level := range []project.Visibility{project.Private, project.Internal, project.Public} {
		p.Visibilities = append(p.Visibilities, level)
		if level == h.Project.CodeVisibility() {
			break
		}
	}
	var err error
	if p.Places, err = w.newProjectPlaces(v); err != nil {
		return err
	}
	f.only("name", "path", "description", "namespace_id", "visibility")
	p.Form = f
	return v.showForm(p, f)
}

// newProjectPlaces are the namespaces in which the user may create projects.
func (w *Web) newProjectPlaces(v *visit) ([]*project.Namespace, error) {
	places, err := w.Projects.Namespaces(v, v.actor, project.NamespaceFilter{}, db.Paging{Limit: 200})
	var list []*project.Namespace
	for _, n := range places.Items { // administrators see those of other users as well
		if n.Kind == project.GroupNamespace || n.ID == v.session.User.NamespaceID && v.session.User.PersonalProjects() > 0 {
			list = append(list, n)
		}
	}
	return list, err
}

func (w *Web) createFork(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "overview")
	if err != nil {
		return err
	}
	f := v.sent()
	place, err := strconv.ParseInt(v.text("namespace_id"), 10, 64)
	if err != nil {
		f.wrong("namespace_id", "is not a namespace")
	}
	visibility, description := project.Visibility(v.text("visibility")), v.text("description")
	if !known(visibility) {
		f.wrong("visibility", "is not a valid visibility level")
	}
	if f.bad() {
		return w.showNewFork(v, h, f)
	}
	n := repo.NewFork{Name: v.text("name"), Path: v.text("path"), Description: &description, Namespace: project.RefTo(place), Visibility: &visibility}
	if v.text("branches") == "default" {
		n.OnlyBranch = h.Project.DefaultBranch
	}
	made, err := w.Repos.Fork(v, v.actor, h.in(), n)
	if err != nil {
		if err := f.refusedInPlace(err, "namespace_id"); err != nil {
			return err
		}
		f.move("visibility_level", "visibility")
		return w.showNewFork(v, h, f)
	}
	return v.done(fmt.Sprintf("Project %s is being forked to %s.", h.Project.Name, made.FullPath), "/"+made.FullPath)
}

func (w *Web) syncFork(v *visit, ref project.Ref) error {
	p, err := w.Projects.Summary(v, v.actor, ref)
	if err != nil {
		return err
	}
	_, err = w.Repos.SyncFork(v, v.actor, ref)
	if errs.Is(err, errs.KindUnprocessable) {
		err = errs.Conflict("The branches have conflicts. Merge the changes of the source project in a local clone, then push.")
	}
	return v.redirectWithFlash(err, "The fork was updated.", "/"+p.FullPath)
}
