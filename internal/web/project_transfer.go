package web

import (
	"fmt"
	"net/http"
	"strconv"

	"svc/internal/db"
	"svc/internal/errs"
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
	in := project.Place{Ref: ref}
	s, err := w.setup(v, in, "export")
	if err != nil {
		return err
	}
	found, err := w.Transfer.ProjectExports(v, v.actor, ref)
	if err != nil {
		return err
	}
	return v.show(exportPage{s, found.Last, found.Ready, pathTo(placePath(in)) + "/-/download_export"})
}

func (w *Web) startProjectExport(v *visit, ref project.Ref) error {
	_, err := w.Transfer.StartProjectExport(v, v.actor, ref, nil)
	return v.redirectWithFlash(err, "The export was started.", settingsOf(project.Place{Ref: ref}, "export"))
}

func (w *Web) downloadProjectExport(v *visit, ref project.Ref) error {
	found, file, err := w.Transfer.OpenProjectExport(v, v.actor, ref)
	if err != nil {
		return err
	}
	defer file.Close()
	foreignFile(v.w.Header(), found.FileName(), "no-store")
	http.ServeContent(v.w, v.r, "", file.ModTime, file)
	return nil
}

func (w *Web) projectImportForm(v *visit) error {
	return w.showProjectImportForm(v, filled("parent_id", v.param("namespace_id")))
}

func (w *Web) showProjectImportForm(v *visit, f form) error {
	places, err := w.newProjectPlaces(v)
	if err != nil {
		return err
	}
	latest, err := w.Transfer.ProjectImports(v, v.actor, db.Paging{Limit: 10})
	if err != nil {
		return err
	}
	f.only("name", "path", "parent_id", "file")
	return v.showForm(importPage{Project: true, Form: f, Places: places, Imports: latest.Items}, f)
}

func (w *Web) startProjectImport(v *visit) error {
	f := v.sent()
	n := transfer.NewProjectImport{Name: v.text("name"), Path: v.text("path"), File: v.file}
	if text := v.text("parent_id"); text != "" {
		place, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			f.Errors = map[string][]string{"parent_id": {"is not a namespace that you can access"}}
			return w.showProjectImportForm(v, f)
		}
		n.NamespaceID = &place
	}
	if v.file == nil {
		f.Errors = map[string][]string{"file": {"must be selected"}}
		return w.showProjectImportForm(v, f)
	}
	made, _, err := w.Transfer.StartProjectImport(v, v.actor, n)
	if errs.Is(err, errs.KindTooLarge) {
		return err
	}
	if err != nil {
		if err := f.refusedInPlace(err, "parent_id"); err != nil {
			return err
		}
		return w.showProjectImportForm(v, f)
	}
	return v.redirect(fmt.Sprintf("/-/project_imports/%d", made.ID))
}

func (w *Web) projectFileImport(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	i, err := w.Transfer.ProjectImport(v, v.actor, id)
	if err != nil {
		return err
	}
	p := groupImportPage{Import: i}
	if i.OwnerID != nil {
		found, err := w.Projects.Summary(v, v.actor, project.RefTo(*i.OwnerID))
		if err != nil && !errs.Is(err, errs.KindNotFound) {
			return err
		}
		if err == nil {
			p.At = found.FullPath
		}
	}
	return p.show(v)
}

func (w *Web) cancelFileImport(v *visit) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.Transfer.CancelProjectImport(v, v.actor, id), "The import was canceled.", fmt.Sprintf("/-/project_imports/%d", id))
}
