package web

import (
	"fmt"
	"net/url"

	"svc/internal/ci"
	"svc/internal/ci/deployment"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
)

func (w *Web) environmentPages() {
	w.projectPage("GET environments", anyone, w.environments)
	w.projectPage("GET environments/{id}", anyone, w.environment)
	w.projectPage("POST environments/{id}/stop", signedIn, w.stopEnvironment)
	w.projectPage("POST environments/{id}/delete", signedIn, w.deleteEnvironment)
	w.projectPage("POST environments/{id}/redeploy", signedIn, w.redeploy)
	w.projectPage("POST environments/{id}/approval", signedIn, w.decideDeployment)
}

// environmentsPage is the list of environments.
type environmentsPage struct {
	ciHead
	Environments []*deployment.Environment
	Stopped      bool // the tab
	Pager        pager
}

func (environmentsPage) view() string    { return "project/environments" }
func (p environmentsPage) title() string { return "Environments · " + p.Project.FullName() }

func (w *Web) environments(v *visit, ref project.Ref) error {
	h, err := w.ciHead(v, ref, "environments")
	if err != nil {
		return err
	}
	p := environmentsPage{ciHead: h, Stopped: v.param("scope") == "stopped"}
	states := []deployment.State{deployment.Available, deployment.Stopping}
	if p.Stopped {
		states = []deployment.State{deployment.Stopped}
	}
	found, err := w.CI.Deployments.EnvironmentsWithLast(v, v.actor, h.in(), deployment.EnvironmentFilter{States: states}, v.paging())
	if err != nil {
		return err
	}
	p.Environments, p.Pager = found.Items, v.pager(found.More)
	return v.show(p)
}

// environmentPage is an environment with its deployments.
type environmentPage struct {
	ciHead
	*deployment.Environment
	Deployments []deploymentRow
	Pager       pager
}

// deploymentRow is a deployment with the action that repeats it.
type deploymentRow struct {
	*deployment.Deployment
	Again   string             // Re-deploy, Rollback or empty
	Review  *deployment.Review // of a deployment that waits for approvals
	Decides bool               // the visitor may approve or reject it
}

func (environmentPage) view() string    { return "project/environment" }
func (p environmentPage) title() string { return p.Name + " · " + p.Project.FullName() }

func (w *Web) environment(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	h, err := w.ciHead(v, ref, "environments")
	if err != nil {
		return err
	}
	p := environmentPage{ciHead: h}
	if p.Environment, err = w.CI.Deployments.Environment(v, v.actor, h.in(), id); err != nil {
		return err
	}
	found, err := w.CI.Deployments.List(v, v.actor, h.in(), deployment.Filter{Environment: p.Name, Desc: true}, v.paging())
	if err != nil {
		return err
	}
	p.Pager = v.pager(found.More)
	if p.Deployments, err = w.deploymentRows(v, &p, found.Items); err != nil {
		return err
	}
	return v.show(p)
}

// deploymentRows finds out which deployments can be repeated: the latest one, and
// later ones that did not succeed, are deployed again; an earlier one is rolled back
// to.
func (w *Web) deploymentRows(v *visit, p *environmentPage, list []*deployment.Deployment) ([]deploymentRow, error) {
	jobs, err := w.CI.DeploymentJobs(v, v.actor, list...)
	if err != nil {
		return nil, err
	}
	refs := make([]ci.RunRef, len(list))
	for i, d := range list {
		refs[i] = ci.RunRef{Name: d.Ref, Tag: d.Tag}
	}
	if err := p.ask(v, refs...); err != nil {
		return nil, err
	}
	latest, err := w.CI.Deployments.List(v, v.actor, p.in(), deployment.Filter{Environment: p.Name, Status: deployment.Success, Desc: true}, db.Paging{Limit: 1})
	if err != nil {
		return nil, err
	}
	rows := make([]deploymentRow, len(list))
	for i, d := range list {
		rows[i].Deployment = d
		if d.Status == deployment.Blocked {
			if rows[i].Review, err = w.CI.Deployments.ReviewOf(v, p.Project, d); err != nil {
				return nil, err
			}
			if rows[i].Decides, err = w.CI.Deployments.CanDecide(v, v.actor, p.Project, d, rows[i].Review); err != nil {
				return nil, err
			}
		}
		if d.JobID == nil || !p.MayOn(d.Ref, d.Tag) || p.State == deployment.Stopped {
			continue
		}
		now := len(latest.Items) == 0 || d.ID >= latest.Items[0].ID
		if d.Status != deployment.Success && !(now && (d.Status == deployment.Failed || d.Status == deployment.Canceled)) {
			continue
		}
		if j := jobs[*d.JobID]; j == nil || !j.Retryable() {
			continue
		}
		rows[i].Again = "Rollback"
		if now {
			rows[i].Again = "Re-deploy"
		}
	}
	return rows, nil
}

// redeploy runs the job of a deployment again.
func (w *Web) redeploy(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	var f form
	d, err := w.CI.Deployments.Get(v, v.actor, ref, v.whole(&f, "deployment"))
	if err != nil {
		return err
	}
	if d.EnvironmentID != id || d.JobID == nil {
		return errs.NotFound("")
	}
	p, err := w.Projects.Summary(v, v.actor, ref)
	if err != nil {
		return err
	}
	j, err := w.CI.Retry(v, v.actor, ref, *d.JobID)
	if err != nil {
		return v.redirectWithFlash(err, "", fmt.Sprintf("/%s/-/environments/%d", p.FullPath, id))
	}
	return v.done("The deployment was started.", fmt.Sprintf("/%s/-/jobs/%d", p.FullPath, j.ID))
}

// webAddress reports whether an address of an environment can be a link.
func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (w *Web) stopEnvironment(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if _, err := w.CI.StopEnvironment(v, v.actor, ref, id, v.text("force") == "1"); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The environment is being stopped.", "environments")
}

func (w *Web) deleteEnvironment(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.CI.Deployments.DeleteEnvironment(v, v.actor, ref, id); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The environment was deleted.", "environments?scope=stopped")
}

// decideDeployment approves or rejects a deployment that waits for approvals.
func (w *Web) decideDeployment(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	var f form
	approve := v.text("status") == "approved"
	_, err = w.CI.DecideDeployment(v, v.actor, ref, v.whole(&f, "deployment"), deployment.Decision{Approve: approve, Comment: v.text("comment")})
	done := "The deployment was rejected."
	if approve {
		done = "The deployment was approved."
	}
	return v.redirectWithFlash(err, done, fmt.Sprintf("%s/-/environments/%d", pathTo(string(ref)), id))
}
