package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
)

// ChildCounts is the number of direct subgroups and projects of a group.
type ChildCounts struct{ Groups, Projects int64 }

// CountChildren counts the direct subgroups and projects of groups that the actor
// can see, by group ID.
func (s *Service) CountChildren(ctx context.Context, by actor.Actor, ids []int64) (map[int64]ChildCounts, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := countChildren(ctx, s.DB, s.groupsWhere(by, GroupsFilter{AllAvailable: true}), s.where(by, Filter{}), ids)
	if err != nil {
		return nil, fmt.Errorf("count children of groups: %w", err)
	}
	return found, nil
}
