package ci

import (
	"context"
	"fmt"

	"svc/internal/actor"
	"svc/internal/db"
)

// RunnerJobFilter selects jobs of a runner; zero values choose all.
type RunnerJobFilter struct {
	Status   string
	SystemID string
	Desc     bool
}

// RunnerJobs lists the jobs that a runner was given, for those who keep it; of
// the instance's runners, for administrators.
func (s *Service) RunnerJobs(ctx context.Context, by actor.Actor, id int64, f RunnerJobFilter, p db.Paging) (db.Page[*Job], error) {
	if _, err := s.Runners.Manageable(ctx, by, id); err != nil {
		return db.Page[*Job]{}, err
	}
	var w db.Where
	w.And("j.runner_id = ?", id)
	if f.Status != "" {
		w.And("j.status = ?", f.Status)
	}
	if f.SystemID != "" {
		w.And("j.runner_manager_id IN (SELECT m.id FROM runner_managers m WHERE m.runner_id = ? AND m.system_id = ?)", id, f.SystemID)
	}
	page, err := db.List(ctx, s.DB, db.Query[*Job]{
		Columns: jobColumns, From: "jobs j", Where: w, Order: []db.Order{{Name: "j.id"}}, Desc: f.Desc,
		Scan: scanJob, Keys: func(j *Job) []any { return []any{j.ID} },
	}, p)
	if err != nil {
		return page, fmt.Errorf("list jobs of runner %d: %w", id, err)
	}
	return page, s.fillJobs(ctx, by, page.Items)
}
