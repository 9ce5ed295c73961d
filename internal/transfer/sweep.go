package transfer

import (
	"context"
	"fmt"
	"time"
)

// uploadAge is the maximum duration of an upload.
const uploadAge = 24 * time.Hour

// Sweep removes expired files and rows.
func (s *Service) Sweep(ctx context.Context) error {
	for _, project := range []bool{false, true} {
		if err := s.sweep(ctx, project); err != nil {
			return err
		}
	}
	return s.sweepBulk(ctx)
}

func (s *Service) sweep(ctx context.Context, project bool) error {
	for {
		list, err := pastExports(ctx, s.DB, project, s.Now())
		if err != nil {
			return fmt.Errorf("find past exports: %w", err)
		}
		for _, e := range list {
			// The file goes first: the row is needed to find it.
			if err := s.Blobs.Delete(ctx, e.key()); err != nil {
				return fmt.Errorf("remove export %d: %w", e.ID, err)
			}
			if err := deleteExport(ctx, s.DB, e); err != nil {
				return fmt.Errorf("remove export %d: %w", e.ID, err)
			}
		}
		if len(list) == 0 {
			break
		}
	}
	for {
		list, err := pastFiles(ctx, s.DB, project, s.Now().Add(-uploadAge))
		if err != nil {
			return fmt.Errorf("find files of past imports: %w", err)
		}
		for _, i := range list {
			if err := s.Blobs.Delete(ctx, i.file); err != nil {
				return fmt.Errorf("remove the file of import %d: %w", i.ID, err)
			}
			if err := forgetFile(ctx, s.DB, i); err != nil {
				return fmt.Errorf("remove the file of import %d: %w", i.ID, err)
			}
		}
		if len(list) == 0 {
			break
		}
	}
	if err := deletePastImports(ctx, s.DB, project, s.Now().Add(-keepImport)); err != nil {
		return fmt.Errorf("remove past imports: %w", err)
	}
	return nil
}
