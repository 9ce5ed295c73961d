package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"svc/internal/ci/flow"
)

// parse reads jobs from lines of "stage name status [when] [may-fail] [needs:a,b?] [grouped]".
func parse(t *testing.T, text string) []flow.Job {
	t.Helper()
	var jobs []flow.Job
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		j := flow.Job{ID: int64(len(jobs) + 1), Name: f[1], Status: flow.Status(f[2]), When: flow.OnSuccess}
		if _, err := fmt.Sscan(f[0], &j.Stage); err != nil {
			t.Fatal(err)
		}
		for _, word := range f[3:] {
			names, isNeeds := strings.CutPrefix(word, "needs:")
			switch {
			case isNeeds:
				j.Needs = []flow.Need{}
				for name := range strings.SplitSeq(names, ",") {
					if name != "" {
						j.Needs = append(j.Needs, flow.Need{Name: strings.TrimSuffix(name, "?"), Optional: strings.HasSuffix(name, "?")})
					}
				}
			case word == "may-fail":
				j.AllowFailure = true
			case word == "grouped":
				j.Grouped = true
			default:
				j.When = flow.When(word)
			}
		}
		jobs = append(jobs, j)
	}
	return jobs
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, jobs, want, overall string }{
		{"the first stage begins", `
			0 a created
			0 b created
			1 c created`, "a:pending b:pending", "pending"},
		{"a stage waits for all of the one before", `
			0 a success
			0 b running
			1 c created`, "", "running"},
		{"and begins when they are done", `
			0 a success
			0 b success
			1 c created
			2 d created`, "c:pending", "running"},
		{"a failure skips what follows", `
			0 a failed
			1 b created
			2 c created`, "b:skipped c:skipped", "failed"},
		{"but what waits for a failure runs", `
			0 a failed
			1 b created on_failure
			1 c created always
			1 d created`, "b:pending c:pending d:skipped", "running"},
		{"without a failure it does not", `
			0 a success
			1 b created on_failure
			2 c created`, "b:skipped c:pending", "running"},
		{"a failure that is allowed", `
			0 a failed may-fail
			1 b created
			1 c created on_failure`, "b:pending c:skipped", "running"},
		{"nobody has to start what may fail", `
			0 a created manual may-fail
			1 b created`, "a:manual b:pending", "pending"},
		{"what must be started holds the rest", `
			0 a created manual
			1 b created`, "a:manual", "manual"},
		{"a time to wait for", `
			0 a created delayed
			1 b created`, "a:scheduled", "scheduled"},
		{"a turn to wait for", `
			0 a created grouped`, "a:waiting_for_resource", "waiting_for_resource"},
		{"needs begin at once", `
			0 a running
			1 b created needs:
			1 c created needs:a
			2 d created needs:b`, "b:pending", "running"},
		{"needs do not wait for the stage", `
			0 a success
			0 x running
			1 b created needs:a
			1 c created`, "b:pending", "running"},
		{"a need that failed", `
			0 a failed
			1 b created needs:a
			1 c created on_failure needs:a`, "b:skipped c:pending", "running"},
		{"a need that did not run", `
			0 a skipped
			1 b created needs:a
			1 c created always needs:a`, "b:skipped c:pending", "pending"},
		{"a manual need that may fail did not run", `
			0 a manual may-fail
			1 b created needs:a`, "b:skipped", "skipped"},
		{"an optional need that is not there", `
			0 a success
			1 b created needs:gone?`, "b:pending", "running"},
		{"canceled jobs skip what follows, also what always runs", `
			0 a canceled
			1 b created
			1 c created always`, "b:skipped c:skipped", "canceled"},
		{"a skipped stage lets the next one run", `
			0 a skipped
			1 b created`, "b:pending", "pending"},
		{"all is well", `
			0 a success
			1 b skipped
			1 c failed may-fail`, "", "success"},
		{"nothing ran", `
			0 a skipped
			0 b manual may-fail`, "", "skipped"},
		{"no jobs", ``, "", "skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			jobs := parse(t, c.jobs)
			var moves []string
			for _, m := range flow.Advance(jobs) {
				moves = append(moves, jobs[m.ID-1].Name+":"+string(m.To))
			}
			if got := strings.Join(moves, " "); got != c.want {
				t.Errorf("moves %q, want %q", got, c.want)
			}
			if got := flow.Overall(jobs); string(got) != c.overall {
				t.Errorf("overall %q, want %q", got, c.overall)
			}
		})
	}
}

// TestEveryPipelineEnds runs random pipelines with random outcomes. It checks that every
// transition is allowed, and that a job can continue as long as one has not ended.
func TestEveryPipelineEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var jobs []flow.Job
		n := rapid.IntRange(1, 12).Draw(t, "jobs")
		for i := range n {
			j := flow.Job{
				ID: int64(i + 1), Name: fmt.Sprint("j", i), Status: flow.Created, Stage: rapid.IntRange(0, 3).Draw(t, "stage"),
				When:         rapid.SampledFrom([]flow.When{flow.OnSuccess, flow.OnFailure, flow.Always, flow.ByHand, flow.Delayed}).Draw(t, "when"),
				AllowFailure: rapid.Bool().Draw(t, "allow"), Grouped: rapid.Bool().Draw(t, "grouped"),
			}
			if rapid.Bool().Draw(t, "dag") { // needs refer to earlier jobs only, so there is no cycle
				j.Needs = []flow.Need{}
				for k := range i {
					if jobs[k].Stage <= j.Stage && rapid.Bool().Draw(t, "need") {
						j.Needs = append(j.Needs, flow.Need{Name: jobs[k].Name})
					}
				}
			}
			jobs = append(jobs, j)
		}
		for step := 0; ; step++ {
			if step > 10*n {
				t.Fatalf("it does not end: %+v", jobs)
			}
			before := make([]flow.Status, n)
			for i := range jobs {
				before[i] = jobs[i].Status
			}
			for _, m := range flow.Advance(jobs) {
				if from := before[m.ID-1]; !flow.Can(from, m.To) {
					t.Fatalf("job %d from %s to %s", m.ID, from, m.To)
				}
			}
			var open []int
			for i := range jobs {
				if !jobs[i].Status.Done() && jobs[i].Status != flow.Created {
					open = append(open, i)
				}
			}
			if len(open) == 0 {
				break
			}
			j := &jobs[rapid.SampledFrom(open).Draw(t, "open")]
			switch j.Status {
			case flow.Running:
				j.Status = rapid.SampledFrom([]flow.Status{flow.Success, flow.Failed, flow.Canceled}).Draw(t, "end")
			case flow.Pending:
				j.Status = flow.Running
			default: // started by a user, a timer or a resource group
				j.Status = flow.Pending
			}
		}
		for _, j := range jobs {
			if !j.Status.Done() {
				t.Fatalf("job %d is left %s: %+v", j.ID, j.Status, jobs)
			}
		}
		if s := flow.Overall(jobs); !s.Done() {
			t.Fatalf("all jobs are done and the pipeline is %s", s)
		}
	})
}
