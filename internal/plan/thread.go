package plan

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/db"
)

// Threads lists the resolvable discussions of a target, oldest first.
func (s *Service) Threads(ctx context.Context, on Noteable, p db.Paging) (db.Page[*Discussion], error) {
	page, err := listThreads(ctx, s.DB, on, p)
	if err != nil {
		return page, fmt.Errorf("list threads: %w", err)
	}
	return page, s.fillDiscussions(ctx, on, page.Items...)
}

// ThreadCount is the number of unresolved and of all threads of a target.
type ThreadCount struct{ Open, Total int }

// CountThreads counts the threads of a target.
func (s *Service) CountThreads(ctx context.Context, on Noteable) (ThreadCount, error) {
	n, err := countThreads(ctx, s.DB, on)
	if err != nil {
		return n, fmt.Errorf("count threads: %w", err)
	}
	return n, nil
}

// OpenThreadIDs returns the IDs of the unresolved threads of a target, oldest
// first, up to a limit. If only is not empty, it returns only that thread.
func (s *Service) OpenThreadIDs(ctx context.Context, on Noteable, only string, limit int) ([]string, error) {
	ids, err := findOpenThreads(ctx, s.DB, on, only, limit)
	if err != nil {
		return nil, fmt.Errorf("open threads: %w", err)
	}
	return ids, nil
}

// DiscussionsByID returns discussions of a target, in the order of the IDs.
func (s *Service) DiscussionsByID(ctx context.Context, on Noteable, ids []string) ([]*Discussion, error) {
	list := make([]*Discussion, len(ids))
	for i, id := range ids {
		list[i] = &Discussion{ID: id}
	}
	if err := s.fillDiscussions(ctx, on, list...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(d *Discussion) bool { return len(d.Notes) == 0 }), nil
}
