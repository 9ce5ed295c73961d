package ci

import (
	"sync/atomic"
	"time"
)

// nodeState is the in-memory state of this node for runners and readers. Other
// nodes do not need it, and it is not kept across restarts.
type nodeState struct {
	polls   *longPolls
	tagSets tagSets
	taken   taking
	queues  jobQueues
	turn    atomic.Int64 // the project that was served last
	changes *changes
	readers readers
}

// serveRunners takes on the part of the service that faces runners.
func (s *Service) serveRunners() {
	s.polls, s.changes = newLongPolls(), newChanges()
	s.tagSets.known = map[int64][]string{}
	s.taken.jobs = map[int64]struct{}{}
	s.queues.queues = map[queueKey]*jobQueue{}
	s.listen()
	s.listenChanged()
	s.Users.OnChange(s.readers.changed)
	s.Projects.OnRemove(s.forgetProjects)
	s.Queue.Every("ci.retain", 10*time.Minute, s.Retain)
}
