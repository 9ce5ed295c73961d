package bench

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"svc/internal/app"
	"svc/internal/db"
	"svc/internal/db/dbtest"
)

// jobLists compares pages of the jobs of projects with many and with few jobs.
func jobLists(b *testing.B, t *table) {
	b.Run("sqlite", func(b *testing.B) {
		jobListsOn(b, t, "SQLite", func() string { return "" })
	})
	if os.Getenv("TEST_POSTGRES") != "" {
		b.Run("postgres", func(b *testing.B) {
			jobListsOn(b, t, "PostgreSQL", func() string { return dbtest.Postgres(b).URL })
		})
	}
}

func jobListsOn(b *testing.B, t *table, on string, newDatabase func() string) {
	jobs := map[int]site{}
	servers := map[int]*app.Server{}
	for _, rows := range []int{fewRows, manyRows} {
		s := serve(b, newDatabase())
		p := newSite(b, s.Addr())
		p.pushPipeline(b, 1)
		awaitQueue(b, s, 1)
		fillJobs(b, s.DB, rows/100, 100)
		spreadStates(b, s.DB)
		jobs[rows], servers[rows] = p, s
	}
	for _, c := range []struct{ name, query string }{
		{"first page", ""},
		{"first page, one state", "&scope=failed"},
		{"first page, three states", "&scope[]=failed&scope[]=canceled&scope[]=running"},
		{"keyset", "&pagination=keyset&cursor="},
		{"keyset, one state", "&scope=failed&pagination=keyset&cursor="},
		{"keyset, three states", "&scope[]=failed&scope[]=canceled&scope[]=running&pagination=keyset&cursor="},
	} {
		b.Run(c.name, func(b *testing.B) {
			at := func(rows int) *walk {
				path := fmt.Sprintf("projects/%d/jobs?per_page=20%s", jobs[rows].project, c.query)
				if strings.HasSuffix(c.query, "cursor=") {
					path += list{by: "id", table: "jobs"}.cursor(b, servers[rows], rows/2)
				}
				return newWalk(b, servers[rows], []string{path})
			}
			short, long := at(fewRows), at(manyRows)
			comparePages(b, t, short, long, figure{
				name: fmt.Sprintf("jobs, %s (%s)", c.name, on), limit: 1.3, unit: fmt.Sprintf("× at %d jobs", fewRows),
			})
		})
	}
}

// fillJobs copies the pipeline of each project, which is pending, a number of times
// with a number of jobs.
func fillJobs(b testing.TB, d *db.DB, pipelines, jobs int) {
	b.Helper()
	// Pipelines of earlier calls have IIDs above copied.
	const copied = 1_000_000
	fill(b, d, []statement{
		{series + `INSERT INTO pipelines (project_id, iid, status, source, ref, tag, sha, before_sha, user_id, protected, stages, created_at, updated_at)
			SELECT p.project_id, (SELECT max(m.iid) FROM pipelines m WHERE m.project_id = p.project_id) + ? + n, 'pending', p.source, p.ref, p.tag, p.sha,
				p.before_sha, p.user_id, p.protected, p.stages, p.created_at + n, p.updated_at + n
			FROM pipelines p CROSS JOIN series WHERE p.iid < ?`, []any{pipelines, copied, copied}},
		{series + `INSERT INTO jobs (project_id, pipeline_id, status, name, stage, stage_index, run_when, needs, ref, tag, protected, user_id, tag_set_id,
				timeout, created_at, updated_at, queued_at, options, variables)
			SELECT p.project_id, p.id, 'pending', j.name || ' ' || n, j.stage, j.stage_index, j.run_when, j.needs, j.ref, j.tag, j.protected, j.user_id,
				j.tag_set_id, j.timeout, p.created_at, p.updated_at, p.updated_at, j.options, j.variables
			FROM pipelines p JOIN pipelines o ON o.project_id = p.project_id AND o.iid < ? JOIN jobs j ON j.pipeline_id = o.id CROSS JOIN series
			WHERE p.iid > ? AND p.status = 'pending' AND NOT EXISTS (SELECT 1 FROM jobs x WHERE x.pipeline_id = p.id)
			ORDER BY p.id, n`, []any{jobs, copied, copied}},
		{`INSERT INTO job_queue (job_id, project_id, tag_set_id, protected, queued_at)
			SELECT j.id, j.project_id, j.tag_set_id, j.protected, j.queued_at FROM jobs j
			WHERE j.status = 'pending' AND j.id NOT IN (SELECT q.job_id FROM job_queue q)`, nil},
	})
}

// spreadStates ends most jobs, with various statuses.
func spreadStates(b testing.TB, d *db.DB) {
	b.Helper()
	fill(b, d, []statement{
		{`DELETE FROM job_queue`, nil},
		{`UPDATE jobs SET started_at = created_at, finished_at = created_at + 1000000, status = CASE
			WHEN id % 10 = 0 THEN 'failed' WHEN id % 25 = 1 THEN 'canceled' WHEN id % 500 = 2 THEN 'running' ELSE 'success' END`, nil},
		{`UPDATE pipelines SET status = 'success'`, nil},
	})
}

func TestFillJobs(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	p := newSite(t, s.Addr())
	p.pushPipeline(t, 1)
	awaitQueue(t, s, 1)
	fillJobs(t, s.DB, 2, 30)
	fillJobs(t, s.DB, 1, 10)
	if n := count(t, s, `SELECT count(*) FROM job_queue`); n != 71 {
		t.Errorf("%d jobs are pending", n)
	}
	r := p.newRunner(t)
	d := &draining{log: sampleLog(tracePatches * tracePatch), got: map[int64]bool{}}
	d.work(t, r)
	if len(d.got) != 71 || d.twice.Load() > 0 {
		t.Errorf("%d jobs, %d duplicates", len(d.got), d.twice.Load())
	}
	spreadStates(t, s.DB)
	if n := count(t, s, `SELECT count(*) FROM jobs WHERE status = 'failed'`); n == 0 {
		t.Error("no job failed")
	}
}
