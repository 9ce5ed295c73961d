package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// draftAge is the age of an abandoned draft of a repository. No copy takes this
// long.
const draftAge = 24 * time.Hour

// SweepDrafts removes incomplete repositories that were left by a crash. They
// have temporary names, so they are not in use. The queue calls it every day.
func (s *Service) SweepDrafts(ctx context.Context) error {
	for name, root := range s.Storages {
		drafts, err := filepath.Glob(filepath.Join(root, "*s", "*", ".init-*"))
		if err != nil {
			return fmt.Errorf("look for drafts on storage %s: %w", name, err)
		}
		for _, draft := range drafts {
			if err := ctx.Err(); err != nil {
				return err
			}
			info, err := os.Stat(draft)
			if err != nil || s.Now().Sub(info.ModTime()) < draftAge {
				continue // it has its final name, or will get it
			}
			if err := os.RemoveAll(draft); err != nil {
				return fmt.Errorf("remove draft on storage %s: %w", name, err)
			}
		}
	}
	return nil
}
