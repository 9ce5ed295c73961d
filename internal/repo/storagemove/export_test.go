package storagemove

import "context"

// Run runs a move, as its background job does.
func (m *Service) Run(ctx context.Context, moveID int64) error { return m.work(ctx, moveWork{moveID}) }
