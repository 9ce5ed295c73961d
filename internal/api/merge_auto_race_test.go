package api_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"svc/internal/app/apptest"
)

// TestAutoMergeRace lets a pipeline succeed, pushes to the source branch, cancels
// auto-merge and merges by a user, all concurrently. There is at most one merge, of
// the commit whose pipeline succeeded, and none after auto-merge was canceled unless
// a user merged.
func TestAutoMergeRace(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "build:\n  script: [\"true\"]\n")
		s.Check(t, apptest.Call{Do: "PUT " + w.bench.at(""), As: w.owner, JSON: `{"only_allow_merge_if_pipeline_succeeds":true}`, Status: 200})
		merges := 0
		for round := range 10 {
			if w.raceAuto(t, round) {
				merges++
			}
		}
		// Rounds without a push and a cancel end with a merge.
		if merges == 0 {
			t.Error("nothing was merged")
		}
	})
}

// raceAuto runs a round and reports whether its merge request was merged.
func (w *namedJobs) raceAuto(t *testing.T, round int) bool {
	t.Helper()
	s, branch := w.s, fmt.Sprintf("work-%d", round)
	w.push(branch, "Work", map[string]string{branch: "work\n"})
	one := requested(t, s, w.owner, w.project, branch, "")
	w.settled()
	var m struct{ SHA string }
	s.Check(t, apptest.Call{Do: "PUT " + one + "/merge", As: w.owner, JSON: `{"auto_merge":true}`, Status: 200}).JSON(t, &m)
	var job *assigned
	for j := range w.taken() {
		if j.GitInfo.SHA == m.SHA {
			job = j
		} else {
			w.update(j, 200, `{"state":"success"}`)
		}
	}
	if job == nil {
		t.Fatal("the head has no job")
	}

	const push, cancel, merge = 1, 2, 3
	calls := []apptest.Call{
		{Do: fmt.Sprintf("PUT /jobs/%d", job.ID), Header: map[string]string{"JOB-TOKEN": job.Token}, JSON: `{"state":"success"}`},
		push:   {Do: "POST " + w.bench.at("/repository/commits"), As: w.owner, JSON: fmt.Sprintf(`{"branch":%q,"commit_message":"More","actions":[{"action":"create","file_path":"more-%[1]s","content":"x"}]}`, branch)},
		cancel: {Do: "POST " + one + "/cancel_merge_when_pipeline_succeeds", As: w.owner},
		merge:  {Do: "PUT " + one + "/merge", As: w.owner},
	}
	// All actions, all but one, or the pipeline with one other action.
	without := [][]int{{}, {push}, {cancel}, {push, merge}, {push, cancel}}[round%5]
	answers := make([]apptest.Answer, len(calls))
	start := make(chan struct{})
	var group sync.WaitGroup
	for i, call := range calls {
		if slices.Contains(without, i) {
			continue
		}
		group.Go(func() {
			<-start
			answers[i] = s.Send(t, call)
		})
	}
	close(start)
	group.Wait()
	w.settled()
	var pushed struct{ ID string }
	if answers[push].Status == 201 {
		answers[push].JSON(t, &pushed)
	}
	// The pipeline of the new head fails.
	for j := range w.taken() {
		state := "success"
		if j.GitInfo.SHA == pushed.ID {
			state = "failed"
		}
		w.update(j, 200, fmt.Sprintf(`{"state":%q}`, state))
	}
	w.settled()

	var now struct{ State string }
	s.Check(t, apptest.Call{Do: "GET " + one, As: w.owner, Status: 200}).JSON(t, &now)
	var commits []struct {
		ID        string
		ParentIDs []string `json:"parent_ids"`
	}
	s.Check(t, apptest.Call{Do: "GET " + w.bench.at("/repository/commits?ref_name=main&per_page=100"), As: w.owner, Status: 200}).JSON(t, &commits)
	found := 0
	for _, c := range commits {
		if slices.Contains(c.ParentIDs, m.SHA) && len(c.ParentIDs) == 2 {
			found++
		}
		if c.ID == pushed.ID {
			t.Errorf("round %d: the commit %s was merged without a pipeline", round, c.ID)
		}
	}
	merged := now.State == "merged"
	if merged && found != 1 || !merged && found != 0 {
		t.Errorf("round %d: the merge request is %s, the target has %d merges", round, now.State, found)
	}
	if merged {
		s.Check(t, apptest.Call{Do: "GET " + w.bench.at("/pipelines?sha=%s", m.SHA), As: w.owner, Status: 200, Want: `[{"status":"success"}]`})
	}
	if answers[merge].Status == 200 && !merged {
		t.Errorf("round %d: the merge by hand succeeded, but the merge request is %s", round, now.State)
	}
	if answers[cancel].Status == 201 && answers[merge].Status != 200 && merged {
		t.Errorf("round %d: it was merged after the automatic merge was canceled", round)
	}
	if round%5 == 4 && !merged {
		t.Errorf("round %d: it was not merged", round)
	}
	return merged
}
