package web

import (
	"net/url"

	"svc/internal/ci/deployment"
	"svc/internal/project"
)

func (w *Web) environmentPages() {
	w.projectPage("GET environments", anyone, w.environments)
	w.projectPage("GET environments/{id}", anyone, w.environment)
	w.projectPage("POST environments/{id}/stop", signedIn, w.stopEnvironment)
	w.projectPage("POST environments/{id}/delete", signedIn, w.deleteEnvironment)
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

// environmentPage is an environment with what was brought to it.
type environmentPage struct {
	ciHead
	*deployment.Environment
	Deployments []*deployment.Deployment
	Pager       pager
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
	p.Deployments, p.Pager = found.Items, v.pager(found.More)
	return v.show(p)
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
