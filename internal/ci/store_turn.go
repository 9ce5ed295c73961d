package ci

import (
	"context"
	"errors"

	"svc/internal/ci/deployment"
	"svc/internal/ci/flow"
	"svc/internal/db"
)

// groupBusy reports whether the resource group has a running job.
func groupBusy(ctx context.Context, q db.Q, groupID int64) (bool, error) {
	return db.Exists(ctx, q, `
		SELECT 1 FROM jobs WHERE resource_group_id = ? AND (status IN ('pending', 'running') OR status = 'canceled' AND canceling) LIMIT 1`, groupID)
}

// nextInGroup returns the next job of a resource group and its pipeline; 0 if no
// job waits or the next one is not ready.
func nextInGroup(ctx context.Context, q db.Q, groupID int64) (jobID, pipelineID int64, err error) {
	var mode deployment.ProcessMode
	if err := q.QueryRowContext(ctx, `SELECT process_mode FROM resource_groups WHERE id = ?`, groupID).Scan(&mode); err != nil {
		return 0, 0, err
	}
	states, order := `('waiting_for_resource')`, `pipeline_id, id`
	switch mode {
	case deployment.OldestFirst:
		states = `('created', 'scheduled', 'waiting_for_resource')`
	case deployment.NewestFirst:
		states, order = `('created', 'scheduled', 'waiting_for_resource')`, `pipeline_id DESC, id`
	case deployment.NewestReadyFirst:
		order = `pipeline_id DESC, id`
	}
	var status flow.Status
	err = q.QueryRowContext(ctx, `
		SELECT id, pipeline_id, status FROM jobs WHERE resource_group_id = ? AND status IN `+states+` ORDER BY `+order+` LIMIT 1`,
		groupID).Scan(&jobID, &pipelineID, &status)
	switch {
	case errors.Is(err, db.ErrNoRows):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	case status != flow.Waiting:
		return 0, 0, nil
	}
	return jobID, pipelineID, nil
}

func listUpcoming(ctx context.Context, d *db.DB, g *deployment.ResourceGroup, p db.Paging) (db.Page[*Job], error) {
	var where db.Where
	where.And("j.resource_group_id = ?", g.ID)
	where.And("j.status IN ('created', 'scheduled', 'waiting_for_resource')")
	return db.List(ctx, d, db.Query[*Job]{
		Columns: jobColumns, From: "jobs j", Where: where, Order: []db.Order{{Name: "j.pipeline_id"}, {Name: "j.id"}},
		Desc: g.Mode == deployment.NewestFirst || g.Mode == deployment.NewestReadyFirst, Scan: scanJob, Keys: func(j *Job) []any { return []any{j.PipelineID, j.ID} },
	}, p)
}

// findGroupJob returns the current job of a resource group.
func findGroupJob(ctx context.Context, q db.Q, groupID int64) (*Job, error) {
	j, err := scanJob(q.QueryRowContext(ctx, `
		SELECT `+jobColumns+` FROM jobs j WHERE j.resource_group_id = ? AND (j.status IN ('pending', 'running') OR j.status = 'canceled' AND j.canceling) LIMIT 1`, groupID))
	return j, db.NotFound(err, "Job")
}

// findHeldGroups returns the resource groups whose current job is in a pipeline.
func findHeldGroups(ctx context.Context, q db.Q, pipelineID int64) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT resource_group_id FROM jobs WHERE pipeline_id = ? AND resource_group_id IS NOT NULL AND status IN ('pending', 'running')`, pipelineID)
}

// findWaitingGroups returns the resource groups with waiting jobs, by ID, after an ID.
func findWaitingGroups(ctx context.Context, q db.Q, after int64, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		SELECT DISTINCT resource_group_id FROM jobs WHERE status = 'waiting_for_resource' AND resource_group_id > ? ORDER BY resource_group_id LIMIT ?`, after, limit)
}

// groupOf returns the ID of the resource group of a job; nil if it has none.
func groupOf(ctx context.Context, q db.Q, jobID int64) (id *int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT resource_group_id FROM jobs WHERE id = ?`, jobID).Scan(&id)
	return id, err
}
