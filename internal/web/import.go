package web

import (
	"strings"

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
	PublicKey string // to be added at the source
	Methods   []option
}

// importMethods are the authentication methods of imports by URL.
func importMethods() []option {
	return []option{{string(mirror.ByPassword), "Username and password"}, {string(mirror.BySSHKey), "SSH public key"}}
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
	case mirror.AwaitKey:
		return "Waiting until the server accepts the SSH key"
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
	p := importStatusPage{head: h, CanManage: w.Mirrors.CanManage(v.actor, h.Project), Methods: importMethods()}
	if h.Project.ImportType != project.FromGit || !p.CanManage {
		return errs.NotFound("Import")
	}
	if h.Project, p.Import, err = w.Mirrors.Get(v, v.actor, ref); err != nil {
		return err
	}
	p.Project = h.Project
	if p.PublicKey, err = w.Mirrors.ImportKey(p.Import); err != nil {
		return err
	}
	if f.Values == nil {
		f = filled("import_url", h.Project.ImportURL)
	}
	f.only("import_url", "import_auth_method", "import_host_keys")
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
	sent := v.sent()
	if detected, err := w.detectSource(v, &sent); err != nil {
		return err
	} else if detected {
		return w.showProjectImport(v, ref, sent)
	}
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
	return mirror.Source{
		URL: v.text("import_url"), User: v.text("import_user"), Password: v.r.PostForm.Get("import_password"),
		AuthMethod: mirror.AuthMethod(v.text("import_auth_method")), HostKeys: strings.Split(v.text("import_host_keys"), "\n"),
	}
}

// detectSource fills the host keys of an SSH server into the form of an import that has
// none, for the user to compare. The password is not repeated.
func (w *Web) detectSource(v *visit, f *form) (detected bool, err error) {
	if v.text("import_url") == "" || v.text("import_host_keys") != "" {
		return false, nil
	}
	keys, err := w.Mirrors.DetectSource(v, v.actor, v.text("import_url"))
	if err != nil {
		f.Values.Del("import_password")
		return true, f.refused(err)
	}
	if len(keys) == 0 {
		return false, nil
	}
	f.Values.Del("import_password")
	f.Values.Set("import_host_keys", strings.Join(keys, "\n"))
	prints := strings.Join((&mirror.Mirror{HostKeys: keys}).Fingerprints(), ", ")
	f.Errors = map[string][]string{"import_host_keys": {"were detected now: " + prints + ". Compare them with those that the operator of the server publishes, then submit again"}}
	return true, nil
}
