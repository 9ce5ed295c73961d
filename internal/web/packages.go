package web

import (
	"fmt"
	"net/http"
	"path"
	"strconv"

	"svc/internal/ci"
	"svc/internal/errs"
	"svc/internal/packages"
	"svc/internal/project"
	"svc/internal/user"
)

func (w *Web) packagePages() {
	w.projectPage("GET packages", anyone, w.packages)
	w.projectPage("GET packages/{id}", anyone, w.pkg)
	w.projectPage("POST packages/{id}/delete", signedIn, w.deletePackage)
	w.projectPage("POST packages/{id}/files/{file}/delete", signedIn, w.deletePackageFile)
	w.projectPage("GET package_files/{id}/download", anyone, w.downloadPackage)
	w.groupPage("GET packages", anyone, w.groupPackages)
	w.settingsPage("GET settings/packages_and_registries", w.packageSettings)
	w.settingsPage("POST settings/packages_and_registries", w.savePackageSettings)
	w.projectPage("POST settings/packages_and_registries/rules", signedIn, ofProject(w.createPackageRule))
	w.projectPage("POST settings/packages_and_registries/rules/{id}/delete", signedIn, ofProject(w.deletePackageRule))
}

// packageList is a list of packages with its filters.
type packageList struct {
	Rows    []packageRow
	Total   int
	Search  string
	Type    string
	Sort    string
	Types   []option
	Sorts   []option
	Project bool // the packages are of one project
	Pager   pager
}

// packageRow is a package of a list.
type packageRow struct {
	*packages.Package
	Page string
	Base string // the pages of its project
}

// Latest is the newest pipeline that published the package, or nil.
func (r packageRow) Latest() *ci.Pipeline {
	if len(r.Pipelines) == 0 {
		return nil
	}
	return r.Pipelines[0]
}

// Filtered reports whether the list has filters.
func (l packageList) Filtered() bool { return l.Search != "" || l.Type != "" }

func packageTypes() []option {
	return []option{{string(packages.Generic), "Generic"}, {string(packages.NPM), "npm"}, {string(packages.PyPI), "PyPI"}}
}

func packageSorts() []option {
	return []option{{"created_desc", "Newest first"}, {"created_asc", "Oldest first"}, {"name_asc", "Name"}, {"version_desc", "Version"}, {"type_asc", "Type"}}
}

// packageFilter reads the filters of a list.
func (v *visit) packageFilter(l *packageList) packages.Filter {
	l.Search, l.Type, l.Sort, l.Types, l.Sorts = v.param("search"), v.param("type"), v.param("sort"), packageTypes(), packageSorts()
	f := packages.Filter{Name: l.Search, Type: packages.Type(l.Type), OrderBy: "created_at", Desc: true}
	switch l.Sort {
	case "created_asc":
		f.Desc = false
	case "name_asc":
		f.OrderBy, f.Desc = "name", false
	case "version_desc":
		f.OrderBy = "version"
	case "type_asc":
		f.OrderBy, f.Desc = "type", false
	}
	return f
}

func packageRows(list []*packages.Package) []packageRow {
	rows := make([]packageRow, len(list))
	for i, k := range list {
		base := pathTo(k.ProjectPath) + "/-"
		rows[i] = packageRow{Package: k, Base: base, Page: fmt.Sprintf("%s/packages/%d", base, k.ID)}
	}
	return rows
}

// packagesPage is the package registry of a project.
type packagesPage struct {
	head
	List packageList
}

func (packagesPage) view() string    { return "project/packages" }
func (p packagesPage) title() string { return "Package registry · " + p.Project.FullName() }

func (w *Web) packages(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "packages")
	if err != nil {
		return err
	}
	p := packagesPage{head: h}
	paging := v.paging()
	paging.Totals = true
	_, found, err := w.Packages.List(v, v.actor, ref, v.packageFilter(&p.List), paging)
	if err != nil {
		return err
	}
	p.List.Rows, p.List.Total, p.List.Project, p.List.Pager = packageRows(found.Items), found.Total, true, v.pager(found.More)
	return v.show(p)
}

// groupPackagesPage is the package registry of a group.
type groupPackagesPage struct {
	groupHead
	List packageList
}

func (groupPackagesPage) view() string    { return "group/packages" }
func (p groupPackagesPage) title() string { return "Package registry · " + p.Group.FullName }

