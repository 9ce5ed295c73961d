package ci

import (
	"context"
	"strconv"
	"strings"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/errs"
	"svc/internal/project"
	"svc/internal/repo"
)

// listProjectJobs reads the index of each status separately and merges the
// results. The cost depends on the size of the page, not on the number of jobs.
func listProjectJobs(ctx context.Context, d *db.DB, by actor.Actor, in *project.Project, scope []flow.Status, p db.Paging) (db.Page[*Job], error) {
	if len(scope) <= 1 {
		var where db.Where
		where.And("j.project_id = ?", in.ID)
		repo.WhereRefVisible(&where, by, in, "j.ref")
		where.And("j.bridge = FALSE")
		if len(scope) == 1 {
			where.And("j.status = ?", string(scope[0]))
		}
		return db.List(ctx, d, db.Query[*Job]{
			Columns: jobColumns, From: "jobs j", Where: where, Order: []db.Order{{Name: "j.id"}}, Desc: true,
			Scan: scanJob, Keys: func(j *Job) []any { return []any{j.ID} },
		}, p)
	}
	var page db.Page[*Job]
	if p.Keyset && p.After != nil {
		if _, ok := p.After[0].(int64); !ok || len(p.After) != 1 {
			return page, errs.Invalid("cursor is invalid")
		}
	}
	only := ""
	if !in.MayReadMergeRefs(by) {
		only = " AND " + repo.NotMergeRef("j.ref")
	}
	var parts []string
	var args, last []any
	// The limit is a literal: with a parameter, PostgreSQL would plan the query again
	// for each page, which takes longer than running it.
	limit := p.Offset + p.Limit + 1
	most := `LIMIT ` + strconv.Itoa(limit)
	whole := most
	if p.Offset > 0 { // one prepared statement per offset would be too many
		most, whole, last = `LIMIT ?`, `LIMIT ? OFFSET ?`, []any{p.Limit + 1, p.Offset}
	}
	for _, status := range scope {
		part := `SELECT j.id FROM jobs j WHERE j.project_id = ? AND j.bridge = FALSE AND j.status = ?` + only
		args = append(args, in.ID, string(status))
		if p.Keyset && p.After != nil {
			part += ` AND j.id < ?`
			args = append(args, p.After[0])
		}
		parts = append(parts, `SELECT id FROM (`+part+` ORDER BY j.id DESC `+most+`) AS s`)
		if p.Offset > 0 {
			args = append(args, limit)
		}
	}
	jobs, err := db.All(ctx, d, scanJob, `
		SELECT `+jobColumns+` FROM jobs j WHERE j.id IN (
			SELECT id FROM (`+strings.Join(parts, " UNION ALL ")+`) AS m ORDER BY id DESC `+whole+`)
		ORDER BY j.id DESC`, append(args, last...)...)
	if err != nil {
		return page, err
	}
	if len(jobs) > p.Limit {
		jobs, page.More = jobs[:p.Limit], true
	}
	page.Items = jobs
	if p.Keyset && len(jobs) > 0 {
		page.Last = []any{jobs[len(jobs)-1].ID}
	}
	if !p.Totals {
		return page, nil
	}
	if !page.More && (len(jobs) > 0 || p.Offset == 0) {
		page.Total = p.Offset + len(jobs)
		page.Over = page.Total > db.CountLimit
		return page, nil
	}
	counted := []any{in.ID}
	for _, status := range scope {
		counted = append(counted, string(status))
	}
	page.Total, page.Over, err = d.Total(ctx, `jobs j WHERE j.project_id = ? AND j.bridge = FALSE AND j.status IN `+db.In(len(scope))+only, counted...)
	return page, err
}

func listPipelineJobs(ctx context.Context, d *db.DB, pipelineID int64, f JobFilter, p db.Paging) (db.Page[*Job], error) {
	var where db.Where
	where.And("j.pipeline_id = ?", pipelineID)
	where.And("j.bridge = ?", f.Bridges)
	if !f.Retried {
		where.And("NOT j.retried")
	}
	if len(f.Scope) > 0 {
		states := make([]any, len(f.Scope))
		for i, s := range f.Scope {
			states[i] = string(s)
		}
		where.And("j.status IN "+db.In(len(states)), states...)
	}
	return db.List(ctx, d, db.Query[*Job]{
		Columns: jobColumns, From: "jobs j", Where: where, Order: []db.Order{{Name: "j.id"}}, Desc: true,
		Scan: scanJob, Keys: func(j *Job) []any { return []any{j.ID} },
	}, p)
}

// jobsOfMember selects the jobs j of projects in which the actor has at least the
// Reporter role; all for administrators and auditors.
func (s *Service) jobsOfMember(by actor.Actor) (w db.Where) {
	if by.Admin || by.Auditor {
		return w
	}
	member, args := s.Projects.MemberProjects(by, project.Reporter)
	w.And("j.project_id IN (SELECT p.id FROM projects p WHERE "+member+")", args...)
	return w
}

func listRunnerJobs(ctx context.Context, d *db.DB, runnerID int64, w db.Where, f RunnerJobFilter, p db.Paging) (db.Page[*Job], error) {
	w.And("j.runner_id = ?", runnerID)
	if f.Status != "" {
		w.And("j.status = ?", f.Status)
	}
	if f.SystemID != "" {
		w.And("j.runner_manager_id IN (SELECT m.id FROM runner_managers m WHERE m.runner_id = ? AND m.system_id = ?)", runnerID, f.SystemID)
	}
	return db.List(ctx, d, db.Query[*Job]{
		Columns: jobColumns, From: "jobs j", Where: w, Order: []db.Order{{Name: "j.id"}}, Desc: f.Desc,
		Scan: scanJob, Keys: func(j *Job) []any { return []any{j.ID} },
	}, p)
}
