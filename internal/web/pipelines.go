package web

import (
	"fmt"
	"net/http"
	"strings"

	"svc/internal/ci"
	"svc/internal/ci/config"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
)

func (w *Web) pipelinePages() {
	w.projectPage("GET pipelines", anyone, w.pipelines)
	w.projectPage("GET pipelines/events", anyone, w.pipelinesEvents)
	w.projectPage("GET pipelines/new", signedIn, w.runPage)
	w.projectPage("POST pipelines", signedIn, w.runPipeline)
	w.projectPage("GET pipelines/charts", anyone, w.charts)
	w.projectPage("GET pipelines/latest", anyone, w.latestPipeline)
	w.projectPage("GET pipelines/{id}", anyone, w.pipelineTab("graph"))
	w.projectPage("GET pipelines/{id}/builds", anyone, w.pipelineTab("jobs"))
	w.projectPage("GET pipelines/{id}/failures", anyone, w.pipelineTab("failures"))
	w.projectPage("GET pipelines/{id}/test_report", anyone, w.pipelineTab("tests"))
	w.projectPage("GET pipelines/{id}/variables", signedIn, w.pipelineTab("variables"))
	w.projectPage("GET pipelines/{id}/events", anyone, w.pipelineEvents)
	w.projectPage("POST pipelines/{id}/retry", signedIn, w.retryPipeline)
	w.projectPage("POST pipelines/{id}/cancel", signedIn, w.cancelPipeline)
	w.projectPage("POST pipelines/{id}/delete", signedIn, w.deletePipeline)
	w.projectPage("GET ci/lint", anyone, w.lintPage)
	w.projectPage("POST ci/lint", signedIn, w.lint)
	w.ciEditorPages()
	w.projectPage("GET badges/*", anyone, w.badge)
}

// pipelinesPage is the list of pipelines.
type pipelinesPage struct {
	ciHead
	Rows     []*ci.PipelineRow
	Pager    pager
	Filter   ci.PipelineFilter
	Filtered bool
	Statuses []flow.Status
	Sources  []ci.Source
}

func (pipelinesPage) view() string    { return "project/pipelines" }
func (p pipelinesPage) title() string { return "Pipelines · " + p.Project.FullName() }

func (w *Web) pipelines(v *visit, ref project.Ref) error {
	h, err := w.ciHead(v, ref, "pipelines")
	if err != nil {
		return err
	}
	p := pipelinesPage{
		ciHead:   h,
		Statuses: []flow.Status{flow.Running, flow.Pending, flow.Success, flow.Failed, flow.Canceled, flow.Skipped, flow.Manual, flow.Scheduled, flow.Created, flow.Waiting},
		Sources:  []ci.Source{ci.FromPush, ci.FromWeb, ci.FromAPI, ci.FromSchedule, ci.FromTrigger, ci.FromPipeline, ci.FromParent, ci.FromOutside},
	}
	p.Filter = ci.PipelineFilter{
		Status: flow.Status(v.param("status")), Source: ci.Source(v.param("source")), Ref: strings.TrimSpace(v.param("ref")),
		Username: strings.TrimPrefix(strings.TrimSpace(v.param("username")), "@"), SHA: v.param("sha"),
	}
	p.Filtered = p.Filter != ci.PipelineFilter{} || v.pageNumber() > 1
	found, err := w.CI.PipelineRows(v, v.actor, h.in(), p.Filter, v.paging())
	if err != nil {
		return err
	}
	p.Rows, p.Pager = found.Items, v.pager(found.More)
	var refs []ci.RunRef
	for _, r := range p.Rows {
		refs = append(refs, ci.RunRef{Name: r.Ref, Tag: r.Tag})
	}
	if err := p.ask(v, refs...); err != nil {
		return err
	}
	return v.show(p)
}

func (w *Web) pipelinesEvents(v *visit, ref project.Ref) error { return w.sendChanges(v, ref, 0) }

func (w *Web) pipelineEvents(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	return w.sendChanges(v, ref, id)
}

// latestPipeline redirects to the newest pipeline of a ref.
func (w *Web) latestPipeline(v *visit, ref project.Ref) error {
	proj, p, err := w.CI.LatestPipeline(v, v.actor, ref, v.param("ref"))
	if err != nil {
		return err
	}
	return v.redirect(stateOf(proj, p).URL)
}

// runPage is the form that starts a pipeline.
type runPage struct {
	ciHead
	Form     form
	Asks     *ci.PipelineForm
	Fault    string
	Ref      string
	Branches []string
	Tags     []string
	Rows     []variable.Given // further variables
}

func (runPage) view() string    { return "project/run_pipeline" }
func (p runPage) title() string { return "Run pipeline · " + p.Project.FullName() }

func (w *Web) runPage(v *visit, ref project.Ref) error {
	return w.showRun(v, ref, filled("ref", v.param("ref")))
}

func (w *Web) showRun(v *visit, ref project.Ref, f form) error {
	h, err := w.ciHead(v, ref, "run")
	if err != nil {
		return err
	}
	p := runPage{ciHead: h, Form: f, Rows: append(v.pairs(), variable.Given{})}
	if p.Branches, p.Tags, err = w.refNames(v, h.in()); err != nil {
		return err
	}
	// A ref that does not exist or that the user may not run is reported in the
	// form.
	if p.Asks, err = w.CI.PipelineForm(v, v.actor, h.in(), f.Get("ref")); err != nil {
		p.Asks = &ci.PipelineForm{Ref: f.Get("ref")}
		if err := p.Form.refused(err); err != nil {
			return err
		}
	}
	if p.Ref = p.Asks.Ref; p.Asks.Fault != nil {
		p.Fault = p.Asks.Fault.Error()
	}
	p.Form.only()
	if p.Form.Error != "" && v.r.Method == http.MethodPost {
		return v.again(p)
	}
	return v.show(p)
}

