package web

import (
	"time"

	"svc/internal/ci"
	"svc/internal/packages"
	"svc/internal/project"
	"svc/internal/user"
)

// packageContents are the pages of packages.
func packageContents() []content {
	now := time.Unix(1e9, 0)
	h := head{Project: &project.Project{ID: 1, Path: "p", FullPath: "g/p", Name: "P"}, Tab: "packages", Packages: true}
	g := groupHead{Group: &project.Namespace{ID: 1, Path: "g", FullPath: "g", Name: "G"}, Tab: "packages", MaySet: true}
	full := &packages.Package{
		ID: 1, ProjectID: 1, Type: packages.NPM, Name: "@a/b", Version: "1.0.0", Status: packages.Hidden, ProjectPath: "g/p", CreatedAt: now, LastDownloadedAt: &now,
		Tags: []packages.Tag{{Name: "latest"}}, Pipelines: []*ci.Pipeline{{}},
	}
	list := packageList{Rows: packageRows([]*packages.Package{full, {Type: packages.PyPI, CreatedAt: now}, {Type: packages.Generic, CreatedAt: now}}), Total: 3, Types: packageTypes(), Sorts: packageSorts(), Type: "npm", Sort: "name_asc", Project: true}
	files := []*packages.File{{ID: 1, Name: "a/b.tgz", Size: 1, CreatedAt: now}}
	w := &Web{}
	return []content{
		packagesPage{head: h, List: list}, packagesPage{head: h}, packagesPage{head: h, List: packageList{Search: "x"}},
		groupPackagesPage{groupHead: g, List: packageList{Rows: list.Rows}},
		packagePage{head: h, Package: list.Rows[0], Files: files, Versions: list.Rows, Guides: w.packageGuides(full, files), Creator: &user.User{Username: "eve", Name: "Eve"}, Deletes: true},
		packagePage{head: h, Package: list.Rows[1], Guides: w.packageGuides(list.Rows[1].Package, nil)},
		packagePage{head: h, Package: list.Rows[2], Guides: w.packageGuides(list.Rows[2].Package, nil)},
		packageSettingsPage{setup: setup{P: &h}, Rules: []*packages.Rule{{Pattern: "a*", Type: packages.NPM, PushLevel: project.Owner, DeleteLevel: packages.AdminLevel}, {Type: packages.PyPI}}},
		packageSettingsPage{setup: setup{P: &h}}, packageSettingsPage{setup: setup{P: &h}, Off: true}, packageSettingsPage{setup: setup{G: &g}},
	}
}
