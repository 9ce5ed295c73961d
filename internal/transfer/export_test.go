package transfer

import "context"

// RunExport does the work of an export now.
func (s *Service) RunExport(ctx context.Context, id int64) error {
	return s.runExport(ctx, exportWork{id})
}

// RunImport does the work of an import now.
func (s *Service) RunImport(ctx context.Context, id int64) error {
	return s.runImport(ctx, importWork{id})
}

// Sweep removes what is past now.
func (s *Service) Sweep(ctx context.Context) error { return s.sweep(ctx) }
