package ci

import (
	"context"
	"fmt"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/git"
	"svc/internal/project"
	"svc/internal/repo"
)

// Stage is a stage of a pipeline: its status and the number of its jobs.
type Stage struct {
	Name     string
	Status   flow.Status
	Warnings bool // it passed, but jobs failed that are allowed to fail
	Jobs     int
}

// Combined returns the status of jobs of one stage as a whole, and whether it has
// warnings: jobs failed that are allowed to fail.
func Combined(jobs []*Job) (status flow.Status, warnings bool) {
	list := make([]flow.Job, 0, len(jobs))
	for _, j := range jobs {
		list = append(list, flow.Job{Status: j.Status, AllowFailure: j.AllowFailure})
	}
	return combined(list)
}

func combined(jobs []flow.Job) (status flow.Status, warnings bool) {
	status = flow.Overall(jobs)
	for _, j := range jobs {
		switch {
		case status == flow.Skipped && j.Status == flow.Manual:
			// A stage with a manual job is not skipped: the job can still be
			// started.
			status = flow.Manual
		case status == flow.Success && j.Status == flow.Failed:
			warnings = true
		}
	}
	return status, warnings
}

// FailedAllowed reports whether a job failed that is allowed to fail.
func (j *Job) FailedAllowed() bool { return j.AllowFailure && j.Status == flow.Failed }

// PipelineRow is a pipeline with the data that lists show.
type PipelineRow struct {
	*Pipeline
	Commit   *git.Commit // nil if it no longer exists
	StageRow []Stage     // stages that have jobs, in order
}

// Sees reports whether an actor may see the pipelines of a project that they
// can see.
func (s *Service) Sees(by actor.Actor, p *project.Project) bool {
	return p.MayRead(by, project.BuildsPart)
}

// PipelineRows is Pipelines with the commit, the stages and the user of each
// pipeline.
func (s *Service) PipelineRows(ctx context.Context, by actor.Actor, in project.Ref, f PipelineFilter, pg db.Paging) (db.Page[*PipelineRow], error) {
	var page db.Page[*PipelineRow]
	proj, found, err := s.Pipelines(ctx, by, in, f, pg)
	if err != nil {
		return page, err
	}
	page.More = found.More
	page.Items, err = s.rows(ctx, proj, found.Items)
	return page, err
}

func (s *Service) rows(ctx context.Context, proj *project.Project, list []*Pipeline) ([]*PipelineRow, error) {
	if err := s.fillUsers(ctx, list); err != nil {
		return nil, err
	}
	var ids []int64
	var commits []string
	for _, p := range list {
		ids, commits = append(ids, p.ID), append(commits, p.SHA)
	}
	stages, err := findStages(ctx, s.DB, ids)
	if err != nil {
		return nil, fmt.Errorf("stages of pipelines: %w", err)
	}
	known, err := s.commits(ctx, proj, commits)
	if err != nil {
		return nil, fmt.Errorf("commits of pipelines: %w", err)
	}
	rows := make([]*PipelineRow, 0, len(list))
	for _, p := range list {
		p.Warnings = p.Status == flow.Success && slices.ContainsFunc(stages[p.ID], func(g Stage) bool { return g.Warnings })
		rows = append(rows, &PipelineRow{Pipeline: p, Commit: known[p.SHA], StageRow: stages[p.ID]})
	}
	return rows, nil
}

// commits returns the commits of a project that still exist.
func (s *Service) commits(ctx context.Context, proj *project.Project, ids []string) (map[string]*git.Commit, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	src, err := s.Repos.SourceOf(actor.System(), proj)
	if err != nil {
		return nil, err
	}
	return src.Commits(ctx, ids)
}

// Graph is a pipeline with its jobs, its upstream pipeline and its downstream
// pipelines.
type Graph struct {
	*PipelineRow
	Jobs []*Job // without retried jobs, in the order of the stages
	More bool   // there are more jobs
	// Upstream is the pipeline whose trigger job created this one, if the actor
	// can see it; UpstreamPath is the path of its project.
	Upstream     *Pipeline
	UpstreamPath string
}

// maxGraph is the maximum number of jobs in a graph.
const maxGraph = 200

