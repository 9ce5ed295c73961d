package project

import (
	"context"
	"fmt"
	"time"

	"svc/internal/actor"
	"svc/internal/audit"
	"svc/internal/db"
	"svc/internal/errs"
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
			if err := s.expireMember(ctx, tx, e); err != nil {
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

func (s *Service) expireMember(ctx context.Context, tx *db.Tx, e expired) error {
	if err := deleteMemberByID(ctx, tx, e.id); err != nil {
		return err
	}
	e.user.Type = "User"
	if e.in.Type == audit.ProjectEntity {
		if err := s.Events.Changed.Publish(ctx, tx, Event{Kind: MemberExpired, ProjectID: e.in.ID, UserID: e.user.ID}); err != nil {
			return err
		}
	}
	return s.record(ctx, tx, actor.System(), "member_expired", e.in, e.user, audit.Details{Remove: "user_access", Message: "Membership expired"})
}

// clearExpired deletes the membership of a user if it has expired. It would prevent a
// new one until expireMembers runs.
func (s *Service) clearExpired(ctx context.Context, tx *db.Tx, in source, userID int64) error {
	m, err := lockMember(ctx, tx, in, userID, false)
	if errs.Is(err, errs.KindNotFound) {
		return nil
	}
	if err != nil || m.ExpiresAt == "" || m.ExpiresAt > s.today() {
		return err
	}
	u, err := s.userOf(ctx, tx, userID)
	if err != nil {
		return err
	}
	return s.expireMember(ctx, tx, expired{id: m.ID, user: audit.Target{ID: u.ID, Details: u.Username}, in: in.entity()})
}
