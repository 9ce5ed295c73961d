package ci

import (
	"context"
	"slices"
	"time"

	"svc/internal/ci/runners"
	"svc/internal/db"
)

// queuedTagSets are the sets of tags that jobs wait with. It steps through the
// index from one to the next, however many jobs each has.
func queuedTagSets(ctx context.Context, q db.Q) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		WITH RECURSIVE w (id) AS (
			SELECT (SELECT MIN(tag_set_id) FROM job_queue)
			UNION ALL
			SELECT (SELECT MIN(q.tag_set_id) FROM job_queue q WHERE q.tag_set_id > w.id) FROM w WHERE w.id IS NOT NULL
		) SELECT id FROM w WHERE id IS NOT NULL`)
}

// stepProjects goes through the projects that wait with a set of tags in the
// same manner.
const stepProjects = `
	WITH RECURSIVE w (project_id) AS (
		SELECT (SELECT MIN(q.project_id) FROM job_queue q WHERE q.tag_set_id = ? AND q.project_id > ?)
		UNION ALL
		SELECT (SELECT MIN(q.project_id) FROM job_queue q WHERE q.tag_set_id = ? AND q.project_id > w.project_id) FROM w WHERE w.project_id IS NOT NULL
	) SELECT w.project_id, ` + projectLoad + ` FROM w WHERE w.project_id IS NOT NULL`

// projectLoad is how many jobs of a project run, up to a thousand, and the
// oldest ones that wait: each of these is one step in an index.
const projectLoad = `
	(SELECT COUNT(*) FROM (SELECT 1 FROM jobs j WHERE j.status = 'running' AND j.project_id = w.project_id LIMIT 1000) r),
	(SELECT MIN(q.job_id) FROM job_queue q WHERE q.tag_set_id = ? AND q.project_id = w.project_id AND q.protected = TRUE),
	(SELECT MIN(q.job_id) FROM job_queue q WHERE q.tag_set_id = ? AND q.project_id = w.project_id AND q.protected = FALSE)`

// queuedProjects are projects, after a given one, that have jobs for a runner
// with one set of tags.
func queuedProjects(ctx context.Context, q db.Q, r *runners.Runner, set, after int64, limit int) ([]*candidate, error) {
	query, args := stepProjects, []any{set, after, set, set, set}
	switch r.Type {
	case runners.GroupType:
		query += ` AND EXISTS (SELECT 1 FROM projects p JOIN namespace_tree t ON t.descendant_id = p.namespace_id
			WHERE p.id = w.project_id AND t.ancestor_id = ?)`
		args = append(args, *r.GroupID)
	case runners.ProjectType:
		query = `SELECT w.project_id, ` + projectLoad + ` FROM runner_projects w WHERE w.runner_id = ? AND w.project_id > ?
			AND EXISTS (SELECT 1 FROM job_queue q WHERE q.tag_set_id = ? AND q.project_id = w.project_id) ORDER BY w.project_id`
		args = []any{set, set, r.ID, after, set}
	}
	list, err := db.All(ctx, q, func(s db.Scanner) (*candidate, error) {
		c := &candidate{set: set}
		var safe, open *int64
		err := s.Scan(&c.projectID, &c.running, &safe, &open)
		if r.ProtectedOnly {
			open = nil
		}
		switch {
		case safe != nil && open != nil:
			c.jobs = []int64{min(*safe, *open)}
		case safe != nil:
			c.jobs = []int64{*safe}
		case open != nil:
			c.jobs = []int64{*open}
		}
		return c, err
	}, query+` LIMIT ?`, append(args, limit)...)
	return list, err
}

// queuedJobs are jobs of a project that wait with a set of tags, after a
// given one, the oldest first.
func queuedJobs(ctx context.Context, q db.Q, set, projectID int64, protectedOnly bool, after int64, limit int) ([]int64, error) {
	var found []int64
	for _, protected := range []bool{true, false} {
		if protectedOnly && !protected {
			break
		}
		ids, err := db.All(ctx, q, db.Value[int64], `
			SELECT job_id FROM job_queue WHERE tag_set_id = ? AND project_id = ? AND protected = ? AND job_id > ? ORDER BY job_id LIMIT ?`,
			set, projectID, protected, after, limit)
		if err != nil {
			return nil, err
		}
		found = append(found, ids...)
	}
	slices.Sort(found)
	return found[:min(len(found), limit)], nil
}

// saveClaim writes who has a job, as long as it is pending.
func saveClaim(ctx context.Context, tx *db.Tx, j *Job, token []byte, at time.Time) error {
	return db.ExecOne(ctx, tx, `
		UPDATE jobs SET runner_id = ?, runner_manager_id = ?, token_digest = ?, claimed_at = ?, heard_at = ?, updated_at = ?
		WHERE id = ? AND status = 'pending'`,
		j.RunnerID, j.ManagerID, token, at, at, at, j.ID)
}

// dropClaim takes a job away from a runner that has not begun with it.
func dropClaim(ctx context.Context, tx *db.Tx, id int64, at time.Time) error {
	return db.ExecOne(ctx, tx, `
		UPDATE jobs SET runner_id = NULL, runner_manager_id = NULL, token_digest = NULL, claimed_at = NULL, heard_at = NULL, updated_at = ?
		WHERE id = ? AND status = 'pending' AND claimed_at IS NOT NULL`, at, id)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// noteRefusal records why a runner did not take a job that waits.
func noteRefusal(ctx context.Context, q db.Q, jobID int64, reason string) error {
	_, err := q.ExecContext(ctx, `UPDATE job_queue SET refusal = ? WHERE job_id = ? AND refusal <> ?`, reason, jobID, reason)
	return err
}

// findRefusal reads it; empty for a job that does not wait.
func findRefusal(ctx context.Context, q db.Q, jobID int64) (reason string, err error) {
	err = q.QueryRowContext(ctx, `SELECT refusal FROM job_queue WHERE job_id = ?`, jobID).Scan(&reason)
	return reason, ignoreNoRows(err)
}
