package web

import (
	"fmt"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/transfer"
)

func (w *Web) projectTransferPages() {
	w.projectPage("GET settings/export", signedIn, w.projectExport)
	w.projectPage("POST settings/export", signedIn, w.startProjectExport)
	w.projectPage("GET download_export", signedIn, w.downloadProjectExport)
	w.page("GET /projects/new/import", signedIn, w.projectImportForm)
	w.page("POST /projects/import", uploader, w.startProjectImport)
	w.page("GET /-/project_imports/{id}", signedIn, w.projectFileImport)
	w.page("POST /-/project_imports/{id}/cancel", signedIn, w.cancelFileImport)
}

func (w *Web) projectExport(v *visit, ref project.Ref) error {
	return w.showExport(v, project.Place{Ref: ref}, func() (*transfer.Exports, error) { return w.Transfer.ProjectExports(v, v.actor, ref) })
}

func (w *Web) startProjectExport(v *visit, ref project.Ref) error {
	var to *transfer.Upload
	if text := v.text("url"); text != "" {
		to = &transfer.Upload{URL: text, Method: v.text("http_method")}
	}
	_, err := w.Transfer.StartProjectExport(v, v.actor, ref, nil, to)
	return v.redirectWithFlash(err, "The export was started.", settingsOf(project.Place{Ref: ref}, "export"))
}

func (w *Web) downloadProjectExport(v *visit, ref project.Ref) error {
	found, file, err := w.Transfer.OpenProjectExport(v, v.actor, ref)
	if err != nil {
		return err
	}
	defer file.Close()
	return v.sendExport(found.FileName(), file.ModTime, file)
}

func (w *Web) projectImports() importKind {
	return importKind{
		project: true, place: "namespace", at: "/-/project_imports/",
		places: w.newProjectPlaces,
		latest: func(v *visit, p db.Paging) (db.Page[*transfer.Import], error) {
			return w.Transfer.ProjectImports(v, v.actor, p)
		},
		start: func(v *visit, namespaceID *int64) (*transfer.Import, error) {
			n := transfer.NewProjectImport{Name: v.text("name"), Path: v.text("path"), NamespaceID: namespaceID}
			if v.file != nil {
				n.File = v.file
				made, _, err := w.Transfer.StartProjectImport(v, v.actor, n)
				return made, err
			}
			made, _, err := w.Transfer.StartRemoteImport(v, v.actor, n, transfer.RemoteFile{URL: v.text("url")})
			return made, err
		},
	}
}

func (w *Web) projectImportForm(v *visit) error {
	return w.projectImports().show(v, filled("parent_id", v.param("namespace_id")))
}

func (w *Web) startProjectImport(v *visit) error { return w.projectImports().submit(v) }

func (w *Web) projectFileImport(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	i, err := w.Transfer.ProjectImport(v, v.actor, id)
	if err != nil {
		return err
	}
	return showFileImport(v, i, func(ref project.Ref) (string, error) {
		p, err := w.Projects.Summary(v, v.actor, ref)
		if err != nil {
			return "", err
		}
		return p.FullPath, nil
	})
}

func (w *Web) cancelFileImport(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Transfer.CancelProjectImport(v, v.actor, id), "The import was canceled.", fmt.Sprintf("/-/project_imports/%d", id))
}
