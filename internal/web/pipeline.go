package web

import (
	"fmt"
	"html/template"
	"strings"

	"svc/internal/ci"
	"svc/internal/ci/flow"
	"svc/internal/ci/report"
	"svc/internal/ci/variable"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/web/joblog"
)

// pipelinePage is one pipeline: its graph, or another of its tabs.
type pipelinePage struct {
	ciHead
	*ci.Graph
	Shows     string // graph, jobs, failures, tests or variables
	Columns   []column
	Lines     template.HTML // of the graph
	Failures  []failure
	Failed    int
	Report    *report.TestReport
	Suites    []suite
	List      []*ci.Job // of the tab of jobs
	Pager     pager
	Variables []variable.Given
	MayRun    bool
	MaySee    bool // its variables
	MayDelete bool
}

// suite is a test suite with the cases that are shown.
type suite struct {
	*report.TestSuite
	Shown []report.TestCase
	Left  int
}

// column is a stage in the graph.
type column struct {
	Name string
	Jobs []*ci.Job
}

// failure is a job that failed, with the end of its log.
type failure struct {
	*ci.Job
	Log []template.HTML
}

func (pipelinePage) view() string { return "project/pipeline" }
func (p pipelinePage) title() string {
	return fmt.Sprintf("Pipeline #%d · %s", p.ID, p.Project.FullName())
}

// pipelineTab shows a tab of a pipeline.
func (w *Web) pipelineTab(tab string) func(*visit, project.Ref) error {
	return func(v *visit, ref project.Ref) error {
		id, err := v.number("id")
		if err != nil {
			return err
		}
		h, err := w.ciHead(v, ref, "pipelines")
		if err != nil {
			return err
		}
		p := pipelinePage{ciHead: h, Shows: tab}
		if p.Graph, err = w.CI.PipelineGraph(v, v.actor, h.in(), id); err != nil {
			return err
		}
		for _, j := range p.Jobs {
			if j.Status == flow.Failed {
				p.Failed++
			}
		}
		if err := w.mayOn(v, &p); err != nil {
			return err
		}
		if err := w.fillTab(v, &p); err != nil {
			return err
		}
		return v.show(p)
	}
}

// mayOn finds out which buttons there are.
func (w *Web) mayOn(v *visit, p *pipelinePage) error {
	can, err := w.CI.PipelineCan(v, v.actor, p.Project, p.Pipeline)
	p.MayRun, p.MayDelete, p.MaySee = can.Run, can.Delete, can.SeeVariables
	return err
}

func (w *Web) fillTab(v *visit, p *pipelinePage) (err error) {
	switch p.Shows {
	case "graph":
		p.Columns = columns(p.Jobs)
		p.Lines = drawNeeds(p.Columns)
	case "jobs":
		var page db.Page[*ci.Job]
		page, err = w.CI.PipelineJobs(v, v.actor, p.in(), p.ID, ci.JobFilter{Retried: true}, v.paging())
		p.List, p.Pager = page.Items, v.pager(page.More)
	case "failures":
		p.Failures, err = w.failures(v, p)
	case "tests":
		p.Report, err = w.CI.TestReport(v, v.actor, p.in(), p.ID, true)
		if err == nil {
			p.Suites = suites(p.Report)
		}
	case "variables":
		p.Variables, err = w.CI.PipelineVariables(v, v.actor, p.in(), p.ID)
	}
	return err
}

// columns puts jobs into their stages.
func columns(jobs []*ci.Job) []column {
	var list []column
	for _, j := range jobs {
		if n := len(list); n == 0 || list[n-1].Name != j.Stage {
			list = append(list, column{Name: j.Stage})
		}
		last := &list[len(list)-1]
		last.Jobs = append(last.Jobs, j)
	}
	return list
}

// failures are the first jobs that failed, each with the end of its log.
func (w *Web) failures(v *visit, p *pipelinePage) ([]failure, error) {
	const most, lines = 8, 15
	var list []failure
	for _, j := range p.Jobs {
		if j.Status != flow.Failed || len(list) == most {
			continue
		}
		f := failure{Job: j}
		l, err := w.CI.Log(v, v.actor, p.in(), j.ID)
		switch {
		case err == nil:
			end, err := joblog.End(l, l.Size, lines)
			_ = l.Close()
			if err != nil {
				return nil, err
			}
			for _, line := range end {
				f.Log = append(f.Log, template.HTML(line)) // joblog escapes
			}
		case !errs.Is(err, errs.KindNotFound) && !errs.Is(err, errs.KindForbidden):
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

const (
	maxCases  = 100     // of a report that a page shows
	maxOutput = 1 << 10 // bytes of one of them
)

// suites choose the cases that are shown: what failed first.
func suites(r *report.TestReport) []suite {
	var list []suite
	room := maxCases
	for _, s := range r.Suites {
		one := suite{TestSuite: s}
		for _, good := range []bool{false, true} {
			for _, c := range s.Cases {
				if fine := c.Status == report.TestSuccess || c.Status == report.TestSkipped; fine != good {
					continue
				}
				if room == 0 {
					one.Left++
					continue
				}
				room--
				c.Output = strings.ToValidUTF8(c.Output[:min(len(c.Output), maxOutput)], "")
				one.Shown = append(one.Shown, c)
			}
		}
		list = append(list, one)
	}
	return list
}

// The measures of the graph, in pixels of a page of the usual size; the
// stylesheet has the same.
const (
	graphColumn = 280 // from one stage to the next
	graphWidth  = 224 // of a job
	graphRow    = 52
	graphTop    = 36
)

// drawNeeds draws the lines from jobs to those that need them. Only numbers
// go into it.
func drawNeeds(list []column) template.HTML {
	type spot struct{ x, y int }
	at := map[string]spot{}
	rows, edges := 0, 0
	var b strings.Builder
	for x, c := range list {
		rows = max(rows, len(c.Jobs))
		for y, j := range c.Jobs {
			at[j.Name] = spot{x * graphColumn, graphTop + y*graphRow + 22}
		}
	}
	for _, c := range list {
		for _, j := range c.Jobs {
			for _, n := range j.Needs {
				from, known := at[n.Name]
				if !known {
					continue
				}
				edges++
				to := at[j.Name]
				if from.x == to.x { // in one stage
					fmt.Fprintf(&b, `<path d="M%d %dC%d %d %d %d %d %d"/>`, from.x+graphWidth, from.y, from.x+graphWidth+36, from.y, to.x+graphWidth+36, to.y, to.x+graphWidth, to.y)
					continue
				}
				half := (to.x - from.x - graphWidth) / 2
				fmt.Fprintf(&b, `<path d="M%d %dC%d %d %d %d %d %d"/>`, from.x+graphWidth, from.y, from.x+graphWidth+half, from.y, to.x-half, to.y, to.x, to.y)
			}
		}
	}
	if edges == 0 {
		return ""
	}
	width, height := len(list)*graphColumn, graphTop+rows*graphRow
	return template.HTML(fmt.Sprintf(`<svg class="needs" aria-hidden="true" width="%grem" height="%grem" viewBox="0 0 %d %d">%s</svg>`,
		float64(width)/16, float64(height)/16, width, height, b.String()))
}