// PipelineGraph returns a pipeline with its jobs, and with the upstream and
// downstream pipelines that the actor can see. NotFound.
func (s *Service) PipelineGraph(ctx context.Context, by actor.Actor, in project.Ref, id int64) (*Graph, error) {
	proj, p, err := s.Pipeline(ctx, by, in, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.rows(ctx, proj, []*Pipeline{p})
	if err != nil {
		return nil, err
	}
	g := &Graph{PipelineRow: rows[0]}
	if g.Jobs, err = findGraph(ctx, s.DB, id, maxGraph+1); err != nil {
		return nil, fmt.Errorf("jobs of pipeline %d: %w", id, err)
	}
	if len(g.Jobs) > maxGraph {
		g.Jobs, g.More = g.Jobs[:maxGraph], true
	}
	var bridges []int64
	for _, j := range g.Jobs {
		if j.Pipeline = p; j.Bridge {
			bridges = append(bridges, j.ID)
		}
	}
	if err := s.fillBlocked(ctx, g.Jobs); err != nil {
		return nil, err
	}
	made, err := findDownstream(ctx, s.DB, bridges)
	if err != nil {
		return nil, fmt.Errorf("downstream of pipeline %d: %w", id, err)
	}
	for _, j := range g.Jobs {
		if made[j.ID] == nil {
			continue
		}
		if j.Downstream, j.DownstreamPath, err = s.seenElsewhere(ctx, by, made[j.ID]); err != nil {
			return nil, err
		}
	}
	if up := p.facts.Upstream; up != nil {
		above, err := findPipeline(ctx, s.DB, up.ProjectID, up.PipelineID)
		if errs.Is(err, errs.KindNotFound) {
			return g, nil
		}
		if err != nil {
			return nil, err
		}
		if g.Upstream, g.UpstreamPath, err = s.seenElsewhere(ctx, by, above); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// seenElsewhere returns a pipeline and the path of its project, or nil if the
// actor cannot see the pipeline.
func (s *Service) seenElsewhere(ctx context.Context, by actor.Actor, p *Pipeline) (*Pipeline, string, error) {
	proj, err := s.seePipelines(ctx, by, project.RefTo(p.ProjectID))
	if err != nil {
		return nil, "", errs.IgnoreRefusal(err)
	}
	if !repo.RefVisible(by, proj, p.Ref) {
		return nil, "", nil
	}
	return p, proj.FullPath, nil
}

// Attempts returns the last attempts of a job: the jobs with its name in its
// pipeline, newest first. NotFound if the actor cannot see the job.
func (s *Service) Attempts(ctx context.Context, by actor.Actor, in project.Ref, j *Job) ([]*Job, error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return nil, err
	}
	if !repo.RefVisible(by, proj, j.Ref) {
		return nil, errs.NotFound("Job")
	}
	return findAttempts(ctx, s.DB, j.PipelineID, j.Name)
}

// DayStats counts the pipelines that were created on one day.
type DayStats struct {
	Day                    time.Time
	Success, Failed, Other int
	Took                   time.Duration // mean duration of the finished pipelines
}

// PipelineStats counts the pipelines of each of the last days, today last, for
// users who can see them. Invalid for more than 366 days.
func (s *Service) PipelineStats(ctx context.Context, by actor.Actor, in project.Ref, days int) ([]DayStats, error) {
	proj, err := s.seePipelines(ctx, by, in)
	if err != nil {
		return nil, err
	}
	if days < 1 || days > 366 {
		return nil, errs.Invalid("A chart has up to 366 days")
	}
	today := s.Now().UTC().Truncate(24 * time.Hour)
	list := make([]DayStats, days)
	for i := range list {
		list[i].Day = today.AddDate(0, 0, i-days+1)
	}
	var counts []dayCount
	err = s.DB.Search(ctx, func(ctx context.Context) (err error) {
		counts, err = countDays(ctx, s.DB, by, proj, list[0].Day)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pipelines by day: %w", err)
	}
	took, ended := make([]time.Duration, days), make([]int, days)
	for _, c := range counts {
		i := int(c.day.Sub(list[0].Day) / (24 * time.Hour))
		if i < 0 || i >= days {
			continue
		}
		switch c.status {
		case flow.Success:
			list[i].Success += c.n
		case flow.Failed:
			list[i].Failed += c.n
		default:
			list[i].Other += c.n
		}
		took[i], ended[i] = took[i]+c.took, ended[i]+c.ended
	}
	for i, n := range ended {
		if n > 0 {
			list[i].Took = took[i] / time.Duration(n)
		}
	}
	return list, nil
}

// RunRef is a branch or tag that pipelines run on.
type RunRef struct {
	Name string
	Tag  bool
}

// MayRun returns for each ref whether an actor may run pipelines and jobs on
// it, in a project that they can see.
func (s *Service) MayRun(ctx context.Context, by actor.Actor, p *project.Project, refs ...RunRef) (map[RunRef]bool, error) {
	if !CanRun(by, p) {
		return nil, nil
	}
	src, err := s.Repos.SourceOf(by, p)
	if err != nil {
		return nil, errs.IgnoreRefusal(err)
	}
	may := map[RunRef]bool{}
	for _, r := range refs {
		if _, asked := may[r]; asked {
			continue
		}
		if may[r], err = src.MayRun(ctx, r.Name, r.Tag); err != nil {
			return nil, err
		}
	}
	return may, nil
}
