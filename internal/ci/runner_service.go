package ci

import (
	"sync/atomic"
	"time"

	"svc/internal/queue"
)

// nodeState is the in-memory state of this node for runners and readers. Other
// nodes do not need it, and it is not kept across restarts.
type nodeState struct {
	polls   *longPolls
	tagSets tagSets
	taken   taking
	queues  jobQueues
	turn    atomic.Int64 // the project that was served last
	watched *watchers
	changes *changes
	readers readers
	logs    liveLog
	packer  packer // of logs that are put away
}

// serveRunners takes on the part of the service that faces runners.
func (s *Service) serveRunners() {
	s.polls, s.watched, s.changes = newLongPolls(), newWatchers(), newChanges()
	s.tagSets.known = map[int64][]string{}
	s.taken.jobs = map[int64]struct{}{}
	s.queues.queues = map[queueKey]*jobQueue{}
	s.logs = &logSegments{dir: s.LogDir, limit: segmentSize}
	if s.DB.Postgres() { // there may be other nodes
		s.logs = &logChunks{s.DB}
	}
	s.listen()
	s.listenWatched()
	s.listenChanged()
	s.Users.OnChange(s.readers.changed)
	s.Projects.OnRemove(s.forgetProjects)
	queue.Handle(s.Queue, s.removeFiles)
	queue.Handle(s.Queue, s.removeArtifacts, queue.Timeout(time.Hour))
	s.Queue.Every("ci.sweep_logs", time.Minute, s.SweepLogs)
	s.Queue.Every("ci.retain", 10*time.Minute, s.Retain)
}
