package web

import (
	"io"
	"net/http"
	"strconv"

	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/securefile"
)

func (w *Web) secureFilePages() {
	w.projectPage("GET settings/secure_files", signedIn, ofProject(w.secureFiles))
	w.projectPage("POST settings/secure_files", files, ofProject(w.addSecureFile))
	w.projectPage("GET settings/secure_files/{id}/download", signedIn, ofProject(w.downloadSecureFile))
	w.projectPage("POST settings/secure_files/{id}/delete", signedIn, ofProject(w.deleteSecureFile))
}

// secureFilesPage is the secure files of a project.
type secureFilesPage struct {
	setup
	Files []*securefile.File
	Form  form
}

func (secureFilesPage) view() string    { return "project/settings_secure_files" }
func (p secureFilesPage) title() string { return "Secure files · " + p.Name() }

func (w *Web) secureFiles(v *visit, in project.Place) error {
	return w.showSecureFiles(v, in, filled())
}

func (w *Web) showSecureFiles(v *visit, in project.Place, f form) error {
	s, err := w.setup(v, in, "secure_files")
	if err != nil {
		return err
	}
	found, err := w.SecureFiles.List(v, v.actor, in.Ref, db.Paging{Limit: 100})
	if err != nil {
		return err
	}
	f.only()
	return v.showForm(secureFilesPage{setup: s, Files: found.Items, Form: f}, f)
}

func (w *Web) addSecureFile(v *visit, in project.Place) error {
	f := v.sent()
	file, header, err := v.r.FormFile("file")
	if err != nil {
		f.Error = "Choose a file."
		return w.showSecureFiles(v, in, f)
	}
	defer file.Close()
	if _, err := w.SecureFiles.Create(v, v.actor, in.Ref, header.Filename, header.Size, file); err != nil {
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showSecureFiles(v, in, f)
	}
	return v.done("The file was uploaded.", settingsOf(in, "secure_files"))
}

func (w *Web) downloadSecureFile(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	f, content, err := w.SecureFiles.Open(v, v.actor, in.Ref, id)
	if err != nil {
		return err
	}
	defer content.Close()
	h := v.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", disposition("attachment", f.Name))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	if n, err := io.Copy(v.w, content); err != nil || n != f.Size {
		panic(http.ErrAbortHandler) // aborts the response, so that the client notices that the file is incomplete
	}
	return nil
}

func (w *Web) deleteSecureFile(v *visit, in project.Place) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return v.redirectWithFlash(w.SecureFiles.Delete(v, v.actor, in.Ref, id), "The file was deleted.", settingsOf(in, "secure_files"))
}
