package web

import (
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/transfer"
)

func (w *Web) groupTransferPages() {
	w.groupPage("GET settings/export", signedIn, w.groupExport)
	w.groupPage("POST settings/export", signedIn, w.startExport)
	w.groupPage("GET download_export", signedIn, w.downloadExport)
	w.page("GET /groups/new/import", signedIn, w.importForm)
	w.page("POST /groups/import", uploader, w.startImport)
	w.page("GET /-/group_imports/{id}", signedIn, w.groupImport)
}

func (w *Web) groupExport(v *visit, ref project.Ref) error {
	return w.showExport(v, project.Place{Ref: ref, Group: true}, func() (*transfer.Exports, error) { return w.Transfer.Exports(v, v.actor, ref) })
}

func (w *Web) startExport(v *visit, ref project.Ref) error {
	_, err := w.Transfer.StartExport(v, v.actor, ref)
	return v.redirectWithFlash(err, "The export was started.", settingsOf(project.Place{Ref: ref, Group: true}, "export"))
}

func (w *Web) downloadExport(v *visit, ref project.Ref) error {
	found, file, err := w.Transfer.OpenExport(v, v.actor, ref)
	if err != nil {
		return err
	}
	defer file.Close()
	return v.sendExport(found.FileName(), file.ModTime, file)
}

func (w *Web) groupImports() importKind {
	return importKind{
		place: "group", at: "/-/group_imports/",
		places: func(v *visit) ([]*project.Namespace, error) {
			page, err := w.Projects.Groups(v, v.actor, project.GroupsFilter{MinLevel: project.Maintainer}, project.Sort{By: "path"}, db.Paging{Limit: 200})
			return page.Items, err
		},
		latest: func(v *visit, p db.Paging) (db.Page[*transfer.Import], error) {
			return w.Transfer.Imports(v, v.actor, p)
		},
		start: func(v *visit, parentID *int64) (*transfer.Import, error) {
			return w.Transfer.StartImport(v, v.actor, transfer.NewImport{Name: v.text("name"), Path: v.text("path"), ParentID: parentID, File: v.file})
		},
	}
}

func (w *Web) importForm(v *visit) error {
	return w.groupImports().show(v, filled("parent_id", v.param("parent_id")))
}

func (w *Web) startImport(v *visit) error { return w.groupImports().submit(v) }

func (w *Web) groupImport(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	i, err := w.Transfer.Import(v, v.actor, id)
	if err != nil {
		return err
	}
	return showFileImport(v, i, func(ref project.Ref) (string, error) {
		g, err := w.Projects.Group(v, v.actor, ref)
		if err != nil {
			return "", err
		}
		return g.FullPath, nil
	})
}
