package project

import (
	"context"
	"fmt"

	"svc/internal/db"
)

// clear takes away what a project whose row is about to go leaves behind: the
// accounts of its bots, keys that open nothing else, its picture.
func (s *Service) clear(ctx context.Context, tx *db.Tx, id int64) error {
	if err := s.deleteBots(ctx, tx, `project_id = ?`, id); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM deploy_keys WHERE NOT public
		AND id IN (SELECT e.deploy_key_id FROM deploy_key_projects e WHERE e.project_id = ?)
		AND NOT EXISTS (SELECT 1 FROM deploy_key_projects e WHERE e.deploy_key_id = deploy_keys.id AND e.project_id <> ?)`, id, id)
	if err != nil {
		return err
	}
	return s.dropAvatars(ctx, tx, false, `projects WHERE id = ?`, id)
}

// clearGroups is clear for a group and all below it, without their projects.
func (s *Service) clearGroups(ctx context.Context, tx *db.Tx, id int64) error {
	if err := s.deleteBots(ctx, tx, `namespace_id IN `+below, id); err != nil {
		return err
	}
	return s.dropAvatars(ctx, tx, true, `namespaces WHERE deleted_at IS NOT NULL AND id IN `+below, id)
}

func (s *Service) deleteBots(ctx context.Context, tx *db.Tx, which string, id int64) error {
	bots, err := db.All(ctx, tx, func(sc db.Scanner) (id int64, err error) { return id, sc.Scan(&id) },
		`SELECT user_id FROM bots WHERE `+which+` ORDER BY user_id`, id)
	if err != nil {
		return err
	}
	for _, bot := range bots {
		if err := s.Users.DeleteBot(ctx, tx, bot); err != nil {
			return fmt.Errorf("delete bot %d: %w", bot, err)
		}
	}
	return nil
}

// dropAvatars removes pictures once the rows that refer to them are gone.
func (s *Service) dropAvatars(ctx context.Context, tx *db.Tx, group bool, which string, id int64) error {
	type owner struct {
		id   int64
		name string
	}
	list, err := db.All(ctx, tx, func(sc db.Scanner) (owner, error) {
		var o owner
		err := sc.Scan(&o.id, &o.name)
		return o, err
	}, `SELECT id, avatar FROM `+which+` AND avatar <> ''`, id)
	if err != nil || len(list) == 0 {
		return err
	}
	tx.AfterCommit(func() {
		for _, o := range list {
			s.avatars(group).Drop(ctx, o.id, o.name)
		}
	})
	return nil
}
