package hook

import "testing"

func TestShares(t *testing.T) {
	t.Parallel()
	s := newShares()
	one, other := share{projectID: 1}, share{projectID: 1, slow: true}
	for id := range int64(ownerShare) {
		if !s.enter(one, id) {
			t.Fatalf("hook %d does not get its turn", id)
		}
	}
	for _, id := range []int64{10, 11, 10} {
		if s.enter(one, id) {
			t.Errorf("hook %d is one too many", id)
		}
	}
	if !s.enter(other, 10) || s.leave(other) != 0 {
		t.Error("the other lane has its own share")
	}
	var next []int64
	for range ownerShare {
		next = append(next, s.leave(one))
	}
	if next[0] != 10 || next[1] != 11 || next[2] != 0 || len(s.running) != 0 || len(s.parked) != 0 {
		t.Errorf("%v, %d run, %d parked", next, len(s.running), len(s.parked))
	}
}
