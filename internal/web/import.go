package web

import (
	"svc/internal/errs"
	"svc/internal/mirror"
	"svc/internal/project"
)

func (w *Web) importPages() {
	w.projectPage("GET import", signedIn, w.importStatus)
	w.projectPage("POST import/cancel", signedIn, w.cancelImport)
	w.projectPage("POST import/retry", signedIn, w.retryImport)
}

// importStatusPage is the import of a project by URL.
type importStatusPage struct {
	head
	Import    *mirror.Import // nil before the first one
	Form      form
	CanManage bool
}

func (importStatusPage) view() string    { return "project/import" }
func (p importStatusPage) title() string { return "Import · " + p.Project.FullName() }

// Phase is the current step of the import.
func (p importStatusPage) Phase() string {
	if p.Import == nil {
		return "Waiting"
	}
	switch p.Import.Phase {
	case mirror.Connecting:
		return "Connecting to the server"
	case mirror.Receiving:
		return "Receiving objects"
	case mirror.Checking:
		return "Checking objects"
	case mirror.FetchLFS:
		return "Fetching LFS objects"
	case mirror.Saving:
		return "Saving"
	}
	return "Waiting for other imports"
}

// LFSMissing is the number of LFS objects that the source did not have.
func (p importStatusPage) LFSMissing() int {
	if p.Import == nil {
		return 0
	}
	return p.Import.LFSFound - p.Import.LFSFetched
}

func (w *Web) importStatus(v *visit, ref project.Ref) error {
	return w.showProjectImport(v, ref, form{})
}

func (w *Web) showProjectImport(v *visit, ref project.Ref, f form) error {
	h, err := w.head(v, ref, "overview")
	if err != nil {
		return err
	}
	p := importStatusPage{head: h, CanManage: w.Mirrors.CanManage(v.actor, h.Project)}
	if h.Project.ImportType != project.FromGit || !p.CanManage {
		return errs.NotFound("Import")
	}
	if h.Project, p.Import, err = w.Mirrors.Get(v, v.actor, ref); err != nil {
		return err
	}
	p.Project = h.Project
	if f.Values == nil {
		f = filled("import_url", h.Project.ImportURL)
	}
	f.only("import_url")
	p.Form = f
	if h.Project.Import.Pending() {
		v.w.Header().Set("Refresh", "3")
	}
	return v.showForm(p, f)
}

func (w *Web) cancelImport(v *visit, ref project.Ref) error {
	if err := w.Mirrors.Cancel(v, v.actor, ref); err != nil {
		f := form{}
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showProjectImport(v, ref, f)
	}
	return w.toImport(v, ref, "The import was canceled.")
}

func (w *Web) retryImport(v *visit, ref project.Ref) error {
	if err := w.Mirrors.Retry(v, v.actor, ref, v.importSource()); err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showProjectImport(v, ref, f)
	}
	return w.toImport(v, ref, "The import was started.")
}

func (w *Web) toImport(v *visit, ref project.Ref, text string) error {
	p, err := w.Projects.Summary(v, v.actor, ref)
	if err != nil {
		return err
	}
	return v.done(text, "/"+p.FullPath+"/-/import")
}

// importSource reads the source of an import from a form. A password may start and
// end with spaces.
func (v *visit) importSource() mirror.Source {
	return mirror.Source{URL: v.text("import_url"), User: v.text("import_user"), Password: v.r.PostForm.Get("import_password")}
}
