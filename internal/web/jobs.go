package web

import (
	"fmt"
	"html/template"

	"svc/internal/ci"
	"svc/internal/ci/artifact"
	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/ci/variable"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/web/joblog"
)

func (w *Web) jobPages() {
	w.projectPage("GET jobs", anyone, w.jobs)
	w.projectPage("GET jobs/{id}", anyone, w.job)
	w.projectPage("GET jobs/{id}/raw", anyone, w.rawLog)
	w.projectPage("GET jobs/{id}/log", anyone, w.logWindow)
	w.projectPage("GET jobs/{id}/log/search", anyone, w.searchLog)
	w.projectPage("GET jobs/{id}/log/events", anyone, w.followLog)
	w.projectPage("POST jobs/{id}/retry", signedIn, w.actOnJob("The job was retried.", w.retryJob))
	w.projectPage("POST jobs/{id}/cancel", signedIn, w.actOnJob("The job was canceled.", w.cancelJob))
	w.projectPage("POST jobs/{id}/play", signedIn, w.actOnJob("The job was started.", w.playJob))
	w.projectPage("POST jobs/{id}/unschedule", signedIn, w.actOnJob("The job was unscheduled. Start it manually.", w.unscheduleJob))
	w.projectPage("POST jobs/{id}/erase", signedIn, w.actOnJob("The job log and artifacts were erased.", w.eraseJob))
}

// jobsPage is the list of the jobs of a project.
type jobsPage struct {
	ciHead
	Jobs     []*ci.Job
	Pager    pager
	Status   string
	Statuses []flow.Status
}

func (jobsPage) view() string    { return "project/jobs" }
func (p jobsPage) title() string { return "Jobs · " + p.Project.FullName() }

func (w *Web) jobs(v *visit, ref project.Ref) error {
	h, err := w.ciHead(v, ref, "jobs")
	if err != nil {
		return err
	}
	p := jobsPage{
		ciHead: h, Status: v.param("status"),
		Statuses: []flow.Status{flow.Running, flow.Pending, flow.Success, flow.Failed, flow.Canceled, flow.Skipped, flow.Manual, flow.Scheduled, flow.Created},
	}
	var scope []flow.Status
	if p.Status != "" {
		scope = []flow.Status{flow.Status(p.Status)}
	}
	found, err := w.CI.Jobs(v, v.actor, h.in(), scope, v.paging())
	if err != nil {
		return err
	}
	p.Jobs, p.Pager = found.Items, v.pager(found.More)
	var refs []ci.RunRef
	for _, j := range p.Jobs {
		refs = append(refs, ci.RunRef{Name: j.Ref, Tag: j.Tag})
	}
	if err := p.ask(v, refs...); err != nil {
		return err
	}
	return v.show(p)
}

// jobPage is a job with a part of its log.
type jobPage struct {
	ciHead
	*ci.Job
	Log       logPart
	Attempts  []*ci.Job
	Archive   *artifact.File
	Reports   []*artifact.File
	MayRun    bool
	SetsVars  bool // the visitor may start it with variables
	MayErase  bool
	MayKeep   bool
	MayDelete bool // its artifacts
	MayRead   bool // its log
	Rows      []variable.Given
	Gate      deployment.Gate // whether it may deploy
}

// Starts reports whether the visitor can start the job.
func (p jobPage) Starts() bool {
	return p.MayRun && (p.Status == flow.Manual || p.Status == flow.Scheduled) && p.Gate.Allowed && !p.Gate.Waiting
}

// logPart is a window of a log with links to the previous and the next one.
type logPart struct {
	joblog.Window
	Rows   []logRow
	Before int // the first line of the window before; 0 without one
	After  int
	Done   bool
	Query  string
	Found  joblog.Found
	Size   int64
}

// logRow is a line of a log.
type logRow struct {
	N    int
	HTML template.HTML
}

func (jobPage) view() string { return "project/job" }
func (jobPage) wide() bool   { return true }
func (p jobPage) title() string {
	return fmt.Sprintf("%s (#%d) · %s", p.Name, p.ID, p.Project.FullName())
}

// Queued returns how long the job waited for a runner.
func (p jobPage) Queued() template.HTML {
	return runningTime(p.QueuedDuration(p.at), p.Status == flow.Pending)
}

func (w *Web) job(v *visit, ref project.Ref) error {
	id, err := v.number("id")
	if err != nil {
		return err
	}
	h, err := w.ciHead(v, ref, "jobs")
	if err != nil {
		return err
	}
	p := jobPage{ciHead: h, MayRead: true, Rows: []variable.Given{{}}}
	if p.Job, err = w.CI.Job(v, v.actor, h.in(), id); err != nil {
		return err
	}
	if p.Bridge {
		return v.redirect(fmt.Sprintf("%s/pipelines/%d", h.Base, p.PipelineID))
	}
	for _, a := range p.Artifacts {
		switch a.Kind {
		case artifact.Archive:
			p.Archive = a
		case artifact.Trace, artifact.Metadata:
		default:
			p.Reports = append(p.Reports, a)
		}
	}
	if p.Attempts, err = w.CI.Attempts(v, v.actor, h.in(), p.Job); err != nil {
		return err
	}
	if err := w.mayOnJob(v, &p); err != nil {
		return err
	}
	p.Log, err = w.firstLines(v, &p)
	if errs.Is(err, errs.KindForbidden) {
		p.MayRead, err = false, nil
	}
	if err != nil {
		return err
	}
	return v.show(p)
}

func (w *Web) mayOnJob(v *visit, p *jobPage) error {
	can, err := w.CI.JobCan(v, v.actor, p.head.Project, p.Job) // p.Job.Project does not have the access of the actor
	p.SetsVars, p.Gate = can.SetVariables, can.Gate
	p.MayRun, p.MayKeep, p.MayDelete, p.MayErase = can.Run, can.Keep, can.DeleteArtifacts, can.Erase
	return err
}

// actOnJob runs an action on a job and redirects to it.
func (w *Web) actOnJob(text string, do func(*visit, project.Ref, int64) (*ci.Job, error)) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		id, err := v.number("id")
		if err != nil {
			return err
		}
		j, err := do(v, ref, id)
		if err != nil {
			return err
		}
		if j.Bridge {
			return w.doneWith(v, ref, text, "pipelines/%d", j.PipelineID)
		}
		return w.doneWith(v, ref, text, "jobs/%d", j.ID)
	}
}

func (w *Web) retryJob(v *visit, ref project.Ref, id int64) (*ci.Job, error) {
	return w.CI.Retry(v, v.actor, ref, id)
}

func (w *Web) cancelJob(v *visit, ref project.Ref, id int64) (*ci.Job, error) {
	return w.CI.Cancel(v, v.actor, ref, id, v.text("force") == "1")
}

func (w *Web) playJob(v *visit, ref project.Ref, id int64) (*ci.Job, error) {
	return w.CI.Play(v, v.actor, ref, id, v.pairs())
}

func (w *Web) unscheduleJob(v *visit, ref project.Ref, id int64) (*ci.Job, error) {
	return w.CI.Unschedule(v, v.actor, ref, id)
}

func (w *Web) eraseJob(v *visit, ref project.Ref, id int64) (*ci.Job, error) {
	return w.CI.Erase(v, v.actor, ref, id)
}
