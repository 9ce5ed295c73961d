package activity

import "context"

// Purge is the background work that removes old events.
func (s *Service) Purge(ctx context.Context) error { return s.purge(ctx) }

// MaxLanes is from where on a page is not put together from single projects.
const MaxLanes = maxLanes
