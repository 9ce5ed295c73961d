package ci

import (
	"context"

	"svc/internal/ci/flow"
	"svc/internal/db"
)

// headRow is the newest pipeline of the head of a merge request.
type headRow struct {
	requestID, id, projectID int64
	sha                      string
	status                   flow.Status
}

// findHeadPipelines returns the newest pipeline of the head of each merge request;
// merge request pipelines come before those of the branch. Each part of the query
// reads one entry at the end of a range of an index, also if a commit has many
// pipelines.
func findHeadPipelines(ctx context.Context, q db.Q, requests []int64) ([]headRow, error) {
	const (
		newest     = `SELECT max(x.id) AS id FROM pipelines x WHERE x.sha = i.head_sha AND NOT x.child AND NOT x.tag `
		here       = `AND x.project_id = i.project_id `
		fork       = `AND x.project_id = i.source_project_id AND i.source_project_id <> i.project_id `
		mergeRef   = `AND x.ref = 'refs/merge-requests/' || i.iid || '/head' `
		branch     = `AND x.ref = i.source_branch `
		mergeEvent = `AND x.source = 'merge_request_event' `
	)
	return db.All(ctx, q, func(s db.Scanner) (r headRow, err error) {
		err = s.Scan(&r.requestID, &r.id, &r.projectID, &r.sha, (*string)(&r.status))
		return r, err
	}, `
		SELECT i.id, p.id, p.project_id, p.sha, p.status FROM merge_requests i JOIN pipelines p ON p.id = COALESCE(
			(SELECT max(n.id) FROM (`+newest+here+mergeRef+mergeEvent+` UNION ALL `+newest+fork+mergeRef+mergeEvent+`) n),
			(SELECT max(n.id) FROM (`+newest+here+branch+` UNION ALL `+newest+fork+branch+`
				UNION ALL `+newest+here+mergeRef+` UNION ALL `+newest+fork+mergeRef+`) n))
		WHERE i.id IN `+db.In(len(requests)), db.Any(requests)...)
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