// refNames returns the first branches and tags, as suggestions.
func (w *Web) refNames(v *visit, in project.Ref) (branches, tags []string, err error) {
	pg := db.Paging{Limit: 100}
	_, heads, err := w.Repos.Branches(v, v.actor, in, repo.RefFilter{}, pg)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range heads.Items {
		branches = append(branches, b.Name)
	}
	_, marks, err := w.Repos.Tags(v, v.actor, in, repo.RefFilter{}, pg)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range marks.Items {
		tags = append(tags, t.Name)
	}
	return branches, tags, nil
}

func (w *Web) runPipeline(v *visit, ref project.Ref) error {
	n := ci.NewPipeline{Ref: v.text("ref"), Inputs: map[string]any{}}
	n.Variables = v.pairs()
	for name, values := range v.r.PostForm {
		if key, ok := strings.CutPrefix(name, "described_"); ok && values[0] != "" {
			n.Variables = append(n.Variables, variable.Given{Key: key, Value: values[0], Type: variable.EnvVar})
		}
		if key, ok := strings.CutPrefix(name, "input_"); ok && values[0] != "" {
			n.Inputs[key] = config.Texts(values)
		}
	}
	p, err := w.CI.RunPipeline(v, v.actor, ref, n)
	if err != nil {
		f := v.sent()
		if err := f.refused(err); err != nil {
			return err
		}
		return w.showRun(v, ref, f)
	}
	return w.doneWith(v, ref, "The pipeline was created.", "pipelines/%d", p.ID)
}

// doneWith redirects to a page of the project after an action.
func (w *Web) doneWith(v *visit, ref project.Ref, text, page string, args ...any) error {
	p, err := w.Projects.Require(v, v.actor, ref, project.NoAccess)
	if err != nil {
		return err
	}
	return v.done(text, "/"+p.FullPath+"/-/"+fmt.Sprintf(page, args...))
}

func (w *Web) retryPipeline(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if _, _, err := w.CI.RetryPipeline(v, v.actor, ref, id); err != nil {
		return err
	}
	return w.doneWith(v, ref, "Failed jobs are being retried.", "pipelines/%d", id)
}

func (w *Web) cancelPipeline(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if _, _, err := w.CI.CancelPipeline(v, v.actor, ref, id); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The pipeline was canceled.", "pipelines/%d", id)
}

func (w *Web) deletePipeline(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	if err := w.CI.DeletePipeline(v, v.actor, ref, id, nil); err != nil {
		return err
	}
	return w.doneWith(v, ref, "The pipeline was deleted.", "pipelines")
}

// lintPage checks a CI file.
type lintPage struct {
	ciHead
	Ref     string
	Content string
	Result  *config.LintResult
	Own     bool // the file of the project was checked
	DryRun  bool
}

func (lintPage) view() string    { return "project/ci_lint" }
func (p lintPage) title() string { return "CI Lint · " + p.Project.FullName() }

// lintPage shows the result of CI Lint for the file of the project.
func (w *Web) lintPage(v *visit, ref project.Ref) error {
	h, err := w.ciHead(v, ref, "lint")
	if err != nil {
		return err
	}
	p := lintPage{ciHead: h, Own: true, Ref: v.param("ref")}
	if p.Ref == "" {
		p.Ref = h.Project.DefaultBranch
	}
	if p.Ref == "" {
		return v.show(p)
	}
	if p.Result, err = w.CI.Lint(v, v.actor, h.in(), ci.LintRequest{At: p.Ref, Ref: p.Ref}); err != nil {
		return err
	}
	return v.show(p)
}

func (w *Web) lint(v *visit, ref project.Ref) error {
	h, err := w.ciHead(v, ref, "lint")
	if err != nil {
		return err
	}
	p := lintPage{ciHead: h, Ref: v.text("ref"), Content: v.r.PostForm.Get("content"), DryRun: v.text("dry_run") == "1"}
	p.Result, err = w.CI.Lint(v, v.actor, h.in(), ci.LintRequest{Content: &p.Content, Ref: p.Ref, DryRun: p.DryRun})
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, p)
}

// badge draws the state of the newest pipeline of a ref, or its coverage:
// badges/<ref>/pipeline.svg.
func (w *Web) badge(v *visit, ref project.Ref) error {
	name, what, ok := cutLast(v.rest(), "/")
	if !ok {
		return errs.NotFound("")
	}
	_, p, err := w.CI.LatestPipeline(v, v.actor, ref, name)
	if errs.Is(err, errs.KindNotFound) {
		if _, seen := w.Projects.Require(v, v.actor, ref, project.NoAccess); seen != nil {
			return err
		}
		p, err = nil, nil
	}
	if err != nil {
		return err
	}
	label, value, color := "", "unknown", "#9f9f9f"
	switch what {
	case "pipeline.svg":
		label = "pipeline"
		if p != nil {
			value, color = strings.ToLower(newState(p.Status, "").Word()), badgeColor(p.Status)
		}
	case "coverage.svg":
		label = "coverage"
		if p != nil && p.Coverage != nil {
			value, color = fmt.Sprintf("%.2f%%", *p.Coverage), coverageColor(*p.Coverage)
		}
	default:
		return errs.NotFound("")
	}
	foreign(v.w.Header(), "image/svg+xml; charset=utf-8", "private, no-cache")
	_, _ = v.w.Write([]byte(drawBadge(label, value, color)))
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
