package oauth

import (
	"context"
	"fmt"
	"time"
)

const (
	// keepCodes and keepTokens are how long used codes and tokens are kept, to detect
	// reuse.
	keepCodes  = 24 * time.Hour
	keepTokens = 30 * 24 * time.Hour
	// purgeBatch is the number of rows that one statement deletes.
	purgeBatch = 1000
)

// Purge deletes expired rows. It is an hourly job.
func (s *Service) Purge(ctx context.Context) error {
	now := s.Now()
	for _, old := range []struct {
		rows   oldRows
		before time.Time
	}{
		{expiredCodes, now.Add(-keepCodes)},
		{revokedTokens, now.Add(-keepTokens)},
		{revokedGrants, now.Add(-keepTokens)},
		{unusedGrants, now.Add(-refreshLife)},
		{unusedPasswordGrants, now.Add(-keepCodes)},
	} {
		for more := true; more; {
			n, err := deleteOld(ctx, s.DB, old.rows, old.before, purgeBatch)
			if err != nil {
				return fmt.Errorf("purge %s: %w", old.rows.table, err)
			}
			more = n == purgeBatch
		}
	}
	return nil
}
