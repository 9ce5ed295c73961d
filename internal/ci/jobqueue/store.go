package jobqueue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"svc/internal/ci/runners"
	"svc/internal/db"
)

// queuedTagSets returns the tag sets of pending jobs. It skips through the index from one
// set to the next, so that the number of jobs does not matter.
func queuedTagSets(ctx context.Context, q db.Q) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `
		WITH RECURSIVE w (id) AS (
			SELECT (SELECT MIN(tag_set_id) FROM job_queue)
			UNION ALL
			SELECT (SELECT MIN(q.tag_set_id) FROM job_queue q WHERE q.tag_set_id > w.id) FROM w WHERE w.id IS NOT NULL
		) SELECT id FROM w WHERE id IS NOT NULL`)
}

// stepProjects skips through the index of the projects that have pending jobs with a tag
// set in the same way.
const stepProjects = `
	WITH RECURSIVE w (project_id) AS (
		SELECT (SELECT MIN(q.project_id) FROM job_queue q WHERE q.tag_set_id = ? AND q.project_id > ?)
		UNION ALL
		SELECT (SELECT MIN(q.project_id) FROM job_queue q WHERE q.tag_set_id = ? AND q.project_id > w.project_id) FROM w WHERE w.project_id IS NOT NULL
	) SELECT w.project_id, ` + projectLoad + ` FROM w WHERE w.project_id IS NOT NULL`

// projectLoad returns the number of running jobs of a project, up to 1,000, and its oldest
// pending jobs. Each is read with one index scan; that of the statuses has bridge before them.
const projectLoad = `
	(SELECT COUNT(*) FROM (SELECT 1 FROM jobs j WHERE j.status = 'running' AND j.bridge IN (FALSE, TRUE) AND j.project_id = w.project_id LIMIT 1000) r),
	(SELECT MIN(q.job_id) FROM job_queue q WHERE q.tag_set_id = ? AND q.project_id = w.project_id AND q.protected = TRUE),
	(SELECT MIN(q.job_id) FROM job_queue q WHERE q.tag_set_id = ? AND q.project_id = w.project_id AND q.protected = FALSE)`

// queuedProjects returns projects with IDs greater than after that have jobs with a tag
// set for a runner.
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

// queuedJobs returns jobs of a project with IDs greater than after that have a tag set,
// the oldest first.
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

// NoteRefusal records why a runner did not take a pending job.
func NoteRefusal(ctx context.Context, q db.Q, jobID int64, reason string) error {
	_, err := q.ExecContext(ctx, `UPDATE job_queue SET refusal = ? WHERE job_id = ? AND refusal <> ?`, reason, jobID, reason)
	return err
}

// Refusal returns why a runner did not take a job; empty if the job is not in the
// queue.
func Refusal(ctx context.Context, q db.Q, jobID int64) (reason string, err error) {
	err = q.QueryRowContext(ctx, `SELECT refusal FROM job_queue WHERE job_id = ?`, jobID).Scan(&reason)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	return reason, err
}

// TagSet returns the ID of a set of tags and creates it if it is new.
func TagSet(ctx context.Context, tx *db.Tx, tags []string) (id int64, err error) {
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	err = tx.QueryRowContext(ctx, `
		INSERT INTO tag_sets (tags) VALUES (?) ON CONFLICT (tags) DO UPDATE SET tags = excluded.tags RETURNING id`,
		strings.Join(tags, "\n")).Scan(&id)
	return id, err
}

func findTagSet(ctx context.Context, q db.Q, id int64) ([]string, error) {
	var text string
	err := q.QueryRowContext(ctx, `SELECT tags FROM tag_sets WHERE id = ?`, id).Scan(&text)
	return runners.SplitTags(text), err
}

// Add adds a pending job to the queue and, once the transaction is committed,
// wakes requests that could get it.
func (q *Queue) Add(ctx context.Context, tx *db.Tx, jobID int64) error {
	var c wakeup
	err := tx.QueryRowContext(ctx, `
		INSERT INTO job_queue (job_id, project_id, tag_set_id, protected, queued_at)
		SELECT j.id, j.project_id, j.tag_set_id, j.protected, CAST(? AS BIGINT) FROM jobs j WHERE j.id = ?
		ON CONFLICT (job_id) DO NOTHING RETURNING project_id, tag_set_id, protected`, q.Now(), jobID).Scan(&c.project, &c.tags, &c.protected)
	if errors.Is(err, db.ErrNoRows) { // it is already in the queue
		return nil
	}
	if err != nil {
		return err
	}
	return q.Notices.Send(ctx, tx, topic, c.key())
}

// Remove removes a job from the queue and reports whether it was there.
func Remove(ctx context.Context, tx *db.Tx, jobID int64) (bool, error) {
	return db.ExecAny(ctx, tx, `DELETE FROM job_queue WHERE job_id = ?`, jobID)
}

// QueuedBefore returns jobs that were queued before a time, the oldest first.
func QueuedBefore(ctx context.Context, q db.Q, at time.Time, limit int) ([]int64, error) {
	return db.All(ctx, q, db.Value[int64], `SELECT job_id FROM job_queue WHERE queued_at <= ? ORDER BY queued_at LIMIT ?`, at, limit)
}
