package jobqueue

import (
	"testing"

	"svc/internal/ci/runners"
)

func TestWake(t *testing.T) {
	t.Parallel()
	w := newLongPolls()
	hold := func(r runners.Runner, projects ...int64) *longPoll {
		at := &longPoll{runner: &r, projects: projects, wake: make(chan wakeup, 1)}
		w.add(at)
		return at
	}
	first := hold(runners.Runner{ID: 1, Type: runners.InstanceType, RunUntagged: true})
	second := hold(runners.Runner{ID: 2, Type: runners.InstanceType, RunUntagged: true})
	tagged := hold(runners.Runner{ID: 3, Type: runners.InstanceType, Tags: []string{"x"}})
	safe := hold(runners.Runner{ID: 4, Type: runners.ProjectType, RunUntagged: true, ProtectedOnly: true}, 7)
	own := hold(runners.Runner{ID: 5, Type: runners.ProjectType, RunUntagged: true}, 7)
	other := hold(runners.Runner{ID: 6, Type: runners.ProjectType, RunUntagged: true}, 8)
	group := hold(runners.Runner{ID: 7, Type: runners.GroupType, RunUntagged: true})
	all := []*longPoll{first, second, tagged, safe, own, other, group}
	tagsOf := func(id int64) ([]string, bool) {
		if id == 1 {
			return nil, true
		}
		return []string{"x"}, true
	}
	woken := func() (ids []int64) {
		for _, at := range all {
			select {
			case <-at.wake:
				ids = append(ids, at.runner.ID)
			default:
			}
		}
		return ids
	}
	check := func(c wakeup, want ...int64) {
		t.Helper()
		w.wake(c, tagsOf)
		if got := woken(); len(got) != len(want) || !equalIDs(got, want) {
			t.Errorf("%+v wakes %v, want %v", c, got, want)
		}
	}
	check(wakeup{project: 7, tags: 1}, 1, 5, 7)
	check(wakeup{project: 7, tags: 1, protected: true}, 1, 4, 7)
	check(wakeup{project: 9, tags: 2}, 3)
	check(wakeup{all: true}, 1, 2, 3, 4, 5, 6, 7)
	// A request that was already woken is skipped for a second job.
	w.wake(wakeup{project: 9, tags: 1}, tagsOf)
	check(wakeup{project: 9, tags: 1}, 1, 2, 7)
	w.remove(first)
	check(wakeup{project: 9, tags: 1}, 2, 7)
}

func equalIDs(a, b []int64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
