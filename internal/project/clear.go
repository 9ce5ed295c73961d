package project

import (
	"context"
	"fmt"

	"svc/internal/db"
)

// clear removes the bot users, the deploy keys used nowhere else and the avatar of
// a project that is about to be deleted.
func (s *Service) clear(ctx context.Context, tx *db.Tx, id int64) error {
	bots, err := projectBots(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := s.deleteBots(ctx, tx, bots); err != nil {
		return err
	}
	if err := deleteOnlyKeys(ctx, tx, id); err != nil {
		return err
	}
	avatars, err := projectAvatar(ctx, tx, id)
	if err != nil {
		return err
	}
	s.dropAvatars(ctx, tx, false, avatars)
	return nil
}

// clearGroups is clear for a group and its subgroups, without their projects.
func (s *Service) clearGroups(ctx context.Context, tx *db.Tx, id int64) error {
	bots, err := groupBots(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := s.deleteBots(ctx, tx, bots); err != nil {
		return err
	}
	avatars, err := deletedGroupAvatars(ctx, tx, id)
	if err != nil {
		return err
	}
	s.dropAvatars(ctx, tx, true, avatars)
	return nil
}

func (s *Service) deleteBots(ctx context.Context, tx *db.Tx, bots []int64) error {
	for _, bot := range bots {
		if err := s.Users.DeleteBot(ctx, tx, bot); err != nil {
			return fmt.Errorf("delete bot %d: %w", bot, err)
		}
	}
	return nil
}

// dropAvatars deletes avatar files after the transaction has deleted the rows that
// refer to them.
func (s *Service) dropAvatars(ctx context.Context, tx *db.Tx, group bool, list []avatarOf) {
	if len(list) == 0 {
		return
	}
	tx.AfterCommit(func() {
		for _, a := range list {
			s.avatars(group).Drop(ctx, a.id, a.name)
		}
	})
}
