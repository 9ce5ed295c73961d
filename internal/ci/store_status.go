package ci

import (
	"context"
	"math"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/repo"
)

const statusColumns = `t.id, FALSE, t.pipeline_id, t.sha, t.ref, 'external', t.name, t.status, t.target_url, t.description, t.coverage, t.allow_failure,
	t.author_id, t.created_at, t.started_at, t.finished_at`

// jobStatusColumns are the columns of a job, in the order of statusColumns.
const jobStatusColumns = `j.id, TRUE, j.pipeline_id, p.sha, j.ref, j.stage, j.name, j.status, '', '', j.coverage, j.allow_failure,
	j.user_id, j.created_at, j.started_at, j.finished_at`

func scanStatus(s db.Scanner) (*CommitStatus, error) {
	var t CommitStatus
	err := s.Scan(&t.ID, &t.Job, &t.PipelineID, &t.SHA, &t.Ref, &t.Stage, &t.Name, &t.State, &t.TargetURL, &t.Description, &t.Coverage, &t.AllowFailure,
		&t.AuthorID, db.Time(&t.CreatedAt), db.NullTime(&t.StartedAt), db.NullTime(&t.FinishedAt))
	return &t, err
}

// findStatuses returns the statuses of a commit that the actor can see; jobs
// only if the actor can see pipelines. Each kind is limited to db.CountLimit.
func findStatuses(ctx context.Context, q db.Q, by actor.Actor, in *project.Project, sha string, f StatusFilter) ([]*CommitStatus, error) {
	var outside, inside db.Where
	outside.And("t.project_id = ? AND t.sha = ?", in.ID, sha)
	inside.And("p.project_id = ? AND p.sha = ?", in.ID, sha)
	repo.WhereRefVisible(&outside, by, in, "t.ref")
	repo.WhereRefVisible(&inside, by, in, "j.ref")
	if !f.All {
		outside.And("t.latest")
		inside.And("NOT j.retried")
	}
	if f.PipelineID != 0 {
		outside.And("t.pipeline_id = ?", f.PipelineID)
		inside.And("j.pipeline_id = ?", f.PipelineID)
	}
	if f.Ref != "" {
		outside.And("t.ref = ?", f.Ref)
		inside.And("j.ref = ?", f.Ref)
	}
	if f.Name != "" {
		outside.And("t.name = ?", f.Name)
		inside.And("j.name = ?", f.Name)
	}
	if f.Stage != "" {
		inside.And("j.stage = ?", f.Stage)
	}
	var all []*CommitStatus
	if f.Stage == "" || f.Stage == outsideStage {
		found, err := db.All(ctx, q, scanStatus, `
			SELECT `+statusColumns+` FROM commit_statuses t`+outside.SQL()+` ORDER BY t.id LIMIT ?`, outside.Args(db.CountLimit)...)
		if err != nil {
			return nil, err
		}
		all = found
	}
	if !in.MayRead(by, project.BuildsPart) {
		return all, nil
	}
	found, err := db.All(ctx, q, scanStatus, `
		SELECT `+jobStatusColumns+` FROM jobs j JOIN pipelines p ON p.id = j.pipeline_id`+inside.SQL()+` ORDER BY j.id LIMIT ?`, inside.Args(db.CountLimit)...)
	return append(all, found...), err
}

// findStatusPipeline finds the newest pipeline of a commit that is not a child
// pipeline, with the ref and the ID if they are given.
func findStatusPipeline(ctx context.Context, q db.Q, projectID int64, sha, ref string, id int64) (*Pipeline, error) {
	var w db.Where
	w.And("p.project_id = ? AND p.sha = ? AND NOT p.child", projectID, sha)
	if ref != "" {
		w.And("p.ref = ?", ref)
	}
	if id != 0 {
		w.And("p.id = ?", id)
	}
	return scanPipeline(q.QueryRowContext(ctx, `SELECT `+pipelineColumns+` FROM pipelines p`+w.SQL()+` ORDER BY p.id DESC LIMIT 1`, w.Args()...))
}

// findNewestOf returns for each commit the newest pipeline that the actor can
// see and that is not a child pipeline.
func findNewestOf(ctx context.Context, q db.Q, by actor.Actor, in *project.Project, shas []string) ([]*Pipeline, error) {
	if len(shas) == 0 {
		return nil, nil
	}
	var w db.Where
	w.And("l.project_id = ? AND l.sha = v.column1 AND NOT l.child", in.ID)
	repo.WhereRefVisible(&w, by, in, "l.ref")
	// One lookup for each commit, because a commit can have many pipelines.
	return db.All(ctx, q, scanPipeline, `SELECT `+pipelineColumns+` FROM pipelines p WHERE p.id IN (
		SELECT (SELECT l.id FROM pipelines l`+w.SQL()+` ORDER BY l.id DESC LIMIT 1) FROM (VALUES `+db.Values(len(shas))+`) AS v)`,
		w.Args(db.Any(shas)...)...)
}

func findLatestStatus(ctx context.Context, q db.Q, pipelineID int64, name string) (*CommitStatus, error) {
	return scanStatus(q.QueryRowContext(ctx, `
		SELECT `+statusColumns+` FROM commit_statuses t WHERE t.pipeline_id = ? AND t.name = ? AND t.latest`, pipelineID, name))
}

// findOutside returns the external statuses of a pipeline as jobs of a last
// stage.
func findOutside(ctx context.Context, q db.Q, pipelineID int64) ([]flow.Job, error) {
	return db.All(ctx, q, func(s db.Scanner) (flow.Job, error) {
		j := flow.Job{Stage: math.MaxInt32, When: flow.OnSuccess}
		err := s.Scan(&j.ID, &j.Name, &j.Status, &j.AllowFailure)
		return j, err
	}, `SELECT t.id, t.name, t.status, t.allow_failure FROM commit_statuses t WHERE t.pipeline_id = ? AND t.latest`, pipelineID)
}

// cancelOutside cancels the unfinished external statuses of a pipeline.
func cancelOutside(ctx context.Context, tx *db.Tx, pipelineID int64, at time.Time) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE commit_statuses SET status = 'canceled', finished_at = ? WHERE pipeline_id = ? AND latest AND status IN ('pending', 'running')`, at, pipelineID)
	return err
}

func insertStatus(ctx context.Context, q db.Q, projectID int64, t *CommitStatus) error {
	return q.QueryRowContext(ctx, `
		INSERT INTO commit_statuses (project_id, pipeline_id, sha, ref, name, status, target_url, description, coverage, allow_failure, author_id,
			created_at, started_at, finished_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		projectID, t.PipelineID, t.SHA, t.Ref, t.Name, string(t.State), t.TargetURL, t.Description, t.Coverage, t.AllowFailure, t.AuthorID,
		t.CreatedAt, t.StartedAt, t.FinishedAt).Scan(&t.ID)
}

func updateStatus(ctx context.Context, q db.Q, t *CommitStatus) error {
	return db.ExecOne(ctx, q, `
		UPDATE commit_statuses SET status = ?, target_url = ?, description = ?, coverage = ?, started_at = ?, finished_at = ? WHERE id = ?`,
		string(t.State), t.TargetURL, t.Description, t.Coverage, t.StartedAt, t.FinishedAt, t.ID)
}

func retireStatus(ctx context.Context, q db.Q, id int64) error {
	return db.ExecOne(ctx, q, `UPDATE commit_statuses SET latest = FALSE WHERE id = ?`, id)
}
