package project

import (
	"context"
	"fmt"

	"svc/internal/actor"
)

// ChildCounts has the number of subgroups and projects directly in a group.
type ChildCounts struct{ Groups, Projects int64 }

// CountChildren counts the subgroups and projects directly in groups, by the ids
// of the groups, as far as the actor sees them.
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
