package ci

import (
	"cmp"
	"context"
	"slices"
	"time"

	"svc/internal/actor"
	"svc/internal/ci/flow"
	"svc/internal/db"
	"svc/internal/project"
	"svc/internal/repo"
)

// findStages returns the stages of pipelines, by pipeline. Jobs are grouped as they are
// read, because a database would have to sort the texts of all jobs.
func findStages(ctx context.Context, q db.Q, pipelines []int64) (map[int64][]Stage, error) {
	found := map[int64][]Stage{}
	if len(pipelines) == 0 {
		return found, nil
	}
	type group struct {
		pipeline int64
		stage    string
		job      flow.Job
		count    int
	}
	type key struct {
		pipeline int64
		index    int
		stage    string
		status   flow.Status
		when     flow.When
		allowed  bool
	}
	var groups []group
	positions := map[key]int{}
	last, at := key{}, -1
	// A page has many jobs, so all rows are scanned into one variable: Scan does not
	// allocate a text that is equal to the previous one.
	var k key
	dest := []any{&k.pipeline, &k.index, &k.stage, (*string)(&k.status), (*string)(&k.when), &k.allowed}
	err := db.Each(ctx, q, func(s db.Scanner) (struct{}, error) { return struct{}{}, s.Scan(dest...) }, func(struct{}) error {
		if at < 0 || k != last {
			i, known := positions[k]
			if !known {
				i = len(groups)
				positions[k] = i
				groups = append(groups, group{pipeline: k.pipeline, stage: k.stage, job: flow.Job{Stage: k.index, Status: k.status, When: k.when, AllowFailure: k.allowed}})
			}
			last, at = k, i
		}
		groups[at].count++
		return nil
	}, `SELECT pipeline_id, stage_index, stage, status, run_when, allow_failure FROM jobs WHERE NOT retried AND pipeline_id IN `+db.In(len(pipelines)), db.Any(pipelines)...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.pipeline, b.pipeline), cmp.Compare(a.job.Stage, b.job.Stage), cmp.Compare(a.stage, b.stage))
	})
	for i := 0; i < len(groups); {
		first := groups[i]
		one := Stage{Name: first.stage}
		var same []flow.Job
		for ; i < len(groups) && groups[i].pipeline == first.pipeline && groups[i].stage == first.stage; i++ {
			g := groups[i]
			one.Jobs += g.count
			same = append(same, g.job)
		}
		one.Status, one.Warnings = combined(same)
		found[first.pipeline] = append(found[first.pipeline], one)
	}
	return found, nil
}

// findGraph returns the jobs of a pipeline in the order of the stages, with
// bridges, without retried jobs.
func findGraph(ctx context.Context, q db.Q, pipelineID int64, most int) ([]*Job, error) {
	return db.All(ctx, q, scanJob, `
		SELECT `+jobColumns+` FROM jobs j WHERE j.pipeline_id = ? AND NOT j.retried ORDER BY j.stage_index, j.id LIMIT ?`, pipelineID, most)
}

// findAttempts returns the last jobs with a name in a pipeline, newest first.
func findAttempts(ctx context.Context, q db.Q, pipelineID int64, name string) ([]*Job, error) {
	return db.All(ctx, q, scanJob, `
		SELECT `+jobColumns+` FROM jobs j WHERE j.pipeline_id = ? AND j.name = ? ORDER BY j.id DESC LIMIT 20`, pipelineID, name)
}

// dayCount is the number of pipelines with a status that were created on a day,
// and the total duration of those that have ended.
type dayCount struct {
	day    time.Time
	status flow.Status
	n      int
	ended  int
	took   time.Duration
}

// countDays counts the pipelines of a project since a day. The condition on
// updated_at is implied by the one on created_at; it is there because
// updated_at has an index.
func countDays(ctx context.Context, q db.Q, by actor.Actor, in *project.Project, since time.Time) ([]dayCount, error) {
	var w db.Where
	w.And("p.project_id = ? AND p.updated_at >= ? AND p.created_at >= ? AND NOT p.child", in.ID, since, since)
	repo.WhereRefVisible(&w, by, in, "p.ref")
	return db.All(ctx, q, func(s db.Scanner) (dayCount, error) {
		var c dayCount
		var day, took int64
		err := s.Scan(&day, &c.status, &c.n, &c.ended, &took)
		c.day, c.took = time.Unix(day*86400, 0).UTC(), time.Duration(took)*time.Microsecond
		return c, err
	}, `SELECT created_at / 86400000000, status, count(*), count(finished_at - started_at), CAST(COALESCE(sum(finished_at - started_at), 0) AS BIGINT)
		FROM pipelines p`+w.SQL()+` GROUP BY created_at / 86400000000, status`, w.Args()...)
}
