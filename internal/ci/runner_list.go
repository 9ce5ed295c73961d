package ci

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

// RunnerFilter selects runners; zero values choose all.
type RunnerFilter struct {
	Kind          RunnerKind
	Status        string // a RunnerStatus, or active and paused
	Paused        *bool
	Tags          []string // runners that have all of them
	VersionPrefix string
}

func (f *RunnerFilter) where(w *db.Where, now time.Time) {
	if f.Kind != "" {
		w.And("r.kind = ?", string(f.Kind))
	}
	if f.Paused != nil {
		w.And("r.paused = ?", *f.Paused)
	}
	online, stale := now.Add(-onlineFor), now.Add(-staleAfter)
	switch f.Status {
	case "active":
		w.And("NOT r.paused")
	case "paused":
		w.And("r.paused")
	case string(RunnerOnline):
		w.And("r.contacted_at > ?", online)
	case string(RunnerOffline):
		w.And("r.contacted_at <= ? AND r.contacted_at > ?", online, stale)
	case string(RunnerStale):
		w.And("COALESCE(r.contacted_at, r.created_at) <= ?", stale)
	case string(RunnerNever):
		w.And("r.contacted_at IS NULL AND r.created_at > ?", stale)
	}
	for _, tag := range f.Tags {
		// Tags stand one a line, so that each is found whole.
		w.And(`replace(? || r.tags || ?, ?, '') <> ? || r.tags || ?`, "\n", "\n", "\n"+tag+"\n", "\n", "\n")
	}
	if f.VersionPrefix != "" {
		w.And(`EXISTS (SELECT 1 FROM runner_managers m WHERE m.runner_id = r.id AND substr(m.version, 1, ?) = ?)`, len([]rune(f.VersionPrefix)), f.VersionPrefix)
	}
}

// AllRunners lists the runners of the instance. Administrators only.
func (s *Service) AllRunners(ctx context.Context, by actor.Actor, f RunnerFilter, p db.Paging) (db.Page[*Runner], error) {
	if !by.Auditor {
		if err := by.RequireAdmin(); err != nil {
			return db.Page[*Runner]{}, err
		}
	}
	return s.listRunners(ctx, db.Where{}, f, p)
}

// OwnRunners lists the runners that the actor keeps: those of groups that they
// own and of projects that they maintain.
func (s *Service) OwnRunners(ctx context.Context, by actor.Actor, f RunnerFilter, p db.Paging) (db.Page[*Runner], error) {
	if err := by.RequireUser(); err != nil {
		return db.Page[*Runner]{}, err
	}
	var w db.Where
	cond, args := s.ownRunners(by)
	w.And(cond, args...)
	return s.listRunners(ctx, w, f, p)
}

// ProjectRunners lists the runners that may take jobs of a project: its own,
// those of the groups above it, and those of the instance. Maintainers only.
func (s *Service) ProjectRunners(ctx context.Context, by actor.Actor, ref project.Ref, f RunnerFilter, pg db.Paging) (db.Page[*Runner], error) {
	p, err := s.Projects.Require(ctx, by, ref, project.Maintainer)
	if err != nil {
		return db.Page[*Runner]{}, err
	}
	var w db.Where
	cond, args := `r.id IN (SELECT rp.runner_id FROM runner_projects rp WHERE rp.project_id = ?)`, []any{p.ID}
	if p.Settings.GroupRunnersEnabled {
		cond += ` OR r.namespace_id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)`
		args = append(args, p.NamespaceID)
	}
	if p.Settings.SharedRunnersEnabled {
		cond += ` OR r.kind = 'instance_type'`
	}
	w.And(cond, args...)
	return s.listRunners(ctx, w, f, pg)
}

// GroupRunners lists the runners of a group, those of the groups above it, and
// those of the instance. Owners only.
func (s *Service) GroupRunners(ctx context.Context, by actor.Actor, ref project.Ref, f RunnerFilter, pg db.Paging) (db.Page[*Runner], error) {
	g, err := s.Projects.RequireGroup(ctx, by, ref, project.Owner)
	if err != nil {
		return db.Page[*Runner]{}, err
	}
	var w db.Where
	cond := `r.namespace_id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)`
	if g.Settings.SharedRunnersSetting == "enabled" {
		cond += ` OR r.kind = 'instance_type'`
	}
	w.And(cond, g.ID)
	return s.listRunners(ctx, w, f, pg)
}

func (s *Service) listRunners(ctx context.Context, w db.Where, f RunnerFilter, p db.Paging) (db.Page[*Runner], error) {
	f.where(&w, s.Now())
	page, err := db.List(ctx, s.DB, db.Query[*Runner]{
		Columns: runnerColumns, From: "runners r", Where: w, Order: []db.Order{{Name: "r.id"}}, Desc: true,
		Scan: scanRunner, Keys: func(r *Runner) []any { return []any{r.ID} },
	}, p)
	if err != nil {
		return page, fmt.Errorf("list runners: %w", err)
	}
	return page, s.fillRunners(ctx, page.Items)
}

// RunnerJobFilter selects jobs of a runner; zero values choose all.
type RunnerJobFilter struct {
	Status   string
	SystemID string
	Desc     bool
}

// RunnerJobs lists the jobs that a runner was given, for those who keep it; of
// the instance's runners, for administrators.
func (s *Service) RunnerJobs(ctx context.Context, by actor.Actor, id int64, f RunnerJobFilter, p db.Paging) (db.Page[*Job], error) {
	if _, err := s.keptRunner(ctx, by, id); err != nil {
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

// Managers lists the machines of a runner, to those who see it.
func (s *Service) Managers(ctx context.Context, by actor.Actor, id int64) ([]*Manager, error) {
	if _, err := s.seenRunner(ctx, by, id); err != nil {
		return nil, err
	}
	list, err := db.All(ctx, s.DB, scanManager, `SELECT `+managerColumns+` FROM runner_managers m WHERE m.runner_id = ? ORDER BY m.id DESC`, id)
	if err != nil {
		return nil, fmt.Errorf("list managers of runner %d: %w", id, err)
	}
	busy, err := db.All(ctx, s.DB, db.Value[int64], `
		SELECT DISTINCT +j.runner_manager_id FROM jobs j WHERE +j.runner_id = ? AND j.status = 'running' AND j.runner_manager_id IS NOT NULL`, id)
	for _, m := range list {
		for _, at := range busy {
			m.Busy = m.Busy || m.ID == at
		}
	}
	return list, err
}
