package web

import (
	"io"
	"net/http"
	"net/url"
	"strconv"

	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/secret"
	"svc/internal/terraform"
)

func (w *Web) terraformPages() {
	w.projectPage("GET terraform", signedIn, w.terraformStates)
	w.projectPage("GET terraform/versions", signedIn, w.terraformVersions)
	w.projectPage("GET terraform/download", signedIn, w.downloadTerraformState)
	w.projectPage("POST terraform/lock", signedIn, w.lockTerraformState)
	w.projectPage("POST terraform/unlock", signedIn, w.unlockTerraformState)
	w.projectPage("POST terraform/delete", signedIn, w.deleteTerraformState)
	w.projectPage("POST terraform/versions/delete", signedIn, w.deleteTerraformVersion)
}

// terraformPage is the list of the Terraform states of a project.
type terraformPage struct {
	head
	States    []*terraform.State
	MayChange bool
	Address   string // of the states in the API
	Pager     pager
}

func (terraformPage) view() string    { return "project/terraform" }
func (p terraformPage) title() string { return "Terraform states · " + p.Project.FullName() }

func (w *Web) terraformStates(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "terraform")
	if err != nil {
		return err
	}
	p := terraformPage{head: h, MayChange: terraform.MayChange(v.actor, h.Project), Address: w.terraformAddress(h.Project)}
	found, err := w.Terraform.States(v, v.actor, h.in(), v.paging())
	if err != nil {
		return err
	}
	p.States, p.Pager = found.Items, v.pager(found.More)
	return v.show(p)
}

func (w *Web) terraformAddress(p *project.Project) string {
	return w.Site.URL + "/api/v4/projects/" + strconv.FormatInt(p.ID, 10) + "/terraform/state/"
}

// terraformVersionsPage is a state with its versions.
type terraformVersionsPage struct {
	head
	State     *terraform.State
	Versions  []*terraform.Version
	MayChange bool
	Pager     pager
}

func (terraformVersionsPage) view() string { return "project/terraform_versions" }
func (p terraformVersionsPage) title() string {
	return p.State.Name + " · Terraform states · " + p.Project.FullName()
}

func (w *Web) terraformVersions(v *visit, ref project.Ref) error {
	h, err := w.head(v, ref, "terraform")
	if err != nil {
		return err
	}
	p := terraformVersionsPage{head: h, MayChange: terraform.MayChange(v.actor, h.Project)}
	if p.State, err = w.Terraform.State(v, v.actor, h.in(), v.param("state")); err != nil {
		return err
	}
	found, err := w.Terraform.Versions(v, v.actor, h.in(), p.State.Name, v.paging())
	if err != nil {
		return err
	}
	p.Versions, p.Pager = found.Items, v.pager(found.More)
	return v.show(p)
}

func (w *Web) downloadTerraformState(v *visit, ref project.Ref) error {
	var serial *int64
	if text := v.param("serial"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errs.NotFound("")
		}
		serial = &n
	}
	name := v.param("state")
	f, err := w.Terraform.Open(v, v.actor, ref, name, serial)
	if err != nil {
		return err
	}
	if f == nil {
		return errs.NotFound("")
	}
	defer f.Close()
	h := v.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", disposition("attachment", name+".tfstate"))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	if n, err := io.Copy(v.w, f); err != nil || n != f.Size {
		panic(http.ErrAbortHandler) // aborts the response, so that the client notices that the file is incomplete
	}
	return nil
}

func (w *Web) lockTerraformState(v *visit, ref project.Ref) error {
	_, err := w.Terraform.Acquire(v, v.actor, ref, v.text("state"), secret.Token(""), terraform.LockInfo{
		Operation: "Lock", Info: "Locked on the page Terraform states", Who: v.actor.Username,
	})
	return w.terraformDone(v, ref, err, "The state was locked.")
}

func (w *Web) unlockTerraformState(v *visit, ref project.Ref) error {
	return w.terraformDone(v, ref, w.Terraform.Release(v, v.actor, ref, v.text("state"), ""), "The state was unlocked.")
}

func (w *Web) deleteTerraformState(v *visit, ref project.Ref) error {
	return w.terraformDone(v, ref, w.Terraform.Delete(v, v.actor, ref, v.text("state"), ""), "The state was deleted.")
}

func (w *Web) terraformDone(v *visit, ref project.Ref, err error, done string) error {
	return v.redirectWithFlash(err, done, pathTo(string(ref))+"/-/terraform")
}

func (w *Web) deleteTerraformVersion(v *visit, ref project.Ref) error {
	var f form
	name, serial := v.text("state"), v.whole(&f, "serial")
	err := w.Terraform.DeleteVersion(v, v.actor, ref, name, serial)
	return v.redirectWithFlash(err, "The version was deleted.", pathTo(string(ref))+"/-/terraform/versions?state="+url.QueryEscape(name))
}
