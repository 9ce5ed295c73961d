package plan

import (
	"context"
	"fmt"

	"svc/internal/db"
)

// Threads lists the discussions of a target that can be resolved, the oldest
// first.
func (s *Service) Threads(ctx context.Context, on Noteable, p db.Paging) (db.Page[*Discussion], error) {
	page, err := listThreads(ctx, s.DB, on, p)
	if err != nil {
		return page, fmt.Errorf("list threads: %w", err)
	}
	return page, s.fillDiscussions(ctx, on, page.Items...)
}

// ThreadCount is the number of threads of a target.
type ThreadCount struct{ Open, Total int }

// CountThreads counts the threads of a target.
func (s *Service) CountThreads(ctx context.Context, on Noteable) (ThreadCount, error) {
	n, err := countThreads(ctx, s.DB, on)
	if err != nil {
		return n, fmt.Errorf("count threads: %w", err)
	}
	return n, nil
}