func (w *Web) groupPackages(v *visit, ref project.Ref) error {
	h, err := w.groupHead(v, ref, "packages")
	if err != nil {
		return err
	}
	p := groupPackagesPage{groupHead: h}
	paging := v.paging()
	paging.Totals = true
	_, found, err := w.Packages.ListGroup(v, v.actor, ref, v.packageFilter(&p.List), paging)
	if err != nil {
		return err
	}
	p.List.Rows, p.List.Total, p.List.Pager = packageRows(found.Items), found.Total, v.pager(found.More)
	return v.show(p)
}

// packagePage is a package with its files.
type packagePage struct {
	head
	Package  packageRow
	Files    []*packages.File
	Versions []packageRow
	Guides   []packageGuide
	Creator  *user.User
	Deletes  bool
	Pager    pager
}

// packageGuide is a text for a terminal or a file.
type packageGuide struct{ ID, Label, Text string }

func (packagePage) view() string { return "project/package" }
func (p packagePage) title() string {
	return p.Package.Name + " " + p.Package.Version + " · " + p.Project.FullName()
}

func (w *Web) pkg(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	h, err := w.head(v, ref, "packages")
	if err != nil {
		return err
	}
	in, k, err := w.Packages.Get(v, v.actor, ref, id)
	if err != nil {
		return err
	}
	p := packagePage{head: h, Package: packageRows([]*packages.Package{k})[0], Deletes: w.Packages.Can(v.actor, in).Delete}
	_, files, err := w.Packages.Files(v, v.actor, ref, id, packages.FileFilter{Desc: true}, v.paging())
	if err != nil {
		return err
	}
	p.Files, p.Pager = files.Items, v.pager(files.More)
	versions, err := w.Packages.Versions(v, v.actor, in, k)
	if err != nil {
		return err
	}
	for _, other := range versions {
		other.ProjectPath = k.ProjectPath
	}
	p.Versions, p.Guides = packageRows(versions), w.packageGuides(k, p.Files)
	if k.CreatorID != nil {
		p.Creator, err = w.Users.Get(v, v.actor, *k.CreatorID, false)
		if err != nil && !errs.IsRefusal(err) {
			return err
		}
	}
	return v.show(p)
}

// packageGuides returns instructions to install a package.
func (w *Web) packageGuides(k *packages.Package, files []*packages.File) []packageGuide {
	api := w.Site.URL + "/api/v4/projects/" + strconv.FormatInt(k.ProjectID, 10) + "/packages/" + string(k.Type)
	_, host, _ := cutScheme(api)
	switch k.Type {
	case packages.NPM:
		registry := "registry=" + api + "/"
		if scope, _, ok := cutScope(k.Name); ok {
			registry = scope + ":" + registry
		}
		return []packageGuide{
			{"install", "Install with npm", "npm install " + k.Name + "@" + k.Version},
			{"registry", "Registry, in .npmrc", registry + "\n//" + host + "/:_authToken=<your_token>"},
		}
	case packages.PyPI:
		return []packageGuide{
			{"install", "Install with pip", "pip install " + k.Name + "==" + k.Version + " --index-url " + withUser(api) + "/simple"},
			{"registry", "Registry, in .pypirc", "[distutils]\nindex-servers = registry\n\n[registry]\nrepository = " + api + "\nusername = __token__\npassword = <your_token>"},
		}
	}
	name := "<file>"
	if len(files) > 0 {
		name = files[0].Name
	}
	url := api + "/" + k.Name + "/" + k.Version + "/" + name
	return []packageGuide{
		{"install", "Download with curl", `curl --header "PRIVATE-TOKEN: <your_token>" --remote-name "` + url + `"`},
		{"registry", "Publish with curl", `curl --header "PRIVATE-TOKEN: <your_token>" --upload-file ` + path.Base(name) + ` "` + url + `"`},
	}
}

func (w *Web) deletePackage(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.Packages.Delete(v, v.actor, ref, id); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The package was deleted.", "packages")
}

func (w *Web) deletePackageFile(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	file, err := v.number("file")
	if err != nil {
		return err
	}
	if err := w.Packages.DeleteFile(v, v.actor, ref, id, file); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The file was deleted.", "packages/%d", id)
}

func (w *Web) downloadPackage(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	f, err := w.Packages.Open(v, v.actor, ref, id)
	if err != nil {
		return err
	}
	defer f.Close()
	h := v.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", disposition("attachment", path.Base(f.File.Name)))
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", `"`+f.File.SHA256+`"`)
	http.ServeContent(v.w, v.r, "", f.File.CreatedAt, f)
	return nil
}
