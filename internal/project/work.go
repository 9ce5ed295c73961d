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

// handleWork takes on the background work of this feature.
func (s *Service) handleWork() {
	queue.Handle(s.Queue, s.finishDelete)
	queue.Handle(s.Queue, s.finishDeleteGroup)
	s.Queue.Every("project_expire_members", time.Hour, s.expireMembers)
	s.Queue.Every("project_retire_bots", time.Hour, s.retireBots)
}

// expireMembers removes memberships and shares whose day has come. They have
// counted as none since its start; this tidies up, and records it.
func (s *Service) expireMembers(ctx context.Context) error {
	err := s.DB.Tx(ctx, func(tx *db.Tx) error {
		gone, err := db.All(ctx, tx, func(sc db.Scanner) (expired, error) {
			var e expired
			err := sc.Scan(&e.id, &e.user.ID, &e.user.Details, &e.in.Type, &e.in.ID, &e.in.Path)
			return e, err
		}, `
			SELECT m.id, m.user_id, u.username, CASE WHEN m.project_id IS NULL THEN 'Group' ELSE 'Project' END,
				COALESCE(m.project_id, m.namespace_id), COALESCE(p.full_path, n.full_path)
			FROM members m JOIN users u ON u.id = m.user_id LEFT JOIN projects p ON p.id = m.project_id LEFT JOIN namespaces n ON n.id = m.namespace_id
			WHERE m.expires_at <= ? ORDER BY m.id LIMIT 1000`, s.today())
		if err != nil {
			return err
		}
		for _, e := range gone {
			if _, err := tx.ExecContext(ctx, `DELETE FROM members WHERE id = ?`, e.id); err != nil {
				return err
			}
			e.user.Type = "User"
			if e.in.Type == audit.ProjectEntity {
				if err := s.publish(ctx, tx, Event{Kind: MemberExpired, ProjectID: e.in.ID, UserID: e.user.ID}); err != nil {
					return err
				}
			}
			if err := s.record(ctx, tx, actor.System(), "member_expired", e.in, e.user, audit.Details{Remove: "user_access", Message: "Membership expired"}); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM group_shares WHERE expires_at <= ?`, s.today())
		return err
	})
	if err != nil {
		return fmt.Errorf("expire members: %w", err)
	}
	return nil
}

type expired struct {
	id   int64
	user audit.Target
	in   audit.Entity
}
