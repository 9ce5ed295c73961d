package runners

import (
	"context"
	"time"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
)

func (f *Filter) where(w *db.Where, now time.Time) {
	if f.Type != "" {
		w.And("r.kind = ?", string(f.Type))
	}
	if f.Paused != nil {
		w.And("r.paused = ?", *f.Paused)
	}
	online, stale := now.Add(-OnlineFor), now.Add(-staleAfter)
	switch f.Status {
	case "active":
		w.And("NOT r.paused")
	case "paused":
		w.And("r.paused")
	case string(Online):
		w.And("r.contacted_at > ?", online)
	case string(Offline):
		w.And("r.contacted_at <= ? AND r.contacted_at > ?", online, stale)
	case string(Stale):
		w.And("COALESCE(r.contacted_at, r.created_at) <= ?", stale)
	case string(NeverContacted):
		w.And("r.contacted_at IS NULL AND r.created_at > ?", stale)
	}
	for _, tag := range f.Tags {
		// Each tag is a line of the column, so that only whole tags match.
		w.And(`replace(? || r.tags || ?, ?, '') <> ? || r.tags || ?`, "\n", "\n", "\n"+tag+"\n", "\n", "\n")
	}
	if f.VersionPrefix != "" {
		w.And(`EXISTS (SELECT 1 FROM runner_managers m WHERE m.runner_id = r.id AND substr(m.version, 1, ?) = ?)`, len([]rune(f.VersionPrefix)), f.VersionPrefix)
	}
}

// manageable is a condition on runners r: those of groups that the actor owns
// and of projects that they maintain, including shares with groups.
func manageable(projects *project.Service, by actor.Actor) (string, []any) {
	groups, args := projects.MemberGroups(by, project.Owner)
	maintained, more := projects.MemberProjects(by, project.Maintainer)
	return `r.namespace_id IN (SELECT n.id FROM namespaces n WHERE n.deleted_at IS NULL AND (` + groups + `)) OR r.id IN (
		SELECT rp.runner_id FROM runner_projects rp JOIN projects p ON p.id = rp.project_id AND p.deleted_at IS NULL WHERE ` + maintained + `)`,
		append(args, more...)
}

// servesProject selects the runners that may take jobs of a project.
func servesProject(p *project.Project) (w db.Where) {
	cond, args := `r.id IN (SELECT rp.runner_id FROM runner_projects rp WHERE rp.project_id = ?)`, []any{p.ID}
	if p.Settings.GroupRunnersEnabled {
		cond += ` OR r.namespace_id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)`
		args = append(args, p.NamespaceID)
	}
	if p.Settings.SharedRunnersEnabled {
		cond += ` OR r.kind = 'instance_type'`
	}
	w.And(cond, args...)
	return w
}

// servesGroup selects the runners of a group, of the groups above it and, where
// it allows them, of the instance.
func servesGroup(g *project.Namespace) (w db.Where) {
	cond := `r.namespace_id IN (SELECT t.ancestor_id FROM namespace_tree t WHERE t.descendant_id = ?)`
	if g.Settings.SharedRunnersSetting == "enabled" {
		cond += ` OR r.kind = 'instance_type'`
	}
	w.And(cond, g.ID)
	return w
}

func listRunners(ctx context.Context, d *db.DB, w db.Where, p db.Paging) (db.Page[*Runner], error) {
	return db.List(ctx, d, db.Query[*Runner]{
		Columns: runnerColumns, From: "runners r", Where: w, Order: []db.Order{{Name: "r.id"}}, Desc: true,
		Scan: scanRunner, Keys: func(r *Runner) []any { return []any{r.ID} },
	}, p)
}
