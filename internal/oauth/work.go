package oauth

import (
	"context"
	"fmt"
	"time"
)

const (
	// keepCodes and keepTokens are how long what was used up is remembered, to
	// tell when it is used again.
	keepCodes  = 24 * time.Hour
	keepTokens = 30 * 24 * time.Hour
	// purgeBatch is how many rows one statement removes.
	purgeBatch = 1000
)

// Purge removes what no longer gives anything. The queue calls it each hour.
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
