package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/queue"
)

// handleWork registers the background jobs.
func (s *Service) handleWork() {
	queue.Handle(s.Queue, s.finishDelete)
	queue.Handle(s.Queue, s.finishDeleteGroup)
	s.Queue.Every("project_delete_marked", time.Hour, s.DeleteMarked)
	s.Queue.Every("project_expire_members", time.Hour, s.expireMembers)
	s.Queue.Every("project_retire_bots", time.Hour, s.retireBots)
}

// expireMembers deletes expired memberships and shares, which are already ignored,
// and records audit events.
func (s *Service) expireMembers(ctx context.Context) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		gone, err := findExpired(ctx, tx, s.today())
		if err != nil {
			return err
		}
		for _, e := range gone {
			if err := deleteMemberByID(ctx, tx, e.id); err != nil {
				return err
			}
			e.user.Type = "User"
			if e.in.Type == audit.ProjectEntity {
				if err := s.Events.Changed.Publish(ctx, tx, Event{Kind: MemberExpired, ProjectID: e.in.ID, UserID: e.user.ID}); err != nil {
					return err
				}
			}
			if err := s.record(ctx, tx, actor.System(), "member_expired", e.in, e.user, audit.Details{Remove: "user_access", Message: "Membership expired"}); err != nil {
				return err
			}
		}
		return deleteExpiredShares(ctx, tx, s.today())
	})
	if err != nil {
		return fmt.Errorf("expire members: %w", err)
	}
	return nil
}
