package ci

import (
	"context"

	"svc/internal/db"
	"svc/internal/merge"
	"svc/internal/repo"
)

func findHeadPipeline(ctx context.Context, q db.Q, m *merge.MergeRequest) (*Pipeline, error) {
	source := m.ProjectID
	if m.SourceProjectID != nil {
		source = *m.SourceProjectID
	}
	return scanPipeline(q.QueryRowContext(ctx, `
		SELECT `+pipelineColumns+` FROM pipelines p
		WHERE p.project_id IN (?, ?) AND p.sha = ? AND NOT p.child AND NOT p.tag AND p.ref IN (?, ?)
		ORDER BY CASE WHEN p.source = 'merge_request_event' THEN 0 ELSE 1 END, p.id DESC LIMIT 1`,
		m.ProjectID, source, m.Head, repo.MergeRef(m.IID, "head"), m.SourceBranch))
}

func listRequestPipelines(ctx context.Context, d *db.DB, projects []int64, heads, refs []string, pg db.Paging) (db.Page[*Pipeline], error) {
	var w db.Where
	w.And(`p.project_id IN `+db.In(len(projects)), db.Any(projects)...)
	w.And(`p.sha IN `+db.In(len(heads)), db.Any(heads)...)
	w.And(`p.ref IN `+db.In(len(refs)), db.Any(refs)...)
	w.And(`NOT p.child AND NOT p.tag`)
	return db.List(ctx, d, db.Query[*Pipeline]{
		Columns: pipelineColumns, From: "pipelines p", Where: w, Order: []db.Order{{Name: "p.id"}}, Desc: true, Scan: scanPipeline,
		Keys: func(p *Pipeline) []any { return []any{p.ID} },
	}, pg)
}
