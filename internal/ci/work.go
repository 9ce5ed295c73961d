package ci

import (
	"time"

	"svc/internal/queue"
)

// handleWork registers the background jobs of this feature.
func (s *Service) handleWork() {
	s.Queue.Lane(lane, 4)
	queue.Handle(s.Queue, s.workPush)
	queue.Handle(s.Queue, s.workRequest)
	queue.Handle(s.Queue, s.giveTurn)
	queue.Handle(s.Queue, s.workBridge)
	queue.Handle(s.Queue, s.mirror)
	queue.Handle(s.Queue, s.workCancel)
	queue.Handle(s.Queue, s.cancelRedundant)
	queue.Handle(s.Queue, s.updateEnvironment)
	queue.Handle(s.Queue, s.workPlay)
	queue.Handle(s.Queue, s.workOutdated)
	queue.Handle(s.Queue, s.workGate)
	queue.Handle(s.Queue, s.workSchedule)
	s.Queue.Every("ci_sweep", 10*time.Second, s.Sweep)
	s.Queue.Every("ci.retain", 10*time.Minute, s.Retain)
}
