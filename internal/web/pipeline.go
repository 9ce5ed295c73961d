package web

import (
	"fmt"
	"html/template"
	"regexp"
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
	Allowed   int // jobs that failed and are allowed to fail
	Report    *report.TestReport
	Suites    []suite
	List      []*ci.Job // of the tab of jobs
	Pager     pager
	Variables []variable.Given
	MayRun    bool
	MayRetry  bool
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
	Name  string
	Nodes []*node
}

// node is a job in the graph, or the jobs of a parallel job.
type node struct {
	Name  string
	State ciStatus // of all of them together
	Jobs  []nodeJob
}

// nodeJob is a job of a node. Its label is its name; in a group, the part after
// the name of the group.
type nodeJob struct {
	*ci.Job
	Label string
}

// failure is a job that failed, with the end of its log.
type failure struct {
	*ci.Job
	Log []template.HTML
}

func (pipelinePage) view() string { return "project/pipeline" }
func (p pipelinePage) wide() bool { return p.Shows == "graph" }
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
			switch {
			case j.FailedAllowed():
				p.Allowed++
			case j.Status == flow.Failed:
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

// mayOn determines which buttons are shown.
func (w *Web) mayOn(v *visit, p *pipelinePage) error {
	can, err := w.CI.PipelineCan(v, v.actor, p.Project, p.Pipeline)
	p.MayRun, p.MayDelete, p.MaySee = can.Run, can.Delete, can.SeeVariables
	p.MayRetry = can.Retry && (p.Failed+p.Allowed > 0 || p.Status == flow.Canceled)
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

// columns groups jobs by stage, and the jobs of a parallel job in one node.
func columns(jobs []*ci.Job) []column {
	var list []column
	var groups map[string]*node // of the last stage
	for _, j := range jobs {
		if n := len(list); n == 0 || list[n-1].Name != j.Stage {
			list, groups = append(list, column{Name: j.Stage}), map[string]*node{}
		}
		last := &list[len(list)-1]
		name, label := j.Name, j.Name
		if parts := parallelName.FindStringSubmatch(j.Name); parts != nil {
			name, label = parts[1], parts[2]
		}
		at := groups[name]
		if label == j.Name || at == nil {
			at = &node{Name: name}
			last.Nodes = append(last.Nodes, at)
			if label != j.Name {
				groups[name] = at
			}
		}
		at.Jobs = append(at.Jobs, nodeJob{j, label})
	}
	for _, c := range list {
		for _, n := range c.Nodes {
			n.settle()
		}
	}
	return list
}

// parallelName matches the names of the jobs that one parallel job became:
// "name 1/3" and "name: [value, value]".
var parallelName = regexp.MustCompile(`^(.*?\S)(?:\s*:\s*|\s+)(\[.*\]|\d+\s*[/:\\]\s*\d+)\s*$`)

// settle computes the state of a node from its jobs.
func (n *node) settle() {
	if !n.Group() {
		n.Name, n.Jobs[0].Label = n.Jobs[0].Name, n.Jobs[0].Name
	}
	var jobs []*ci.Job
	for _, j := range n.Jobs {
		jobs = append(jobs, j.Job)
	}
	status, warnings := ci.Combined(jobs)
	n.State = ciStatus{Status: string(status), Warning: warnings}
}

// Group reports whether it has more than one job.
func (n *node) Group() bool { return len(n.Jobs) > 1 }

// failures are the first jobs that failed, each with the end of its log; those
// that are allowed to fail come last.
func (w *Web) failures(v *visit, p *pipelinePage) ([]failure, error) {
	const most, lines = 8, 15
	var failed, allowed []*ci.Job
	for _, j := range p.Jobs {
		switch {
		case j.FailedAllowed():
			allowed = append(allowed, j)
		case j.Status == flow.Failed:
			failed = append(failed, j)
		}
	}
	failed = append(failed, allowed...)
	var list []failure
	for _, j := range failed[:min(len(failed), most)] {
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

// suites selects the test cases that are shown, failed ones first.
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

// The dimensions of the graph in pixels, at the default font size. The
// stylesheet has the same.
const (
	graphColumn = 280 // from one stage to the next
	graphWidth  = 224 // of a job
	graphRow    = 52
	graphTop    = 36
	graphMiddle = 22 // of a row, from its top
)

// drawNeeds draws the lines from jobs to the jobs that need them. Only numbers
// are written to the picture.
func drawNeeds(list []column) template.HTML {
	type spot struct{ x, y int }
	type edge struct{ from, to spot }
	at := map[string]spot{}
	rows, drawn := 0, map[edge]bool{}
	var b strings.Builder
	for x, c := range list {
		rows = max(rows, len(c.Nodes))
		for y, n := range c.Nodes {
			for _, j := range n.Jobs {
				at[j.Name] = spot{x * graphColumn, graphTop + y*graphRow + graphMiddle}
			}
		}
	}
	draw := func(e edge) {
		from, to := e.from, e.to
		const gap = graphColumn - graphWidth
		switch right := from.x + graphWidth; {
		case from == to || drawn[e]: // within a group, or between the same nodes
			return
		case from.x == to.x: // in one stage
			fmt.Fprintf(&b, `<path d="M%d %dC%d %d %d %d %d %d"/>`, right, from.y, right+36, from.y, right+36, to.y, right, to.y)
		case to.x-from.x > graphColumn: // between the rows of the stages in between
			lane := from.y + graphRow/2
			if to.y < from.y {
				lane = from.y - graphRow/2
			}
			fmt.Fprintf(&b, `<path d="M%d %dC%d %d %d %d %d %dH%dC%d %d %d %d %d %d"/>`, right, from.y, right+gap/2, from.y, right+gap/2, lane, right+gap, lane,
				to.x-gap, to.x-gap/2, lane, to.x-gap/2, to.y, to.x, to.y)
		default:
			half := (to.x - right) / 2
			fmt.Fprintf(&b, `<path d="M%d %dC%d %d %d %d %d %d"/>`, right, from.y, right+half, from.y, to.x-half, to.y, to.x, to.y)
		}
		drawn[e] = true
	}
	for _, c := range list {
		for _, n := range c.Nodes {
			for _, j := range n.Jobs {
				for _, before := range j.Needs {
					if from, known := at[before.Name]; known {
						draw(edge{from, at[j.Name]})
					}
				}
			}
		}
	}
	if len(drawn) == 0 {
		return ""
	}
	width, height := len(list)*graphColumn, graphTop+rows*graphRow
	return template.HTML(fmt.Sprintf(`<svg class="needs" aria-hidden="true" width="%grem" height="%grem" viewBox="0 0 %d %d">%s</svg>`,
		float64(width)/16, float64(height)/16, width, height, b.String()))
}
