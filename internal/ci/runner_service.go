package ci

import (
	"sync/atomic"
	"time"

	"svc/internal/ci/joblog"
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
	changes *changes
	readers readers
	logs    *joblog.Store
}

// serveRunners takes on the part of the service that faces runners.
func (s *Service) serveRunners() {
	s.polls, s.changes = newLongPolls(), newChanges()
	s.tagSets.known = map[int64][]string{}
	s.taken.jobs = map[int64]struct{}{}
	s.queues.queues = map[queueKey]*jobQueue{}
	s.logs = joblog.New(joblog.Deps{DB: s.DB, Blobs: s.Blobs, Notices: s.Notices, Dir: s.LogDir, Limit: s.logLimit, Now: s.Now})
	s.listen()
	s.listenChanged()
	s.Users.OnChange(s.readers.changed)
	s.Projects.OnRemove(s.forgetProjects)
	queue.Handle(s.Queue, s.removeFiles)
	queue.Handle(s.Queue, s.removeArtifacts, queue.Timeout(time.Hour))
	s.Queue.Every("ci.sweep_logs", time.Minute, s.SweepLogs)
	s.Queue.Every("ci.retain", 10*time.Minute, s.Retain)
}
