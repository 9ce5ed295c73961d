package web

import (
	"errors"
	"fmt"
	"strconv"

	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/filetemplate"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) newPages() {
	w.page("GET /projects/new", signedIn, w.newProjectForm)
	w.page("POST /projects", signedIn, w.createProject)
	w.page("GET /groups/new", signedIn, w.newGroupForm)
	w.page("POST /groups", signedIn, w.createGroup)
	w.groupTransferPages()
	w.projectTransferPages()
	w.bulkImportPages()
}

type newProjectPage struct {
	Form   form
	Places []*project.Namespace
}

// Methods are the authentication methods of imports.
func (newProjectPage) Methods() []option { return importMethods() }

func (newProjectPage) view() string  { return "project/new_project" }
func (newProjectPage) title() string { return "New project" }

func (w *Web) newProjectForm(v *visit) error {
	place := v.param("namespace_id")
	if place == "" {
		place = strconv.FormatInt(v.session.User.NamespaceID, 10)
	}
	return w.showNewProject(v, filled("namespace_id", place, "visibility", "private", "readme", "1"))
}

func (w *Web) showNewProject(v *visit, f form) error {
	places, err := w.newProjectPlaces(v)
	if err != nil {
		return err
	}
	p := newProjectPage{Places: places}
	f.only("name", "path", "description", "namespace_id", "visibility", "gitignore", "license", "import_url", "import_auth_method", "import_host_keys")
	p.Form = f
	return v.showForm(p, f)
}

// Gitignores are the templates for the file .gitignore.
func (newProjectPage) Gitignores() []option {
	list := []option{{"", "None"}}
	for _, key := range filetemplate.Keys(filetemplate.Gitignores) {
		list = append(list, option{key, key})
	}
	return list
}

// ImportHint explains the import by URL.
func (newProjectPage) ImportHint() string {
	return "A Git repository on another server, with http, https, ssh or git. Its branches, tags and LFS objects are copied. Without the files above."
}

// Licenses are the templates for the file LICENSE.
func (newProjectPage) Licenses() []option {
	return append([]option{{"", "None"}}, licenseOptions()...)
}

func licenseOptions() []option {
	var list []option
	for _, l := range filetemplate.LicenseNames() {
		list = append(list, option{l.Key, l.Name})
	}
	return list
}

func (w *Web) createProject(v *visit) error {
	f := v.sent()
	place, err := strconv.ParseInt(v.text("namespace_id"), 10, 64)
	if err != nil {
		f.Errors = map[string][]string{"namespace_id": {"is not a namespace"}}
		return w.showNewProject(v, f)
	}
	visibility, description := project.Visibility(v.text("visibility")), v.text("description")
	if !known(visibility) {
		f.Errors = map[string][]string{"visibility": {"is not a valid visibility level"}}
		return w.showNewProject(v, f)
	}
	n := project.NewProject{
		Name: v.text("name"), Path: v.text("path"), NamespaceID: &place, Visibility: &visibility,
		Fields: project.Fields{Description: &description},
	}
	if detected, err := w.detectSource(v, &f); err != nil {
		return err
	} else if detected {
		return w.showNewProject(v, f)
	}
	var made *project.Project
	if v.text("import_url") != "" {
		made, err = w.Mirrors.Create(v, v.actor, n, v.importSource())
	} else {
		made, err = w.Repos.Create(v, v.actor, n,
			repo.FirstFiles{README: v.text("readme") != "", Gitignore: v.text("gitignore"), License: v.text("license")})
	}
	if err != nil {
		if err := f.refusedInPlace(err, "namespace_id"); err != nil {
			return err
		}
		f.move("visibility_level", "visibility")
		return w.showNewProject(v, f)
	}
	return v.done(fmt.Sprintf("Project %s was created.", made.Name), "/"+made.FullPath)
}

func known(v project.Visibility) bool {
	return v == project.Private || v == project.Internal || v == project.Public
}

// refusedInPlace is refused, but a missing permission for the namespace is an error
// of the field of the namespace.
func (f *form) refusedInPlace(err error, name string) error {
	if errs.Is(err, errs.KindForbidden) || errs.Is(err, errs.KindNotFound) {
		e, _ := errors.AsType[*errs.Error](err)
		text := "is not a namespace where you can do this"
		if e.Kind == errs.KindForbidden && e.Text != "" {
			text = e.Text
		}
		f.Errors = map[string][]string{name: {text}}
		return nil
	}
	return f.refused(err)
}

// move moves the errors of one field to another.
func (f *form) move(from, to string) {
	if wrong, ok := f.Errors[from]; ok {
		f.Errors[to] = append(f.Errors[to], wrong...)
		delete(f.Errors, from)
	}
}

type newGroupPage struct {
	Form   form
	Places []*project.Namespace
}

func (newGroupPage) view() string  { return "group/new_group" }
func (newGroupPage) title() string { return "New group" }

func (w *Web) newGroupForm(v *visit) error {
	return w.showNewGroup(v, filled("parent_id", v.param("parent_id"), "visibility", "private"))
}

func (w *Web) showNewGroup(v *visit, f form) error {
	places, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{MinLevel: project.Maintainer}, project.Sort{By: "path"}, db.Paging{Limit: 200})
	if err != nil {
		return err
	}
	f.only("name", "path", "description", "parent_id", "visibility")
	p := newGroupPage{Form: f, Places: places.Items}
	return v.showForm(p, f)
}

func (w *Web) createGroup(v *visit) error {
	f := v.sent()
	visibility := project.Visibility(v.text("visibility"))
	if !known(visibility) {
		f.Errors = map[string][]string{"visibility": {"is not a valid visibility level"}}
		return w.showNewGroup(v, f)
	}
	n := project.NewGroup{Name: v.text("name"), Path: v.text("path"), Description: v.text("description"), Visibility: &visibility}
	if text := v.text("parent_id"); text != "" {
		parent, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			f.Errors = map[string][]string{"parent_id": {"is not a group that you can access"}}
			return w.showNewGroup(v, f)
		}
		n.ParentID = &parent
	}
	made, err := w.Projects.CreateGroup(v, v.actor, n)
	if err != nil {
		if err := f.refusedInPlace(err, "parent_id"); err != nil {
			return err
		}
		f.move("visibility_level", "visibility")
		return w.showNewGroup(v, f)
	}
	return v.done(fmt.Sprintf("Group %s was created.", made.Name), "/"+made.FullPath)
}
