package ci

import (
	"context"

	"svc/internal/actor"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/repo"
	"svc/internal/user"
)

func listPipelines(ctx context.Context, d *db.DB, by actor.Actor, in *project.Project, f PipelineFilter, author *user.User, pg db.Paging) (db.Page[*Pipeline], error) {
	var where db.Where
	where.And("p.project_id = ?", in.ID)
	repo.WhereRefVisible(&where, by, in, "p.ref")
	if f.Source == FromParent {
		where.And("p.child")
	} else {
		where.And("NOT p.child")
	}
	switch f.Scope {
	case "running":
		where.And("p.status = 'running'")
	case "pending":
		where.And("p.status = 'pending'")
	case "finished":
		where.And("p.status IN ('success', 'failed', 'canceled')")
	case "branches":
		where.And("p.id IN (SELECT max(b.id) FROM pipelines b WHERE b.project_id = ? AND b.tag = FALSE AND NOT b.child GROUP BY b.ref)", in.ID)
	case "tags":
		where.And("p.id IN (SELECT max(b.id) FROM pipelines b WHERE b.project_id = ? AND b.tag = TRUE AND NOT b.child GROUP BY b.ref)", in.ID)
	}
	for _, c := range []struct{ column, value string }{
		{"p.status", string(f.Status)}, {"p.source", string(f.Source)}, {"p.ref", f.Ref}, {"p.sha", f.SHA}, {"p.name", f.Name},
	} {
		if c.value != "" {
			where.And(c.column+" = ?", c.value)
		}
	}
	if author != nil {
		where.And("p.user_id = ?", author.ID)
	}
	if f.YAMLErrors != nil {
		where.And(map[bool]string{true: "p.yaml_errors <> ''", false: "p.yaml_errors = ''"}[*f.YAMLErrors])
	}
	where.Time("p.created_at > ?", f.CreatedAfter)
	where.Time("p.created_at < ?", f.CreatedBefore)
	where.Time("p.updated_at > ?", f.UpdatedAfter)
	where.Time("p.updated_at < ?", f.UpdatedBefore)
	order := []db.Order{{Name: "p.id"}}
	switch f.OrderBy {
	case "status", "ref":
		order = []db.Order{{Name: "p." + f.OrderBy, Text: true}, {Name: "p.id"}}
	case "updated_at", "user_id":
		order = []db.Order{{Name: "p." + f.OrderBy}, {Name: "p.id"}}
	}
	return db.List(ctx, d, db.Query[*Pipeline]{
		Columns: pipelineColumns, From: "pipelines p", Where: where, Order: order, Desc: !f.Asc, Scan: scanPipeline,
		Keys: func(p *Pipeline) []any { return []any{p.ID} },
	}, pg)
}
