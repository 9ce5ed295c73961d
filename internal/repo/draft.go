package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// draftAge is how old a draft of a repository is that no one works on any more:
// no copy takes so long.
const draftAge = 24 * time.Hour

// SweepDrafts removes what was left of repositories whose making a crash cut
// off. They have no name yet, so nothing leads to them. The queue calls it
// every day.
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
				continue // it has its name now, or will
			}
			if err := os.RemoveAll(draft); err != nil {
				return fmt.Errorf("remove draft on storage %s: %w", name, err)
			}
		}
	}
	return nil
}
