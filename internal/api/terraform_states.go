package api

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"

	"svc/internal/bind"
	"svc/internal/errs"
	"svc/internal/terraform"
)

// The protocol is that of the http backend of Terraform and OpenTofu:
// https://opentofu.org/docs/language/settings/backends/http/
func (a *API) terraformStateRoutes() {
	a.tag("Terraform states")
	const at = "/projects/{id}/terraform/state/{name}"
	read, write := readAPI.orJob(), writeAPI.orJob()
	empty := response(http.StatusNoContent, "The state has no content.", nil)
	locked := response(http.StatusConflict, "The state is locked.", terraformLockJSON{})
	handle(a, "GET "+at, read, a.getTerraformState, empty, summary("Get a Terraform state"))
	handle(a, "POST "+at, write, a.saveTerraformState, raw, status(http.StatusOK), empty, summary("Create or update a Terraform state"))
	handle(a, "DELETE "+at, write, a.deleteTerraformState, status(http.StatusOK), summary("Delete a Terraform state"))
	handle(a, "POST "+at+"/lock", write, a.lockTerraformState, status(http.StatusOK), returns(terraformLockJSON{}), locked, summary("Lock a Terraform state"))
	handle(a, "DELETE "+at+"/lock", write, a.unlockTerraformState, status(http.StatusOK), summary("Unlock a Terraform state"))
	handle(a, "GET "+at+"/versions/{serial}", read, a.getTerraformStateVersion, summary("Get a version of a Terraform state"))
	handle(a, "DELETE "+at+"/versions/{serial}", write, a.deleteTerraformStateVersion, summary("Delete a version of a Terraform state"))
}

type terraformStateParams struct {
	projectParams
	Name string `param:"name" doc:"Name of the state."`
	ID   string `param:"ID" doc:"ID of the lock, if the state is locked."`
}

type terraformVersionParams struct {
	projectParams
	Name   string `param:"name" doc:"Name of the state."`
	Serial int64  `param:"serial" doc:"Serial of the version."`
}

// getTerraformState: https://docs.gitlab.com/user/infrastructure/iac/terraform_state/
func (a *API) getTerraformState(c *call, p terraformStateParams) (streamed, error) {
	f, err := a.Terraform.Open(c, c.actor, p.Project, p.Name, nil)
	if err != nil {
		return streamed{}, err
	}
	if f == nil {
		c.w.WriteHeader(http.StatusNoContent)
		return streamed{}, nil
	}
	return a.sendTerraformState(c, f)
}

// getTerraformStateVersion: https://docs.gitlab.com/user/infrastructure/iac/terraform_state/
func (a *API) getTerraformStateVersion(c *call, p terraformVersionParams) (streamed, error) {
	f, err := a.Terraform.Open(c, c.actor, p.Project, p.Name, &p.Serial)
	if err != nil {
		return streamed{}, err
	}
	return a.sendTerraformState(c, f)
}

func (a *API) sendTerraformState(c *call, f *terraform.File) (streamed, error) {
	defer f.Close()
	return a.send(c, stream{media: "application/json", size: f.Size, write: func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	}})
}

// saveTerraformState: https://docs.gitlab.com/user/infrastructure/iac/terraform_state/
func (a *API) saveTerraformState(c *call, p terraformStateParams) (streamed, error) {
	var sum []byte
	if header := c.r.Header.Get("Content-Md5"); header != "" {
		var err error
		if sum, err = base64.StdEncoding.DecodeString(header); err != nil || len(sum) != 16 {
			return streamed{}, errs.Invalid("the header Content-MD5 is invalid")
		}
	}
	saved, err := a.Terraform.Save(c, c.actor, p.Project, p.Name, p.ID, c.r.Body, sum)
	if err != nil {
		if errs.KindOf(err) == 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			err = &bind.InputError{Fault: bind.FaultIncomplete, Text: "the body is incomplete", Cause: err}
		}
		return streamed{}, err
	}
	if !saved {
		c.w.WriteHeader(http.StatusNoContent)
		return streamed{}, nil
	}
	return plainStatus(c, http.StatusOK)
}

// deleteTerraformState: https://docs.gitlab.com/user/infrastructure/iac/terraform_state/
func (a *API) deleteTerraformState(c *call, p terraformStateParams) (streamed, error) {
	if err := a.Terraform.Delete(c, c.actor, p.Project, p.Name, p.ID); err != nil {
		return streamed{}, err
	}
	return plainStatus(c, http.StatusOK)
}

// terraformLockJSON has the fields of the lock in the http backend.
type terraformLockJSON struct {
	ID        string
	Operation string
	Info      string
	Who       string
	Version   string
	Created   stamp
	Path      string
}

func toTerraformLock(l *terraform.Lock) terraformLockJSON {
	who := l.Info.Who
	if who == "" {
		who = l.User
	}
	return terraformLockJSON{
		ID: l.ID, Operation: l.Info.Operation, Info: l.Info.Info, Who: who, Version: l.Info.Version, Created: toStamp(l.At), Path: l.Info.Path,
	}
}

type lockTerraformParams struct {
	projectParams
	Name      string `param:"name" doc:"Name of the state."`
	ID        string `param:"ID,required" doc:"ID of the lock."`
	Operation string `param:"Operation" doc:"Operation of the client."`
	Info      string `param:"Info" doc:"Other information."`
	Who       string `param:"Who" doc:"User and machine of the client."`
	Version   string `param:"Version" doc:"Version of the client."`
	Created   string `param:"Created" doc:"No effect: the time of the server is used."`
	Path      string `param:"Path" doc:"Path of the state on the machine of the client."`
}

// lockTerraformState: https://docs.gitlab.com/user/infrastructure/iac/terraform_state/
func (a *API) lockTerraformState(c *call, p lockTerraformParams) (any, error) {
	lock, err := a.Terraform.Acquire(c, c.actor, p.Project, p.Name, p.ID, terraform.LockInfo{
		Operation: p.Operation, Info: p.Info, Who: p.Who, Version: p.Version, Path: p.Path,
	})
	if held, ok := errors.AsType[*terraform.Locked](err); ok && held.Lock != nil {
		return withStatus{http.StatusConflict, toTerraformLock(held.Lock)}, nil
	}
	if err != nil {
		return nil, err
	}
	return toTerraformLock(lock), nil
}

// unlockTerraformState: https://docs.gitlab.com/user/infrastructure/iac/terraform_state/
func (a *API) unlockTerraformState(c *call, p terraformStateParams) (streamed, error) {
	if err := a.Terraform.Release(c, c.actor, p.Project, p.Name, p.ID); err != nil {
		return streamed{}, err
	}
	return plainStatus(c, http.StatusOK)
}

// deleteTerraformStateVersion: https://docs.gitlab.com/user/infrastructure/iac/terraform_state/
func (a *API) deleteTerraformStateVersion(c *call, p terraformVersionParams) (none, error) {
	return none{}, a.Terraform.DeleteVersion(c, c.actor, p.Project, p.Name, p.Serial)
}
