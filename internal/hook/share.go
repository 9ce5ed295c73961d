package hook

import "sync"

const (
	// laneSize is how many hooks a node delivers to at once, in each lane.
	laneSize = 16
	// ownerShare is the maximum number of these hooks that belong to one project or
	// group, so that the events of one owner do not delay those of others.
	ownerShare = 4
)

// share names the hooks that share workers: those of one owner in one lane. System
// hooks have neither a project nor a group.
type share struct {
	projectID, groupID int64
	slow               bool
}

// shares counts the hooks that this node delivers to, by owner.
type shares struct {
	mu      sync.Mutex
	running map[share]int
	parked  map[share][]int64 // hooks, in the order in which they get a turn
}

func newShares() *shares {
	return &shares{running: map[share]int{}, parked: map[share][]int64{}}
}

// enter occupies a worker for a hook. If the owner already occupies ownerShare workers,
// the hook is parked, and leave returns it later.
func (s *shares) enter(of share, hookID int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[of] < ownerShare {
		s.running[of]++
		return true
	}
	for _, id := range s.parked[of] {
		if id == hookID {
			return false
		}
	}
	s.parked[of] = append(s.parked[of], hookID)
	return false
}

// leave frees a worker. It returns the next parked hook of the owner; 0 if there is
// none.
func (s *shares) leave(of share) (next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[of]--; s.running[of] == 0 {
		delete(s.running, of)
	}
	list := s.parked[of]
	if len(list) == 0 {
		return 0
	}
	if next = list[0]; len(list) == 1 {
		delete(s.parked, of)
	} else {
		s.parked[of] = list[1:]
	}
	return next
}
