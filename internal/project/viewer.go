package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
)

// HasStarred tells whether the actor himself has starred a project that he
// was shown.
func (s *Service) HasStarred(ctx context.Context, by actor.Actor, projectID int64) (bool, error) {
	if by.Anonymous() {
		return false, nil
	}
	starred, err := exists(s.DB.QueryRowContext(ctx, `SELECT 1 FROM stars WHERE project_id = ? AND user_id = ?`, projectID, by.ID))
	if err != nil {
		return false, fmt.Errorf("star of project %d: %w", projectID, err)
	}
	return starred, nil
}

// LevelIn is the actor's own level in a group that he was shown.
func (s *Service) LevelIn(ctx context.Context, by actor.Actor, groupID int64) (Level, error) {
	return s.GroupLevel(ctx, s.DB, by, groupID)
}
