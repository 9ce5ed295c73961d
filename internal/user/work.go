package user

import (
	"time"

	"svc/internal/queue"
)

// handleWork registers the background jobs.
func (s *Service) handleWork() {
	queue.Handle(s.Queue, s.finishDelete)
	queue.Handle(s.Queue, s.sendEmail)
	s.Queue.Every("user_purge_sessions", time.Hour, s.purgeSessions)
	s.Queue.Every("user_purge_tickets", time.Hour, s.purgeTickets)
	s.Queue.Every("user_purge_failed_logins", time.Hour, s.PurgeFailedLogins)
	s.Queue.Every("user_delete_bots", time.Hour, s.deleteBots)
	s.Queue.Every("user_clear_statuses", 5*time.Minute, s.clearStatuses)
}
